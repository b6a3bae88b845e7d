package front

import (
	"errors"
	"net"
	"os"
	"time"
)

// timed is a connection whose deadlines cost little when they move: each request moves them,
// and few pass. It does not tell the connection of a later deadline. When the earlier one
// passes, reads and writes continue until the later one.
//
// One goroutine at a time may use it, except Close.
type timed struct {
	net.Conn
	read, write deadline
}

// deadline is the deadline of one direction.
type deadline struct {
	at time.Time
	// told is what the connection knows: at, or an earlier time. The zero Time: it has none.
	told time.Time
}

// set changes the deadline, and reports whether the connection must be told.
func (d *deadline) set(at time.Time) bool {
	d.at = at
	if !d.told.IsZero() && !at.Before(d.told) {
		return false
	}
	d.told = at
	return true
}

// early reports whether err means that a time before the deadline has passed.
func (d *deadline) early(err error) bool {
	return err != nil && !d.told.Equal(d.at) && errors.Is(err, os.ErrDeadlineExceeded)
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
	return c.tellWrite()
}

// tellWrite tells the connection its deadline, for writes that do not use Write.
func (c *timed) tellWrite() error {
	c.write.told = c.write.at
	return c.Conn.SetWriteDeadline(c.write.at)
}

// Read is that of net.Conn.
func (c *timed) Read(p []byte) (int, error) {
	for {
		n, err := c.Conn.Read(p)
		if n > 0 || !c.read.early(err) {
			return n, err
		}
		c.read.told = c.read.at
		if err := c.Conn.SetReadDeadline(c.read.at); err != nil {
			return 0, err
		}
	}
}

// Write is that of net.Conn.
func (c *timed) Write(p []byte) (int, error) {
	for done := 0; ; {
		n, err := c.Conn.Write(p[done:])
		done += n
		if !c.write.early(err) {
			return done, err
		}
		if err := c.tellWrite(); err != nil {
			return done, err
		}
	}
}
