package sandbox

import (
	"math"
	"sync"

	"runner.example/internal/fault"
)

// pool keeps the sandboxes of a module that nobody uses. The one that came last
// goes first: its memory is warm, and the others can be given back.
type pool struct {
	mu     sync.Mutex
	idle   []*sandbox
	lent   int
	closed bool
	empty  chan struct{} // closed when closed and none is lent
}

var errClosed = fault.New(fault.NotReady, "what served this is closed; try again")

// borrow takes a sandbox out, nil when there is none and one has to be made.
// Each borrow without an error has its giveBack.
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

// add puts in a sandbox that was never lent.
func (p *pool) add(s *sandbox) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.idle = append(p.idle, s)
}

// giveBack puts a sandbox in, or says with nil that there is none any more.
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

// close waits until none is lent and returns what was left. It may be called
// once.
func (p *pool) close() []*sandbox {
	p.mu.Lock()
	p.closed, p.empty = true, make(chan struct{})
	p.checkEmptyLocked()
	p.mu.Unlock()
	<-p.empty
	return p.idle
}

// takeIdle takes out the sandbox that was idle for the longest, if want agrees.
// It must be given back or dropped like a borrowed one.
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

// charged is how much memory those take that are idle.
func (p *pool) charged() (sum int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.idle {
		sum += s.memory.charged
	}
	return sum
}

// oldest is the beat of the last use of the sandbox that takeIdle takes, and
// later than any when there is none.
func (p *pool) oldest() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || len(p.idle) == 0 {
		return math.MaxInt64
	}
	return p.idle[0].used
}

// putBack is giveBack for one that takeIdle took: it goes last again.
func (p *pool) putBack(s *sandbox) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.idle = append(p.idle, nil)
	copy(p.idle[1:], p.idle)
	p.idle[0] = s
	p.lent--
	p.checkEmptyLocked()
}

// tidy gives back memory of sandboxes that have not been used since the given
// beats: first the pages, then the sandbox; one is kept.
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
