package main

import (
	"cmp"
	"errors"
	"io/fs"
	"syscall"

	"runner.example/internal/console"
	"runner.example/internal/fault"
	"runner.example/store"
)

// report writes err for people and gives the exit status that belongs to it.
func (c *cli) report(err error) int {
	if err == nil || errors.Is(err, syscall.EPIPE) && !isFailure(err) {
		return 0 // who reads only the first lines has what they wanted
	}
	status, hint := console.StatusFailed, ""
	for _, one := range console.Parts(err) {
		s, h := c.tell(one)
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

// tell writes one error and gives its exit status and what to do about it.
func (c *cli) tell(err error) (status int, hint string) {
	if m, ok := errors.AsType[*console.Problems](err); ok {
		c.PrintDiagnostics(c.Stderr, m.Sources, m.List)
		c.Say("error: ", m.What)
		return console.StatusInvalid, ""
	}
	c.Say("error: ", console.TextOf(err))
	status = console.StatusFailed
	if errors.Is(err, store.ErrDamaged) {
		return console.StatusInvalid, "leave the data directory unchanged, and restore a backup into a new one; `runner store salvage` writes the readable rows"
	}
	if f, ok := errors.AsType[*console.Failure](err); ok {
		status, hint = f.Status, f.Hint
	} else if f, ok := errors.AsType[*fault.Fault](err); ok {
		status, hint = statusOf(f.Code), hintOf(f.Code)
	}
	if hint == "" && errors.Is(err, fs.ErrPermission) {
		hint = "run the command as the owner of the file or directory, or change its mode"
	}
	return status, hint
}

func isFailure(err error) bool {
	_, ok := errors.AsType[*console.Failure](err)
	return ok
}

// statusOf is the table of fault codes and exit statuses.
func statusOf(code fault.Code) int {
	switch code {
	case fault.Invalid, fault.InvalidJSON, fault.TooLarge, fault.Limit:
		return console.StatusInvalid
	case fault.NotFound:
		return console.StatusNotFound
	case fault.Conflict:
		return console.StatusState
	case fault.Unavailable:
		return console.StatusUnreachable
	}
	return console.StatusFailed
}

// hintOf is what to type next where the code alone tells.
func hintOf(code fault.Code) string {
	if code == fault.NotFound {
		return "runner api-keys list --all shows every key"
	}
	return ""
}
