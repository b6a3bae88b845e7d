package sandbox

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"runner.example/hostabi"
	"runner.example/runtime/cpuqueue"
	"runner.example/runtime/pages"
)

// RunWithoutRestore is Run in a sandbox that is never restored: what isolation
// is compared with.
func (m *Module) RunWithoutRestore(call *hostabi.Call, handler string) error {
	call.Begin()
	index := m.byName[handler]
	c := m.claim(call, index)
	if err := m.engine.slots.enter(call.Context, c, m.engine.options.QueueWait); err != nil {
		return err
	}
	defer m.engine.slots.Release(c)
	s, err := m.pool.borrow()
	if err != nil {
		return err
	}
	if s == nil {
		if s, err = m.clone(); err != nil {
			return err
		}
	}
	_, err = classify(call, nil, s.call(c, index))
	s.finish()
	m.pool.giveBack(s)
	call.End()
	return err
}

// Restored reports the first difference between the idle sandboxes of the module
// and what its initialization left, byte by byte, and how many there are. An engine that
// restores no sandboxes, because its self-test failed, is an error: it never has idle ones.
func (m *Module) Restored() (idle int, err error) {
	if m.image == nil || !m.engine.optimizations.snapshot {
		return 0, errors.New("sandboxes are not restored: the self-test of the engine has disabled it; its log says why")
	}
	m.pool.mu.Lock()
	defer m.pool.mu.Unlock()
	for _, s := range m.pool.idle {
		if err := s.differs(); err != nil {
			return len(m.pool.idle), err
		}
	}
	return len(m.pool.idle), nil
}

func (s *sandbox) differs() error {
	m := &s.memory
	if m.Size() != m.Image().Size() || uint64(s.linear.Size()) != m.Image().Size() {
		return fmt.Errorf("the memory has %d bytes for us and %d for the guest, and the image %d", m.Size(), s.linear.Size(), m.Image().Size())
	}
	if here, want := m.Bytes()[:m.Size()], m.Image().Bytes(); !bytes.Equal(here, want) {
		for at := range here {
			if here[at] != want[at] {
				return fmt.Errorf("byte %d of the memory is %#x, and %#x in the image", at, here[at], want[at])
			}
		}
	}
	if err := m.Look(func() error {
		for at := m.Size(); at < m.Reached(); at += pages.Size {
			if !m.Same(at) {
				return fmt.Errorf("the page at %d, behind the image, is not zero", at)
			}
		}
		return nil
	}); err != nil {
		return err
	}
	for i, g := range s.globals {
		if g.Get() != s.module.values[i] {
			return fmt.Errorf("global %q is %d, and %d in the image", s.module.program.Globals[i], g.Get(), s.module.values[i])
		}
	}
	for i, f := range s.functions {
		if n := s.engine.optimizations.stack.size(f); n > s.module.keptStack() {
			return fmt.Errorf("handler %q keeps a stack of %d bytes", s.module.handlers[i], n)
		}
	}
	if s.guest.Call() != nil || s.task.Running() {
		return errors.New("the run's call or CPU slot is still held")
	}
	return nil
}

// Searches is how many restores of the idle sandboxes have looked for written pages.
func (m *Module) Searches() (n int) {
	m.pool.mu.Lock()
	defer m.pool.mu.Unlock()
	for _, s := range m.pool.idle {
		n += s.memory.Searches()
	}
	return n
}

// KnownPages is how many pages the next restore of the idle sandboxes copies without a search.
func (m *Module) KnownPages() (n int) {
	m.pool.mu.Lock()
	defer m.pool.mu.Unlock()
	for _, s := range m.pool.idle {
		n += s.memory.Known()
	}
	return n
}

// GuestMemory is how much of the budget of guests is taken.
func (e *Engine) GuestMemory() int64 { return e.memory.used.Load() }

// UseMemory takes all memory that large guests can have, and guests that wait.
func (e *Engine) UseMemory() {
	for e.memory.take(pageBytes, e.memory.limit) {
	}
}

// Slice is how much fuel a guest gets at a time.
const Slice = slice

// Optimizations says which optimizations the engine uses.
func (e *Engine) Optimizations() string {
	o := e.optimizations
	return fmt.Sprintf("snapshot %v, watch %v, shrink %v, reuse %v, stack %v, faults %v, trace %v, guard %v",
		o.snapshot, e.pages.Finder() == pages.ByMarks, o.shrink, o.reuse, o.stack.of != nil, o.faults, o.trace, o.guard)
}

// Portable reports whether the memory is portable.
func (e *Engine) Portable() bool { return comparesAll(e.pages) }

// SymbolTables is how many modules have their symbols in memory.
func (e *Engine) SymbolTables() int {
	e.symbols.mu.Lock()
	defer e.symbols.mu.Unlock()
	return len(e.symbols.tables)
}

// Fill makes the pool hold n sandboxes, each of which has run a handler once.
func (m *Module) Fill(n int, call *hostabi.Call, handler string) error {
	for range n {
		s, err := m.clone()
		if err != nil {
			return err
		}
		call.Begin()
		index := m.byName[handler]
		_, err = classify(call, nil, s.call(m.claim(call, index), index))
		s.finish()
		if err := errors.Join(err, s.restore(call, index, err)); err != nil {
			return err
		}
		m.pool.add(s)
	}
	return nil
}

// KeptFunctions is how many functions idle sandboxes keep for the next request.
func (m *Module) KeptFunctions() (n int) {
	m.pool.mu.Lock()
	defer m.pool.mu.Unlock()
	for _, s := range m.pool.idle {
		for _, f := range s.functions {
			if f != nil {
				n++
			}
		}
	}
	return n
}

// Trim gives back what all idle sandboxes can do without.
func (m *Module) Trim() error {
	m.pool.mu.Lock() // the engine looks for idle sandboxes too
	defer m.pool.mu.Unlock()
	var all error
	for _, s := range m.pool.idle {
		all = errors.Join(all, s.trim())
	}
	return all
}

// CloneOnce makes a sandbox and throws it away.
func (m *Module) CloneOnce() error {
	s, err := m.clone()
	if err == nil {
		s.discard()
	}
	return err
}

// Overflowed reports whether an error is the compiler's own trap of a native
// stack at its end.
func Overflowed(err error) bool { return overflowed(err) }

// Slots are the instance slots of an engine without one.
type Slots struct{ s *instanceSlots }

// Handler is one of a module without one. Its guests are those of one caller.
type Handler struct {
	*handlerState
	call  hostabi.Call
	turns []*turn // of background guests that have entered
}

// By returns the handler with another caller: that of an address.
func (h *Handler) By(address string) *Handler {
	by := &Handler{handlerState: h.handlerState}
	by.call.Address = netip.MustParseAddr(address)
	return by
}

// NewSlots creates slots for guests that may park with so much memory together.
func NewSlots(count int, parkedBytes int64) Slots {
	started := time.Now()
	return Slots{newInstanceSlots(count, 1000, parkedBytes, func() time.Duration { return time.Since(started) })}
}

// MaxBackground is how many background guests may run at once.
func (s Slots) MaxBackground() int { return s.s.background.limit }

// NewHandler is a handler that serves requests, Background one that runs beside them.
func (s Slots) NewHandler() *Handler { return &Handler{handlerState: &handlerState{in: s.s}} }

func (s Slots) Background() *Handler {
	return &Handler{handlerState: &handlerState{in: s.s, background: true}}
}

// Of returns the handler with another caller: a key of a tenant.
func (h *Handler) Of(tenant, key string) *Handler {
	of := &Handler{handlerState: h.handlerState}
	of.call.Caller.Tenant, of.call.Caller.KeyID = tenant, key
	return of
}

// YieldEvery is for how long a guest has its turn until it asks to go on.
const YieldEvery = yieldEvery

// GoOn is what a background guest does every YieldEvery while it computes.
func (s Slots) GoOn(ctx context.Context, h *Handler) error {
	a := account{engine: &Engine{slots: s.s, options: Options{Now: s.s.now}}, slot: slot{claim: h.claim(), memory: new(memory)}}
	a.slot.turn = h.turns[0]
	defer a.finish()
	return a.yieldTurn(ctx)
}

// Sleep has a background guest with so much memory wait for something else.
func (s Slots) Sleep(ctx context.Context, h *Handler, bytes int64, d time.Duration) {
	a := account{engine: &Engine{slots: s.s, options: Options{Now: s.s.now}}, slot: slot{claim: h.claim(), memory: &memory{charged: bytes}}}
	a.slot.turn = h.turns[0]
	defer a.finish()
	a.park(false)
	time.Sleep(d)
	a.unpark(ctx)
}

// Enter takes a slot.
func (s Slots) Enter(ctx context.Context, h *Handler, limit time.Duration) error {
	c := h.claim()
	if h.background {
		c.turn = new(turn)
	}
	err := s.s.enter(ctx, c, limit)
	if err == nil && h.background {
		h.turns = append(h.turns, c.turn)
	}
	return err
}

func (h *Handler) claim() claim {
	return claim{handlerState: h.handlerState, call: &h.call, caller: callerOf(&h.call), background: h.background}
}

// Expect has the handler learn that its guests wait with so much memory.
func (s Slots) Expect(h *Handler, memory int64) {
	h.expect(true)
	h.expectMemory(memory)
}

// Park gives it back while a guest waits.
func (s Slots) Park(h *Handler, memory int64) bool {
	by := s.s.caller(h.claim())
	if s.s.park(h.claim(), by, memory) {
		return true
	}
	s.s.forget(by)
	return false
}

// Unpark takes one again.
func (s Slots) Unpark(ctx context.Context, h *Handler, memory int64) {
	by := s.s.caller(h.claim())
	s.s.unpark(ctx, h.claim(), by, memory, false)
	s.s.forget(by)
	s.s.forget(by)
}

// Queue gives it back while a guest waits for a CPU slot; Run takes one again.
func (s Slots) Queue(h *Handler) {
	s.Park(h, 0)
	h.countQueued(1)
}

func (s Slots) Run(h *Handler) {
	h.countQueued(-1)
	s.Unpark(context.Background(), h, 0)
}

// Leave gives a slot back.
func (s Slots) Leave(h *Handler) {
	c := h.claim()
	if h.background {
		c.turn, h.turns = h.turns[0], h.turns[1:]
	}
	s.s.leave(c)
}

// Occupy takes all instance slots until release, as guests of other handlers.
func (e *Engine) Occupy() (release func()) {
	other := Slots{e.slots}.NewHandler()
	for range e.options.Instances {
		e.slots.Force(other.claim())
	}
	return func() {
		for range e.options.Instances {
			e.slots.Release(other.claim())
		}
	}
}

// Idle reports what is held or kept of slots of which none is in use.
func (s Slots) Idle(count int) error {
	free, waiting := s.s.State()
	if free != count || waiting != 0 || s.s.parkFree != s.s.parkMax || len(s.s.callers) != 0 {
		return fmt.Errorf("%d slots are free of %d, %d wait, %d are parked, %d callers are kept", free, count, waiting, s.s.parkMax-s.s.parkFree, len(s.s.callers))
	}
	return nil
}

// Parked is how many guests wait for something without a slot.
func (e *Engine) Parked() int {
	e.slots.mu.Lock()
	defer e.slots.mu.Unlock()
	return e.slots.parkMax - e.slots.parkFree
}

// CPUSlots is how many guests compute for long at once.
func CPUSlots() int { return cpuSlots() }

// WatchCPUQueue has look called whenever a CPU slot is taken, charged or given back.
func (e *Engine) WatchCPUQueue(look func()) {
	e.cpu = cpuqueue.New(cpuSlots(), func() time.Duration {
		look()
		return e.options.Now()
	})
}

// RandomRegions reads a table of runner_random; each region is its first byte and the one after its last.
func RandomRegions(memory []byte, at uint32) (regions [][2]uint64, err error) {
	found, err := readRegions(memory, at)
	for _, r := range found {
		regions = append(regions, [2]uint64{r.from, r.to})
	}
	return regions, err
}

// NamedBytes returns how many bytes of named frames are kept of the module that keeps most.
func (e *Engine) NamedBytes() (most int) {
	e.symbols.mu.Lock()
	defer e.symbols.mu.Unlock()
	for _, s := range e.symbols.tables {
		s.named.Lock()
		most = max(most, s.named.bytes)
		s.named.Unlock()
	}
	return most
}

// HasHostModule reports whether compiled modules can import from a module.
func (e *Engine) HasHostModule(name string) bool { return e.compiler.Runtime.Module(name) != nil }

// IsPrepared reports whether a loaded module has these bytes, so that another one needs not read them.
func (e *Engine) IsPrepared(wasm []byte) bool {
	p, code := e.prepared(wasm, sha256.Sum256(wasm), false, nil)
	return p != nil && e.compiler.Release(context.Background(), code) == nil
}

// WaitingStreams are slots for streamed answers that wait with so much memory.
type WaitingStreams struct {
	slots  *instanceSlots
	claim  claim
	caller map[string]*callerState
}

func NewWaitingStreams(memory int64) *WaitingStreams {
	s := newInstanceSlots(1, 1000, 2*memory, func() time.Duration { return 0 })
	return &WaitingStreams{s, claim{handlerState: &handlerState{in: s}, call: new(hostabi.Call), streams: true}, map[string]*callerState{}}
}

// Begin reports whether an answer of a caller may wait with so much memory.
func (w *WaitingStreams) Begin(caller string, memory int64) bool {
	if w.caller[caller] == nil {
		w.caller[caller] = new(callerState)
	}
	return w.slots.takeParking(w.claim, w.caller[caller], memory)
}

// End ends a wait.
func (w *WaitingStreams) End(caller string, memory int64) {
	w.slots.unpark(context.Background(), w.claim, w.caller[caller], memory, true)
	w.slots.Release(w.claim)
}
