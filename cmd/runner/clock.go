package main

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"runner.example/admin"
)

const clockHelp = `Show the time by which keys and sessions are judged, or make it the machine's.

That time goes on as time passes. A clock that went ahead by more than a day at
once is quarantined until it is right again, has gone on evenly for an hour, or
is accepted here.`

func (c *cli) clockCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "clock",
		Short: "show or accept the time that credentials are judged by",
		Long:  clockHelp,
	}
	cmd.AddCommand(c.clockShowCommand(), c.clockAcceptCommand())
	c.onlySubcommands(cmd)
	return cmd
}

func (c *cli) clockShowCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "show",
		Short:   "show the time of keys and sessions, and the clock's",
		Long:    "Show the time by which keys and sessions are judged, what the machine's clock\nshows, and why the two differ.",
		Example: "  runner clock show",
		Args:    atMost(0, "flags alone"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.withNode(cmd, errand{do: func(ctx context.Context, node *admin.Client) error {
				now, err := node.Clock(ctx)
				if err != nil {
					return err
				}
				if c.json {
					return c.printJSON(now)
				}
				return c.print(pairs([][2]string{
					{"time", exact(now.Time, "-")}, {"clock", exact(now.Wall, "-")}, {"quarantined", cmp.Or(now.Quarantined, "-")},
				}))
			}})
		},
	}
}

const clockAcceptHelp = `Make the time of the machine's clock the one by which keys and sessions are
judged. Look at the clock first: one that is ahead expires what is live, and what
has expired long enough is deleted after a week.

To go back to an earlier time, stop the server. What was made later is revoked:
its end was counted from a time that is yet to come.`

func (c *cli) clockAcceptCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "accept",
		Short:   "confirm that the clock is right",
		Long:    clockAcceptHelp,
		Example: "  runner clock accept",
		Args:    atMost(0, "flags alone"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.withNode(cmd, errand{do: func(ctx context.Context, node *admin.Client) error {
				change, err := node.AcceptClock(ctx)
				if err != nil {
					return err
				}
				if c.json {
					return c.printJSON(change)
				}
				if change.Revoked > 0 {
					c.say("", fmt.Sprintf("keys and sessions revoked because they were made later: %d", change.Revoked))
				}
				return c.print(change.To.Format(time.RFC3339) + "\n")
			}})
		},
	}
}
