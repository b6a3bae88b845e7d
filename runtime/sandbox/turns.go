package sandbox

import (
	"context"
	"sync/atomic"
	"time"
)

// A guest that has computed for longAfter takes turns with others like it, each
// of turnTime, and all of them together leave a processor free: a short request
// then finds one, and so do the network and the collector.
const (
	longAfter = 2 * time.Millisecond
	turnTime  = 5 * time.Millisecond
)

// turns hands out turns to compute, first come first served.
type turns struct {
	taken   chan struct{}
	waiting atomic.Int32
}

func newTurns(processors int) *turns {
	return &turns{taken: make(chan struct{}, max(1, processors-1))}
}

// take waits for a turn; false says that ctx ended first.
func (t *turns) take(ctx context.Context) bool {
	select {
	case t.taken <- struct{}{}:
		return true
	default:
	}
	t.waiting.Add(1)
	defer t.waiting.Add(-1)
	select {
	case t.taken <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

func (t *turns) give() { <-t.taken }

// wanted reports whether somebody waits for a turn.
func (t *turns) wanted() bool { return t.waiting.Load() > 0 }
