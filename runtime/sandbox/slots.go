package sandbox

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"runner.example/internal/cpuqueue"
	"runner.example/internal/fairqueue"
	"runner.example/internal/fault"
)

// A guest that waits for something parks: it gives its instance slot to another one, and
// gets a slot before new guests when it goes on. parkedPerSlot times the number of slots
// may park, with a part of all memory (1/parkedMemory). A handler has its share of both.
// A guest that cannot park keeps its slot.
const (
	parkedPerSlot = 8
	parkedMemory  = 2
)

// A handler whose guests always compute for long can have longPerCPU guests for each CPU slot:
// more of them would only wait for one another, in a queue that queue_wait does not limit.
const longPerCPU = 6

// When a request of a handler has waited in vain, more requests come than fit, and a long queue
// would delay those that are served as well. So later requests of the handler wait only a
// crowdedPart of queue_wait, until none has waited in vain for queue_wait. A burst that fits
// is not affected.
const crowdedPart = 100

// handlerState is what the engine keeps of one handler of a module. It is the claim of the
// handler's guests to instance slots.
type handlerState struct {
	name    string // of the module and the handler, for logs
	breaker breaker
	cpu     cpuqueue.Handler

	longSlots    int          // that its guests may hold while they always compute for long
	crowdedUntil atomic.Int64 // time.Duration of instanceSlots.now

	shared     *sharedSlots // by all handlers
	background bool         // it runs beside requests, and serves none

	slots       int   // that its guests hold; guarded by instanceSlots.Pool
	parked      int   // guests; this and parkedBytes are guarded by instanceSlots.mu
	parkedBytes int64 // of memory that they hold
}

// MayTake, Taken and Returned implement fairqueue.Claim.
func (h *handlerState) MayTake(free int) bool {
	if h.background && !h.shared.mayTake() {
		return false
	}
	return fairqueue.Share(h.slots, free) && (h.slots < h.longSlots || !h.cpu.AlwaysLong())
}

func (h *handlerState) Taken() {
	h.slots++
	h.shared.count(h.background, 1)
}

func (h *handlerState) Returned() {
	h.slots--
	h.shared.count(h.background, -1)
}

// sharedSlots limits the instance slots of all background handlers: for at most half of the CPU slots,
// and while requests run, for half of that time. Guests that wait have parked, and do not count.
// instanceSlots.Pool guards it.
type sharedSlots struct {
	limit      int // of background
	background int // slots that background handlers hold
	requests   int // slots that other handlers hold
	// owed is how long no background handler may begin while requests run, as of the time at. A slot of
	// the limit adds half of the time for which it is held.
	owed, at time.Duration
	now      func() time.Duration
}

// mayTake reports whether a background handler may have another slot.
func (s *sharedSlots) mayTake() bool {
	s.settle()
	return s.background < s.limit && (s.requests == 0 || s.owed == 0)
}

// count adds n to the slots of background handlers, or of the others.
func (s *sharedSlots) count(background bool, n int) {
	if background {
		s.settle()
		s.background += n
	} else {
		s.requests += n
	}
}

// settle brings owed up to date.
func (s *sharedSlots) settle() {
	now := s.now()
	passed := now - s.at
	s.at = now
	s.owed = max(0, s.owed+passed*time.Duration(s.background)/time.Duration(s.limit)-passed/2)
}

// instanceSlots are the slots for guests that run. Any goroutine may use them.
type instanceSlots struct {
	*fairqueue.Pool[*handlerState]
	now func() time.Duration

	shared sharedSlots

	mu    sync.Mutex
	free  int   // guests that may still park
	bytes int64 // of memory, for those
}

func newInstanceSlots(count int, memory int64, now func() time.Duration) *instanceSlots {
	return &instanceSlots{Pool: fairqueue.New[*handlerState](count), now: now, free: parkedPerSlot * count, bytes: memory / parkedMemory,
		shared: sharedSlots{limit: max(1, cpuSlots()/2), now: now}}
}

// enter takes a slot for a new guest. It waits for it up to limit, or less if the handler has
// more requests than fit.
func (s *instanceSlots) enter(ctx context.Context, h *handlerState, limit time.Duration) error {
	if h.background { // no client waits for it, so it may wait without a limit
		if err := s.Acquire(ctx, h, fairqueue.NoLimit); err != nil {
			return errNoSlot
		}
		return nil
	}
	wait := limit
	if int64(s.now()) < h.crowdedUntil.Load() {
		wait /= crowdedPart
	}
	switch err := s.Acquire(ctx, h, wait); {
	case err == nil:
		return nil
	case !errors.Is(err, context.Canceled):
		h.crowdedUntil.Store(int64(s.now() + limit))
	}
	return errNoSlot // nothing ran: the handler was not slow
}

var errNoSlot = fault.New(fault.Overloaded, "all sandboxes are busy; try again")

// park releases the slot of a guest that holds so much memory, until unpark. false: the
// guest keeps its slot.
func (s *instanceSlots) park(h *handlerState, memory int64) bool {
	if !s.mayPark(h, memory) {
		return false
	}
	s.Release(h)
	return true
}

func (s *instanceSlots) mayPark(h *handlerState, memory int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !fairqueue.Share(h.parked, s.free) || memory > s.bytes ||
		h.parked > 0 && !fairqueue.ShareOf(h.parkedBytes, s.bytes, memory) {
		return false
	}
	s.free--
	h.parked++
	s.bytes -= memory
	h.parkedBytes += memory
	return true
}

// unpark gets a slot again for a guest that parked with so much memory. When ctx ends
// first the guest must not go on, but is counted until it leaves.
func (s *instanceSlots) unpark(ctx context.Context, h *handlerState, memory int64) {
	s.Reacquire(ctx, h)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free++
	h.parked--
	s.bytes += memory
	h.parkedBytes -= memory
}
