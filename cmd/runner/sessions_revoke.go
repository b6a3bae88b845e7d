package main

import (
	"context"

	"github.com/spf13/cobra"

	"runner.example/cmd/runner/cli"
	"runner.example/internal/console"
	"runner.example/node"
	"runner.example/node/admin"
)

const revokeSessionsHelp = `Revoke one session, or with --user all sessions of a user, for example when the user was removed or
the user's roles have changed. A revocation holds when the command has returned.`

const revokeSessionsExample = `  runner sessions revoke ses_01m88g1a9ssnwc8bc137kh77rf
  runner sessions revoke --user ada
  runner sessions revoke --user ada --tenant acme --except ses_01m88g1a9ssnwc8bc137kh77rf`

func sessionsRevokeCommand(c *program) *cobra.Command {
	var remote cli.Remote
	var request admin.RevokeSessions
	cmd := &cobra.Command{
		Use:     "revoke <id> | --user <id>",
		Short:   "revoke a session, or all sessions of a user",
		Long:    revokeSessionsHelp,
		Example: revokeSessionsExample,
		Args:    cli.AtMost(1, "the id of a session, or --user"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if (len(args) == 1) == cmd.Flags().Changed("user") {
				return console.Misused("runner sessions revoke: it takes the id of a session, or --user")
			}
			if len(args) == 1 && (request.Tenant != "" || request.Except != "") {
				return console.Misused("runner sessions revoke: --tenant and --except belong to --user")
			}
			return c.OnRemote(cmd, remote, node.Task{Do: func(ctx context.Context, node *admin.Client) error {
				if len(args) == 1 {
					return revokeSession(ctx, c, node, args[0])
				}
				revoked, err := node.RevokeSessions(ctx, request)
				if err != nil {
					return err
				}
				return c.PrintChanged("revoked", console.Plural(revoked.Item.Count, "session"), revoked, revoked.Nodes)
			}})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&request.UserID, "user", "", "revoke all sessions of this user")
	flags.StringVar(&request.Tenant, "tenant", "",
		"with --user: only the user's sessions in this tenant (default: in every tenant)")
	flags.StringVar(&request.Except, "except", "", "with --user: the id of a session that remains")
	remote.AddFlags(cmd)
	return cmd
}

func revokeSession(ctx context.Context, c *program, node *admin.Client, id string) error {
	s, err := node.RevokeSession(ctx, id)
	if err != nil {
		return err
	}
	return c.PrintChanged("revoked", s.Item.ID, s, s.Nodes)
}
