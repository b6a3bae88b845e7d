package front

import (
	"errors"
	"net"
	"os"
	"time"
)

// timed is a connection whose deadlines are cheap to change: each request changes them, and
// few expire. A later deadline is not set on the connection. When the earlier one expires,
// reads and writes continue until the later one.
//
// One goroutine at a time may use it, except Close.
type timed struct {
	net.Conn
	read, write deadline
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
		c.read.applied = c.read.at
		if err := c.Conn.SetReadDeadline(c.read.at); err != nil {
			return 0, err
		}
	}
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
