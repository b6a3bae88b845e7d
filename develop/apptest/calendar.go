package apptest

import (
	"sync"
	"time"

	"runner.example/keystore/credtime"
)

// tick is how far the calendar moves after each request, operation on rows and run of jobs, so that rows which were
// written one after the other have different times.
const tick = time.Millisecond

// calendar is the time of an environment. It stands still, but for move and set. Any goroutine may use it.
type calendar struct {
	mu     sync.Mutex
	now    time.Time
	uptime time.Duration
}

func newCalendar(now time.Time) *calendar {
	return &calendar{now: now.UTC().Truncate(time.Millisecond), uptime: time.Hour}
}

// fork returns a calendar with the same time.
func (c *calendar) fork() *calendar {
	c.mu.Lock()
	defer c.mu.Unlock()
	return &calendar{now: c.now, uptime: c.uptime}
}

func (c *calendar) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *calendar) up() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.uptime
}

// move moves the time ahead by d, as if so much time had passed.
func (c *calendar) move(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now, c.uptime = c.now.Add(d), c.uptime+d
}

// set sets the time. It reports whether it went back.
func (c *calendar) set(to time.Time) (back bool) {
	to = to.UTC().Truncate(time.Millisecond)
	c.mu.Lock()
	defer c.mu.Unlock()
	passed := to.Sub(c.now)
	c.now = to
	if passed < 0 {
		return true
	}
	c.uptime += passed
	return false
}

// machine is the calendar as the credential time sees it.
func (c *calendar) machine() credtime.Machine {
	return credtime.Machine{
		Wall: c.Now, Uptime: c.up, Boot: "test", Synchronized: func() bool { return true },
	}
}
