package sandbox

import (
	"context"
	"sync"
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

// handlerState is what the engine keeps of one handler of a module. It is the claim of the
// handler's guests to instance slots.
type handlerState struct {
	name    string // of the module and the handler, for logs
	breaker breaker
	cpu     cpuqueue.Handler

	slots       int   // that its guests hold; guarded by instanceSlots.Pool
	parked      int   // guests; this and parkedBytes are guarded by instanceSlots.mu
	parkedBytes int64 // of memory that they hold
}

// MayTake, Taken and Returned implement fairqueue.Claim.
func (h *handlerState) MayTake(free int) bool { return fairqueue.Share(h.slots, free) }
func (h *handlerState) Taken()                { h.slots++ }
func (h *handlerState) Returned()             { h.slots-- }

// instanceSlots are the slots for guests that run. Any goroutine may use them.
type instanceSlots struct {
	*fairqueue.Pool[*handlerState]

	mu    sync.Mutex
	free  int   // guests that may still park
	bytes int64 // of memory, for those
}

func newInstanceSlots(count int, memory int64) *instanceSlots {
	return &instanceSlots{Pool: fairqueue.New[*handlerState](count), free: parkedPerSlot * count, bytes: memory / parkedMemory}
}

// enter takes a slot for a new guest, and waits for it up to limit.
func (s *instanceSlots) enter(ctx context.Context, h *handlerState, limit time.Duration) error {
	if s.Acquire(ctx, h, limit) != nil { // nothing ran: the handler was not slow
		return errNoSlot
	}
	return nil
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
