package sandbox

import (
	"hash/maphash"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"runner.example/hostabi"
	"runner.example/internal/clock"
	"runner.example/internal/fault"
)

// If requests of a caller run out of time or of stack strikesToOpen times within strikeWindow,
// whatever handlers they are for, the caller is refused for coolDown by each handler to which
// this happened. Then one of its requests is let through as a probe. If it happens to
// callersToOpen callers of a handler, the handler refuses all callers.
const (
	strikesToOpen = 5
	callersToOpen = 5
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

// breaker is the circuit breaker of one handler. It keeps a handler that does not end
// from taking all processors. It is open (refuses requests) for single callers or for
// all, so that one caller's requests do not close the handler to the others. Any
// goroutine may use it; a successful request takes no lock.
type breaker struct {
	open   atomic.Bool              // to all callers; also half open: one request is let through
	struck atomic.Pointer[[]uint64] // callers that were struck; nil: none

	mu      sync.Mutex
	callers []struckCaller // within strikeWindow
	until   time.Time
	probing bool
}

// struckCaller is a caller who was struck. There are no more than callersToOpen of them
// before the breaker is open to all, and one more with each probe while it is.
type struckCaller struct {
	id      uint64
	last    time.Time // strike
	until   time.Time // the breaker is open to it; zero: it is not, or has too many strikes since
	probing bool
}

// strikes counts the strikes of callers, over all handlers of an engine. It keeps the strikes of
// the last strikeWindow; the breakers let few of them happen. Any goroutine may use it.
type strikes struct {
	mu      sync.Mutex
	callers map[uint64][]time.Time
}

// add counts a strike of a caller.
func (s *strikes) add(id uint64, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.callers == nil {
		s.callers = map[uint64][]time.Time{}
	}
	if s.callers[id] == nil { // a new caller removes those whose strikes are too old
		maps.DeleteFunc(s.callers, func(_ uint64, all []time.Time) bool { return now.Sub(all[len(all)-1]) >= strikeWindow })
	}
	all := append(s.callers[id], now)
	s.callers[id] = all[max(0, len(all)-strikesToOpen):]
}

// tooMany reports whether a caller has had strikesToOpen strikes, and when the last one was.
func (s *strikes) tooMany(id uint64, now time.Time) (last time.Time, yes bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.callers[id]
	if len(all) < strikesToOpen || now.Sub(all[0]) >= strikeWindow {
		return last, false
	}
	return all[strikesToOpen-1], true
}

// probe is what a request is let through for.
type probe int

const (
	noProbe probe = iota
	probeOfCaller
	probeOfAll
)

// callerSeed keeps callers from choosing identities with equal hashes.
var callerSeed = maphash.MakeSeed()

// callerOf is a hash of the caller's identity, which is the same as for rate limits.
func callerOf(call *hostabi.Call) uint64 {
	var buf [64]byte
	return maphash.Bytes(callerSeed, call.Caller.AppendIdentity(buf[:0], call.Address))
}

// admit reports whether a request may run. Each admitted request needs a verdict.
func (b *breaker) admit(all *strikes, call *hostabi.Call) (probe, error) {
	open, struck := b.open.Load(), b.struck.Load()
	if !open && struck == nil {
		return noProbe, nil
	}
	id := callerOf(call)
	if !open && !slices.Contains(*struck, id) {
		return noProbe, nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.find(id)
	if b.open.Load() {
		left := time.Until(b.until)
		if c != nil {
			left += coolDown // others go first, so that one caller cannot keep it open
		}
		return letThrough(left, &b.probing, probeOfAll)
	}
	if c == nil {
		return noProbe, nil
	}
	if c.until.IsZero() {
		last, tooMany := all.tooMany(id, clock.Mark())
		if !tooMany {
			return noProbe, nil
		}
		c.until = last.Add(coolDown)
	}
	return letThrough(time.Until(c.until), &c.probing, probeOfCaller)
}

func letThrough(left time.Duration, probing *bool, as probe) (probe, error) {
	if left <= 0 && !*probing {
		*probing = true
		return as, nil
	}
	seconds := int((left + time.Second - 1) / time.Second)
	return noProbe, &Unavailable{
		fault.New(fault.HandlerUnavailable, "the handler has timed out repeatedly and is paused; try again later"), max(1, seconds),
	}
}

// verdict records how an admitted request ended. struck: it ran out of time or of stack;
// judged: it ran at all.
func (b *breaker) verdict(all *strikes, call *hostabi.Call, as probe, judged, struck bool) {
	if !struck && as == noProbe {
		return
	}
	id, now := callerOf(call), clock.Mark()
	b.mu.Lock()
	defer b.mu.Unlock()
	switch as {
	case probeOfCaller:
		if c := b.find(id); c != nil {
			c.probing = false
			if judged && !struck {
				b.callers = slices.DeleteFunc(b.callers, func(c struckCaller) bool { return c.id == id })
			}
		}
	case probeOfAll:
		b.probing = false
		if struck {
			b.until = now.Add(coolDown)
		} else if judged {
			b.open.Store(false)
			b.callers = nil
		}
	default:
		if b.open.Load() {
			return // it was in progress when the breaker opened
		}
	}
	if struck {
		all.add(id, now)
		b.strike(id, now)
	}
	b.updateStruck()
}

// find returns a caller that was struck; nil: it was not.
func (b *breaker) find(id uint64) *struckCaller {
	for i := range b.callers {
		if b.callers[i].id == id {
			return &b.callers[i]
		}
	}
	return nil
}

// strike records a strike of a caller.
func (b *breaker) strike(id uint64, now time.Time) {
	b.callers = slices.DeleteFunc(b.callers, func(c struckCaller) bool {
		return c.id != id && !c.probing && now.Sub(c.last) >= strikeWindow
	})
	c := b.find(id)
	if c == nil {
		b.callers = append(b.callers, struckCaller{id: id})
		c = &b.callers[len(b.callers)-1]
	}
	if c.last = now; !c.until.IsZero() {
		c.until = now.Add(coolDown)
	}
	if len(b.callers) >= callersToOpen && !b.open.Load() {
		b.until = now.Add(coolDown)
		b.open.Store(true)
	}
}

// updateStruck updates the callers that were struck, for admit.
func (b *breaker) updateStruck() {
	if len(b.callers) == 0 {
		b.struck.Store(nil)
		return
	}
	ids := make([]uint64, len(b.callers))
	for i := range b.callers {
		ids[i] = b.callers[i].id
	}
	b.struck.Store(&ids)
}
