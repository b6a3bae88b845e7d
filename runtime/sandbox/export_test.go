package sandbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"runner.example/hostabi"
	"runner.example/internal/cpuqueue"
)

// RunWithoutRestore is Run in a sandbox that is never restored: what isolation
// is compared with.
func (m *Module) RunWithoutRestore(call *hostabi.Call, handler string) error {
	call.Begin()
	index := m.byName[handler]
	h := &m.states[index]
	if err := m.engine.slots.enter(call.Context, h, m.engine.options.QueueWait); err != nil {
		return err
	}
	defer m.engine.slots.Release(h)
	s, err := m.pool.borrow()
	if err != nil {
		return err
	}
	if s == nil {
		if s, err = m.clone(); err != nil {
			return err
		}
	}
	err = judge(call, nil, s.call(call, index))
	s.releaseCPU()
	m.pool.giveBack(s)
	call.End()
	return err
}

// Restored reports the first difference between the idle sandboxes of the module
// and what its initialization left, byte by byte, and how many there are.
func (m *Module) Restored() (idle int, err error) {
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
	if m.size != m.image.size || uint64(s.linear.Size()) != m.image.size {
		return fmt.Errorf("the memory has %d bytes for us and %d for the guest, and the image %d", m.size, s.linear.Size(), m.image.size)
	}
	if here := m.region[:m.image.size]; !bytes.Equal(here, m.image.view) {
		for at := range here {
			if here[at] != m.image.view[at] {
				return fmt.Errorf("byte %d of the memory is %#x, and %#x in the image", at, here[at], m.image.view[at])
			}
		}
	}
	for at := m.image.size; at < uint64(len(m.region)); at += osPage {
		if at < m.reached && !isZero(m.region[at:at+osPage]) {
			return fmt.Errorf("the page at %d, behind the image, is not zero", at)
		}
	}
	for i, g := range s.globals {
		if g.Get() != s.module.values[i] {
			return fmt.Errorf("global %q is %d, and %d in the image", s.module.program.Globals[i], g.Get(), s.module.values[i])
		}
	}
	for i, f := range s.functions {
		if n := s.engine.optimizations.stack.size(f); n > keptStack {
			return fmt.Errorf("handler %q keeps a stack of %d bytes", s.module.handlers[i], n)
		}
	}
	if s.guest.Call() != nil || s.task.Running() {
		return errors.New("the run's call or CPU slot is still held")
	}
	return nil
}

// FailScans makes the next scan of each idle sandbox's memory fail, after which the sandbox
// is discarded.
func (m *Module) FailScans() {
	m.pool.mu.Lock()
	defer m.pool.mu.Unlock()
	for _, s := range m.pool.idle {
		s.memory.scan.table = -1
	}
}

// FoundPages is how many pages the next restore of the idle sandboxes copies without a scan.
func (m *Module) FoundPages() (pages int) {
	m.pool.mu.Lock()
	defer m.pool.mu.Unlock()
	for _, s := range m.pool.idle {
		for _, r := range s.memory.scan.found {
			pages += int((r.to - r.from) / osPage)
		}
	}
	return pages
}

// GuestMemory is how much of the budget of guests is taken.
func (e *Engine) GuestMemory() int64 { return e.memory.used.Load() }

// Slice is how much fuel a guest gets at a time.
const Slice = slice

// Optimizations says which optimizations the engine uses.
func (e *Engine) Optimizations() string {
	o := e.optimizations
	return fmt.Sprintf("snapshot %v, watch %v, shrink %v, reuse %v, stack %v, faults %v", o.snapshot, e.watch != nil, o.shrink, o.reuse, o.stack.of != nil, o.faults)
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
		err = s.call(call, index)
		s.releaseCPU()
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

// Handler is one of a module without one.
type Handler struct{ state handlerState }

// NewSlots creates slots for guests of the given memory size.
func NewSlots(count int, memory int64) Slots {
	started := time.Now()
	return Slots{newInstanceSlots(count, memory, func() time.Duration { return time.Since(started) })}
}

// MaxBackground is how many background guests may run at once.
func (s Slots) MaxBackground() int { return s.s.shared.limit }

// Background is a handler that runs beside requests.
func Background() *Handler { return &Handler{handlerState{background: true}} }

// Enter takes a slot.
func (s Slots) Enter(ctx context.Context, h *Handler, limit time.Duration) error {
	h.state.shared = &s.s.shared
	return s.s.enter(ctx, &h.state, limit)
}

// Park gives it back while a guest waits.
func (s Slots) Park(h *Handler, memory int64) bool { return s.s.park(&h.state, memory) }

// Unpark takes one again.
func (s Slots) Unpark(ctx context.Context, h *Handler, memory int64) {
	s.s.unpark(ctx, &h.state, memory)
}

// Leave gives a slot back.
func (s Slots) Leave(h *Handler) { s.s.Release(&h.state) }

// Parked is how many guests wait for something without a slot.
func (e *Engine) Parked() int {
	e.slots.mu.Lock()
	defer e.slots.mu.Unlock()
	return parkedPerSlot*e.options.Instances - e.slots.free
}

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
