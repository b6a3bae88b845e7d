package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"runner.example/cmd/runner/cli"
	"runner.example/internal/console"
	"runner.example/node"
	"runner.example/node/admin"
	"runner.example/state/audit"
)

func auditListCommand(c *program) *cobra.Command {
	var remote cli.Remote
	var request admin.ListAudit
	cmd := &cobra.Command{
		Use:   "list",
		Short: "list the newest records, or those from a number on",
		Args:  cli.AtMost(0, "flags alone"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.OnRemote(cmd, remote, node.Task{Do: func(ctx context.Context, node *admin.Client) error {
				entries, err := node.ListAudit(ctx, request)
				if err != nil {
					return err
				}
				return printAudit(&c.Console, entries)
			}})
		},
	}
	cmd.Flags().Uint64Var(&request.From, "from", 0, "sequence number of the first record (default: the newest records)")
	cmd.Flags().IntVar(&request.Limit, "limit", admin.DefaultRecords,
		fmt.Sprintf("how many records, at most %d", admin.MaxRecords))
	remote.AddFlags(cmd)
	return cmd
}

func printAudit(c *console.Console, entries []audit.Entry) error {
	if c.JSON {
		return c.PrintJSON(entries)
	}
	columns := []string{"SEQUENCE", "TIME", "ACTOR", "ACTION", "TARGET", "RESULT", "REASON", "ADDRESS", "COUNT"}
	ofCluster := slices.ContainsFunc(entries, func(e audit.Entry) bool { return e.Node != "" })
	if ofCluster {
		columns = append(columns, "NODE")
	}
	var rows [][]string
	for _, e := range entries {
		row := []string{
			strconv.FormatUint(e.Sequence, 10), e.Time.UTC().Format("2006-01-02 15:04:05Z"), actorText(e.Actor),
			e.Action, cmp.Or(e.Target, "-"), e.Result, cmp.Or(e.Reason, "-"), cmp.Or(e.Address, "-"),
			strconv.Itoa(max(e.Count, 1)),
		}
		if ofCluster {
			row = append(row, cmp.Or(e.Node, "-"))
		}
		rows = append(rows, row)
	}
	return c.PrintTable(columns, rows, "there are no records")
}

func actorText(a audit.Actor) string {
	if a.ID == "" {
		return a.Kind
	}
	return a.Kind + " " + a.ID
}
