package main

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"runner.example/cmd/runner/cli"
	"runner.example/internal/console"
	"runner.example/internal/wasm"
	"runner.example/node"
	"runner.example/node/admin"
	"runner.example/runtime"
)

const replayHelp = `Run the handler of a recorded request again, with the recorded answers of host calls. The argument is
the id of a request that runner recorded list shows, or a file that runner recorded export wrote.

The handler runs in the release that failed, or in the module that --module names. It reads the
same request, time and random bytes. It stores nothing and sends nothing. With --against it goes on
behind a divergence on a copy of the store. The first line says what it did:

  now passes: 200             the recorded run failed, and this run does not
  fails the same way: …       this run fails as the recorded run did
  diverges at call 7: …       the handler made another host call, and the run ended there
  reaches the place …         a limit of time, CPU or memory ended the recorded run there

The exit status is 0 if the run does not fail, and 1 otherwise.`

func replayCommand(c *program) *cobra.Command {
	remote := cli.Remote{Slow: true}
	var module, against string
	cmd := &cobra.Command{
		Use:   "replay <request id or file>",
		Short: "run a recorded request again",
		Long:  replayHelp,
		Example: `  runner replay 01kb0p0f5mzv4n7q8r9s0t1v2w
  runner replay 01kb0p0f5mzv4n7q8r9s0t1v2w --module build/app.wasm`,
		Args: cli.ExactlyOne("the id of a request, or an exported file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			request, err := replayOf(args[0], module)
			if err != nil {
				return err
			}
			request.Against = against
			return c.OnRemote(cmd, remote, node.Task{NeedsSchema: true, Runtime: c.functionOptions,
				Do: func(ctx context.Context, node *admin.Client) error {
					done, err := node.Replay(ctx, request)
					if err != nil {
						return err
					}
					return c.printReplayed(done)
				}})
		},
	}
	cmd.Flags().StringVar(&module, "module", "", "WebAssembly module to use in place of the one that failed")
	cmd.Flags().StringVar(&against, "against", "",
		"copy of the store that answers after a divergence: snapshot, as the recorded run has seen it, or live-copy, as it is now (default: the replay ends there)")
	remote.AddFlags(cmd)
	return cmd
}

// replayOf returns the request to replay the id of a recorded request, or an exported file.
func replayOf(recorded, module string) (request admin.Replay, err error) {
	request.ID = recorded
	if strings.ContainsAny(recorded, "./\\") {
		text, err := os.ReadFile(recorded)
		if err != nil {
			return request, fileFailure("the recording", recorded, err)
		}
		if !json.Valid(text) {
			return request, console.Invalid("%s is not a recording: runner recorded export writes one", recorded)
		}
		request.ID, request.Recording = "", text
	}
	if module != "" {
		if request.Module, err = wasm.ReadFile(module, wasm.DefaultLimits().ModuleBytes); err != nil {
			return request, fileFailure("--module", module, err)
		}
	}
	return request, nil
}

func fileFailure(what, name string, err error) error {
	f := &console.Failure{Status: console.StatusInvalid, Err: errors.New(what + " " + name + ": " + err.Error())}
	if errors.Is(err, fs.ErrNotExist) {
		f.Status, f.Err = console.StatusNotFound, errors.New(what+" "+name+" does not exist")
	}
	return f
}

func (c *program) printReplayed(done *runtime.Replayed) error {
	if c.JSON {
		if err := c.PrintJSON(done); err != nil {
			return err
		}
	} else if err := c.Print(console.Harmless(done.Text) + "\n"); err != nil {
		return err
	}
	if done.Verdict == runtime.Passes || done.Verdict != runtime.Diverges && done.Verdict != runtime.Reaches && !done.Outcome.Failed {
		return nil
	}
	failure := &console.Failure{Status: console.StatusFailed, Err: errors.New("the handler fails with the recorded answers")}
	switch done.Verdict {
	case runtime.Diverges:
		failure.Err = errors.New("the handler makes a host call that is not recorded")
	case runtime.Reaches:
		failure.Err = errors.New("the handler is still running where the recorded run ended")
	}
	return failure
}
