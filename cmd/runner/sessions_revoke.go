package main

import (
	"context"

	"github.com/spf13/cobra"

	"runner.example/admin"
	"runner.example/cmd/runner/cli"
	"runner.example/internal/console"
	"runner.example/internal/fault"
	"runner.example/node"
)

func sessionsRevokeCommand(c *program) *cobra.Command {
	return &cobra.Command{
		Use:   "revoke <id>",
		Short: "revoke a session",
		Args:  cli.ExactlyOne("the id of a session"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.OnNode(cmd, node.Task{Do: func(ctx context.Context, node *admin.Client) error {
				s, err := node.RevokeSession(ctx, args[0])
				if fault.CodeOf(err) == fault.NotFound {
					return &console.Failure{Status: console.StatusNotFound, Err: err, Hint: "runner sessions list --all shows every session"}
				}
				if err != nil {
					return err
				}
				return c.PrintChanged("revoked", s.Item.ID, s, s.Nodes)
			}})
		},
	}
}
