package store

import (
	"context"
	"math"
	"sync/atomic"
	"time"

	"runner.example/internal/clock"
	"runner.example/internal/fault"
	"runner.example/state/store/lag"
)

// maxSilence is how long a shared log may be silent while commits are believed to be possible. With the pause
// between two questions, an operator knows within three seconds that they are not.
const maxSilence = 2500 * time.Millisecond

// freshness asks a shared log for its newest entry at intervals. A node without a connection to the
// others becomes stale.
type freshness struct {
	lag      lag.Lag
	answered atomic.Pointer[time.Time] // when the newest question that has an answer was asked; nil: none has
	stopped  chan struct{}
}

// startFreshness asks until the sequencer is closed.
func startFreshness(q *sequencer) *freshness {
	f := &freshness{stopped: make(chan struct{})}
	go func() {
		defer close(f.stopped)
		tick := time.NewTicker(tipEvery)
		defer tick.Stop()
		for {
			f.ask(q)
			select {
			case <-tick.C:
			case <-q.ctx.Done():
				return
			}
		}
	}()
	return f
}

func (f *freshness) ask(q *sequencer) {
	asked := clock.Mark()
	ctx, cancel := context.WithTimeout(q.ctx, tipWait)
	defer cancel()
	if revision, err := q.log.tip(ctx); err == nil { // else the store becomes stale
		f.answered.Store(&asked)
		f.lag.Add(q.store.applied.revision.Load(), revision, asked)
	}
}

// silence returns how long ago the newest question that has an answer was asked; the longest Duration if none
// has.
func (f *freshness) silence() time.Duration {
	if asked := f.answered.Load(); asked != nil {
		return time.Since(*asked)
	}
	return math.MaxInt64
}

// silent returns why commits are not possible after a silence; nil if they are.
func silent(silence time.Duration) error {
	switch {
	case silence <= maxSilence:
		return nil
	case silence == math.MaxInt64:
		return fault.New(fault.Unavailable, "no majority of the voters has answered yet, so nothing can be stored")
	}
	return fault.New(fault.Unavailable,
		"no majority of the voters has answered for %v, so nothing can be stored", silence.Truncate(time.Second))
}
