package main

import (
	"cmp"
	"context"
	"time"

	"github.com/spf13/cobra"

	"runner.example/cmd/runner/cli"
	"runner.example/internal/console"
	"runner.example/keystore"
	"runner.example/node"
	"runner.example/node/admin"
)

func apiKeysListCommand(c *program) *cobra.Command {
	var remote cli.Remote
	var request admin.ListKeys
	cmd := &cobra.Command{
		Use:   "list",
		Short: "list the keys, without their tokens",
		Args:  cli.AtMost(0, "flags alone"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.OnRemote(cmd, remote, node.Task{Do: func(ctx context.Context, node *admin.Client) error {
				keys, err := allKeys(ctx, node, request)
				if err != nil {
					return err
				}
				return printKeys(&c.Console, keys)
			}})
		},
	}
	cmd.Flags().StringVar(&request.Scope, "scope", "", "only keys of this scope")
	cli.CompleteFlag(cmd, "scope", c.SchemaNames(cli.ScopeNames))
	cmd.Flags().StringVar(&request.Owner, "owner", "", "only keys that this user or key created, by its id")
	cmd.Flags().BoolVar(&request.All, "all", false, "include expired and revoked keys")
	remote.AddFlags(cmd)
	return cmd
}

// allKeys reads all pages.
func allKeys(ctx context.Context, node *admin.Client, request admin.ListKeys) ([]keystore.Key, error) {
	keys := []keystore.Key{}
	for {
		page, err := node.ListKeys(ctx, request)
		if err != nil {
			return nil, err
		}
		keys = append(keys, page.Keys...)
		if page.NextCursor == "" {
			return keys, nil
		}
		request.Cursor = page.NextCursor
	}
}

func printKeys(c *console.Console, keys []keystore.Key) error {
	if c.JSON {
		return c.PrintJSON(keys)
	}
	var rows [][]string
	for _, key := range keys {
		rows = append(rows, []string{
			key.ID, key.Scope, cmp.Or(key.Name, "-"), string(key.Status), key.Hint, cmp.Or(key.Tenant, "-"), ownerText(key),
			readable(key.CreatedAt, "-"), readable(key.ExpiresAt, "never"), readable(key.LastUsedAt, "never"),
		})
	}
	return c.PrintTable([]string{"ID", "SCOPE", "NAME", "STATUS", "HINT", "TENANT", "OWNER", "CREATED", "EXPIRES",
		"LAST USED"}, rows, "there are no keys")
}

// ownerText names the owner of a key with its kind.
func ownerText(key keystore.Key) string {
	if key.Owner == "" {
		return "-"
	}
	return string(key.OwnerKind) + " " + key.Owner
}

// readable formats a time for tables, in UTC; none stands for the zero time.
func readable(t time.Time, none string) string {
	if t.IsZero() {
		return none
	}
	return t.UTC().Format("2006-01-02 15:04Z")
}
