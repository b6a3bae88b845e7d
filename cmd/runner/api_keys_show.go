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

func apiKeysShowCommand(c *program) *cobra.Command {
	var remote cli.Remote
	cmd := &cobra.Command{
		Use:   "show <id>",
		Short: "show a key without its token",
		Args:  cli.ExactlyOne("the id of a key"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.OnRemote(cmd, remote, node.Task{Do: func(ctx context.Context, node *admin.Client) error {
				key, err := node.Key(ctx, args[0])
				if err != nil {
					return err
				}
				return printKey(&c.Console, key)
			}})
		},
	}
	remote.AddFlags(cmd)
	return cmd
}

func printKey(c *console.Console, key keystore.Key) error {
	if c.JSON {
		return c.PrintJSON(key)
	}
	return c.Print(console.Pairs([][2]string{
		{"id", key.ID},
		{"scope", key.Scope},
		{"capability", key.Capability},
		{"name", cmp.Or(key.Name, "-")},
		{"status", string(key.Status)},
		{"hint", key.Hint},
		{"tenant", cmp.Or(key.Tenant, "-")},
		{"owner", ownerText(key)},
		{"metadata", cmp.Or(string(key.Metadata), "-")},
		{"createdAt", exact(key.CreatedAt, "-")},
		{"expiresAt", exact(key.ExpiresAt, "never")},
		{"rotatedAt", exact(key.RotatedAt, "-")},
		{"previousTokenExpiresAt", exact(key.PreviousTokenExpiresAt, "-")},
		{"revokedAt", exact(key.RevokedAt, "-")},
		{"lastUsedAt", exact(key.LastUsedAt, "never")},
	}))
}
