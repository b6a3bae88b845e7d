package data

import (
	"context"
	"errors"
	"fmt"

	"github.com/jedib0t/go-pretty/v6/progress"
	"github.com/spf13/cobra"

	"runner.example/cmd/runner/cli"
	"runner.example/internal/console"
	"runner.example/internal/fault"
	"runner.example/node"
	"runner.example/node/admin"
	"runner.example/node/app"
	"runner.example/runtime"
)

const eachHelp = `Call a function of the schema for each row that matches every --where condition, as "runner call"
does: with its one required parameter, which gets the row's id. So a column is filled, split or
moved to another entity.

Up to 100 rows are one transaction, fewer if they take more than half of the function's timeout.
Its position is stored with it: after an interruption or an error, the same command continues
after the last committed row, also that of another operator, and no row is processed twice.
--restart begins again with the first row, and so does the same command after the last one.
If the function answers 400 or above for a row, nothing of its transaction is stored, and the
command ends with status 1.

The rows are processed in the order of their ids, up to the last row at the start. So the function
may insert rows of the same entity. A row is skipped if an earlier call has deleted it, or changed it
so that it does not match any more.`

func eachCommand(c *cli.CLI, functions func(*app.App) runtime.Options) *cobra.Command {
	remote := cli.Remote{Slow: true}
	var flags changeFlags
	var request admin.CallEach
	cmd := &cobra.Command{
		Use:               "each <entity>",
		ValidArgsFunction: cli.FirstArg(c.SchemaNames(cli.EntityNames), cobra.NoFileCompletions),
		Short:             "call a function for each row",
		Long:              eachHelp,
		Example: `  runner data each Partner --call splitName --where "firstName = null"
  runner data each Order --call fillTotal --all`,
		Args: cli.Exactly(1, "the name of an entity"),
		RunE: func(cmd *cobra.Command, args []string) error {
			rows, err := flags.request(args[0])
			if err != nil {
				return err
			}
			if request.Function == "" {
				return console.Misused("say which function to call: --call splitName")
			}
			request.Entity, request.Where, request.Tenant = rows.Entity, rows.Where, flags.tenant
			return c.OnRemote(cmd, remote, node.Task{NeedsSchema: true, Runtime: functions,
				Do: func(ctx context.Context, node *admin.Client) error {
					return callEach(ctx, c, node, request)
				}})
		},
	}
	flags.add(cmd, "call the function for")
	cmd.Flags().StringVar(&request.Function, "call", "", "name of the function")
	cmd.Flags().StringVar(&flags.tenant, "tenant", "", "restrict the function to this tenant (default: all tenants)")
	cmd.Flags().BoolVar(&request.Restart, "restart", false, "begin with the first row, also after an interruption")
	remote.AddFlags(cmd)
	return cmd
}

// eachDone is the document of `runner data each --json`.
type eachDone struct {
	// Count is the number of rows that this command has done, Before that of those before an
	// interruption.
	Count  int `json:"count"`
	Before int `json:"before"`
}

func callEach(ctx context.Context, c *cli.CLI, node *admin.Client, request admin.CallEach) error {
	request.CountOnly = true
	left, err := node.CallEach(ctx, request)
	if err != nil {
		return err
	}
	request.CountOnly = false
	if left.Before > 0 {
		request.Continue = !request.Restart
		c.Say("", fmt.Sprintf("continuing after %s (--restart begins again)", console.Plural(left.Before, "row")))
	}
	bar := c.NewBar("rows of "+request.Entity, int64(left.Count), progress.UnitsDefault)
	done := eachDone{Before: left.Before}
	err = eachBatch(ctx, node, request, func(batch admin.EachDone) {
		done.Count += batch.Count
		bar.Add(int64(batch.Count))
	})
	bar.End(err)
	if err != nil {
		if all := done.Before + done.Count; all > 0 {
			c.Say("", fmt.Sprintf("%s done before that; the same command continues after them", console.Plural(all, "row")))
		}
		return err
	}
	if c.JSON {
		return c.PrintJSON(done)
	}
	return c.Print(fmt.Sprintf("called %s for %s\n", request.Function, console.Plural(done.Count, "row")))
}

// eachBatch calls the function batch by batch. Batches are smaller after one that was too large, or
// that met other requests or the time limit, and grow again after others.
func eachBatch(ctx context.Context, node *admin.Client, request admin.CallEach, did func(admin.EachDone)) error {
	for request.Limit = admin.MaxEach; ; {
		batch, err := node.CallEach(ctx, request)
		switch {
		case err != nil:
			return err
		case ctx.Err() != nil:
			return ctx.Err() // the deadline ended the wait
		case batch.Retry && request.Limit > 1:
			if request.Limit /= 2; batch.Failed.Code == string(fault.HandlerTimeout) {
				request.Limit = 1 // too many timeouts would make the function unavailable
			}
			continue
		case batch.Failed != nil:
			return eachFailure(request.Function, &batch)
		}
		did(batch)
		request.Limit = min(admin.MaxEach, request.Limit+request.Limit/4+1)
		if !batch.More {
			return nil
		}
		request.Restart, request.Continue = false, true // another command may have ended the run
	}
}

func eachFailure(function string, batch *admin.EachDone) error {
	text := fmt.Sprintf("%s answered %d", function, batch.Failed.Status)
	if batch.Failed.Code != "" {
		text += " " + batch.Failed.Code
	}
	text += " for row " + batch.FailedRow
	if batch.Failed.Detail != "" {
		text += ": " + batch.Failed.Detail
	}
	f := &console.Failure{Status: console.StatusFailed, Err: errors.New(console.Harmless(text))}
	if batch.Failed.Status >= 500 {
		f.Hint = "the log has more about requestId " + batch.Failed.RequestID
	}
	return f
}
