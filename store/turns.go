package store

import (
	"context"
	"hash/maphash"
	"time"
)

// turns lets transactions that conflicted on the same key retry one at a time: otherwise, of
// n that change one key, all but one would conflict at every try. It is best effort: a
// transaction that has waited for turnWait continues.
type turns struct {
	seed   maphash.Seed
	queues [64]chan struct{} // full while a transaction has the turn
}

// turnWait is short enough for a request and long enough for many commits.
const turnWait = 100 * time.Millisecond

func newTurns() *turns {
	t := &turns{seed: maphash.MakeSeed()}
	for i := range t.queues {
		t.queues[i] = make(chan struct{}, 1)
	}
	return t
}

// turn is held by a transaction; the zero value is not held.
type turn struct{ queue chan struct{} }

func (t *turn) release() {
	if t.queue != nil {
		<-t.queue
		t.queue = nil
	}
}

// take releases the turn held and waits for that of key.
func (t *turns) take(ctx context.Context, held *turn, key string) {
	queue := t.queues[maphash.String(t.seed, key)%uint64(len(t.queues))]
	if held.queue == queue {
		return
	}
	held.release()
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
