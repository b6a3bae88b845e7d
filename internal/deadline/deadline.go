package deadline

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// Context is a context that ends at an instant or with its parent. It has no values. It
// starts a timer only when Done is called. Any number of goroutines may use it.
type Context struct {
	parent context.Context
	at     time.Time

	stopped atomic.Bool

	mu     sync.Mutex
	timed  context.Context // made at the first wait
	cancel context.CancelFunc
}

// New returns a context that ends at that time, or with parent. Call Stop when it
// is not needed any more.
func New(parent context.Context, at time.Time) *Context {
	return &Context{parent: parent, at: at}
}

// Deadline returns the time at which it ends.
func (d *Context) Deadline() (time.Time, bool) { return d.at, true }

// Err returns why it has ended, or nil before that. It reads the clock, so it may return
// an error a moment before Done is closed.
func (d *Context) Err() error {
	if err := d.parent.Err(); err != nil {
		return err
	}
	switch {
	case d.stopped.Load():
		return context.Canceled
	case time.Until(d.at) > 0:
		return nil
	}
	return context.DeadlineExceeded
}

// Value returns nil.
func (d *Context) Value(any) any { return nil }

// Done returns a channel that is closed when it ends or is stopped.
func (d *Context) Done() <-chan struct{} { return d.wait().Done() }

// AfterFunc is called by package context, so that derived contexts need no goroutine.
func (d *Context) AfterFunc(f func()) (stop func() bool) { return context.AfterFunc(d.wait(), f) }

func (d *Context) wait() context.Context {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.timed == nil {
		d.timed, d.cancel = context.WithDeadline(d.parent, d.at)
		if d.stopped.Load() {
			d.cancel()
		}
	}
	return d.timed
}

// Stop ends it and frees its timer.
func (d *Context) Stop() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stopped.Store(true) // before Done is closed, because Err is called after it
	if d.cancel != nil {
		d.cancel()
	}
}
