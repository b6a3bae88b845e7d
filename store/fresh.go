package store

import (
	"context"
	"math"
	"sync"
	"time"
)

// freshness knows how far a store that shares its log lags behind. It asks the log for its tip
// at intervals, and remembers when. Once that tip is applied, the store has all that any node
// had acknowledged then. So no clock of another node counts, and a node without a connection to
// the others becomes stale.
type freshness struct {
	stopped chan struct{}

	mu   sync.Mutex
	asOf time.Time // what was acknowledged then is applied; zero if no time is known
	tips []tip     // that are not applied, ascending
}

type tip struct {
	revision uint64
	asked    time.Time
}

// maxTips limits the memory of a store that applies nothing for long.
const maxTips = 4096

// startFreshness asks for the tip until the sequencer is closed.
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
	asked := time.Now()
	ctx, cancel := context.WithTimeout(q.ctx, tipWait)
	defer cancel()
	revision, err := q.log.tip(ctx)
	if err != nil {
		return // the store becomes stale
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.settle(q.store.applied.revision.Load())
	if n := len(f.tips); n > 0 && f.tips[n-1].revision == revision {
		f.tips[n-1].asked = asked
	} else if n < maxTips {
		f.tips = append(f.tips, tip{revision, asked})
	}
}

// settle drops the tips that are applied.
func (f *freshness) settle(applied uint64) {
	n := 0
	for ; n < len(f.tips) && f.tips[n].revision <= applied; n++ {
		f.asOf = f.tips[n].asked
	}
	f.tips = append(f.tips[:0], f.tips[n:]...)
}

// staleness returns how far reads may lag behind.
func (f *freshness) staleness(applied uint64) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.settle(applied)
	if f.asOf.IsZero() {
		return math.MaxInt64
	}
	return time.Since(f.asOf)
}
