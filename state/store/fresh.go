package store

import (
	"context"
	"time"

	"runner.example/internal/clock"
	"runner.example/state/store/lag"
)

// freshness asks a shared log for its newest entry at intervals. A node without a connection to the
// others becomes stale.
type freshness struct {
	lag     lag.Lag
	stopped chan struct{}
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
		f.lag.Add(q.store.applied.revision.Load(), revision, asked)
	}
}
