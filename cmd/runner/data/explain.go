package data

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"runner.example/cmd/runner/cli"
	"runner.example/internal/console"
	"runner.example/node"
	"runner.example/node/admin"
)

const explainHelp = `Read a page of rows, and print how the query found them: the index, the fields that narrow the scan, the
rules that decide what the caller may read, and the number of rows that were read. If another
index would serve the query better, it is printed as the schema declares it.

The caller is an operator. With --as it is a key of a scope, a session or an anonymous caller, to
which the policies and grants of the schema apply.`

func explainCommand(c *cli.CLI) *cobra.Command {
	remote := cli.Remote{Slow: true}
	var flags rowFlags
	var request admin.ExplainRows
	limit := 100
	cmd := &cobra.Command{
		Use:               "explain <entity>",
		ValidArgsFunction: cli.FirstArg(c.SchemaNames(cli.EntityNames), cobra.NoFileCompletions),
		Short:             "print how a query finds its rows",
		Long:              explainHelp,
		Example: `  runner data explain Order --where "status = open" --order "createdAt desc"
  runner data explain Order --where "total > 10" --as reader --caller-tenant acme`,
		Args: cli.Exactly(1, "the name of an entity"),
		RunE: func(cmd *cobra.Command, args []string) error {
			list, err := flags.request(args[0])
			if err != nil {
				return err
			}
			if limit < 1 || limit > 1000 {
				return console.Invalid("--limit must be between 1 and 1000")
			}
			list.Limit = limit
			request.ListRows = list
			return c.OnRemote(cmd, remote, node.Task{NeedsSchema: true, Do: func(ctx context.Context, node *admin.Client) error {
				found, err := node.ExplainRows(ctx, request)
				if err != nil {
					return err
				}
				return printExplanation(c, found)
			}})
		},
	}
	flags.add(cmd)
	cmd.Flags().IntVar(&limit, "limit", limit, "rows of the page")
	cmd.Flags().StringVar(&request.As, "as", "", "the caller: the name of a scope, session or anonymous (default: an operator)")
	cmd.Flags().StringVar(&request.User, "user", "", "with --as session: the id of the user")
	cmd.Flags().StringArrayVar(&request.Roles, "role", nil, "with --as session: a role of the user; may be repeated")
	cmd.Flags().StringVar(&request.CallerTenant, "caller-tenant", "", "with --as: the tenant of the caller")
	remote.AddFlags(cmd)
	return cmd
}

func printExplanation(c *cli.CLI, found admin.ExplainedRows) error {
	if c.JSON {
		return c.PrintJSON(found)
	}
	orNone := func(list []string) string {
		if len(list) == 0 {
			return "nothing"
		}
		return strings.Join(list, "; ")
	}
	order := "rows are read in the order of the page"
	if !found.Sorted {
		order = "all rows are read, then sorted"
	}
	returned := console.Plural(found.Returned, "row")
	if found.More {
		returned += ", and more follow"
	}
	table := [][]string{
		{"reads", found.Scan},
		{"narrowed by", orNone(found.Narrowed)},
		{"order", order},
		{"rules", orNone(found.Rules)},
		{"rows read", fmt.Sprint(found.Scanned)},
		{"hidden by rules", fmt.Sprint(found.Hidden)},
		{"rejected by where", fmt.Sprint(found.Rejected)},
		{"page", returned},
	}
	if found.Missing != "" {
		table = append(table, []string{"index to add", found.Missing})
	}
	return c.PrintTable(nil, table, "")
}
