package data

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"runner.example/cmd/runner/cli"
	"runner.example/cmd/runner/data/rowfile"
	"runner.example/internal/console"
	"runner.example/internal/fault"
	"runner.example/node"
	"runner.example/node/admin"
	"runner.example/node/app"
	"runner.example/runtime"
)

const help = `List, change, import and export the rows of the schema's entities as an operator. Policies,
grants and tenants do not restrict these commands, and hidden fields are included. Changes
are recorded in the audit log.

In a schema without entities, rows do not say which tenant they belong to: --tenant
restricts list, get and export to the rows of one tenant, and import assigns its rows to
it.`

// Command returns the command data. functions has the options of a runtime in this process.
func Command(c *cli.CLI, functions func(*app.App) runtime.Options) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "data",
		Short: "list, show, change, import and export rows",
		Long:  help,
		Example: `  runner data list Order --where "status = open" --order "createdAt desc"
  runner data get Order 01k4x9m2v7q8r5s6t7u8v9w0x1
  runner data export Order --out orders.jsonl
  runner data import Order orders.csv`,
	}
	cmd.AddCommand(listCommand(c), getCommand(c), updateCommand(c), deleteCommand(c), importCommand(c),
		exportCommand(c), explainCommand(c), eachCommand(c, functions), dropCommand(c))
	c.OnlySubcommands(cmd)
	return cmd
}

// operators are those of conditions; an operator stands before its own prefixes.
var operators = []string{"!=", "<=", ">=", "=", "<", ">", "startsWith", "contains"}

// parseCondition parses `field operator value` of a --where.
func parseCondition(text string) (admin.Condition, error) {
	text = strings.TrimSpace(text)
	name := strings.IndexFunc(text, func(r rune) bool {
		return r != '_' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	})
	if name > 0 {
		rest := strings.TrimSpace(text[name:])
		for _, op := range operators {
			value, ok := strings.CutPrefix(rest, op)
			if !ok || op >= "a" && !strings.HasPrefix(value, " ") { // a space must follow an operator that is a word
				continue
			}
			return admin.Condition{Field: text[:name], Operator: op, Value: strings.TrimSpace(value)}, nil
		}
	}
	return admin.Condition{}, console.Invalid(
		"--where %q: want a field, one of %s, and a value: --where \"total > 10\"", text, strings.Join(operators, " "))
}

// parseOrder parses `field [asc|desc]` of an --order.
func parseOrder(text string) ([2]string, error) {
	switch words := strings.Fields(text); {
	case len(words) == 1:
		return [2]string{words[0], "asc"}, nil
	case len(words) == 2 && (words[1] == "asc" || words[1] == "desc"):
		return [2]string{words[0], words[1]}, nil
	}
	return [2]string{}, console.Invalid("--order %q: want a field and asc or desc: --order \"createdAt desc\"", text)
}

// rowFlags are the flags that select rows.
type rowFlags struct {
	where, order []string
	tenant       string
}

func (f *rowFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&f.where, "where", nil,
		`condition: a field, an operator and a value; may be repeated, and all must match`)
	cmd.Flags().StringArrayVar(&f.order, "order", nil, `field to order by, with asc or desc; may be repeated`)
	addTenant(cmd, &f.tenant)
}

func addTenant(cmd *cobra.Command, tenant *string) {
	cmd.Flags().StringVar(tenant, "tenant", "", "rows of this tenant, in a schema without entities (default: all)")
}

// orNone returns nil for a flag that was not given.
func orNone(tenant string) *string {
	if tenant == "" {
		return nil
	}
	return &tenant
}

func (f *rowFlags) request(entity string) (admin.ListRows, error) {
	request := admin.ListRows{Entity: entity, Tenant: orNone(f.tenant)}
	for _, text := range f.where {
		condition, err := parseCondition(text)
		if err != nil {
			return request, err
		}
		request.Where = append(request.Where, condition)
	}
	for _, text := range f.order {
		order, err := parseOrder(text)
		if err != nil {
			return request, err
		}
		request.OrderBy = append(request.OrderBy, order)
	}
	return request, nil
}

// eachPage reads rows page by page, until there are no more or enough. Pages are smaller
// where the rows are too long for one answer.
func eachPage(ctx context.Context, node *admin.Client, request admin.ListRows, enough int,
	do func(*admin.RowPage) error) error {
	most := 1000
	for got := 0; ; {
		request.Limit = most
		if enough > 0 {
			request.Limit = min(most, enough-got)
		}
		page, err := node.ListRows(ctx, request)
		if fault.CodeOf(err) == fault.TooLarge && request.Limit > 1 {
			most = request.Limit / 2
			continue
		}
		if err != nil {
			return err
		}
		if err := do(&page); err != nil {
			return err
		}
		got += len(page.Rows) + len(page.Cells)
		if page.NextCursor == "" || enough > 0 && got >= enough {
			return nil
		}
		request.Cursor = page.NextCursor
	}
}

func listCommand(c *cli.CLI) *cobra.Command {
	remote := cli.Remote{Slow: true}
	var flags rowFlags
	limit := 100
	cmd := &cobra.Command{
		Use:               "list <entity>",
		ValidArgsFunction: cli.FirstArg(c.SchemaNames(cli.EntityNames), cobra.NoFileCompletions),
		Short:             "list rows",
		Example:           `  runner data list Order --where "status = open" --where "total > 10" --order "createdAt desc" --limit 20`,
		Args:              cli.Exactly(1, "the name of an entity"),
		RunE: func(cmd *cobra.Command, args []string) error {
			request, err := flags.request(args[0])
			if err != nil {
				return err
			}
			if limit < 1 {
				return console.Invalid("--limit must be at least 1")
			}
			return c.OnRemote(cmd, remote, node.Task{NeedsSchema: true, Do: func(ctx context.Context, node *admin.Client) error {
				rows := []json.RawMessage{}
				err := eachPage(ctx, node, request, limit, func(page *admin.RowPage) error {
					rows = append(rows, page.Rows...)
					return nil
				})
				if err != nil {
					return err
				}
				return printRows(c, args[0], rows)
			}})
		},
	}
	flags.add(cmd)
	cmd.Flags().IntVar(&limit, "limit", limit, "maximum number of rows")
	remote.AddFlags(cmd)
	return cmd
}

// printRows writes rows as a table. Its columns are the fields of the first rows, in their
// order.
func printRows(c *cli.CLI, entity string, rows []json.RawMessage) error {
	if c.JSON {
		return c.PrintJSON(rows)
	}
	var heading []string
	column := map[string]int{}
	var table [][]string
	for _, row := range rows {
		names, values, err := rowfile.Members(row)
		if err != nil {
			return fmt.Errorf("read a row of %s: %w", entity, err)
		}
		cells := make([]string, len(heading))
		for i, name := range names {
			at, ok := column[name]
			if !ok {
				at = len(heading)
				column[name] = at
				heading = append(heading, name)
				cells = append(cells, "")
			}
			cells[at] = rowfile.Cell(values[i])
		}
		table = append(table, cells)
	}
	for i := range table {
		for len(table[i]) < len(heading) {
			table[i] = append(table[i], "")
		}
	}
	return c.PrintTable(heading, table, "there are no matching rows of "+entity)
}
