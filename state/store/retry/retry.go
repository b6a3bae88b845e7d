package retry

import (
	"context"
	"hash/maphash"
	"time"
)

// Turns lets transactions that conflicted on the same key retry one at a time: otherwise, of
// n that change one key, all but one would conflict at every try. It is best effort: a
// transaction that has waited for turnWait continues.
type Turns struct {
	seed   maphash.Seed
	queues [64]chan struct{} // full while a transaction has the turn
}

// turnWait is short enough for a request and long enough for many commits.
const turnWait = 100 * time.Millisecond

// New returns turns that no transaction has.
func New() *Turns {
	t := &Turns{seed: maphash.MakeSeed()}
	for i := range t.queues {
		t.queues[i] = make(chan struct{}, 1)
	}
	return t
}

// Turn is held by a transaction; the zero value is not held, and nil neither.
type Turn struct{ queue chan struct{} }

// Release ends the turn, if it is held.
func (t *Turn) Release() {
	if t != nil && t.queue != nil {
		<-t.queue
		t.queue = nil
	}
}

// Take releases the turn held and waits for that of key.
func (t *Turns) Take(ctx context.Context, held *Turn, key string) {
	queue := t.queues[maphash.String(t.seed, key)%uint64(len(t.queues))]
	if held.queue == queue {
		return
	}
	held.Release()
	select {
	case queue <- struct{}{}:
		held.queue = queue
		return
	default:
	}
	limit := time.NewTimer(turnWait)
	defer limit.Stop()
	select {
	case queue <- struct{}{}:
		held.queue = queue
	case <-limit.C:
	case <-ctx.Done():
	}
}
