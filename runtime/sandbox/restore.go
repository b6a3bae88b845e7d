package sandbox

import (
	"errors"
	"runtime"

	"runner.example/hostabi"
)

// keptPages is the limit of private pages that a sandbox keeps between two requests. Up to
// it, copying bytes back costs less than page faults.
const keptPages = 1024

// keptStack is the limit of the native stack that a function keeps between two requests. A
// stack begins with 10 KiB and doubles.
const keptStack = 64 << 10

// restore returns the sandbox to its state before the run of handler, which ended with err.
// If it fails, the sandbox must be discarded.
func (s *sandbox) restore(call *hostabi.Call, handler int, err error) error {
	optimizations := &s.engine.optimizations
	s.last = nil // its stack may be large
	if err != nil {
		if _, broken := errors.AsType[runtime.Error](err); broken || call.HostFailed() || s.instance.IsClosed() {
			return errBroken
		}
	}
	s.releaseSteps()
	if s.memory.Size() != s.module.image.Size() {
		if !optimizations.shrink {
			return errCannotShrink
		}
		if err := s.shrink(); err != nil {
			return err
		}
	}
	if err := s.memory.restore(keptPages); err != nil {
		return err
	}
	s.resetGlobals()
	at := s.module.functionOf(handler)
	if optimizations.stack.size(s.functions[at]) > s.module.keptStack() || err != nil && !optimizations.reuse {
		s.functions[at] = nil
	}
	if s.reseed != nil && optimizations.stack.size(s.reseed) > keptStack {
		s.reseed = s.function(exportReseed)
	}
	return nil
}

// keptStack is keptStack, or more for a program that continues with a large one: it needs that again.
func (m *Module) keptStack() int {
	if m.waiting == nil {
		return keptStack
	}
	return max(keptStack, 4*m.waiting.state.Size().Stack)
}

// shrink releases the memory that grew. To wazero this is a growth by a page for which the
// allocator returns less than there was.
func (s *sandbox) shrink() error {
	s.memory.shrinking = true
	_, ok := s.linear.Grow(1)
	s.memory.shrinking = false
	if !ok || uint64(s.linear.Size()) != s.module.image.Size() {
		return errCannotShrink
	}
	return nil
}

func (s *sandbox) resetGlobals() {
	for i, g := range s.globals {
		g.Set(s.module.values[i])
	}
}

// trim releases the private pages and the functions of an idle sandbox.
func (s *sandbox) trim() error {
	clear(s.functions)
	s.trimmed = true
	return s.memory.trim()
}

// restore makes all bytes those of the image again, and zeros behind it. The memory must
// have shrunk to the image's size before.
func (m *memory) restore(keep int) (err error) {
	m.refused, m.refusals = nil, 0
	if m.restored, err = m.Restore(keep, m.faulted); err != nil {
		return err
	}
	m.faulted = false
	m.settle()
	return nil
}

// trim restores the memory by releasing all private pages.
func (m *memory) trim() error {
	if err := m.Trim(); err != nil {
		return err
	}
	m.faulted = false
	m.settle()
	return nil
}
