package main

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"runner.example/cmd/runner/cli"
	"runner.example/internal/console"
	"runner.example/node"
	"runner.example/node/admin"
)

const clockHelp = `Show the time that keys and sessions are checked against (the credential time), or
set it to the machine's clock.

The credential time advances with the machine's uptime. A clock that jumps ahead by
more than a day is quarantined until it is right again, has run without further jumps
for an hour, or is accepted with this command.`

func clockCommand(c *program) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "clock",
		Short: "show or set the time that keys and sessions are checked against",
		Long:  clockHelp,
	}
	cmd.AddCommand(clockShowCommand(c), clockAcceptCommand(c))
	c.OnlySubcommands(cmd)
	return cmd
}

func clockShowCommand(c *program) *cobra.Command {
	var remote cli.Remote
	cmd := &cobra.Command{
		Use:     "show",
		Short:   "show the credential time and the machine's clock",
		Long:    "Show the time that keys and sessions are checked against, the machine's clock, and\nwhy the clock is quarantined if it is.",
		Example: "  runner clock show",
		Args:    cli.AtMost(0, "flags alone"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.OnRemote(cmd, remote, node.Task{Do: func(ctx context.Context, node *admin.Client) error {
				now, err := node.Clock(ctx)
				if err != nil {
					return err
				}
				if c.JSON {
					return c.PrintJSON(now)
				}
				return c.Print(console.Pairs([][2]string{
					{"time", exact(now.Time, "-")}, {"clock", exact(now.Wall, "-")}, {"quarantined", cmp.Or(now.Quarantined, "-")},
				}))
			}})
		},
	}
	remote.AddFlags(cmd)
	return cmd
}

const clockAcceptHelp = `Set the time that keys and sessions are checked against to the machine's clock.
Check the clock first. If it is ahead, live keys and sessions expire, and those that
are long expired are deleted after a week.

To set the time back, stop the server first. Keys and sessions created after the new
time are revoked, because their lifetimes were counted from a future time.`

func clockAcceptCommand(c *program) *cobra.Command {
	var remote cli.Remote
	cmd := &cobra.Command{
		Use:     "accept",
		Short:   "set the credential time to the machine's clock",
		Long:    clockAcceptHelp,
		Example: "  runner clock accept",
		Args:    cli.AtMost(0, "flags alone"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.OnRemote(cmd, remote, node.Task{Do: func(ctx context.Context, node *admin.Client) error {
				change, err := node.AcceptClock(ctx)
				if err != nil {
					return err
				}
				if c.JSON {
					return c.PrintJSON(change)
				}
				if change.Revoked > 0 {
					c.Say("", fmt.Sprintf("keys and sessions revoked because they were created after that time: %d", change.Revoked))
				}
				return c.Print(change.To.Format(time.RFC3339) + "\n")
			}})
		},
	}
	remote.AddFlags(cmd)
	return cmd
}
