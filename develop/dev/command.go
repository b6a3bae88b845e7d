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

// buildCommand decides when the build command of the configuration runs. Its own output must not start it again. But a
// file that changes while it runs may be its output, or may have been saved by the author. So the command runs once more,
// and a file that changes in that run too counts as output.
type buildCommand struct {
	// due: it has not run yet, or has failed.
	due bool
	// suspects are the files that changed during the last run. output are the files whose changes are ignored.
	suspects, output map[string]bool
}

// runCommand runs the build command if it is set, and if it is due or a changed file is its input. It returns the files
// that have changed meanwhile.
func (d *dev) runCommand(ctx context.Context, line string, changed []string) (meanwhile []string, err error) {
	c := &d.command
	isInput := func(name string) bool { return d.files.isInput(name) && !c.output[name] }
	if line == "" || !c.due && !slices.ContainsFunc(changed, isInput) {
		return nil, nil
	}
	c.suspects = nil
	for again := true; again && ctx.Err() == nil; {
		began := clock.Mark()
		d.log.event(devEvent{Event: "building", Message: line}, "running "+console.Harmless(line))
		err = toolchain.RunCommand(ctx, d.app.Dir, line, d.log.commandOutput())
		if took := time.Since(began); err == nil {
			d.log.event(devEvent{Event: "built", Message: line, Seconds: took.Seconds()},
				fmt.Sprintf("build command finished after %s", took.Round(time.Millisecond)))
		}
		before := d.files.seen
		changed := d.files.changes()
		suspects := map[string]bool{}
		for _, name := range changed {
			_, was := before[name]
			_, is := d.files.seen[name]
			switch {
			case !was || !is || !isInput(name): // a new or deleted file is output, or is not used until another file changes
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

// lineEvents logs each complete line that is written to it.
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
