package auth

import (
	"context"
	"sync/atomic"
	"time"

	"runner.example/internal/clock"
	"runner.example/state/store"
)

// readEvery is the pause between two readings of the store's staleness.
const readEvery = 250 * time.Millisecond

// freshness knows until when the store is fresh enough to accept credentials. A request of a fresh
// store compares one number: so a process that was suspended finds itself stale before it reads the
// store again.
type freshness struct {
	limit time.Duration // 0: the store is always fresh enough
	began time.Time
	until atomic.Int64 // nanoseconds after began
}

// over reports whether the store lags too far behind at now. It reads the store before it says so: a
// server is ready as soon as its store is fresh, and must then accept credentials.
func (f *freshness) over(st *store.Store, now time.Time) bool {
	if !f.passed(now) {
		return false
	}
	f.read(st)
	return f.passed(now)
}

func (f *freshness) passed(now time.Time) bool {
	return f.limit > 0 && int64(now.Sub(f.began)) > f.until.Load()
}

// read reads the staleness of the store.
func (f *freshness) read(st *store.Store) {
	if f.limit == 0 {
		return
	}
	now := clock.Mark() // before the staleness, so that until is not too late
	if f.began.IsZero() {
		f.began = now
	}
	f.until.Store(int64(now.Sub(f.began) + f.limit - st.Health().Staleness))
}

// run reads the staleness until ctx ends.
func (f *freshness) run(ctx context.Context, st *store.Store) {
	if f.limit == 0 {
		return
	}
	tick := time.NewTicker(min(readEvery, max(f.limit/4, time.Millisecond)))
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			f.read(st)
		case <-ctx.Done():
			return
		}
	}
}

// refusedStale is the refusal of a credential that a stale store cannot judge. Another node may be
// able to at once.
func refusedStale() error { return &Refusal{Fault: errStale, RetryAfter: 1} }
