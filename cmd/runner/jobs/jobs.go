package jobs

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"runner.example/cmd/runner/cli"
	"runner.example/internal/console"
	"runner.example/internal/settings"
	"runner.example/node"
	"runner.example/node/admin"
	"runner.example/schema"
	"runner.example/state/jobs"
)

const jobsHelp = `Show and change the jobs of the app, with or without a running server: work that handlers enqueue,
and that schedules start. A job waits, runs, and is then done, failed or cancelled. By default
jobs that failed are kept for 30 days, others for 7: [jobs] keep_failed and keep_done.`

// Command returns the command jobs.
func Command(c *cli.CLI) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "jobs",
		Short: "list, show, retry, cancel and enqueue jobs",
		Long:  jobsHelp,
	}
	cmd.AddCommand(listCommand(c), showCommand(c), retryCommand(c), cancelCommand(c), enqueueCommand(c))
	c.OnlySubcommands(cmd)
	return cmd
}

// Names returns the names of the jobs.
func Names(s *schema.Schema) (all []string) {
	for i := range s.Jobs {
		all = append(all, s.Jobs[i].Name)
	}
	return all
}

func listCommand(c *cli.CLI) *cobra.Command {
	var filter jobs.Filter
	var state string
	var failed bool
	var remote cli.Remote
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "list jobs, the newest first",
		Example: "  runner jobs list --failed\n  runner jobs list --job sendReceipt --tenant acme --limit 20",
		Args:    cli.AtMost(0, "flags alone"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if failed && state != "" {
				return console.Misused("--failed and --state exclude each other")
			}
			if filter.State = jobs.State(state); failed {
				filter.State = jobs.Failed
			}
			limit := filter.Limit
			if limit < 1 {
				return console.Invalid("--limit must be at least 1")
			}
			return c.OnRemote(cmd, remote, node.Task{Do: func(ctx context.Context, node *admin.Client) error {
				all, err := list(ctx, node, filter, limit)
				if err != nil {
					return err
				}
				return printList(&c.Console, all, filter.State == jobs.Failed)
			}})
		},
	}
	cmd.Flags().StringVar(&state, "state", "", "only jobs in this state: waiting, running, done, failed or cancelled")
	cmd.Flags().BoolVar(&failed, "failed", false, "only jobs that failed, the same as --state failed")
	cmd.Flags().StringVar(&filter.Name, "job", "", "only jobs of this name")
	cmd.Flags().StringVar(&filter.Tenant, "tenant", "", "only jobs of callers of this tenant")
	cmd.Flags().IntVar(&filter.Limit, "limit", jobs.DefaultPage, "maximum number of jobs")
	remote.AddFlags(cmd)
	cli.CompleteFlag(cmd, "state", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		var states []string
		for _, s := range jobs.States {
			states = append(states, string(s))
		}
		return states, cobra.ShellCompDirectiveNoFileComp
	})
	cli.CompleteFlag(cmd, "job", c.SchemaNames(Names))
	return cmd
}

// list reads pages until there are enough jobs.
func list(ctx context.Context, node *admin.Client, filter jobs.Filter, limit int) ([]jobs.Job, error) {
	const page = 1000
	all := []jobs.Job{}
	for {
		filter.Limit = min(limit-len(all), page)
		got, err := node.ListJobs(ctx, filter)
		if err != nil {
			return nil, err
		}
		all = append(all, got.Jobs...)
		if filter.Cursor = got.NextCursor; filter.Cursor == "" || len(all) >= limit {
			return all, nil
		}
	}
}

// printList prints a table of jobs. withFrames: it has a column with the innermost frame of each failure.
func printList(c *console.Console, all []jobs.Job, withFrames bool) error {
	if c.JSON {
		return c.PrintJSON(all)
	}
	var rows [][]string
	for i := range all {
		j := &all[i]
		rows = append(rows, []string{
			j.ID, cmp.Or(j.Name, "-"), cmp.Or(string(j.State), "-"), strconv.Itoa(j.Attempt),
			cmp.Or(j.Caller.Tenant, "-"), readable(j.Enqueued), readable(j.Due),
			cmp.Or(shorten(j.Error), "-"),
		})
		if withFrames {
			_, frames, _ := strings.Cut(j.Error, "\n")
			rows[i] = append(rows[i], cmp.Or(shorten(strings.TrimPrefix(strings.TrimSpace(frames), "at ")), "-"))
		}
	}
	columns := []string{"ID", "JOB", "STATE", "ATTEMPT", "TENANT", "ENQUEUED", "DUE", "ERROR"}
	if withFrames {
		columns = append(columns, "AT")
	}
	return c.PrintTable(columns, rows, "no matching jobs")
}

func readable(t jobs.Time) string {
	if t == 0 {
		return "-"
	}
	return t.Time().Format("2006-01-02 15:04:05Z")
}

// shorten returns the beginning of an error for a table.
func shorten(text string) string {
	const most = 60
	text, _, _ = strings.Cut(text, "\n")
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return text
}

func showCommand(c *cli.CLI) *cobra.Command {
	return oneJob(c, "show", "show a job with its parameters and the errors of its last runs",
		"  runner jobs show job_01kb0p0f5mzv4n7q8r9s0t1v2w", false, new(cli.Remote),
		func(ctx context.Context, node *admin.Client, id string) (jobs.Job, error) {
			return node.GetJob(ctx, id)
		})
}

func retryCommand(c *cli.CLI) *cobra.Command {
	return oneJob(c, "retry", "run a failed or cancelled job again, or a waiting one at once",
		"  runner jobs retry job_01kb0p0f5mzv4n7q8r9s0t1v2w", true, new(cli.Remote),
		func(ctx context.Context, node *admin.Client, id string) (jobs.Job, error) {
			return node.RetryJob(ctx, id)
		})
}

// oneJob returns a command for one job, which it prints afterwards.
func oneJob(c *cli.CLI, use, short, example string, needsSchema bool, remote *cli.Remote,
	do func(context.Context, *admin.Client, string) (jobs.Job, error)) *cobra.Command {
	cmd := &cobra.Command{
		Use:               use + " <id>",
		Short:             short,
		Example:           example,
		Args:              cli.ExactlyOne("the id of a job"),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			show := func(ctx context.Context, node *admin.Client) error {
				j, err := do(ctx, node, args[0])
				if err != nil {
					return err
				}
				return printJob(&c.Console, &j)
			}
			return c.OnRemote(cmd, *remote, node.Task{NeedsSchema: needsSchema, Do: show})
		},
	}
	remote.AddFlags(cmd)
	return cmd
}

func printJob(c *console.Console, j *jobs.Job) error {
	if c.JSON {
		return c.PrintJSON(j)
	}
	by := j.Caller.Kind
	switch {
	case j.Scheduled:
		by = "schedule"
	case j.Caller.UserID != "":
		by += " " + j.Caller.UserID
	case j.Caller.KeyID != "":
		by += " " + j.Caller.KeyID
	}
	rows := [][2]string{
		{"id", j.ID}, {"job", j.Name}, {"state", string(j.State)}, {"attempt", strconv.Itoa(j.Attempt)},
		{"params", string(j.Params)},
		{"by", by}, {"tenant", cmp.Or(j.Caller.Tenant, "-")}, {"enqueued", readable(j.Enqueued)}, {"due", readable(j.Due)},
	}
	for _, row := range [][2]string{
		{"key", j.Key}, {"node", j.Node}, {"ended", readable(j.Ended)}, {"kept until", readable(j.Expires)},
		{"error", j.Error},
	} {
		if row[1] != "" && row[1] != "-" && (row[0] != "key" || !j.Scheduled) {
			rows = append(rows, row)
		}
	}
	for _, earlier := range j.Earlier {
		rows = append(rows, [2]string{fmt.Sprintf("attempt %d", earlier.Attempt), earlier.Error})
	}
	return c.Print(console.Pairs(splitLines(rows)))
}

// splitLines gives each line of a value its own row.
func splitLines(rows [][2]string) (all [][2]string) {
	for _, row := range rows {
		for line := range strings.Lines(console.Harmless(row[1])) {
			all = append(all, [2]string{row[0], strings.TrimRight(line, "\n")})
			row[0] = ""
		}
	}
	return all
}

const enqueueHelp = `Enqueue a job as an operator, and print its id. The parameters are one JSON object; - reads it from
stdin. They are checked as when a handler enqueues the job.

A job without as: has the authority of an operator; --tenant restricts it to one tenant. One with as:
has the grants of its scope, within that tenant.

A job with a schedule can be enqueued like any other, to run it now in addition to its schedule.`

// maxParams is the largest size of parameters that the command reads; a job may have less.
const maxParams = 8 << 20

func enqueueCommand(c *cli.CLI) *cobra.Command {
	var request admin.EnqueueJob
	var delay string
	var remote cli.Remote
	cmd := &cobra.Command{
		Use:   "enqueue <job> [parameters]",
		Short: "enqueue a job",
		Long:  enqueueHelp,
		Example: `  runner jobs enqueue sendReceipt '{"order": "01kb0p0f5mzv4n7q8r9s0t1v2w"}' --tenant acme
  runner jobs enqueue closeMonth --delay 10m
  runner jobs enqueue closeMonth --at 2026-12-01T03:00:00+01:00 --key closing`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cli.ExactlyOne("the name of a job, and its parameters as a JSON object")(cmd, args)
			}
			return cli.AtMost(2, "the name of a job and one JSON object")(cmd, args)
		},
		ValidArgsFunction: cli.FirstArg(c.SchemaNames(Names), cobra.NoFileCompletions),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			request.Name = args[0]
			if request.Params, err = params(c, args[1:]); err != nil {
				return err
			}
			if delay != "" {
				d, err := settings.ParseDuration(delay, settings.FlagDurations)
				if err != nil || d < 0 || d%time.Second != 0 {
					return console.Misused("--delay: %q is not a duration in seconds or longer, such as 10m", delay)
				}
				request.Delay = admin.SecondsOf(d)
			}
			return c.OnRemote(cmd, remote, node.Task{NeedsSchema: true, Do: func(ctx context.Context, node *admin.Client) error {
				return enqueue(ctx, c, node, request)
			}})
		},
	}
	cmd.Flags().StringVar(&request.Tenant, "tenant", "", "restrict the job to this tenant (default: all tenants)")
	cmd.Flags().StringVar(&delay, "delay", "", "how long the job waits, such as 10m")
	cmd.Flags().StringVar(&request.At, "at", "", "when the job runs, such as 2026-12-01T03:00:00+01:00")
	cmd.Flags().StringVar(&request.Key, "key", "", "while a job of this name and key waits or runs, enqueue no other")
	remote.AddFlags(cmd)
	return cmd
}

// params returns the parameters of the command line, or those on stdin.
func params(c *cli.CLI, args []string) (text []byte, err error) {
	switch {
	case len(args) == 0:
		return nil, nil
	case args[0] == "-":
		if text, err = io.ReadAll(io.LimitReader(c.Stdin, maxParams+1)); err != nil {
			return nil, fmt.Errorf("read the parameters from stdin: %w", err)
		}
	default:
		text = []byte(args[0])
	}
	if len(text) > maxParams {
		return nil, console.Invalid("the parameters have more than %d MiB", maxParams>>20)
	}
	if len(text) > 0 && !json.Valid(text) {
		return nil, console.Invalid("the parameters are not JSON: write an object such as '{\"order\": \"a1\"}'")
	}
	return text, nil
}

func enqueue(ctx context.Context, c *cli.CLI, node *admin.Client, request admin.EnqueueJob) error {
	e, err := node.EnqueueJob(ctx, request)
	if err != nil {
		return err
	}
	if c.JSON {
		return c.PrintJSON(e)
	}
	if !e.Created {
		c.Say("", "a job with this key waits or runs")
	}
	return c.Print(e.ID + "\n")
}
