package outbound

import (
	"context"
	"slices"
	"sync"
)

// share is how many times as many seats as are left to others one origin, or one
// asker, may have: three, which is three quarters of all when it is the only one.
// The next is bounded in the same way by what is left then. So a service that never
// answers, and a handler that asks for too much, keep out themselves.
const share = 3

// kept is what part of the seats is for origins that have few. While more are free,
// an asker that has none gets one, though others have too many at the same origin.
const kept = 8

// seats are for the fetches that may have a connection. Any goroutine may use them.
type seats struct {
	mu      sync.Mutex
	all     int
	free    int
	origins map[string]int // that are taken
	askers  map[string]int
	line    []*seeker // none of whom may have one now, in the order they came
}

// seeker waits for a seat.
type seeker struct {
	origin, asker string
	ready         chan struct{} // closed when it has one
}

func newSeats(count int) *seats {
	return &seats{all: count, free: count, origins: map[string]int{}, askers: map[string]int{}}
}

// enter takes a seat, and waits for it as long as ctx lasts.
func (s *seats) enter(ctx context.Context, origin, asker string) error {
	s.mu.Lock()
	if s.takeLocked(origin, asker) {
		s.mu.Unlock()
		return nil
	}
	own := &seeker{origin, asker, make(chan struct{})}
	s.line = append(s.line, own)
	s.mu.Unlock()
	select {
	case <-own.ready:
		return nil
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	at := slices.Index(s.line, own)
	if at < 0 { // it was given one just now
		return nil
	}
	s.line = slices.Delete(s.line, at, at+1)
	if ctx.Err() == context.DeadlineExceeded {
		return refuse(Unavailable, "no connection is free; try again")
	}
	return ctx.Err()
}

// takeLocked takes a seat, if the origin and the asker may have another.
func (s *seats) takeLocked(origin, asker string) bool {
	may := func(has int) bool { return has == 0 || has < share*(s.free-1) }
	first := s.askers[asker] == 0 && s.free > s.all/kept
	if s.free == 0 || !may(s.origins[origin]) && !first || !may(s.askers[asker]) {
		return false
	}
	s.free--
	s.origins[origin]++
	s.askers[asker]++
	return true
}

// leave gives a seat back, to whom in line it lets have one.
func (s *seats) leave(origin, asker string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free++
	drop(s.origins, origin)
	drop(s.askers, asker)
	s.line = slices.DeleteFunc(s.line, func(next *seeker) bool {
		if !s.takeLocked(next.origin, next.asker) {
			return false
		}
		close(next.ready)
		return true
	})
}

// drop counts one less.
func drop(counts map[string]int, name string) {
	if counts[name]--; counts[name] == 0 {
		delete(counts, name)
	}
}
