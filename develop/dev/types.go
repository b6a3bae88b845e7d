package dev

import (
	"context"
	"slices"
	"strings"

	"runner.example/develop/toolchain"
	"runner.example/internal/console"
)

// typeCheck checks the types of handlers in TypeScript beside the server, which does not wait for it.
type typeCheck struct {
	cancel context.CancelFunc // of the last check; nil: none has begun
	ended  chan struct{}      // closed when the last check has ended
	// said is why types are not checked, and wrong that they have errors, as was logged last. They belong to the check
	// that runs.
	said  string
	wrong bool
}

// stop ends the check that runs, and waits for its end.
func (t *typeCheck) stop() {
	if t.cancel != nil {
		t.cancel()
		<-t.ended
	}
}

// checkTypes begins a check after files have changed, instead of the one that runs.
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
		log.mistakes(err)
		return
	case found != nil:
		log.mistakes(&console.Problems{
			What: "the handlers have type errors: " + console.Counted(found.List), Sources: found.Sources, List: found.List,
		})
	case t.wrong:
		say("the handlers have no type errors")
	case missing != "" && missing != t.said:
		say(missing)
	}
	t.wrong, t.said = found != nil, missing
}
