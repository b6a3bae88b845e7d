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
	// Parties names whom the claim takes turns for, such as a handler and a caller, while it
	// waits.
	Parties() Parties
}

// Parties are two names of different kinds. An empty one is not counted.
type Parties [2]string

// Share reports whether a group that holds so many slots may have another one of those
// that are free. A group alone gets three quarters of all slots, and each further group
// three quarters of the rest. A group that holds nothing gets any free slot.
func Share(held, free int) bool {
	return free > 0 && (held == 0 || held < times*(free-1))
}

// ShareOf is Share for an amount that is not counted in ones: a group that holds held of
// it may take more of what is free.
func ShareOf(held, free, more int64) bool { return held+more <= times*(free-more) }

// Held counts the slots that parties hold. The Pool's lock guards it. The zero value is ready to
// use.
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
	waiting atomic.Int32 // the length of line

	mu   sync.Mutex
	free int          // below 0 while more slots are handed out than there are
	line []*waiter[C] // by turn
	turn int          // of the last waiter that got a slot
	// last is the last turn that waits or waited for a party. It is kept while that is needed.
	last [len(Parties{})]map[string]int
}

// waiter waits for a slot.
type waiter[C Claim] struct {
	claim C
	turn  int
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
// its turn. When ctx ends first, the holder gets a slot as with Force: it must release that soon.
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
	return p.free, len(p.line)
}

// takeOrJoin takes a slot, or returns a waiter for one, which is in line.
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

// wait waits for a slot. With an error the waiter may still be in line.
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

// joinLocked gives a waiter its turn: the one after the last of its parties, and the current one
// if none of them waits. So a party with many waiters does not delay another one's first.
func (p *Pool[C]) joinLocked(w *waiter[C], parties Parties, returns bool) {
	if len(p.line) == 0 {
		p.turn = 0
		for i := range p.last {
			clear(p.last[i])
		}
	}
	w.turn = p.turn
	for i, name := range parties {
		if last, waits := p.last[i][name]; waits {
			w.turn = max(w.turn, last+1)
		}
	}
	for i, name := range parties {
		if name == "" {
			continue
		}
		if len(p.last[i]) > 2*len(p.line)+16 {
			maps.DeleteFunc(p.last[i], func(_ string, last int) bool { return last < p.turn })
		}
		p.last[i][name] = w.turn
	}
	at, _ := slices.BinarySearchFunc(p.line, w.turn, func(other *waiter[C], turn int) int {
		if other.turn == turn && !returns {
			return -1
		}
		return other.turn - turn
	})
	p.line = slices.Insert(p.line, at, w)
	p.waiting.Add(1)
}

// leave removes a waiter. false: it has a slot.
func (p *Pool[C]) leave(w *waiter[C]) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := slices.Index(p.line, w)
	if at >= 0 {
		p.line = slices.Delete(p.line, at, at+1)
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
	if p.free <= 0 || len(p.line) == 0 {
		return
	}
	p.line = slices.DeleteFunc(p.line, func(w *waiter[C]) bool {
		if !p.takeLocked(w.claim) {
			return false
		}
		p.turn = max(p.turn, w.turn)
		p.waiting.Add(-1)
		close(w.ready)
		return true
	})
}
