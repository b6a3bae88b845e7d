package main

import (
	"context"

	"github.com/spf13/cobra"

	"runner.example/cmd/runner/cli"
	"runner.example/node"
	"runner.example/node/admin"
)

func keysRevokeCommand(c *program) *cobra.Command {
	var remote cli.Remote
	cmd := &cobra.Command{
		Use:   "revoke <id>",
		Short: "revoke a platform key permanently",
		Args:  cli.ExactlyOne("the id of a platform key"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.OnRemote(cmd, remote, node.Task{Do: func(ctx context.Context, node *admin.Client) error {
				key, err := node.RevokePlatformKey(ctx, args[0])
				if err != nil {
					return err
				}
				return c.PrintChanged("revoked", key.Item.ID, key, key.Nodes)
			}})
		},
	}
	remote.AddFlags(cmd)
	return cmd
}
