package main

import (
	"cmp"
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"runner.example/cmd/runner/cli"
	"runner.example/internal/console"
	"runner.example/node"
	"runner.example/node/admin"
	"runner.example/node/cluster"
)

const levelHelp = `Show the level of the data, and which levels the runner of each node knows, or raise the level.

The level says in which form a node writes its log and its records. A newer runner keeps the level, so
the older one can be used again. After the last node is upgraded, raise the level. It cannot be lowered.`

func levelCommand(c *program) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "level",
		Short: "show or raise the level of the data, after an upgrade",
		Long:  levelHelp,
	}
	cmd.AddCommand(levelShowCommand(c), levelRaiseCommand(c))
	c.OnlySubcommands(cmd)
	return cmd
}

func levelShowCommand(c *program) *cobra.Command {
	var remote cli.Remote
	cmd := &cobra.Command{
		Use:     "show",
		Short:   "show the level of the data, and which levels each node knows",
		Long:    "Show the level of the data, and which levels the runner of each node knows. NODE is - on a standalone server.",
		Example: "  runner level show --data n1\n  runner level show --to https://edge-1.example.com:9443 --key-file read.key",
		Args:    cli.AtMost(0, "flags alone"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.OnRemote(cmd, remote, node.Task{Do: func(ctx context.Context, node *admin.Client) error {
				o, err := node.Levels(ctx)
				if err != nil {
					return err
				}
				if c.JSON {
					return c.PrintJSON(o)
				}
				return c.printLevels(o)
			}})
		},
	}
	remote.AddFlags(cmd)
	return cmd
}

func (c *program) printLevels(o cluster.LevelOverview) error {
	var rows [][]string
	for _, n := range o.Nodes {
		knows := fmt.Sprint(n.Levels.Newest)
		if n.Levels.Oldest != n.Levels.Newest {
			knows = fmt.Sprintf("%d to %d", n.Levels.Oldest, n.Levels.Newest)
		}
		state := "ready for level " + strconv.Itoa(o.Target())
		switch {
		case n.Error != "":
			state = "does not answer: start it, or run runner cluster leave " + n.Node
		case !n.Levels.Has(o.Target()):
			state = "install a newer runner"
		case o.Level == o.Target():
			state = "nothing to do"
		}
		rows = append(rows, []string{cmp.Or(n.Node, "-"), cmp.Or(n.Version, "-"), knows, state})
	}
	if err := c.Print(console.Pairs([][2]string{{"level", fmt.Sprint(o.Level)}})); err != nil {
		return err
	}
	return c.PrintTable([]string{"NODE", "RUNNER", "KNOWS", "STATE"}, rows, "no nodes")
}

const levelRaiseHelp = `Raise the level of the data: to the newest one that a node knows, or to the given one. All nodes of a
cluster change at the same commit. A level cannot be lowered: older runners then refuse the data, and
backups of it.

It is refused, with the names of the nodes, if one knows only lower levels or does not answer.

Exit status 5: refused.`

func levelRaiseCommand(c *program) *cobra.Command {
	var remote cli.Remote
	cmd := &cobra.Command{
		Use:     "raise [level]",
		Short:   "raise the level of the data, after all nodes are upgraded",
		Long:    levelRaiseHelp,
		Example: "  runner level raise --data n1",
		Args:    cli.AtMost(1, "a level"),
		RunE: func(cmd *cobra.Command, args []string) error {
			var request admin.RaiseLevel
			if len(args) == 1 {
				var err error
				if request.To, err = strconv.Atoi(args[0]); err != nil || request.To < 1 {
					return console.Invalid("%q is not a level: runner level show lists them", args[0])
				}
			}
			return c.OnRemote(cmd, remote, node.Task{Do: func(ctx context.Context, node *admin.Client) error {
				raised, err := node.RaiseLevel(ctx, request)
				if err != nil {
					return err
				}
				if c.JSON {
					return c.PrintJSON(raised)
				}
				text := fmt.Sprintf("level raised from %d to %d\n", raised.Before, raised.Level)
				if raised.Before == raised.Level {
					text = fmt.Sprintf("the level is %d already\n", raised.Level)
				}
				return c.Print(text)
			}})
		},
	}
	remote.AddFlags(cmd)
	return cmd
}
