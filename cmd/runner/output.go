package main

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"syscall"

	"runner.example/internal/console"
	"runner.example/internal/fault"
	"runner.example/internal/system/socket"
	"runner.example/state/store"
)

// report prints err and returns its exit status.
func (c *program) report(err error) int {
	status, hint := 0, ""
	for _, one := range console.Parts(err) {
		if one == nil || isOutputClosed(one) && !isFailure(one) {
			continue // the reader has closed the pipe, as head does
		}
		s, h := c.printError(one)
		if status == 0 || status == console.StatusFailed {
			status = s
		}
		hint = cmp.Or(hint, h)
	}
	if hint != "" {
		c.Say("hint: ", hint)
	}
	return status
}

// printError prints one error, and returns its exit status and a hint.
func (c *program) printError(err error) (status int, hint string) {
	if m, ok := errors.AsType[*console.Problems](err); ok {
		_ = c.PrintDiagnostics(c.Stderr, m.Sources, m.Excerpt()) // there is no other place to report the error
		c.Say("error: ", m.What)
		return console.StatusInvalid, console.HintOf(err)
	}
	c.Say("error: ", console.TextOf(err))
	status = console.StatusFailed
	if errors.Is(err, store.ErrDamaged) {
		return console.StatusInvalid,
			"leave the data directory unchanged, and restore a backup into a new one; `runner store salvage` writes the readable rows"
	}
	if f, ok := errors.AsType[*console.Failure](err); ok {
		status = f.Status
	} else if f, ok := errors.AsType[*fault.Fault](err); ok {
		outcome, _ := fault.OutcomeOf(f.Code)
		status = outcome.Exit
	}
	hint = console.HintOf(err)
	switch {
	case hint != "":
	case errors.Is(err, fs.ErrPermission):
		hint = "run the command as the owner of the file or directory, or change its mode"
	case errors.Is(err, syscall.EROFS):
		hint = "mount the file system writable, or name a path on another one; --data names the data directory"
	}
	return status, hint
}

// isOutputClosed reports whether a write failed because the reader of this program's standard output or standard
// error has closed it. Every other connection that breaks is an error.
func isOutputClosed(err error) bool {
	failed, ok := errors.AsType[*fs.PathError](err)
	return ok && socket.Broken(failed) && (failed.Path == os.Stdout.Name() || failed.Path == os.Stderr.Name())
}

func isFailure(err error) bool {
	_, ok := errors.AsType[*console.Failure](err)
	return ok
}
