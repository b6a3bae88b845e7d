package hostabi

import (
	"context"
	"slices"
	"time"

	"runner.example/internal/cost"
	"runner.example/internal/wait"
)

// sleep waits. Started beside other operations it is their common timeout, or the timer of
// a language that has timers.
func sleep(c *Call, text []byte) (work, error) {
	args, err := readArguments(text, &c.work)
	if err != nil {
		return nil, err
	}
	d := args.optionalTime("seconds", -1, 0, maxTime)
	if d < 0 {
		args.wrong("member %q is missing", "seconds")
	}
	if err := args.end(); err != nil {
		return nil, err
	}
	pause := func(ctx context.Context) error { return wait.For(ctx, d) }
	if c.Host.Sleep != nil {
		pause = c.addSleeper(c.now().Add(d)).wait
	}
	return func(ctx context.Context) (answer, error) {
		if err := pause(ctx); err != nil {
			return nil, err
		}
		return func(out []byte, _ *cost.Meter) ([]byte, error) { return append(out, "{}"...), nil }, nil
	}, nil
}

// sleeper is a sleep under a calendar that the host moves, see Host.Sleep.
type sleeper struct {
	operation *pendingOperation
	due       time.Time
	over      chan struct{}
}

// addSleeper adds a sleeper for the operation that was started last.
func (c *Call) addSleeper(due time.Time) *sleeper {
	ops := c.pendingOps()
	s := &sleeper{operation: ops.all[len(ops.all)-1], due: due, over: make(chan struct{})}
	ops.sleepers = append(ops.sleepers, s)
	return s
}

func (s *sleeper) wait(ctx context.Context) error {
	select {
	case <-s.over:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// moveTime is called before the guest waits for the operation, or for any if it is nil. If it waits for
// sleepers alone, the calendar moves to the first that is due, which is then over.
func (c *Call) moveTime(waitsFor *pendingOperation) {
	ops := c.pending
	if len(ops.sleepers) == 0 || waitsFor == nil && ops.isBusy() || waitsFor != nil && !ops.sleeps(waitsFor) {
		return
	}
	first := 0
	for i, s := range ops.sleepers {
		if s.due.Before(ops.sleepers[first].due) {
			first = i
		}
	}
	s := ops.sleepers[first]
	ops.sleepers = slices.Delete(ops.sleepers, first, first+1)
	if d := s.due.Sub(c.now()); d > 0 {
		c.Host.Sleep(d)
	}
	close(s.over)
	<-s.operation.done
}

// isBusy reports whether an operation that is no sleeper is under way.
func (ops *pendingOperations) isBusy() bool {
	return slices.ContainsFunc(ops.all, func(t *pendingOperation) bool { return !t.isDone() && !ops.sleeps(t) })
}

func (ops *pendingOperations) sleeps(t *pendingOperation) bool {
	return slices.ContainsFunc(ops.sleepers, func(s *sleeper) bool { return s.operation == t })
}

func (t *pendingOperation) isDone() bool {
	select {
	case <-t.done:
		return true
	default:
		return false
	}
}
