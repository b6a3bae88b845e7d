package main

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"runner.example/cmd/runner/cli"
	"runner.example/internal/console"
	"runner.example/node"
	"runner.example/node/admin"
)

const recordedHelp = `List, show, export and delete the recordings of failed requests, job runs and function calls.

A node records failures if [record] failures in runner.toml is not 0. runner dev keeps the last 100.
A recording has the request, the caller, and each host call with its answer. runner replay runs the
handler again with a recording. Secrets and credentials are replaced by their names. Personal data
is not replaced.

Recordings are files of one node, encrypted with a key of that node.`

func recordedCommand(c *program) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "recorded",
		Short: "list, show, export and delete recordings of failures",
		Long:  recordedHelp,
	}
	cmd.AddCommand(recordedListCommand(c), recordedShowCommand(c), recordedExportCommand(c), recordedDeleteCommand(c))
	c.OnlySubcommands(cmd)
	return cmd
}

func recordedListCommand(c *program) *cobra.Command {
	var remote cli.Remote
	var request admin.ListRecorded
	cmd := &cobra.Command{
		Use:   "list",
		Short: "list recordings, newest first",
		Args:  cli.AtMost(0, "flags alone"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.OnRemote(cmd, remote, node.Task{Do: func(ctx context.Context, node *admin.Client) error {
				runs, err := node.ListRecorded(ctx, request)
				if err != nil {
					return err
				}
				if c.JSON {
					return c.PrintJSON(runs)
				}
				var rows [][]string
				for _, r := range runs {
					rows = append(rows, []string{
						r.ID, r.Time.UTC().Format("2006-01-02 15:04:05Z"), r.Kind, r.Method + " " + r.Route, strconv.Itoa(r.Status),
						strconv.Itoa(r.Calls), cmp.Or(console.Harmless(r.Failure), r.Code, "-"),
					})
				}
				return c.PrintTable([]string{"REQUEST", "TIME", "KIND", "ROUTE", "STATUS", "CALLS", "FAILURE"}, rows, "no recordings")
			}})
		},
	}
	cmd.Flags().IntVar(&request.Limit, "limit", admin.DefaultRecords,
		fmt.Sprintf("maximum number of recordings, at most %d", admin.MaxRecords))
	cmd.Flags().BoolVar(&request.Failures, "failures", false, "list only failures, no samples")
	remote.AddFlags(cmd)
	return cmd
}

func recordedShowCommand(c *program) *cobra.Command {
	var remote cli.Remote
	cmd := &cobra.Command{
		Use:   "show <request id>",
		Short: "show a recording: the request, each host call with its answer, and the failure",
		Args:  cli.ExactlyOne("the id of a request"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.OnRemote(cmd, remote, node.Task{Do: func(ctx context.Context, node *admin.Client) error {
				r, err := node.ShowRecorded(ctx, args[0])
				switch {
				case err != nil:
					return err
				case c.JSON:
					return c.PrintJSON(r)
				}
				var text strings.Builder
				for _, line := range r.Lines() {
					text.WriteString(console.Harmless(line) + "\n")
				}
				return c.Print(text.String())
			}})
		},
	}
	remote.AddFlags(cmd)
	return cmd
}

func recordedExportCommand(c *program) *cobra.Command {
	var remote cli.Remote
	cmd := &cobra.Command{
		Use:   "export <request id>",
		Short: "print a recording as a file that runner replay reads",
		Args:  cli.ExactlyOne("the id of a request"),
		Example: `  runner recorded export 01kb0p0f5mzv4n7q8r9s0t1v2w >failure.json
  runner replay failure.json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.OnRemote(cmd, remote, node.Task{Do: func(ctx context.Context, node *admin.Client) error {
				text, err := node.ExportRecorded(ctx, args[0])
				if err != nil {
					return err
				}
				c.Say("", "the file may contain personal data of the request and its rows; secrets and credentials are replaced by their names")
				return c.PrintJSON(text)
			}})
		},
	}
	remote.AddFlags(cmd)
	return cmd
}

func recordedDeleteCommand(c *program) *cobra.Command {
	var remote cli.Remote
	var all bool
	cmd := &cobra.Command{
		Use:   "delete <request id>... | --all",
		Short: "delete recordings",
		RunE: func(cmd *cobra.Command, args []string) error {
			if all == (len(args) > 0) {
				return console.Misused("runner recorded delete: name the ids of requests, or use --all")
			}
			return c.OnRemote(cmd, remote, node.Task{Do: func(ctx context.Context, node *admin.Client) error {
				n, err := node.DeleteRecorded(ctx, admin.DeleteRecorded{IDs: args, All: all})
				switch {
				case err != nil:
					return err
				case c.JSON:
					return c.PrintJSON(admin.DeletedRecorded{Count: n})
				}
				return c.Print(fmt.Sprintf("deleted %d\n", n))
			}})
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "delete all recordings of the node")
	remote.AddFlags(cmd)
	return cmd
}
