package sandbox

import (
	"errors"
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"

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
	if s.memory.size != s.module.image.size {
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
	if !ok || uint64(s.linear.Size()) != s.module.image.size {
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
// have shrunk to the image's size before. If there are more than keep private pages, or a
// review finds that few of them are still written, all of them are released to the kernel.
func (m *memory) restore(keep int) error {
	m.refused, m.refusals = nil, 0
	if m.scan.review(m) {
		return m.trim()
	}
	if m.high > m.image.size { // all private pages behind the image are counted again
		m.high, m.tail = m.reached, 0
		if err := m.setOpen(max(m.open, m.high)); err != nil {
			return err
		}
	}
	pages, err := m.scan.restore(m, keep)
	if err != nil {
		return err
	}
	m.restored = pages
	if pages > keep {
		return m.trim()
	}
	m.high, m.faulted = m.size, false
	m.settle()
	return m.setOpen(m.size)
}

// trim restores the memory by releasing all private pages.
func (m *memory) trim() error {
	if m.reached > 0 {
		if err := unix.Madvise(m.region[:m.reached], unix.MADV_DONTNEED); err != nil {
			return fmt.Errorf("release memory: %w", err)
		}
	}
	if m.watch != nil && m.image.size > 0 { // the pages lost their marks
		if err := m.watch.mark(m.region[:m.image.size]); err != nil {
			return err
		}
	}
	m.scan.found, m.scan.all = m.scan.found[:0], true
	m.tail, m.high, m.reached, m.faulted = 0, m.size, m.size, false
	m.settle()
	return m.setOpen(m.size)
}

// put restores one range of pages.
func (m *memory) put(from, to uint64) {
	if from < m.image.size {
		end := min(to, m.image.size)
		copy(m.region[from:end], m.image.view[from:end])
		from = end
	}
	if from < to {
		clear(m.region[from:to])
		m.tail += int64(to - from)
	}
}
