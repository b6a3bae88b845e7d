package front

import (
	"errors"
	"net"
	"os"
	"sync"
	"time"

	"runner.example/internal/clock"
)

// timed is a connection whose deadlines are cheap to change: each request changes them, and
// few expire. A later deadline is not set on the connection. When the earlier one expires,
// reads and writes continue until the later one.
//
// One goroutine at a time may use it, except Close and endIdle.
type timed struct {
	net.Conn
	read, write deadline
	idle        idle
}

// idle is what another goroutine may do while the connection waits for a request.
type idle struct {
	mu      sync.Mutex
	waiting bool
	since   time.Time
	ended   bool // endIdle has set the deadline of reads
}

// beginIdle says that what is read next is the first byte of a request, or a handshake before it. It may take limit.
func (c *timed) beginIdle(limit time.Duration) error {
	now := clock.Mark()
	c.idle.mu.Lock()
	if !c.idle.waiting {
		c.idle.waiting, c.idle.since = true, now
	}
	c.idle.mu.Unlock()
	return c.SetReadDeadline(now.Add(limit))
}

// endIdle makes reads fail when the connection has been idle for the time grace, if it is idle. Any goroutine may
// call it.
func (c *timed) endIdle(grace time.Duration) {
	c.idle.mu.Lock()
	defer c.idle.mu.Unlock()
	if c.idle.waiting {
		c.idle.ended = true
		_ = c.Conn.SetReadDeadline(c.idle.since.Add(grace)) // fails if the connection is closed, as reads then do
	}
}

// endWait says that the connection is not idle any more. It reports whether endIdle was effective. The deadline of
// reads must then be set again.
func (c *timed) endWait() (ended bool) {
	c.idle.mu.Lock()
	defer c.idle.mu.Unlock()
	ended = c.idle.ended
	c.idle.waiting, c.idle.ended = false, false
	if ended {
		c.read.applied = time.Time{}
	}
	return ended
}

// deadline is the deadline of one direction.
type deadline struct {
	at time.Time
	// applied is the deadline that is set on the connection: at, or an earlier time. It is zero
	// if none is set.
	applied time.Time
}

// set changes the deadline, and reports whether it must be set on the connection too.
func (d *deadline) set(at time.Time) bool {
	d.at = at
	if !d.applied.IsZero() && !at.Before(d.applied) {
		return false
	}
	d.applied = at
	return true
}

// early reports whether err means that a time before the deadline has passed.
func (d *deadline) early(err error) bool {
	return err != nil && !d.applied.Equal(d.at) && errors.Is(err, os.ErrDeadlineExceeded)
}

// SetReadDeadline limits the time of all reads from now on. t must not be zero.
func (c *timed) SetReadDeadline(t time.Time) error {
	if !c.read.set(t) {
		return nil
	}
	return c.Conn.SetReadDeadline(t)
}

// SetWriteDeadline limits the time of all writes from now on. t must not be zero.
func (c *timed) SetWriteDeadline(t time.Time) error {
	if !c.write.set(t) {
		return nil
	}
	return c.applyWriteDeadline()
}

// applyWriteDeadline sets the deadline on the connection, for writes that do not use Write.
func (c *timed) applyWriteDeadline() error {
	c.write.applied = c.write.at
	return c.Conn.SetWriteDeadline(c.write.at)
}

// Read implements net.Conn.
func (c *timed) Read(p []byte) (int, error) {
	for {
		n, err := c.Conn.Read(p)
		if n > 0 || !c.read.early(err) {
			return n, err
		}
		if err := c.applyReadDeadline(err); err != nil {
			return 0, err
		}
	}
}

// applyReadDeadline sets the deadline on the connection after the error early. If endIdle has caused that error, it
// is returned.
func (c *timed) applyReadDeadline(early error) error {
	c.idle.mu.Lock()
	defer c.idle.mu.Unlock()
	if c.idle.ended {
		return early
	}
	c.read.applied = c.read.at
	return c.Conn.SetReadDeadline(c.read.at)
}

// Write implements net.Conn.
func (c *timed) Write(p []byte) (int, error) {
	for done := 0; ; {
		n, err := c.Conn.Write(p[done:])
		done += n
		if !c.write.early(err) {
			return done, err
		}
		if err := c.applyWriteDeadline(); err != nil {
			return done, err
		}
	}
}
