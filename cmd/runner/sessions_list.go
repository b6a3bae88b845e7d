package main

import (
	"cmp"
	"context"

	"github.com/spf13/cobra"

	"runner.example/cmd/runner/cli"
	"runner.example/internal/console"
	"runner.example/keystore"
	"runner.example/node"
	"runner.example/node/admin"
)

func sessionsListCommand(c *program) *cobra.Command {
	var remote cli.Remote
	var request admin.ListSessions
	cmd := &cobra.Command{
		Use:   "list",
		Short: "list the sessions, without their cookies",
		Args:  cli.AtMost(0, "flags alone"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.OnRemote(cmd, remote, node.Task{Do: func(ctx context.Context, node *admin.Client) error {
				sessions, err := allSessions(ctx, node, request)
				if err != nil {
					return err
				}
				return printSessions(&c.Console, sessions)
			}})
		},
	}
	cmd.Flags().StringVar(&request.UserID, "user", "", "only sessions of this user")
	cmd.Flags().StringVar(&request.Tenant, "tenant", "", "only sessions of users of this tenant")
	cmd.Flags().BoolVar(&request.All, "all", false, "include sessions that ended in the last day")
	remote.AddFlags(cmd)
	return cmd
}

// allSessions reads all pages.
func allSessions(ctx context.Context, node *admin.Client, request admin.ListSessions) ([]keystore.Session, error) {
	sessions := []keystore.Session{}
	for {
		page, err := node.ListSessions(ctx, request)
		if err != nil {
			return nil, err
		}
		sessions = append(sessions, page.Sessions...)
		if page.NextCursor == "" {
			return sessions, nil
		}
		request.Cursor = page.NextCursor
	}
}

func printSessions(c *console.Console, sessions []keystore.Session) error {
	if c.JSON {
		return c.PrintJSON(sessions)
	}
	var rows [][]string
	for _, s := range sessions {
		rows = append(rows, []string{
			s.ID, s.UserID, cmp.Or(s.Tenant, "-"), rolesText(s), string(s.Status),
			readable(s.CreatedAt, "-"), readable(s.ExpiresAt, "-"), readable(s.LastSeenAt, "-"),
		})
	}
	return c.PrintTable([]string{"ID", "USER", "TENANT", "ROLES", "STATUS", "CREATED", "EXPIRES", "LAST SEEN"}, rows,
		"there are no sessions")
}
