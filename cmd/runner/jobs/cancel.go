package jobs

import (
	"context"
	"errors"
	"fmt"

	"github.com/jedib0t/go-pretty/v6/progress"
	"github.com/spf13/cobra"

	"runner.example/cmd/runner/cli"
	"runner.example/internal/console"
	"runner.example/node"
	"runner.example/node/admin"
	"runner.example/state/jobs"
)

const cancelHelp = `Cancel a job that waits or runs. A run in progress is stopped, and its writes are not committed.

With --all, cancel all jobs that wait or run; --job and --tenant select some of them. The command asks
first, unless --yes is given. No node starts a selected job meanwhile, so jobs that enqueue others come
to an end. After an interruption, jobs that it has cancelled stay cancelled, and the others start again
within 15 seconds.`

// cancelled is the document of `runner jobs cancel --all --json`.
type cancelled struct {
	// Count is the number of jobs that were cancelled.
	Count int `json:"count"`
}

func cancelCommand(c *cli.CLI) *cobra.Command {
	var selected admin.CancelJobs
	var remote cli.Remote
	var all, yes bool
	cmd := oneJob(c, "cancel", "end a job that waits or runs, or all such jobs",
		"  runner jobs cancel job_01kb0p0f5mzv4n7q8r9s0t1v2w\n  runner jobs cancel --all --job sendReceipt --tenant acme --yes",
		false, &remote,
		func(ctx context.Context, node *admin.Client, id string) (jobs.Job, error) {
			return node.CancelJob(ctx, id)
		})
	runOne := cmd.RunE
	cmd.Use, cmd.Long = "cancel [<id>]", cancelHelp
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if all {
			return cli.AtMost(0, "no id with --all")(cmd, args)
		}
		return cli.ExactlyOne("the id of a job, or --all")(cmd, args)
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if !all {
			if yes || selected.Name != "" || selected.Tenant != "" {
				return console.Misused("--job, --tenant and --yes need --all")
			}
			return runOne(cmd, args)
		}
		return c.OnRemote(cmd, remote, node.Task{Do: func(ctx context.Context, node *admin.Client) error {
			return cancelAll(ctx, c, node, selected, yes)
		}})
	}
	cmd.Flags().BoolVar(&all, "all", false, "all jobs that wait or run")
	cmd.Flags().StringVar(&selected.Name, "job", "", "with --all: only jobs of this name")
	cmd.Flags().StringVar(&selected.Tenant, "tenant", "", "with --all: only jobs of callers of this tenant")
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	cli.CompleteFlag(cmd, "job", c.SchemaNames(Names))
	return cmd
}

func cancelAll(ctx context.Context, c *cli.CLI, node *admin.Client, selected admin.CancelJobs, yes bool) error {
	if !yes {
		if !c.CanAsk() {
			return console.Misused("this cancels all selected jobs that wait or run: confirm it with --yes")
		}
		var err error
		if yes, err = c.Confirm(ctx, "cancel all selected jobs that wait or run?"); err != nil {
			return err
		}
		if !yes {
			return &console.Failure{Status: console.StatusFailed, Err: errors.New("no job was cancelled")}
		}
	}
	var done cancelled
	left, err := cancelBatches(ctx, c.NewBar("jobs", 0, progress.UnitsDefault), node, selected, &done)
	if err != nil {
		if done.Count > 0 {
			c.Say("", fmt.Sprintf("%s cancelled before that; the same command continues", console.Plural(done.Count, "job")))
		}
		return err
	}
	if c.JSON {
		err = c.PrintJSON(done)
	} else {
		err = c.Print(fmt.Sprintf("cancelled %s\n", console.Plural(done.Count, "job")))
	}
	if err == nil && left {
		err = &console.Failure{
			Status: console.StatusFailed,
			Err:    errors.New("jobs were enqueued meanwhile, and some are left: stop what enqueues them, and run the command again"),
		}
	}
	return err
}

// cancelBatches cancels the selected jobs, and reports whether some are left because others were enqueued.
func cancelBatches(ctx context.Context, bar *console.Bar, node *admin.Client, selected admin.CancelJobs,
	done *cancelled) (left bool, err error) {
	defer func() { bar.End(err) }()
	for {
		batch, err := node.CancelJobs(ctx, selected)
		if err != nil {
			return false, err
		}
		done.Count += batch.Count
		bar.Add(int64(batch.Count))
		if selected.Cursor = batch.NextCursor; selected.Cursor == "" {
			return batch.Left, nil
		}
	}
}
