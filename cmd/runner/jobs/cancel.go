package jobs

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"runner.example/cmd/runner/cli"
	"runner.example/internal/console"
	"runner.example/internal/fault"
	"runner.example/node"
	"runner.example/node/admin"
	"runner.example/state/jobs"
)

const cancelHelp = `Cancel a job that waits or runs. A run in progress is stopped, and its writes are not committed.

With --all, cancel all jobs that wait or run; --job and --tenant select some of them. The command asks
first, unless --yes is given. After an interruption, jobs that it has cancelled stay cancelled.`

// cancelRounds is how often jobs are looked for that others have enqueued meanwhile.
const cancelRounds = 10

// cancelled is the document of `runner jobs cancel --all --json`.
type cancelled struct {
	// Count is the number of jobs that were cancelled.
	Count int `json:"count"`
}

func cancelCommand(c *cli.CLI) *cobra.Command {
	var filter jobs.Filter
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
			if yes || filter.Name != "" || filter.Tenant != "" {
				return console.Misused("--job, --tenant and --yes need --all")
			}
			return runOne(cmd, args)
		}
		return c.OnRemote(cmd, remote, node.Task{Do: func(ctx context.Context, node *admin.Client) error {
			return cancelAll(ctx, c, node, filter, yes)
		}})
	}
	cmd.Flags().BoolVar(&all, "all", false, "all jobs that wait or run")
	cmd.Flags().StringVar(&filter.Name, "job", "", "with --all: only jobs of this name")
	cmd.Flags().StringVar(&filter.Tenant, "tenant", "", "with --all: only jobs of callers of this tenant")
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	cli.CompleteFlag(cmd, "job", c.SchemaNames(Names))
	return cmd
}

func cancelAll(ctx context.Context, c *cli.CLI, node *admin.Client, filter jobs.Filter, yes bool) error {
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
	found := true
	for round := 0; found && round < cancelRounds; round++ {
		n, err := cancelRound(ctx, node, filter)
		done.Count += n
		if err != nil {
			if done.Count > 0 {
				c.Say("", fmt.Sprintf("%s cancelled before that; the same command continues", console.Plural(done.Count, "job")))
			}
			return err
		}
		found = n > 0
	}
	var err error
	if c.JSON {
		err = c.PrintJSON(done)
	} else {
		err = c.Print(fmt.Sprintf("cancelled %s\n", console.Plural(done.Count, "job")))
	}
	if err == nil && found {
		err = &console.Failure{
			Status: console.StatusFailed,
			Err:    errors.New("jobs were enqueued meanwhile, and some are left: stop the server, and run the command again"),
		}
	}
	return err
}

// cancelRound cancels the jobs that wait or run, and returns how many.
func cancelRound(ctx context.Context, node *admin.Client, filter jobs.Filter) (n int, err error) {
	for _, filter.State = range []jobs.State{jobs.Waiting, jobs.Running} {
		filter.Cursor, filter.Limit = "", 1000
		for more := true; more; more = filter.Cursor != "" {
			page, err := node.ListJobs(ctx, filter)
			if err != nil {
				return n, err
			}
			for _, j := range page.Jobs {
				_, err := node.CancelJob(ctx, j.ID)
				switch {
				case err == nil:
					n++
				case fault.CodeOf(err) != fault.Conflict: // it has not ended meanwhile
					return n, err
				}
			}
			filter.Cursor = page.NextCursor
		}
	}
	return n, nil
}
