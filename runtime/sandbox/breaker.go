package sandbox

import (
	"hash/maphash"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"runner.example/hostabi"
	"runner.example/internal/fault"
)

// If requests of a caller to a handler run out of time or of stack strikesToOpen times
// within strikeWindow, the caller is refused for coolDown. Then one of its requests is let
// through as a probe. If this happens to callersToOpen callers, all callers are refused.
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
	open    atomic.Bool              // to all callers; also half open: one request is let through
	refused atomic.Pointer[[]uint64] // callers that it is open to, or half open; nil: none

	mu      sync.Mutex
	callers []struckCaller // within strikeWindow
	until   time.Time
	probing bool
}

// struckCaller is a caller who was struck. There are no more than callersToOpen of them
// before the breaker is open to all, and one more with each probe while it is.
type struckCaller struct {
	id      uint64
	strikes [strikesToOpen]time.Time // the last ones, in a ring
	next    int
	until   time.Time // the breaker is open to it; zero: it is not
	probing bool
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
func (b *breaker) admit(call *hostabi.Call) (probe, error) {
	open, refused := b.open.Load(), b.refused.Load()
	if !open && refused == nil {
		return noProbe, nil
	}
	id := callerOf(call)
	if !open && !slices.Contains(*refused, id) {
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
	if c == nil || c.until.IsZero() {
		return noProbe, nil
	}
	return letThrough(time.Until(c.until), &c.probing, probeOfCaller)
}

func letThrough(left time.Duration, probing *bool, as probe) (probe, error) {
	if left <= 0 && !*probing {
		*probing = true
		return as, nil
	}
	seconds := int((left + time.Second - 1) / time.Second)
	return noProbe, &Unavailable{fault.New(fault.HandlerUnavailable, "the handler keeps running out of time; try again later"), max(1, seconds)}
}

// verdict records how an admitted request ended. struck: it ran out of time or of stack;
// judged: it ran at all.
func (b *breaker) verdict(call *hostabi.Call, as probe, judged, struck bool) {
	if !struck && as == noProbe {
		return
	}
	id, now := callerOf(call), time.Now()
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
		b.strike(id, now)
	}
	b.updateRefused()
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

// strike counts a strike against a caller.
func (b *breaker) strike(id uint64, now time.Time) {
	b.callers = slices.DeleteFunc(b.callers, func(c struckCaller) bool {
		last := c.strikes[(c.next+strikesToOpen-1)%strikesToOpen]
		return c.id != id && !c.probing && now.Sub(last) >= strikeWindow
	})
	c := b.find(id)
	if c == nil {
		b.callers = append(b.callers, struckCaller{id: id})
		c = &b.callers[len(b.callers)-1]
	}
	c.strikes[c.next] = now
	c.next = (c.next + 1) % strikesToOpen
	if first := c.strikes[c.next]; !c.until.IsZero() || !first.IsZero() && now.Sub(first) < strikeWindow {
		c.until = now.Add(coolDown)
	}
	if len(b.callers) >= callersToOpen && !b.open.Load() {
		b.until = now.Add(coolDown)
		b.open.Store(true)
	}
}

// updateRefused updates the callers that the breaker is open to, for admit.
func (b *breaker) updateRefused() {
	var ids []uint64
	for i := range b.callers {
		if !b.callers[i].until.IsZero() {
			ids = append(ids, b.callers[i].id)
		}
	}
	if ids == nil {
		b.refused.Store(nil)
		return
	}
	b.refused.Store(&ids)
}
