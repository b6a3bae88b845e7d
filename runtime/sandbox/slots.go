package sandbox

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"runner.example/hostabi"
	"runner.example/internal/fairqueue"
	"runner.example/internal/fault"
	"runner.example/runtime/cpuqueue"
)

// An instance slot is for a guest that runs: it is held only for a moment, or together with a
// CPU slot. A guest that waits, for a CPU slot or for something else, parks: it gives its slot
// to another one, and takes one again when it goes on. parkedPerSlot times the number of slots
// may park, with a part of all memory (1/parkedMemory, or the limit of one). A handler and a
// caller have their shares of both. A guest that cannot park ends, unless it runs in the background.
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

// When a guest has waited, so many that come after it are expected to wait: some requests of a handler may
// need a service, and others not.
const expectedWaits = 64

// handlerState is what the engine keeps of one handler of a module.
type handlerState struct {
	name    string // of the module and the handler, for logs
	breaker breaker
	cpu     cpuqueue.Handler

	longSlots    int          // that its guests may hold while they always compute for long
	crowdedUntil atomic.Int64 // time.Duration of instanceSlots.now
	queued       atomic.Int32 // guests that wait for a CPU slot
	waits        atomic.Int32 // one of so many next guests is expected to wait for something else
	memory       atomic.Int64 // with which its guests wait

	in         *instanceSlots
	background bool // it runs beside requests, and serves none

	running []uint64 // the callers of guests that hold slots; guarded by instanceSlots.Pool
	parked  parked
}

// parked counts guests that have parked, and their memory. instanceSlots.mu guards it.
type parked struct {
	guests int
	bytes  int64
}

// with returns p after so many more guests have parked, each with so much memory.
func (p parked) with(guests int, memory int64) parked {
	return parked{p.guests + guests, p.bytes + int64(guests)*memory}
}

// callerState is what the engine keeps of a caller while it has a slow request: one that waits, or
// computes for long.
type callerState struct {
	name   string
	uses   int // guarded by instanceSlots.mu
	cpu    cpuqueue.Caller
	turns  turns
	parked parked
	// streams counts guests whose answers are streamed, and streamBytes is the memory with which these wait; guarded by
	// instanceSlots.mu.
	streams     int
	streamBytes int64
}

// claim is what a guest asks an instance slot for.
type claim struct {
	*handlerState
	call    *hostabi.Call
	caller  uint64 // callerOf the call
	returns bool   // it had one before
	streams bool   // its answer has begun
	turn    *turn  // of a background guest; nil: it serves a request
	// background: it runs beside requests, because its handler or its call does.
	background bool
}

// claim returns that of a call of a handler.
func (m *Module) claim(call *hostabi.Call, handler int) claim {
	c := claim{handlerState: &m.states[handler], call: call, caller: callerOf(call)}
	c.background = call.Background || c.handlerState.background
	if c.background {
		c.turn = new(turn)
	}
	return c
}

// MayTake, Taken, Returned and Parties implement fairqueue.Claim.
func (c claim) MayTake(free int) bool {
	h := c.handlerState
	if c.background && !h.in.background.mayTake() || !fairqueue.Share(len(h.running), free) {
		return false
	}
	return c.returns || !h.tooLong() && !c.cannotPark(free)
}

// tooLong reports whether another guest of the handler would only wait for those that compute.
func (h *handlerState) tooLong() bool {
	return h.cpu.AlwaysLong() && len(h.running)+int(h.queued.Load()) >= h.longSlots
}

// countQueued adds n to the guests that wait for a CPU slot.
func (h *handlerState) countQueued(n int32) {
	h.queued.Add(n)
	h.in.background.queued.Add(n)
}

// cannotPark reports whether another guest of the handler and the caller could probably not park, if
// all that run and have so many slots free do.
func (c claim) cannotPark(free int) bool {
	h := c.handlerState
	if h.waits.Load() == 0 && h.queued.Load() == 0 || c.background {
		return false
	}
	var buf [64]byte
	name := c.appendIdentity(buf[:0])
	s := h.in
	s.mu.Lock()
	defer s.mu.Unlock()
	var of parked // the caller
	if by := s.callers[string(name)]; by != nil {
		of = by.parked
	}
	memory, running, own := h.memory.Load(), len(h.running), 0
	for _, caller := range h.running {
		if caller == c.caller {
			own++
		}
	}
	others := s.parkMax/parkedPerSlot - free - running
	return !s.mayParkLocked(of.with(own, memory), h.parked.with(running, memory), running, others, memory)
}

// expect learns from a guest that ends whether others wait.
func (h *handlerState) expect(waited bool) {
	switch n := h.waits.Load(); {
	case waited && n != expectedWaits:
		h.waits.Store(expectedWaits)
	case !waited && n > 0:
		h.waits.CompareAndSwap(n, n-1)
	}
}

// expectMemory learns from a guest that begins to wait with how much memory others do.
func (h *handlerState) expectMemory(n int64) {
	if last := h.memory.Load(); n < last {
		n = last - (last-n)/8
	}
	h.memory.Store(n)
}

func (c claim) Taken() {
	c.running = append(c.running, c.caller)
	c.in.background.count(c.background, 1)
}

func (c claim) Returned() {
	last := len(c.running) - 1
	c.running[slices.Index(c.running, c.caller)] = c.running[last]
	c.running = c.running[:last]
	c.in.background.count(c.background, -1)
}

func (c claim) Parties() fairqueue.Parties {
	return fairqueue.Parties{c.name, string(c.appendIdentity(nil))}
}

// appendIdentity appends the name of the caller whose guests share slots and places: the same as for rate
// limits, but the tenant of a background guest, if it has one.
func (c claim) appendIdentity(dst []byte) []byte {
	if tenant := c.call.Caller.Tenant; c.turn != nil && tenant != "" {
		return append(append(dst, 't'), tenant...)
	}
	return c.call.Caller.AppendIdentity(dst, c.call.Address)
}

// instanceSlots are the slots for guests that run, and limit the guests that park. Any goroutine
// may use them.
type instanceSlots struct {
	*fairqueue.Pool[claim]
	now func() time.Duration

	background background

	mu       sync.Mutex
	parkMax  int // guests that may park
	parkFree int // guests that may still park; below 0 when background guests have parked beyond the limit
	// parkBytes is the memory with which they may still park; below 0 when one alone has parked with more, or
	// background guests have.
	parkBytes int64
	// streamsFree is how many more guests may stream their answers, and streamBytes the memory with which these may
	// still wait, of streamMax; below 0 when one alone waits with more. They are apart from the other guests, because
	// they may wait for minutes.
	streamsFree int
	streamMax   int64
	streamBytes int64
	callers     map[string]*callerState
	freed       chan struct{} // closed when a guest leaves and others may park; nil: no background guest waits for that
}

func newInstanceSlots(count, streams int, parkedBytes int64, now func() time.Duration) *instanceSlots {
	s := &instanceSlots{
		Pool: fairqueue.New[claim](count), now: now,
		parkMax: parkedPerSlot * count, parkFree: parkedPerSlot * count, parkBytes: parkedBytes,
		streamsFree: streams, streamMax: parkedBytes / 2, streamBytes: parkedBytes / 2,
		callers: map[string]*callerState{},
	}
	b := &s.background
	b.limit, b.serve, b.now = max(1, cpuSlots()/2), s.Serve, now
	b.turns = cpuqueue.New(b.limit, now)
	return s
}

// enter takes a slot for a new guest. It waits for it up to limit, or less if the handler has
// more requests than fit.
func (s *instanceSlots) enter(ctx context.Context, c claim, limit time.Duration) error {
	h := c.handlerState
	if c.turn != nil {
		return s.enterBackground(ctx, c)
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
	errNoStream   = fault.New(fault.Overloaded, "too many answers are streamed; try again")
	errCannotPark = fault.New(fault.Overloaded, "too many requests wait; try again")
)

// caller returns what is kept of a caller, until forget.
func (s *instanceSlots) caller(c claim) *callerState {
	var buf [64]byte
	name := c.appendIdentity(buf[:0])
	s.mu.Lock()
	defer s.mu.Unlock()
	by := s.callers[string(name)]
	if by == nil {
		by = &callerState{name: string(name)}
		s.callers[by.name] = by
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
	if !s.takeParking(c, by, memory) {
		return false
	}
	s.Release(c)
	return true
}

func (s *instanceSlots) takeParking(c claim, by *callerState, memory int64) bool {
	h := c.handlerState
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.streams {
		return s.takeStreamBytes(by, memory)
	}
	if !c.background && !s.mayParkLocked(by.parked, h.parked, 0, 0, memory) {
		return false
	}
	s.countParked(h, by, 1, memory)
	return true
}

// takeStreamBytes takes memory with which a guest whose answer is streamed waits. A caller has at most a share of it, but
// the only one that waits may have more than there is.
func (s *instanceSlots) takeStreamBytes(by *callerState, memory int64) bool {
	fits := memory <= s.streamBytes && (by.streamBytes == 0 || fairqueue.ShareOf(by.streamBytes, s.streamBytes, memory))
	if !fits && s.streamBytes != s.streamMax {
		return false
	}
	s.streamBytes -= memory
	by.streamBytes += memory
	return true
}

// mayParkLocked reports whether a guest with so much memory may park, after so many running guests of
// its handler have parked, each with as much memory, and so many others. caller and handler are what its
// caller and its handler have parked by then.
func (s *instanceSlots) mayParkLocked(caller, handler parked, running, others int, memory int64) bool {
	places, bytes := s.parkFree-running-others, s.parkBytes-int64(running)*memory
	fits := func(p parked) bool {
		return fairqueue.Share(p.guests, places) && (p.guests == 0 || fairqueue.ShareOf(p.bytes, bytes, memory))
	}
	first := caller.guests == 0 && places > s.parkMax/firstParked
	return fits(caller) && (first || fits(handler)) && (memory <= bytes || s.parkFree == s.parkMax && running == 0)
}

// unpark takes a slot again for a guest that parked with so much memory: at once if it computes,
// because it has a CPU slot. When ctx ends first the guest must not go on, but is counted until
// it leaves.
func (s *instanceSlots) unpark(ctx context.Context, c claim, by *callerState, memory int64, computes bool) {
	switch c.returns = true; {
	case c.turn != nil && s.background.take(ctx, c.turn) != nil, computes:
		s.Force(c)
	default:
		s.Reacquire(ctx, c)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.streams {
		s.streamBytes += memory
		by.streamBytes -= memory
		return
	}
	s.countParked(c.handlerState, by, -1, -memory)
}

// beginStream takes a place for a guest whose answer is streamed, until endStream. A caller has at most a share of them.
func (s *instanceSlots) beginStream(by *callerState) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !fairqueue.Share(by.streams, s.streamsFree) {
		return false
	}
	by.streams++
	s.streamsFree--
	return true
}

func (s *instanceSlots) endStream(by *callerState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	by.streams--
	s.streamsFree++
}

func (s *instanceSlots) countParked(h *handlerState, by *callerState, guests int, bytes int64) {
	s.parkFree -= guests
	s.parkBytes -= bytes
	for _, p := range []*parked{&h.parked, &by.parked} {
		p.guests += guests
		p.bytes += bytes
	}
	if guests < 0 && s.freed != nil {
		close(s.freed)
		s.freed = nil
	}
}
