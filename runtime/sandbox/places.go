package sandbox

import (
	"context"
	"slices"
	"sync"
	"time"

	"runner.example/internal/fault"
)

// share is how many times as many places as are left to others one handler may
// have: three, which is three quarters of all when it is the only one. The rest
// is for the others, of whom each next one is bounded in the same way, so that a
// handler whose requests all wait for something keeps nobody out but itself.
const share = 3

// places are those in which guests run. Any goroutine may use them.
type places struct {
	mu   sync.Mutex
	free int
	line []*seeker // none of whom may have one now, in the order they came
}

// seeker waits for a place.
type seeker struct {
	lane  *lane
	ready chan struct{} // closed when it has one
}

// enter gets a place for one guest of a lane, and waits so long for it.
func (p *places) enter(ctx context.Context, l *lane, wait time.Duration) error {
	p.mu.Lock()
	if p.takeLocked(l) {
		p.mu.Unlock()
		return nil
	}
	s := &seeker{lane: l, ready: make(chan struct{})}
	p.line = append(p.line, s)
	p.mu.Unlock()

	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-s.ready:
		return nil
	case <-ctx.Done(): // nothing ran: it is not the handler that was slow
	case <-timer.C:
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	at := slices.Index(p.line, s)
	if at < 0 { // it was given one just now
		return nil
	}
	p.line = slices.Delete(p.line, at, at+1)
	return errNoPlace
}

var errNoPlace = fault.New(fault.Overloaded, "all sandboxes are busy; try again")

// takeLocked takes a place, if the lane may have another.
func (p *places) takeLocked(l *lane) bool {
	if p.free == 0 || l.guests > 0 && l.guests >= share*(p.free-1) {
		return false
	}
	p.free--
	l.guests++
	return true
}

// leave gives a place back, to whom in line it lets have one.
func (p *places) leave(l *lane) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free++
	l.guests--
	if len(p.line) == 0 {
		return
	}
	p.line = slices.DeleteFunc(p.line, func(s *seeker) bool {
		if !p.takeLocked(s.lane) {
			return false
		}
		close(s.ready)
		return true
	})
}
