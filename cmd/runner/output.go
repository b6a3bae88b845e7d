package main

import (
	"cmp"
	"errors"
	"io/fs"
	"syscall"

	"runner.example/internal/console"
	"runner.example/internal/fault"
	"runner.example/state/store"
)

// report prints err and returns its exit status.
func (c *program) report(err error) int {
	if err == nil || errors.Is(err, syscall.EPIPE) && !isFailure(err) {
		return 0 // the reader has closed the pipe, as head does
	}
	status, hint := console.StatusFailed, ""
	for _, one := range console.Parts(err) {
		s, h := c.printError(one)
		if status == console.StatusFailed {
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
		c.PrintDiagnostics(c.Stderr, m.Sources, m.List)
		c.Say("error: ", m.What)
		return console.StatusInvalid, ""
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

func isFailure(err error) bool {
	_, ok := errors.AsType[*console.Failure](err)
	return ok
}
