package fairqueue

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"time"
)

// ErrTimeout ends an Acquire whose time limit passed.
var ErrTimeout = errors.New("no slot became free in time")

// NoLimit is the time limit of an Acquire that only its context ends.
const NoLimit time.Duration = math.MaxInt64

// A Claim asks for a slot. A Pool calls its methods under its lock, so they may change
// counters that all claims of the Pool share, but must not call the Pool.
type Claim interface {
	// MayTake reports whether the claim may have one of so many free slots.
	MayTake(free int) bool
	// Taken and Returned count a slot for the claim's group.
	Taken()
	Returned()
}

// Share reports whether a group that holds so many slots may have another one of those
// that are free. A group alone gets three quarters of all slots, and each further group
// three quarters of the rest. A group that holds nothing gets any free slot.
func Share(held, free int) bool {
	return free > 0 && (held == 0 || held < times*(free-1))
}

// ShareOf is Share for an amount that is not counted in ones: a group that holds held of
// it may take more of what is free.
func ShareOf(held, free, more int64) bool { return held+more <= times*(free-more) }

// times is how many times the number of slots left to others a group may hold.
const times = 3

// Pool is a number of slots. Any goroutine may use it.
//
//	     Acquire            Release
//	new ─────────► a slot ──────────► gone, or parked
//	                 ▲                    │
//	                 └────────────────────┘
//	                       Reacquire
type Pool[C Claim] struct {
	mu        sync.Mutex
	free      int // below 0 while Reacquire has handed out more slots than there are
	returning []*waiter[C]
	waiting   []*waiter[C]
}

// waiter waits for a slot.
type waiter[C Claim] struct {
	claim C
	ready chan struct{} // closed when it has one
}

// New returns a pool of so many slots.
func New[C Claim](slots int) *Pool[C] { return &Pool[C]{free: slots} }

// Acquire takes a slot. It waits until ctx ends or limit has passed; then it returns
// ctx.Err() or ErrTimeout.
func (p *Pool[C]) Acquire(ctx context.Context, claim C, limit time.Duration) (err error) {
	p.mu.Lock()
	if p.takeLocked(claim) {
		p.mu.Unlock()
		return nil
	}
	w := addLocked(&p.waiting, claim)
	p.mu.Unlock()

	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-w.ready:
		return nil
	case <-ctx.Done():
		err = ctx.Err()
	case <-timer.C:
		err = ErrTimeout
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if removeLocked(&p.waiting, w) {
		return err
	}
	return nil // it got a slot meanwhile
}

// State returns the number of free slots, below 0 when Reacquire has handed out more than there
// are, and the number of waiters.
func (p *Pool[C]) State() (free, waiting int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.free, len(p.waiting) + len(p.returning)
}

// Release gives a slot back and hands it to the first waiter that may have it.
func (p *Pool[C]) Release(claim C) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free++
	claim.Returned()
	p.serveLocked(&p.returning)
	p.serveLocked(&p.waiting)
}

// Reacquire takes a slot for a holder that released one for a while. It is served before
// all waiters of Acquire. When ctx ends first, the holder gets a slot beyond those that
// there are, so that it can clean up: it must release that soon.
func (p *Pool[C]) Reacquire(ctx context.Context, claim C) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if ctx.Err() == nil {
		if p.takeLocked(claim) {
			return
		}
		w := addLocked(&p.returning, claim)
		p.mu.Unlock()
		select {
		case <-w.ready:
		case <-ctx.Done():
		}
		p.mu.Lock()
		if !removeLocked(&p.returning, w) {
			return // it has a slot
		}
	}
	p.free--
	claim.Taken()
}

// takeLocked takes a slot if the claim may have one.
func (p *Pool[C]) takeLocked(claim C) bool {
	if p.free <= 0 || !claim.MayTake(p.free) {
		return false
	}
	p.free--
	claim.Taken()
	return true
}

// serveLocked hands slots to the waiters of a line that may have them.
func (p *Pool[C]) serveLocked(line *[]*waiter[C]) {
	if p.free <= 0 || len(*line) == 0 {
		return
	}
	*line = slices.DeleteFunc(*line, func(w *waiter[C]) bool {
		if !p.takeLocked(w.claim) {
			return false
		}
		close(w.ready)
		return true
	})
}

func addLocked[C Claim](line *[]*waiter[C], claim C) *waiter[C] {
	w := &waiter[C]{claim, make(chan struct{})}
	*line = append(*line, w)
	return w
}

// removeLocked reports whether the waiter was still in line.
func removeLocked[C Claim](line *[]*waiter[C], w *waiter[C]) bool {
	at := slices.Index(*line, w)
	if at >= 0 {
		*line = slices.Delete(*line, at, at+1)
	}
	return at >= 0
}
