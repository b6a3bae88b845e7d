package dev

import (
	"context"
	"slices"
	"strings"

	"runner.example/develop/toolchain"
	"runner.example/internal/console"
)

// typeCheck checks the types of handlers in TypeScript in the background.
type typeCheck struct {
	cancel context.CancelFunc // of the last check; nil: there was none
	ended  chan struct{}      // closed when the last check has ended
	// What was logged last; only the running check uses them. missing is why types cannot be checked, failed that they
	// have errors.
	missing string
	failed  bool
}

// stop cancels the running check, and waits for its end.
func (t *typeCheck) stop() {
	if t.cancel != nil {
		t.cancel()
		<-t.ended
	}
}

// checkTypes starts a check after files have changed. It cancels the running one.
func (d *dev) checkTypes(ctx context.Context, changed []string) {
	source := func(name string) bool { return !strings.HasPrefix(name, "build/") }
	if len(changed) > 0 && !slices.ContainsFunc(changed, source) {
		return
	}
	t, dir := &d.types, d.app.Dir
	before := t.ended
	if t.cancel != nil {
		t.cancel()
	}
	ctx, t.cancel = context.WithCancel(ctx)
	ended := make(chan struct{})
	t.ended = ended
	go func() {
		defer close(ended)
		if before != nil {
			<-before
		}
		if ctx.Err() != nil {
			return
		}
		if found, missing, err := toolchain.CheckTypes(ctx, dir); ctx.Err() == nil {
			t.report(d.log, found, missing, err)
		}
	}()
}

// report logs what a check has found.
func (t *typeCheck) report(log *devLog, found *toolchain.DiagnosticsError, missing string, err error) {
	say := func(text string) { log.event(devEvent{Event: "log", Level: "info", Message: text}, text) }
	switch {
	case err != nil:
		log.problems(err)
		return
	case found != nil:
		log.problems(&console.Problems{
			What: "the handlers have type errors: " + console.Counted(found.List), Sources: found.Sources, List: found.List,
		})
	case t.failed:
		say("the handlers have no type errors")
	case missing != "" && missing != t.missing:
		say(missing)
	}
	t.failed, t.missing = found != nil, missing
}
