package sandbox

import (
	"sync"
	"sync/atomic"
	"time"

	"runner.example/internal/fault"
)

// A handler that runs out of time or of stack so often within strikeWindow is
// left alone for coolDown; then one request is let through to see.
const (
	strikesToOpen = 5
	strikeWindow  = time.Minute
	coolDown      = 10 * time.Second
)

// Unavailable is the refusal of a handler that keeps running out of time.
type Unavailable struct {
	*fault.Fault
	// RetryAfter is in seconds.
	RetryAfter int
}

func (u *Unavailable) Unwrap() error { return u.Fault }

// breaker keeps a handler that does not end from taking all processors: each of
// its requests costs as much as all of their time. Any goroutine may use it.
type breaker struct {
	open atomic.Bool // also half open: only one request is let through

	mu      sync.Mutex
	strikes [strikesToOpen]time.Time // the last ones, in a ring
	next    int
	until   time.Time
	probing bool
}

// admit says whether a request may run. Who was admitted tells the verdict.
func (b *breaker) admit() (probe bool, err error) {
	if !b.open.Load() {
		return false, nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.open.Load() {
		return false, nil
	}
	left := time.Until(b.until)
	if left <= 0 && !b.probing {
		b.probing = true
		return true, nil
	}
	seconds := int((left + time.Second - 1) / time.Second)
	return false, &Unavailable{fault.New(fault.HandlerUnavailable, "the handler keeps running out of time; try again later"), max(1, seconds)}
}

// verdict is how a request of the handler ended: struck when it ran out of time
// or of stack, judged when it ran at all.
func (b *breaker) verdict(probe, judged, struck bool) {
	if !struck && !b.open.Load() {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	if b.open.Load() {
		if !probe {
			return // it was under way when the breaker opened
		}
		switch {
		case struck:
			b.until = now.Add(coolDown)
		case judged:
			b.open.Store(false)
			clear(b.strikes[:])
		}
		b.probing = false
		return
	}
	b.strikes[b.next] = now
	b.next = (b.next + 1) % strikesToOpen
	if first := b.strikes[b.next]; !first.IsZero() && now.Sub(first) < strikeWindow {
		b.until = now.Add(coolDown)
		b.open.Store(true)
	}
}
