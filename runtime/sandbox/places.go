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
// handler of many requests keeps nobody out but itself.
const share = 3

// A guest that waits for something leaves its place to another, and gets one before
// those that have not begun when it goes on. So many times as many guests as there
// are places may wait like that, and their memory together is that part of what all
// may have; a handler has its share of both, like of places. One that finds no room
// to wait keeps its place.
const (
	restersFor = 8
	restMemory = 2
)

// places are those in which guests run. Any goroutine may use them.
//
//	     enter           rest
//	new ──────► a place ──────► waits for something
//	               ▲               │
//	               └───────────────┘
//	                     resume
type places struct {
	mu      sync.Mutex
	free    int       // below 0 while guests are put away that have no place
	resumes []*seeker // as line, of those who have begun
	line    []*seeker // none of whom may have one now, in the order they came
	beds    int       // for guests that wait
	bytes   int64     // of memory, for those
}

// seeker waits for a place.
type seeker struct {
	lane  *lane
	ready chan struct{} // closed when it has one
}

func newPlaces(count int, memory int64) places {
	return places{free: count, beds: restersFor * count, bytes: memory / restMemory}
}

// enter gets a place for one guest of a lane, and waits so long for it.
func (p *places) enter(ctx context.Context, l *lane, wait time.Duration) error {
	p.mu.Lock()
	if p.takeLocked(l) {
		p.mu.Unlock()
		return nil
	}
	s := seekLocked(&p.line, l)
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
	if s.leaveLocked(&p.line) {
		return errNoPlace
	}
	return nil
}

var errNoPlace = fault.New(fault.Overloaded, "all sandboxes are busy; try again")

// takeLocked takes a place, if the lane may have another.
func (p *places) takeLocked(l *lane) bool {
	if p.free <= 0 || l.guests > 0 && l.guests >= share*(p.free-1) {
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
	p.leaveLocked(l)
}

func (p *places) leaveLocked(l *lane) {
	p.free++
	l.guests--
	p.serveLocked(&p.resumes)
	p.serveLocked(&p.line)
}

// rest gives back the place of a guest of so much memory, until resume. false: it
// keeps it.
func (p *places) rest(l *lane, memory int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.beds == 0 || l.resting > 0 && l.resting >= share*(p.beds-1):
		return false
	case memory > p.bytes || l.resting > 0 && l.restingBytes+memory > share*(p.bytes-memory):
		return false
	}
	p.beds--
	l.resting++
	p.bytes -= memory
	l.restingBytes += memory
	p.leaveLocked(l)
	return true
}

// resume gets a place again for a guest that had rested with so much memory, before
// all that have not begun. When ctx ends before that the guest may not go on, and has
// one place more than there are for as long as it takes to put it away.
func (p *places) resume(ctx context.Context, l *lane, memory int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	over := ctx.Err() != nil
	if !over && !p.takeLocked(l) {
		s := seekLocked(&p.resumes, l)
		p.mu.Unlock()
		select {
		case <-s.ready:
		case <-ctx.Done():
		}
		p.mu.Lock()
		over = s.leaveLocked(&p.resumes)
	}
	if over {
		p.free--
		l.guests++
	}
	p.beds++
	l.resting--
	p.bytes += memory
	l.restingBytes -= memory
}

// seekLocked puts a guest of a lane in line.
func seekLocked(line *[]*seeker, l *lane) *seeker {
	s := &seeker{lane: l, ready: make(chan struct{})}
	*line = append(*line, s)
	return s
}

// leaveLocked takes a seeker out of the line. false: it has a place.
func (s *seeker) leaveLocked(line *[]*seeker) bool {
	at := slices.Index(*line, s)
	if at >= 0 {
		*line = slices.Delete(*line, at, at+1)
	}
	return at >= 0
}

// serveLocked gives places to whom in line it lets have one.
func (p *places) serveLocked(line *[]*seeker) {
	if p.free <= 0 || len(*line) == 0 {
		return
	}
	*line = slices.DeleteFunc(*line, func(s *seeker) bool {
		if !p.takeLocked(s.lane) {
			return false
		}
		close(s.ready)
		return true
	})
}
