package main

import (
	"context"

	"github.com/spf13/cobra"

	"runner.example/cmd/runner/cli"
	"runner.example/internal/console"
	"runner.example/internal/settings"
	"runner.example/node"
	"runner.example/node/admin"
)

const rotateHelp = `Give a key a new token, printed once as by create. Each older token ends after the grace
period, or at its own end if that is sooner; without a grace period all end at once. With one, a
key has at most 5 live tokens: a rotation beyond that is refused.`

func apiKeysRotateCommand(c *program) *cobra.Command {
	cmd := rotateCommand(c, func(ctx context.Context, node *admin.Client, request admin.RotateKey) (cli.IssuedSecret, error) {
		key, err := node.RotateKey(ctx, request)
		return c.newKey(key), err
	}, node.Task{NeedsSchema: true})
	cmd.Example = "  runner api-keys rotate key_01jz… --grace-period 24h"
	return cmd
}

// rotateCommand returns a command that gives a key a new token.
func rotateCommand(
	c *program, do func(context.Context, *admin.Client, admin.RotateKey) (cli.IssuedSecret, error), task node.Task,
) *cobra.Command {
	var remote cli.Remote
	var grace, out string
	cmd := &cobra.Command{
		Use:   "rotate <id>",
		Short: "give a key a new token and print it once",
		Long:  rotateHelp,
		Args:  cli.ExactlyOne("the id of a key"),
		RunE: func(cmd *cobra.Command, args []string) error {
			request := admin.RotateKey{ID: args[0]}
			if grace != "" {
				d, err := settings.ParseLifetime(grace, "h")
				if err != nil {
					return console.Invalid("--grace-period: %v", err)
				}
				request.GracePeriod = admin.SecondsOf(d)
			}
			return c.IssueSecret(cmd, remote, out, task,
				func(ctx context.Context, node *admin.Client) (cli.IssuedSecret, error) { return do(ctx, node, request) })
		},
	}
	cmd.Flags().StringVar(&grace, "grace-period", "",
		"how long older tokens stay valid, such as 24h (default: not at all)")
	cmd.Flags().StringVar(&out, "out", "", "write the token to this new file, mode 0600, and not to stdout")
	remote.AddFlags(cmd)
	return cmd
}
