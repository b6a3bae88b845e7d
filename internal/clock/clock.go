package clock

import "time"

// Calendar returns the date and the time of day. Any goroutine may call it.
type Calendar func() time.Time

// System is the machine's calendar.
func System() time.Time { return time.Now() }

// Or returns c, or System if c is nil.
func (c Calendar) Or() Calendar {
	if c == nil {
		return System
	}
	return c
}

// Mark returns the present instant on the stopwatch. time.Since says how much time has passed from then on.
// Its date is not for use.
func Mark() time.Time { return time.Now() }

// In returns the instant on the stopwatch after d, as a deadline.
func In(d time.Duration) time.Time { return time.Now().Add(d) }
