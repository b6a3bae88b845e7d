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

	// background is shared by the handlers that run beside requests; nil: it serves requests.
	background *backgroundSlots

	slots       int   // that its guests hold; guarded by instanceSlots.Pool
	parked      int   // guests; this and parkedBytes are guarded by instanceSlots.mu
	parkedBytes int64 // of memory that they hold
}

// MayTake, Taken and Returned implement fairqueue.Claim.
func (h *handlerState) MayTake(free int) bool {
	if b := h.background; b != nil && b.held >= b.limit {
		return false
	}
	return fairqueue.Share(h.slots, free) && (h.slots < h.longSlots || !h.cpu.AlwaysLong())
}

func (h *handlerState) Taken() {
	h.slots++
	if h.background != nil {
		h.background.held++
	}
}

func (h *handlerState) Returned() {
	h.slots--
	if h.background != nil {
		h.background.held--
	}
}

// backgroundSlots limits the instance slots of all handlers that run beside requests: for at most half
// of the CPU slots. Guests that wait have parked, and do not count.
type backgroundSlots struct {
	limit int
	held  int // guarded by instanceSlots.Pool
}

// instanceSlots are the slots for guests that run. Any goroutine may use them.
type instanceSlots struct {
	*fairqueue.Pool[*handlerState]
	now func() time.Duration

	background backgroundSlots

	mu    sync.Mutex
	free  int   // guests that may still park
	bytes int64 // of memory, for those
}

func newInstanceSlots(count int, memory int64, now func() time.Duration) *instanceSlots {
	return &instanceSlots{Pool: fairqueue.New[*handlerState](count), now: now, free: parkedPerSlot * count, bytes: memory / parkedMemory, background: backgroundSlots{limit: max(1, cpuSlots()/2)}}
}

// enter takes a slot for a new guest. It waits for it up to limit, or less if the handler has
// more requests than fit.
func (s *instanceSlots) enter(ctx context.Context, h *handlerState, limit time.Duration) error {
	if h.background != nil { // nobody waits for the answer
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
