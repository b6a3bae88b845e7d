package sandbox

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"runner.example/hostabi"
	"runner.example/internal/cpuqueue"
	"runner.example/internal/fairqueue"
	"runner.example/internal/fault"
)

// An instance slot is for a guest that runs: it is held only for a moment, or together with a
// CPU slot. A guest that waits, for a CPU slot or for something else, parks: it gives its slot
// to another one, and takes one again when it goes on. parkedPerSlot times the number of slots
// may park, with a part of all memory (1/parkedMemory, or the limit of one). A handler and a
// caller have their shares of both. A guest that must wait and cannot park ends.
const (
	parkedPerSlot = 8
	parkedMemory  = 2
	// 1/firstParked of the number is kept for callers without a parked guest, even if their handler
	// already has its share.
	firstParked = 8
)

// A handler whose guests always compute for long can have longPerCPU guests for each CPU slot:
// more of them would only wait for one another, in a queue that queue_wait does not limit.
const longPerCPU = 6

// When a request of a handler has waited in vain because of other requests of that handler, more
// of them come than fit, and a long queue would delay those that are served as well. So later
// ones wait only a crowdedPart of queue_wait, until none has waited in vain for queue_wait. A
// burst that fits is not affected.
const crowdedPart = 100

// handlerState is what the engine keeps of one handler of a module.
type handlerState struct {
	name    string // of the module and the handler, for logs
	breaker breaker
	cpu     cpuqueue.Handler

	longSlots    int          // that its guests may hold while they always compute for long
	crowdedUntil atomic.Int64 // time.Duration of instanceSlots.now
	queued       atomic.Int32 // guests that wait for a CPU slot
	waits        atomic.Bool  // the last guest waited for something other than a CPU slot

	in         *instanceSlots
	background bool // it runs beside requests, and serves none

	slots  int // that its guests hold; guarded by instanceSlots.Pool
	parked parked
}

// parked counts guests that have parked, and their memory. instanceSlots.mu guards it.
type parked struct {
	guests int
	bytes  int64
}

// callerState is what the engine keeps of a caller while it has a slow request: one that waits, or
// computes for long.
type callerState struct {
	name   string
	uses   int // guarded by instanceSlots.mu
	cpu    cpuqueue.Caller
	parked parked
}

// claim is what a guest asks an instance slot for.
type claim struct {
	*handlerState
	call    *hostabi.Call
	returns bool // it had one before
}

// MayTake, Taken, Returned and Parties implement fairqueue.Claim.
func (c claim) MayTake(free int) bool {
	h := c.handlerState
	if h.background && !h.in.shared.mayTake() || !fairqueue.Share(h.slots, free) {
		return false
	}
	return c.returns || !h.tooLong() && !c.cannotPark()
}

// tooLong reports whether another guest of the handler would only wait for those that compute.
func (h *handlerState) tooLong() bool {
	return h.cpu.AlwaysLong() && h.slots+int(h.queued.Load()) >= h.longSlots
}

// countQueued adds n to the guests that wait for a CPU slot.
func (h *handlerState) countQueued(n int32) {
	h.queued.Add(n)
	h.in.shared.queued.Add(n)
}

// cannotPark reports whether another guest of the handler and the caller could probably not park.
func (c claim) cannotPark() bool {
	h := c.handlerState
	if !h.waits.Load() || h.background {
		return false
	}
	var buf [64]byte
	name := c.call.Caller.AppendIdentity(buf[:0], c.call.Address)
	s := h.in
	s.mu.Lock()
	defer s.mu.Unlock()
	var of parked // the caller
	if by := s.callers[string(name)]; by != nil {
		of = by.parked
	}
	return !s.mayParkLocked(of, h.parked, h.slots, 0)
}

func (c claim) Taken() {
	c.slots++
	c.in.shared.count(c.background, 1)
}

func (c claim) Returned() {
	c.slots--
	c.in.shared.count(c.background, -1)
}

func (c claim) Parties() fairqueue.Parties { return fairqueue.Parties{c.name, nameOf(c.call)} }

// nameOf is the caller's identity, which is the same as for rate limits.
func nameOf(call *hostabi.Call) string {
	var buf [64]byte
	return string(call.Caller.AppendIdentity(buf[:0], call.Address))
}

// sharedSlots limits the instance slots of all background handlers: for at most half of the CPU slots,
// and while requests run or wait for a CPU slot, for half of that time. Guests that wait for something
// else have parked, and do not count. instanceSlots.Pool guards it.
type sharedSlots struct {
	limit      int          // of background
	background int          // slots that background handlers hold
	requests   int          // slots that other handlers hold
	queued     atomic.Int32 // guests of these that wait for a CPU slot; not guarded
	// owed is how long no background handler may begin while requests run, as of the time at. A slot of
	// the limit adds half of the time for which it is held.
	owed, at time.Duration
	now      func() time.Duration
}

// mayTake reports whether a background handler may have another slot.
func (s *sharedSlots) mayTake() bool {
	s.settle()
	return s.background < s.limit && (s.owed == 0 || s.requests == 0 && s.queued.Load() == 0)
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

// instanceSlots are the slots for guests that run, and limit the guests that park. Any goroutine
// may use them.
type instanceSlots struct {
	*fairqueue.Pool[claim]
	now func() time.Duration

	shared sharedSlots

	mu        sync.Mutex
	parkMax   int   // guests that may park
	parkFree  int   // guests that may still park
	parkBytes int64 // memory with which they may still park; below 0 if a single guest has parked with more
	callers   map[string]*callerState
}

func newInstanceSlots(count int, parkedBytes int64, now func() time.Duration) *instanceSlots {
	return &instanceSlots{
		Pool: fairqueue.New[claim](count), now: now, shared: sharedSlots{limit: max(1, cpuSlots()/2), now: now},
		parkMax: parkedPerSlot * count, parkFree: parkedPerSlot * count, parkBytes: parkedBytes, callers: map[string]*callerState{},
	}
}

// enter takes a slot for a new guest. It waits for it up to limit, or less if the handler has
// more requests than fit.
func (s *instanceSlots) enter(ctx context.Context, c claim, limit time.Duration) error {
	h := c.handlerState
	if h.background { // no client waits for it, so it may wait without a limit
		if err := s.Acquire(ctx, c, fairqueue.NoLimit); err != nil {
			return errNoSlot
		}
		return nil
	}
	wait := limit
	if until := h.crowdedUntil.Load(); until > 0 && int64(s.now()) < until {
		wait /= crowdedPart
	}
	err := s.Acquire(ctx, c, wait)
	if err == nil {
		return nil
	}
	if free, _ := s.State(); free > 0 && !errors.Is(err, context.Canceled) { // others have left it a slot
		h.crowdedUntil.Store(int64(s.now() + limit))
	}
	return errNoSlot // nothing ran: the handler was not slow
}

var (
	errNoSlot     = fault.New(fault.Overloaded, "all sandboxes are busy; try again")
	errCannotPark = fault.New(fault.Overloaded, "too many requests wait; try again")
)

// caller returns what is kept of a caller, until forget.
func (s *instanceSlots) caller(call *hostabi.Call) *callerState {
	name := nameOf(call)
	s.mu.Lock()
	defer s.mu.Unlock()
	by := s.callers[name]
	if by == nil {
		by = &callerState{name: name}
		s.callers[name] = by
	}
	by.uses++
	return by
}

func (s *instanceSlots) forget(by *callerState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if by.uses--; by.uses == 0 {
		delete(s.callers, by.name)
	}
}

// park releases the slot of a guest that holds so much memory, until unpark. false: the guest may
// not park, and keeps its slot.
func (s *instanceSlots) park(c claim, by *callerState, memory int64) bool {
	if !s.takeParking(c.handlerState, by, memory) {
		return false
	}
	s.Release(c)
	return true
}

func (s *instanceSlots) takeParking(h *handlerState, by *callerState, memory int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.mayParkLocked(by.parked, h.parked, 0, memory) {
		return false
	}
	s.countParked(h, by, 1, memory)
	return true
}

// mayParkLocked reports whether a guest with so much memory may park, after so many running guests
// of its handler have parked, too. caller and handler are what its caller and its handler have
// parked.
func (s *instanceSlots) mayParkLocked(caller, handler parked, running int, memory int64) bool {
	free := s.parkFree - running
	fits := func(p parked, guests int) bool {
		return fairqueue.Share(guests, free) && (guests == 0 || fairqueue.ShareOf(p.bytes, s.parkBytes, memory))
	}
	first := caller.guests == 0 && free > s.parkMax/firstParked
	return fits(caller, caller.guests) && (first || fits(handler, handler.guests+running)) && (memory <= s.parkBytes || s.parkFree == s.parkMax)
}

// unpark takes a slot again for a guest that parked with so much memory: at once if it computes,
// because it has a CPU slot. When ctx ends first the guest must not go on, but is counted until
// it leaves.
func (s *instanceSlots) unpark(ctx context.Context, c claim, by *callerState, memory int64, computes bool) {
	if c.returns = true; computes {
		s.Force(c)
	} else {
		s.Reacquire(ctx, c)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.countParked(c.handlerState, by, -1, -memory)
}

func (s *instanceSlots) countParked(h *handlerState, by *callerState, guests int, bytes int64) {
	s.parkFree -= guests
	s.parkBytes -= bytes
	for _, p := range []*parked{&h.parked, &by.parked} {
		p.guests += guests
		p.bytes += bytes
	}
}
