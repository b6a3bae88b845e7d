package sandbox

import (
	"context"
	"sync/atomic"
	"time"

	"runner.example/internal/fairqueue"
	"runner.example/runtime/cpuqueue"
)

// background limits the guests of all background handlers. They take turns to run: as many as half of the
// CPU slots at once. Callers share the turns evenly. While requests run or wait
// for a CPU slot, they run for half of the time. A guest that waits for something else has no turn.
type background struct {
	limit int // guests that run at once
	turns *cpuqueue.Queue

	requests atomic.Int32 // slots that other handlers hold
	queued   atomic.Int32 // guests of these that wait for a CPU slot

	// instanceSlots.Pool guards what follows.

	held int // slots that background handlers hold
	// owed is how long no background guest may begin or go on while requests run, as of the time at. A slot
	// of the limit adds half of the time for which it is held.
	owed, at time.Duration
	waking   atomic.Bool // serve will be called when they have rested; not guarded
	serve    func()
	now      func() time.Duration
}

// mostOwed limits owed: otherwise jobs that ran for long without requests would rest as long beside later
// requests.
const mostOwed = 50 * time.Millisecond

// turn is what a background guest needs to run, besides its slot.
type turn struct {
	task  cpuqueue.Task
	by    *callerState
	waits bool // it is in the queue without a turn
}

// turns are those of one caller: to the queue it is a handler, so that callers share the turns, under however
// many names.
type turns struct {
	cpuqueue.Handler
	cpuqueue.Caller
}

// mayTake reports whether a background handler may have another slot.
func (b *background) mayTake() bool {
	b.settle()
	if b.owed == 0 || !b.besideRequests() {
		return true
	}
	if b.waking.CompareAndSwap(false, true) { // if nothing happens until then
		time.AfterFunc(2*b.owed, func() {
			b.waking.Store(false)
			b.serve()
		})
	}
	return false
}

func (b *background) besideRequests() bool { return b.requests.Load() > 0 || b.queued.Load() > 0 }

// count adds n to the slots of background handlers, or of the others.
func (b *background) count(background bool, n int) {
	if background {
		b.settle()
		b.held += n
	} else {
		b.requests.Add(int32(n))
	}
}

// settle brings owed up to date.
func (b *background) settle() {
	now := b.now()
	passed := now - b.at
	b.at = now
	b.owed = min(mostOwed, max(0, b.owed+passed*time.Duration(b.held)/time.Duration(b.limit)-passed/2))
}

// due reports whether a guest that has its turn must ask to go on: others may go first, or it must rest.
func (b *background) due(t *turn, now time.Duration) bool {
	return t != nil && t.task.Running() && now-t.task.RunsSince() >= yieldEvery &&
		(b.turns.Contended() || b.besideRequests())
}

// take waits for a turn. The error is that of ctx.
func (b *background) take(ctx context.Context, t *turn) error {
	if !t.waits && !t.task.Running() {
		t.waits, _ = b.turns.Join(ctx, &t.task, &t.by.turns.Caller) // never ErrFull: nothing is known of how long tasks take
	}
	if !t.waits {
		return nil
	}
	t.waits = false
	return b.turns.Wait(ctx, &t.task)
}

// release ends a turn.
func (b *background) release(t *turn) {
	switch {
	case t.waits:
		if t.waits = false; b.turns.Leave(&t.task) {
			return
		}
		b.turns.Release(&t.task)
	case t.task.Running():
		b.turns.Release(&t.task)
	}
}

// enterBackground is enter for a guest of a background handler. No client waits for it, so it may wait as
// long as ctx lasts.
func (s *instanceSlots) enterBackground(ctx context.Context, c claim) error {
	t := c.turn
	t.by = s.caller(c)
	t.task.Reset(&t.by.turns.Handler, s.now())
	for {
		if s.awaitPlace(ctx, c) != nil || s.background.take(ctx, t) != nil {
			s.forget(t.by)
			return errNoSlot
		}
		if s.noPlace(c) == nil {
			break
		}
		s.background.release(t) // another guest has taken it
	}
	if s.Acquire(ctx, c, fairqueue.NoLimit) != nil {
		s.background.release(t)
		s.forget(t.by)
		return errNoSlot
	}
	return nil
}

// leave ends the run of a guest that has entered.
func (s *instanceSlots) leave(c claim) {
	s.Release(c)
	if c.turn != nil {
		s.background.release(c.turn)
		s.forget(c.turn.by)
	}
}

// awaitPlace waits until a background guest would probably find a place. Once it has begun it takes one in
// any case: its job would have to begin again.
func (s *instanceSlots) awaitPlace(ctx context.Context, c claim) error {
	for {
		freed := s.noPlace(c)
		if freed == nil {
			return nil
		}
		select {
		case <-freed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// noPlace returns nil if there is a place for a background guest, with as much memory as those of its handler
// that have parked, or what is closed when a place becomes free.
func (s *instanceSlots) noPlace(c claim) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	var memory int64
	if p := c.parked; p.guests > 0 {
		memory = p.bytes / int64(p.guests)
	}
	if s.mayParkLocked(c.turn.by.parked, c.parked, 0, 0, memory) {
		return nil
	}
	if s.freed == nil {
		s.freed = make(chan struct{})
	}
	return s.freed
}
