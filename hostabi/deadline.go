package hostabi

import (
	"context"
	"sync"
	"time"
)

// Deadline is a context that ends at an instant, for requests that mostly end
// long before it: it starts a timer only when somebody waits for its end. Any
// number of goroutines may use it.
type Deadline struct {
	at time.Time

	mu    sync.Mutex
	done  chan struct{} // made by the first Done
	timer *time.Timer
}

// NewDeadline returns a context that ends at that time. Stop it when nobody
// waits for it any more.
func NewDeadline(at time.Time) *Deadline { return &Deadline{at: at} }

// Deadline is the instant it was made for.
func (d *Deadline) Deadline() (time.Time, bool) { return d.at, true }

// Err is context.DeadlineExceeded from the instant on. It looks at the clock, so
// it may say so a moment before Done is closed.
func (d *Deadline) Err() error {
	if time.Until(d.at) > 0 {
		return nil
	}
	return context.DeadlineExceeded
}

// Value has none.
func (d *Deadline) Value(any) any { return nil }

// Done is closed at the instant.
func (d *Deadline) Done() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.done == nil {
		d.done = make(chan struct{})
		d.timer = time.AfterFunc(time.Until(d.at), func() { close(d.done) })
	}
	return d.done
}

// AfterFunc is what package context asks for, so that contexts derived from this
// one need no goroutine.
func (d *Deadline) AfterFunc(f func()) (stop func() bool) {
	return time.AfterFunc(time.Until(d.at), f).Stop
}

// Stop frees the timer. Done is not closed after it.
func (d *Deadline) Stop() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.timer != nil {
		d.timer.Stop()
	}
}
