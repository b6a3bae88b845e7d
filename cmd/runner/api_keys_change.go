package main

import (
	"context"

	"github.com/spf13/cobra"

	"runner.example/cmd/runner/cli"
	"runner.example/keystore"
	"runner.example/node"
	"runner.example/node/admin"
)

func apiKeysRevokeCommand(c *program) *cobra.Command {
	return changeCommand(c, "revoke", "revoke a key permanently", "revoked", (*admin.Client).RevokeKey)
}

func apiKeysDisableCommand(c *program) *cobra.Command {
	return changeCommand(c, "disable", "disable a key", "disabled", (*admin.Client).DisableKey)
}

func apiKeysEnableCommand(c *program) *cobra.Command {
	enable := func(node *admin.Client, ctx context.Context, id string) (admin.Changed[keystore.Key], error) {
		key, err := node.EnableKey(ctx, id)
		return admin.Changed[keystore.Key]{Item: key}, err
	}
	return changeCommand(c, "enable", "enable a disabled key", "enabled", enable)
}

// changeCommand returns a command that changes the state of one key.
func changeCommand(c *program, verb, short, done string,
	change func(*admin.Client, context.Context, string) (admin.Changed[keystore.Key], error)) *cobra.Command {
	var remote cli.Remote
	cmd := &cobra.Command{
		Use:   verb + " <id>",
		Short: short,
		Args:  cli.ExactlyOne("the id of a key"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.OnRemote(cmd, remote, node.Task{Do: func(ctx context.Context, node *admin.Client) error {
				key, err := change(node, ctx, args[0])
				if err != nil {
					return err
				}
				return c.PrintChanged(done, key.Item.ID, key, key.Nodes)
			}})
		},
	}
	remote.AddFlags(cmd)
	return cmd
}
