package nodes

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"runner.example/cmd/runner/cli"
	"runner.example/internal/clock"
	"runner.example/internal/console"
	"runner.example/internal/fault"
	"runner.example/internal/settings"
	"runner.example/internal/wait"
	"runner.example/node/admin"
	"runner.example/node/cluster"
)

const waitHelp = `Wait until the next step of work on a cluster is safe, such as to stop another node: the named node, or
the one that is asked, is ready, takes part if it is a voter, and has all commits; and of three or more
voters one may fail. Run it after each node that was started, replaced or upgraded. Before the first
deployment a node is ready without a release.

What it waits for goes to stderr. With --json it prints one document: node, safe, waitsFor, voters,
voting and mayFail.

Exit status 4: the node does not exist. 5: it is not safe within --timeout. 6: the server that is asked could
not be reached within --timeout.`

// waited is the result of the command.
type waited struct {
	Node string `json:"node"`
	Safe bool   `json:"safe"`
	// WaitsFor is why it is not safe, or empty.
	WaitsFor string `json:"waitsFor"`
	Voters   int    `json:"voters"`
	Voting   int    `json:"voting"`
	MayFail  int    `json:"mayFail"`
}

// askPause is the pause between two questions whether it is safe.
const askPause = 250 * time.Millisecond

func waitCommand(c *cli.CLI) *cobra.Command {
	var remote cli.Remote
	var timeout string
	cmd := &cobra.Command{
		Use:     "wait [node]",
		Short:   "wait until it is safe to work on the next node",
		Long:    waitHelp,
		Example: "  runner cluster wait n3 --data n1\n  runner cluster wait --data n3 --timeout 30s",
		Args:    cli.AtMost(1, "the name of a node"),
		RunE: func(cmd *cobra.Command, args []string) error {
			node := ""
			if len(args) == 1 {
				if node = args[0]; node == "" { // a variable of a script that is not set
					return console.Misused("the name of the node is empty: leave it out to wait for the node of the server that is asked")
				}
			}
			limit, err := settings.ParseDuration(timeout, settings.FlagDurations)
			if err != nil {
				return console.Invalid("--timeout: %v", err)
			}
			w := waiting{began: clock.Mark(), done: waited{Node: node}}
			var server *admin.Client
			w.ask = func(ctx context.Context) (s cluster.Overview, err error) {
				if server == nil {
					if server, err = c.DialRemote(cmd, remote); err != nil {
						return s, err
					}
				}
				if s, err = server.ClusterStatus(ctx); err != nil {
					server = nil
				}
				return s, err
			}
			err = w.wait(cmd.Context(), limit, func(why string) { c.Say("", "waiting: "+why) })
			if err != nil && w.done.WaitsFor == "" { // nothing is known
				return err
			}
			if err != nil && !c.JSON {
				return err
			}
			return errors.Join(w.print(c), err)
		},
	}
	cmd.Flags().StringVar(&timeout, "timeout", "5m", "how long to wait, such as 30s or 5m")
	remote.AddFlags(cmd)
	return cmd
}

// waiting is a wait until a step is safe.
type waiting struct {
	began time.Time
	ask   func(context.Context) (cluster.Overview, error)
	last  cluster.Overview
	done  waited
}

// wait returns nil when it is safe. It calls say with what it waits for, when that changes.
func (w *waiting) wait(ctx context.Context, timeout time.Duration, say func(string)) error {
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	said := ""
	for {
		why, err := w.notSafe(limited)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil && limited.Err() != nil: // the question was cut off: what was known before counts
			return w.late(timeout, nil)
		case err != nil && !unreachable(err):
			return err
		case err != nil:
			why = console.TextOf(err)
		case why == "":
			w.done.Safe, w.done.WaitsFor = true, ""
			return nil
		default:
			w.done.WaitsFor = why
		}
		if why != said {
			said = why
			say(why)
		}
		if wait.For(limited, askPause) != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return w.late(timeout, err)
		}
	}
}

// notSafe asks once why it is not safe; "" if it is.
func (w *waiting) notSafe(ctx context.Context) (why string, err error) {
	since := clock.Mark().Sub(w.began)
	if w.last, err = w.ask(ctx); err != nil {
		return "", err
	}
	if w.done.Node == "" {
		w.done.Node = w.last.Node
	}
	w.done.Voters, w.done.Voting, w.done.MayFail = w.last.Voters, w.last.Voting, w.last.MayFail
	return w.last.NotSafe(w.done.Node, since)
}

// late returns the error of a wait that took too long. err is that of the last question, or nil.
func (w *waiting) late(timeout time.Duration, err error) error {
	if err != nil || w.done.WaitsFor == "" {
		if err == nil {
			err = errors.New("the server has not answered")
		}
		return &console.Failure{
			Status: console.StatusUnreachable, Err: fmt.Errorf("nothing is known after %s: %w", settings.FormatDuration(timeout), err), Hint: console.HintOf(err),
		}
	}
	return &console.Failure{
		Status: console.StatusState, Err: fmt.Errorf("it is not safe after %s: %s", settings.FormatDuration(timeout), w.done.WaitsFor),
		Hint: "runner cluster status shows all nodes",
	}
}

// unreachable reports whether a server may answer later.
func unreachable(err error) bool {
	if f, ok := errors.AsType[*console.Failure](err); ok {
		return f.Status == console.StatusUnreachable
	}
	return fault.CodeOf(err) == fault.Unavailable
}

func (w *waiting) print(c *cli.CLI) error {
	if c.JSON {
		return c.PrintJSON(w.done)
	}
	text := w.done.Node + " is ready"
	if w.last.NoRelease() {
		text = w.done.Node + " is ready for a release; none is active yet"
	}
	if w.done.MayFail >= 0 {
		text += "; " + mayFail(w.last)
	}
	return c.Print(text + "\n")
}
