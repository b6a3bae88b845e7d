package process

import (
	"context"
	"errors"
	"io"
	"os/exec"
	"time"
)

// shellGrace is how long the processes of a shell have to end after they were asked to.
const shellGrace = 2 * time.Second

// RunShell runs a line of the system's shell, sh or on Windows cmd, in a directory and with the given environment. Both of
// its output streams go to out; it has no input. Signals of the terminal do not reach it: when ctx ends, it is asked to end
// with all processes that it has started, and is killed after a moment. The error is that of ctx then; it is an
// *exec.ExitError if the line has failed.
func RunShell(ctx context.Context, dir, line string, environment []string, out io.Writer) error {
	cmd := shell(ctx, line)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = dir, environment, out, out
	cmd.WaitDelay = shellGrace
	err := cmd.Run()
	if ctx.Err() != nil {
		if cmd.Process != nil {
			endGroup(cmd)
		}
		return ctx.Err()
	}
	if errors.Is(err, exec.ErrWaitDelay) {
		return nil // it has succeeded, and a process that it started still runs: a build server
	}
	return err
}
