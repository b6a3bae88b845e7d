package data

import (
	"context"
	"fmt"
	"strings"

	"github.com/jedib0t/go-pretty/v6/progress"
	"github.com/spf13/cobra"

	"runner.example/cmd/runner/cli"
	"runner.example/internal/console"
	"runner.example/node"
	"runner.example/node/admin"
)

const updateHelp = `Update the rows that match every --where condition. A value is a string without quotes, or
JSON; an empty value after the = is null in an optional field. Policies do not apply, but types and
limits do. Each 500 rows are one transaction.`

const deleteHelp = `Delete the rows that match every --where condition, and the rows that
@onDelete(cascade) deletes with them.
Policies do not apply. Each 500 rows, and the rows that refer to them, are one transaction.

If one transaction cannot hold the referring rows, use --cascade: it deletes the referring rows first,
also in transactions of 500 rows. After an error or an interruption, deleted rows stay deleted. Run
the command again to continue.`

// changeFlags are the flags that select the rows to change.
type changeFlags struct {
	rowFlags
	all bool
}

func (f *changeFlags) add(cmd *cobra.Command, does string) {
	cmd.Flags().StringArrayVar(&f.where, "where", nil,
		`condition: a field, an operator and a value; may be repeated, and all must match`)
	cmd.Flags().BoolVar(&f.all, "all", false, does+" every row")
}

func (f *changeFlags) request(entity string) (admin.ChangeRows, error) {
	list, err := f.rowFlags.request(entity)
	switch {
	case err != nil:
		return admin.ChangeRows{}, err
	case f.all == (len(f.where) > 0):
		return admin.ChangeRows{}, console.Misused("say which rows with --where, or --all for every one")
	}
	return admin.ChangeRows{Entity: entity, Where: list.Where}, nil
}

func updateCommand(c *cli.CLI) *cobra.Command {
	remote := cli.Remote{Slow: true}
	var flags changeFlags
	var set []string
	cmd := &cobra.Command{
		Use:               "update <entity>",
		ValidArgsFunction: cli.FirstArg(c.SchemaNames(cli.EntityNames), cobra.NoFileCompletions),
		Short:             "change rows",
		Long:              updateHelp,
		Example:           `  runner data update Order --where "status = draft" --set status=cancelled`,
		Args:              cli.Exactly(1, "the name of an entity"),
		RunE: func(cmd *cobra.Command, args []string) error {
			request, err := flags.request(args[0])
			if err != nil {
				return err
			}
			if request.Set, err = parseSet(set); err != nil {
				return err
			}
			return changeRows(c, cmd, remote, request, "updated", (*admin.Client).UpdateRows)
		},
	}
	flags.add(cmd, "change")
	cmd.Flags().StringArrayVar(&set, "set", nil, "a field and its new value, field=value; may be repeated")
	remote.AddFlags(cmd)
	return cmd
}

// parseSet parses the field=value of each --set.
func parseSet(list []string) (map[string]string, error) {
	set := map[string]string{}
	for _, text := range list {
		name, value, ok := strings.Cut(text, "=")
		name = strings.TrimSpace(name)
		if _, twice := set[name]; !ok || name == "" || twice {
			return nil, console.Invalid("--set %q: want field=value, each field once", text)
		}
		set[name] = value
	}
	if len(set) == 0 {
		return nil, console.Misused("say what to change: --set field=value")
	}
	return set, nil
}

func deleteCommand(c *cli.CLI) *cobra.Command {
	remote := cli.Remote{Slow: true}
	var flags changeFlags
	var cascade bool
	cmd := &cobra.Command{
		Use:               "delete <entity>",
		ValidArgsFunction: cli.FirstArg(c.SchemaNames(cli.EntityNames), cobra.NoFileCompletions),
		Short:             "delete rows",
		Long:              deleteHelp,
		Example:           `  runner data delete Order --where "status = cancelled" --where "createdAt < 2026-01-01T00:00:00Z"`,
		Args:              cli.Exactly(1, "the name of an entity"),
		RunE: func(cmd *cobra.Command, args []string) error {
			request, err := flags.request(args[0])
			if err != nil {
				return err
			}
			request.Cascade = cascade
			return changeRows(c, cmd, remote, request, "deleted", (*admin.Client).DeleteRows)
		},
	}
	flags.add(cmd, "delete")
	cmd.Flags().BoolVar(&cascade, "cascade", false, "delete referring rows first, in transactions of their own")
	remote.AddFlags(cmd)
	return cmd
}

// changeRows changes rows in batches, until there are no more.
func changeRows(c *cli.CLI, cmd *cobra.Command, remote cli.Remote, request admin.ChangeRows, done string,
	do func(*admin.Client, context.Context, admin.ChangeRows) (admin.ChangedRows, error)) error {
	return c.OnRemote(cmd, remote, node.Task{NeedsSchema: true, Do: func(ctx context.Context, node *admin.Client) (err error) {
		total, following := 0, 0
		b := c.NewBar("rows of "+request.Entity, 0, progress.UnitsDefault)
		for more := true; more && err == nil; {
			var batch admin.ChangedRows
			batch, err = do(node, ctx, request)
			total += batch.Count
			following += batch.Following
			b.Add(int64(batch.Count + batch.Following))
			request.Cursor = batch.NextCursor
			more = batch.NextCursor != "" || batch.More
		}
		b.End(err)
		if err != nil {
			if total+following > 0 {
				c.Say("", fmt.Sprintf("%s %s before that", done, rowsDone(total, following)))
			}
			return err
		}
		if c.JSON {
			answer := map[string]int{"count": total}
			if request.Cascade {
				answer["following"] = following
			}
			return c.PrintJSON(answer)
		}
		return c.Print(fmt.Sprintf("%s %s\n", done, rowsDone(total, following)))
	}})
}

// rowsDone formats the number of changed rows, and the number of referring rows that changed with them.
func rowsDone(total, following int) string {
	text := console.Plural(total, "row")
	if following > 0 {
		text += fmt.Sprintf(" and %d that referred to them", following)
	}
	return text
}
