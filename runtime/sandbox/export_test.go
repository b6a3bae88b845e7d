package sandbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"runner.example/hostabi"
)

// RunWithoutRestore is Run in a sandbox that is never restored: what isolation
// is compared with.
func (m *Module) RunWithoutRestore(call *hostabi.Call, handler string) error {
	call.Begin()
	index := m.byName[handler]
	l := &m.lanes[index]
	if err := m.engine.places.enter(call.Context, l, m.engine.options.QueueWait); err != nil {
		return err
	}
	defer m.engine.places.leave(l)
	s, err := m.pool.borrow()
	if err != nil {
		return err
	}
	if s == nil {
		if s, err = m.clone(); err != nil {
			return err
		}
	}
	err = judge(call, false, s.call(call, index))
	s.giveTurn()
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
		if n := s.engine.tricks.stack.size(f); n > keptStack {
			return fmt.Errorf("handler %q keeps a stack of %d bytes", s.module.handlers[i], n)
		}
	}
	if s.guest.Call() != nil || s.runner.holding {
		return errors.New("the run's call or turn is still held")
	}
	return nil
}

// GuestMemory is how much of the budget of guests is taken.
func (e *Engine) GuestMemory() int64 { return e.memory.used.Load() }

// Slice is how much fuel a guest gets at a time.
const Slice = slice

// Methods tells how the engine finds changed pages, and which of its other
// tricks it uses.
func (e *Engine) Methods() string {
	t := e.tricks
	return fmt.Sprintf("snapshot %v, %v, shrink %v, reuse %v, stack %v", t.snapshot, t.find, t.shrink, t.reuse, t.stack.of != nil)
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
		s.giveTurn()
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

// Places are those in which guests run, without any.
type Places struct{ p places }

// NewPlaces are so many, of guests with so much memory.
func NewPlaces(count int, memory int64) *Places { return &Places{newPlaces(count, memory)} }

// Enter gets a place.
func (p *Places) Enter(ctx context.Context, l *Line, wait time.Duration) error {
	return p.p.enter(ctx, &l.lane, wait)
}

// Rest has a guest wait without one.
func (p *Places) Rest(l *Line, memory int64) bool { return p.p.rest(&l.lane, memory) }

// Resume has it go on.
func (p *Places) Resume(ctx context.Context, l *Line, memory int64) {
	p.p.resume(ctx, &l.lane, memory)
}

// Leave gives a place back.
func (p *Places) Leave(l *Line) { p.p.leave(&l.lane) }

// Resting is how many guests wait for something without a place.
func (e *Engine) Resting() int {
	e.places.mu.Lock()
	defer e.places.mu.Unlock()
	return restersFor*e.options.Instances - e.places.beds
}

// LookAtTurns has look called whenever a turn begins, is weighed or ends.
func (e *Engine) LookAtTurns(look func()) {
	e.turns.now = func() time.Duration {
		look()
		return e.now()
	}
}

// Turns are the turns of an engine without one: guests that only take time.
type Turns struct {
	turns *turns
	now   func() time.Duration
}

// NewTurns makes turns for so many processors.
func NewTurns(processors int) *Turns {
	started := time.Now()
	now := func() time.Duration { return time.Since(started) }
	return &Turns{newTurns(processors, now), now}
}

// Line is that of one handler.
type Line struct{ lane lane }

// Run has a guest compute for so long, in turns, as a sandbox has it.
func (t *Turns) Run(ctx context.Context, l *Line, long time.Duration) error {
	began := t.now()
	r := &runner{lane: &l.lane, began: began, ready: make(chan struct{}, 1)}
	err := t.turns.take(ctx, r)
	for err == nil && long > 0 {
		step := min(long, turnTime)
		time.Sleep(step)
		if long -= step; long > 0 && t.turns.wanted() {
			err = t.turns.pass(ctx, r)
		}
		if err == nil {
			err = ctx.Err()
		}
	}
	if err != nil && err != errCrowded {
		err = hostabi.ErrTimeOver
	}
	if r.holding {
		t.turns.give(r)
	}
	t.turns.end(r, err, t.now()-began)
	return err
}
