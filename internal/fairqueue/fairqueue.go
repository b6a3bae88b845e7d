package fairqueue

import (
	"context"
	"errors"
	"maps"
	"math"
	"slices"
	"sync"
	"sync/atomic"
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
	// Parties are the handler and the caller, for example, by which waiting claims are served in
	// rounds.
	Parties() Parties
}

// Parties are the two parties of a claim, by name. A party without a name is not counted.
type Parties [2]string

// Share reports whether a group that holds so many slots may have another one of those
// that are free. A group alone gets three quarters of all slots, and each further group
// three quarters of the rest. A group that holds nothing gets any free slot.
func Share(held, free int) bool { return ShareTimes(held, free, times) }

// ShareTimes is Share for groups that may hold so many times the number of slots that they leave
// to others.
func ShareTimes(held, free, times int) bool {
	return free > 0 && (held == 0 || held < times*(free-1))
}

// ShareOf is Share for an amount that is not counted in ones: a group that holds held of
// it may take more of what is free.
func ShareOf(held, free, more int64) bool { return held+more <= times*(free-more) }

// Held counts the slots that parties hold. The lock of the Pool guards it. The zero value is
// ready to use.
type Held [len(Parties{})]map[string]int

// Count adds n to the slots of both parties.
func (h *Held) Count(parties Parties, n int) {
	for i, name := range parties {
		if h[i] == nil {
			h[i] = map[string]int{}
		}
		if h[i][name] += n; h[i][name] == 0 {
			delete(h[i], name)
		}
	}
}

// Share reports whether both parties may have another one of so many free slots.
func (h *Held) Share(parties Parties, free int) bool {
	for i, name := range parties {
		if name != "" && !Share(h[i][name], free) {
			return false
		}
	}
	return free > 0
}

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
	waiting atomic.Int32 // the length of queue

	mu    sync.Mutex
	free  int          // below 0 while more slots are handed out than there are
	queue []*waiter[C] // by round
	round int          // of the last waiter that got a slot
	// last has the round of the last waiter of each party, as long as it is needed.
	last [len(Parties{})]map[string]int
}

// waiter waits for a slot.
type waiter[C Claim] struct {
	claim C
	round int
	ready chan struct{} // closed when it has one
}

// New returns a pool of so many slots.
func New[C Claim](slots int) *Pool[C] {
	p := &Pool[C]{free: slots}
	for i := range p.last {
		p.last[i] = map[string]int{}
	}
	return p
}

// Acquire takes a slot. It waits until ctx ends or limit has passed; then it returns
// ctx.Err() or ErrTimeout.
func (p *Pool[C]) Acquire(ctx context.Context, claim C, limit time.Duration) (err error) {
	w := p.takeOrJoin(claim, false)
	if w == nil {
		return nil
	}
	if err := w.wait(ctx, limit); err != nil && p.leave(w) {
		return err
	}
	return nil // it has a slot
}

// Reacquire takes a slot for a holder that released one for a while. It goes before others of
// its round. When ctx ends first, the holder gets a slot as with Force: it must release that soon.
func (p *Pool[C]) Reacquire(ctx context.Context, claim C) {
	if ctx.Err() == nil {
		w := p.takeOrJoin(claim, true)
		if w == nil || w.wait(ctx, NoLimit) == nil || !p.leave(w) {
			return // it has a slot
		}
	}
	p.Force(claim)
}

// Force takes a slot at once, also beyond those that there are.
func (p *Pool[C]) Force(claim C) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free--
	claim.Taken()
}

// Release gives a slot back and hands it to the first waiter that may have it.
func (p *Pool[C]) Release(claim C) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free++
	claim.Returned()
	p.serveLocked()
}

// Serve hands free slots to the waiters that may have them by now, for claims whose MayTake depends on more
// than slots.
func (p *Pool[C]) Serve() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.serveLocked()
}

// Contended reports whether a claim waits.
func (p *Pool[C]) Contended() bool { return p.waiting.Load() > 0 }

// State returns the number of free slots, below 0 when more are handed out than there are, and
// the number of waiters.
func (p *Pool[C]) State() (free, waiting int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.free, len(p.queue)
}

// takeOrJoin takes a slot, or returns a waiter that has joined the queue.
func (p *Pool[C]) takeOrJoin(claim C, returns bool) *waiter[C] {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.takeLocked(claim) {
		return nil
	}
	w := &waiter[C]{claim: claim, ready: make(chan struct{})}
	p.joinLocked(w, claim.Parties(), returns)
	return w
}

// wait waits for a slot. With an error the waiter may still be in the queue.
func (w *waiter[C]) wait(ctx context.Context, limit time.Duration) error {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-w.ready:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return ErrTimeout
	}
}

// joinLocked adds a waiter to the queue. Its round is the one after the last round of its parties,
// or the current round if neither of them waits. So the many waiters of one party do not delay
// the first waiter of another.
func (p *Pool[C]) joinLocked(w *waiter[C], parties Parties, returns bool) {
	if len(p.queue) == 0 {
		p.round = 0
		for i := range p.last {
			clear(p.last[i])
		}
	}
	w.round = p.round
	for i, name := range parties {
		if last, waits := p.last[i][name]; waits {
			w.round = max(w.round, last+1)
		}
	}
	for i, name := range parties {
		if name == "" {
			continue
		}
		if len(p.last[i]) > 2*len(p.queue)+16 {
			maps.DeleteFunc(p.last[i], func(_ string, last int) bool { return last < p.round })
		}
		p.last[i][name] = w.round
	}
	at, _ := slices.BinarySearchFunc(p.queue, w.round, func(other *waiter[C], round int) int {
		if other.round == round && !returns {
			return -1
		}
		return other.round - round
	})
	p.queue = slices.Insert(p.queue, at, w)
	p.waiting.Add(1)
}

// leave removes a waiter. false: it has a slot.
func (p *Pool[C]) leave(w *waiter[C]) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := slices.Index(p.queue, w)
	if at >= 0 {
		p.queue = slices.Delete(p.queue, at, at+1)
		p.waiting.Add(-1)
	}
	return at >= 0
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

// serveLocked hands slots to the waiters that may have them.
func (p *Pool[C]) serveLocked() {
	if p.free <= 0 || len(p.queue) == 0 {
		return
	}
	p.queue = slices.DeleteFunc(p.queue, func(w *waiter[C]) bool {
		if !p.takeLocked(w.claim) {
			return false
		}
		p.round = max(p.round, w.round)
		p.waiting.Add(-1)
		close(w.ready)
		return true
	})
}
