package dev

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"runner.example/develop/toolchain"
	"runner.example/internal/clock"
	"runner.example/internal/console"
)

// buildCommand decides when the build command of the configuration runs. What it writes must not start it again. A
// comparison of files cannot tell its output from a file that was saved while it ran: so it runs once more after such a
// change, and a file that changes in that run too is output.
type buildCommand struct {
	// due means that it has not run yet, or has failed.
	due bool
	// suspects are the files that have changed during the last run, and output those whose changes are ignored.
	suspects, output map[string]bool
}

// runCommand runs the build command if there is one, and if it is due or one of the changed files concerns it. It returns
// the files that have changed meanwhile.
func (d *dev) runCommand(ctx context.Context, line string, changed []string) (meanwhile []string, err error) {
	c := &d.command
	concerns := func(name string) bool { return d.files.isInput(name) && !c.output[name] }
	if line == "" || !c.due && !slices.ContainsFunc(changed, concerns) {
		return nil, nil
	}
	c.suspects = nil
	for again := true; again && ctx.Err() == nil; {
		began := clock.Mark()
		d.log.event(devEvent{Event: "building", Message: line}, "running "+console.Harmless(line))
		err = toolchain.RunCommand(ctx, d.app.Dir, line, d.log.commandOutput())
		if took := time.Since(began); err == nil {
			d.log.event(devEvent{Event: "built", Message: line, Seconds: took.Seconds()},
				fmt.Sprintf("the build command has ended after %s", took.Round(time.Millisecond)))
		}
		before := d.files.seen
		changed := d.files.take()
		suspects := map[string]bool{}
		for _, name := range changed {
			_, was := before[name]
			_, is := d.files.seen[name]
			switch {
			case !was || !is || !concerns(name): // made or deleted: by the command, or to be used by a file that is saved later
			case c.suspects[name]:
				c.output[name] = true
			default:
				suspects[name] = true
			}
		}
		c.suspects, again = suspects, len(suspects) > 0
		meanwhile = append(meanwhile, changed...)
	}
	c.due = err != nil
	return meanwhile, err
}

// commandOutput returns where the build command writes: stderr, or with --json events of single lines.
func (l *devLog) commandOutput() io.Writer {
	if l.opt.Console.JSON {
		return &lineEvents{log: l}
	}
	return l.opt.Console.Stderr
}

// lineEvents logs each line that is written to it. A last line without an end is not logged.
type lineEvents struct {
	log  *devLog
	rest []byte
}

func (w *lineEvents) Write(p []byte) (int, error) {
	w.rest = append(w.rest, p...)
	for {
		line, rest, ended := bytes.Cut(w.rest, []byte("\n"))
		if !ended {
			return len(p), nil
		}
		w.log.event(devEvent{Event: "log", Level: "info", Message: strings.TrimSuffix(string(line), "\r")}, "")
		w.rest = rest
	}
}
