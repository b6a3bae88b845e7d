package sandbox

import (
	"math"
	"sync"

	"runner.example/internal/fault"
)

// pool has the idle sandboxes of a module. The most recently used one is borrowed first:
// its memory is warm, and the others can be released.
type pool struct {
	mu     sync.Mutex
	idle   []*sandbox
	lent   int
	closed bool
	empty  chan struct{} // closed when the pool is closed and no sandbox is lent
}

var errClosed = fault.New(fault.NotReady, "the module is closed; try again")

// borrow takes a sandbox out; nil: none is idle, and the caller makes one. Each borrow
// without an error needs a giveBack.
func (p *pool) borrow() (*sandbox, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, errClosed
	}
	p.lent++
	last := len(p.idle) - 1
	if last < 0 {
		return nil, nil
	}
	s := p.idle[last]
	p.idle[last] = nil
	p.idle = p.idle[:last]
	return s, nil
}

// add adds a sandbox that was never lent.
func (p *pool) add(s *sandbox) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.idle = append(p.idle, s)
}

// giveBack ends a borrow; nil: the sandbox was discarded.
func (p *pool) giveBack(s *sandbox) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s != nil {
		p.idle = append(p.idle, s)
	}
	p.lent--
	p.checkEmptyLocked()
}

func (p *pool) checkEmptyLocked() {
	if p.closed && p.lent == 0 {
		close(p.empty)
	}
}

// close waits until no sandbox is lent, and returns the idle ones. It may be called once.
func (p *pool) close() []*sandbox {
	p.mu.Lock()
	p.closed, p.empty = true, make(chan struct{})
	p.checkEmptyLocked()
	p.mu.Unlock()
	<-p.empty
	return p.idle
}

// takeIdle borrows the least recently used sandbox for which want returns true; nil: there
// is none.
func (p *pool) takeIdle(want func(*sandbox) bool) *sandbox {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil
	}
	for i, s := range p.idle {
		if want(s) {
			p.idle = append(p.idle[:i], p.idle[i+1:]...)
			p.lent++
			return s
		}
	}
	return nil
}

// charged is the memory of the idle sandboxes.
func (p *pool) charged() (sum int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.idle {
		sum += s.memory.charged
	}
	return sum
}

// oldest is the tick of the last use of the least recently used sandbox, and the largest
// number if there is none.
func (p *pool) oldest() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || len(p.idle) == 0 {
		return math.MaxInt64
	}
	return p.idle[0].used
}

// putBack is giveBack for a sandbox from takeIdle: it stays the least recently used one.
func (p *pool) putBack(s *sandbox) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.idle = append(p.idle, nil)
	copy(p.idle[1:], p.idle)
	p.idle[0] = s
	p.lent--
	p.checkEmptyLocked()
}

// tidy trims and discards sandboxes that were not used since the given ticks, and keeps one.
func (p *pool) tidy(trimBefore, dropBefore int64) {
	for {
		s := p.takeIdle(func(s *sandbox) bool { return !s.trimmed && s.used < trimBefore })
		if s == nil {
			break
		}
		if err := s.trim(); err != nil {
			s.discard()
			p.giveBack(nil)
			continue
		}
		p.putBack(s)
	}
	for {
		kept := false
		s := p.takeIdle(func(s *sandbox) bool {
			if !kept {
				kept = true
				return false
			}
			return s.used < dropBefore
		})
		if s == nil {
			return
		}
		s.discard()
		p.giveBack(nil)
	}
}
