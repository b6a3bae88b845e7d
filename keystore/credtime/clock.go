package credtime

import (
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"runner.example/internal/clock"
	"runner.example/internal/fault"
)

const (
	// setBack is how far the wall clock may be behind without a warning.
	setBack = 5 * time.Minute
	// setAhead is the largest jump ahead that is trusted at once. Jumps within steadyFor
	// are added up.
	setAhead = 24 * time.Hour
	// steadyFor is how long a wall clock that jumped further must run without jumps
	// before it is trusted.
	steadyFor = time.Hour
	// evenly is how much its distance from T may change meanwhile.
	evenly = time.Minute
	// clockStep is how far the wall clock may be ahead before the file is written.
	clockStep = time.Second
	// keptAfterLeap is how long nothing is deleted because of its age after a jump of
	// more than setAhead was trusted.
	keptAfterLeap = 7 * 24 * time.Hour
)

// Clock gives the credential time. It is safe for concurrent use. Now takes no lock
// while the wall clock is plausible, and while it is known not to be.
//
// The rules, with T for the time that Now returns:
//
//   - T advances with the machine's uptime, which cannot be set. It never goes
//     back. So a credential ends when its lifetime has passed, whatever
//     the wall clock shows.
//   - A wall clock that is ahead of T by a day at most is trusted: T is set to it.
//     A wall clock that is behind is ignored, with a warning from five minutes on.
//   - A wall clock that is further ahead is quarantined: T advances without it until
//     it is plausible again, has run without jumps for an hour, or is accepted by an
//     operator. Jumps that add up to more than a day within an hour count as one.
//   - After a restart without a reboot T continues by the uptime. After a reboot only
//     the wall clock shows how long the machine was off: what it gained since the file
//     was written counts, up to a day. If it gained more, it is trusted at once when the
//     kernel reports that it is synchronized with a time server. Otherwise it is
//     quarantined, and the time off is unknown: then a credential must be valid both at
//     T and at the wall clock's time, and none can be created.
type Clock struct {
	machine Machine
	kernel  bool // clock.Mark is the wall clock, and its monotonic reading the time passed
	opened  time.Time
	booted  time.Duration // uptime when opened
	logger  *slog.Logger
	path    string // the file that keeps T over a restart; empty: none

	base      atomic.Int64 // ms; T is base plus the time since opened
	deviation atomic.Pointer[deviation]

	mu        sync.Mutex
	suspended time.Duration // part of the uptime that the monotonic reading does not count
	offKnown  bool          // the time that the machine was off is known
	offAhead  int64         // ms that T was ahead of the wall clock before; only unless offKnown
	leap      int64         // T after the last trusted jump of more than setAhead
	stepped   int64         // sum, in ms, of the jumps trusted within steadyFor
	steppedAt int64
}

// deviation describes a wall clock that is not trusted. It is immutable.
type deviation struct {
	ahead int64 // ms that it is ahead of T; negative: it is behind
	until int64 // T when it has run without jumps for steadyFor
	// timeOff: the machine was off, perhaps for as long as the clock is ahead.
	timeOff bool
	// offAhead is how far, in ms, T was ahead of the wall clock when the machine was
	// stopped, unless the time off is known. The wall clock counts as so much later.
	offAhead int64
}

// near reports whether d is about a clock that is this far ahead of T.
func (d *deviation) near(ahead int64) bool {
	return d.ahead > 0 && max(ahead-d.ahead, d.ahead-ahead) <= evenly.Milliseconds()
}

// latest returns the latest time that is possible when T is now. A clock that was set
// back since says no more about the time off than before.
func (d *deviation) latest(now int64) int64 {
	if d != nil && d.timeOff {
		return now + d.ahead
	}
	return now
}

// Now returns the time that credentials are created with.
func (c *Clock) Now() int64 {
	now, _ := c.Read()
	return now
}

// Latest returns the time that credentials are checked against. It is Now, or later while
// the time that the machine was off is unknown.
func (c *Clock) Latest() int64 {
	_, latest := c.Read()
	return latest
}

// ForNew returns the time from which the lifetime of a new credential counts. The fault is
// Unavailable.
func (c *Clock) ForNew() (int64, error) {
	now := c.Now()
	if d := c.deviation.Load(); d != nil && d.timeOff {
		return 0, fault.Wrap(d.reason(), fault.Unavailable, "credentials cannot be created while the time is unknown")
	}
	return now, nil
}

// Read returns Now and Latest.
func (c *Clock) Read() (now, latest int64) {
	t := c.machine.Wall()
	now = c.base.Load() + c.passed(t).Milliseconds()
	wall := t.UnixMilli()
	d := c.deviation.Load()
	if d != nil {
		wall += d.offAhead
	}
	switch ahead := wall - now; {
	case d == nil && 0 <= ahead && ahead <= clockStep.Milliseconds():
		return wall, wall
	case ahead < 0 && d == nil && ahead >= -setBack.Milliseconds(),
		d != nil && (d.ahead < 0 || d.timeOff) && ahead < -setBack.Milliseconds(),
		d != nil && d.near(ahead) && now < d.until:
		return now, d.latest(now)
	}
	return c.look()
}

// passed returns the time since the clock was opened.
func (c *Clock) passed(t time.Time) time.Duration {
	if c.kernel {
		return t.Sub(c.opened)
	}
	return c.machine.Uptime() - c.booted
}

// look compares the wall clock with the time that has passed, and decides whether it
// is trusted. It returns what Read does. It must run at least once a minute.
func (c *Clock) look() (now, latest int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, now, latest = c.lookLocked()
	return now, latest
}

// lookLocked is look; t is the reading of the wall clock that now belongs to.
func (c *Clock) lookLocked() (t time.Time, now, latest int64) {
	c.countSuspensionLocked()
	t = c.machine.Wall()
	now = c.base.Load() + c.passed(t).Milliseconds()
	wall := t.UnixMilli()
	if !c.offKnown {
		wall += c.offAhead
	}
	ahead, d := wall-now, c.deviation.Load()
	switch {
	case ahead < -setBack.Milliseconds():
		if d == nil || d.ahead > 0 && !d.timeOff {
			d = &deviation{ahead: ahead, offAhead: wall - t.UnixMilli()}
			c.logger.Warn("clock set back", "clock", t.UTC(), "time", utc(now))
			c.distrustLocked(d, now, t)
		}
		return t, now, d.latest(now)
	case ahead <= clockStep.Milliseconds():
		if d != nil {
			c.deviation.Store(nil)
			c.logger.Info("clock plausible again", "clock", t.UTC(), "time", utc(now))
		}
		c.offKnown = true
		return t, max(now, wall), max(now, wall)
	}
	if sum := ahead + c.steppedLocked(now); sum <= setAhead.Milliseconds() {
		c.stepped, c.steppedAt = sum, wall
		c.trustLocked(t, wall)
		return t, wall, wall
	}
	if d == nil || !d.near(ahead) {
		d = &deviation{
			ahead: ahead, until: now + steadyFor.Milliseconds(), timeOff: !c.offKnown, offAhead: wall - t.UnixMilli(),
		}
		c.logger.Warn("clock quarantined", "cause", d.reason())
		c.distrustLocked(d, now, t)
	}
	if now >= d.until || d.timeOff && c.machine.Synchronized() {
		c.trustLocked(t, wall)
		return t, wall, wall
	}
	return t, now, d.latest(now)
}

// distrustLocked records that the wall clock is not trusted, also in the file.
func (c *Clock) distrustLocked(d *deviation, now int64, t time.Time) {
	c.deviation.Store(d)
	if err := c.writeLocked(now, t); err != nil {
		c.logger.Warn("clock file not written", "cause", err)
	}
}

// steppedLocked returns the sum of the jumps that were trusted within steadyFor.
func (c *Clock) steppedLocked(now int64) int64 {
	if now-c.steppedAt > steadyFor.Milliseconds() {
		return 0
	}
	return c.stepped
}

// countSuspensionLocked adds to T the time that the machine was suspended, which
// the monotonic reading of clock.Mark does not count.
func (c *Clock) countSuspensionLocked() {
	if !c.kernel {
		return
	}
	up := c.machine.Uptime() - c.booted // first, so that a pause between the two adds nothing
	if total := up - c.passed(clock.Mark()); total > c.suspended+10*time.Millisecond {
		c.base.Add((total - c.suspended).Milliseconds())
		c.suspended = total
	}
}

// trustLocked sets T at t to the value to. It writes the file first: after a crash T must
// not be behind the time that credentials were created with.
func (c *Clock) trustLocked(t time.Time, to int64) {
	passed := c.passed(t).Milliseconds()
	from := c.base.Load() + passed
	if to-from > setAhead.Milliseconds() || to < from {
		c.leap = to
	}
	c.deviation.Store(nil)
	if err := c.writeLocked(to, t); err != nil {
		c.logger.Warn("clock file not written", "cause", err)
	}
	c.base.Store(to - passed)
	c.offKnown = true
	if to-from > setBack.Milliseconds() || to < from {
		c.logger.Warn("clock trusted", "from", utc(from), "to", utc(to))
	}
}

// reason says why the wall clock is not trusted, and what to do.
func (d *deviation) reason() error {
	if d.timeOff {
		return fmt.Errorf(
			"the clock is %s ahead of the last time known before the reboot, and is not synchronized with a time server:"+
				" correct it, start an NTP client, or run `runner clock accept`; it is trusted from %s on",
			days(d.ahead), utc(d.until).Format(time.RFC3339))
	}
	return fmt.Errorf("the clock jumped %s ahead and is ignored: correct it, or run `runner clock accept`;"+
		" without further jumps it is trusted from %s on", days(d.ahead), utc(d.until).Format(time.RFC3339))
}

// Quarantined says why the wall clock is quarantined; nil if it is not.
func (c *Clock) Quarantined() error {
	c.Now()
	if d := c.deviation.Load(); d != nil && d.ahead > 0 {
		return d.reason()
	}
	return nil
}

// Accept sets T to the wall clock, plausible or not, and returns what both were.
func (c *Clock) Accept() (time, wall int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.countSuspensionLocked()
	t := c.machine.Wall()
	time, wall = c.base.Load()+c.passed(t).Milliseconds(), t.UnixMilli()
	c.stepped = 0
	c.trustLocked(t, wall)
	return time, wall
}

// Wall returns what the wall clock shows, in UTC.
func (c *Clock) Wall() time.Time { return c.machine.Wall().UTC() }

func utc(ms int64) time.Time { return time.UnixMilli(ms).UTC() }

func days(ms int64) string { return fmt.Sprintf("%.1fd", float64(ms)/float64(setAhead.Milliseconds())) }

// Settled reports whether keys and sessions that are old by T may be deleted.
func (c *Clock) Settled() bool {
	now := c.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	return now >= c.leap+keptAfterLeap.Milliseconds()
}
