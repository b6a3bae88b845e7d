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

const dropHelp = `Delete the values of a field, or the rows of an entity, for good. The active release must
declare it with @removed, or must not declare it. Releases that declare it can still be activated: the
field is new then, so a required one needs a default.

The command asks first, unless --yes is given. Each 500 rows are one transaction. After an
interruption, run it again: it continues with the rows that still have the field.`

func dropCommand(c *cli.CLI) *cobra.Command {
	remote := cli.Remote{Slow: true}
	var yes bool
	cmd := &cobra.Command{
		Use:               "drop <entity>[.<field>]",
		ValidArgsFunction: cobra.NoFileCompletions,
		Short:             "permanently delete a removed field or entity",
		Long:              dropHelp,
		Example: `  runner data drop Order.note
  runner data drop Coupon --yes`,
		Args: cli.Exactly(1, "the name of an entity, or of one of its fields: Order.note"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.OnRemote(cmd, remote, node.Task{Do: func(ctx context.Context, node *admin.Client) error {
				return drop(ctx, c, node, args[0], yes)
			}})
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	remote.AddFlags(cmd)
	return cmd
}

// dropped is the document of `runner data drop --json`.
type dropped struct {
	Name string `json:"name"`
	// Count is the number of rows that were changed or deleted.
	Count int `json:"count"`
}

func drop(ctx context.Context, c *cli.CLI, node *admin.Client, name string, yes bool) error {
	request := admin.DropKept{Name: name, Count: true}
	all, err := node.DropKept(ctx, request)
	if err != nil {
		return err
	}
	what := fmt.Sprintf("%s of %s", console.Plural(all.Rows, "row"), name)
	if entity, _, isField := strings.Cut(name, "."); isField {
		what = fmt.Sprintf("the values of %s in %s of %s", name, console.Plural(all.Rows, "row"), entity)
	}
	if !yes {
		if !c.CanAsk() {
			return console.Misused("this deletes %s for good: confirm it with --yes", what)
		}
		if yes, err = c.Confirm(ctx, "delete "+what+" for good?"); err != nil {
			return err
		}
		if !yes {
			return &console.Failure{Status: console.StatusFailed, Err: fmt.Errorf("nothing was deleted")}
		}
	}
	bar := c.NewBar("rows", int64(all.Rows), progress.UnitsDefault)
	done := dropped{Name: name}
	request.Count = false
	for more := true; more && err == nil; {
		var batch admin.Dropped
		batch, err = node.DropKept(ctx, request)
		done.Count += batch.Count
		bar.Add(int64(batch.Rows))
		request.Cursor = batch.NextCursor
		more = batch.NextCursor != ""
	}
	bar.End(err)
	if err != nil {
		if done.Count > 0 {
			c.Say("", fmt.Sprintf("%s changed before that; the same command continues", console.Plural(done.Count, "row")))
		}
		return err
	}
	if c.JSON {
		return c.PrintJSON(done)
	}
	return c.Print(fmt.Sprintf("dropped %s from %s\n", name, console.Plural(done.Count, "row")))
}
