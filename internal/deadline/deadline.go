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
	first  time.Time    // at which it ends if it is not moved
	moved  atomic.Int64 // nanoseconds after that

	stopped atomic.Bool

	mu     sync.Mutex
	timed  context.Context // made at the first wait, like timer
	cancel context.CancelCauseFunc
	timer  *time.Timer
}

// New returns a context that ends at that time, or with parent. Call Stop when it
// is not needed any more.
func New(parent context.Context, at time.Time) *Context {
	return &Context{parent: parent, first: at}
}

// Deadline returns the time at which it ends.
func (d *Context) Deadline() (time.Time, bool) { return d.at(), true }

func (d *Context) at() time.Time { return d.first.Add(time.Duration(d.moved.Load())) }

// Move changes the time at which it ends. A context that has ended stays ended. Contexts that were derived from it with
// a time of their own keep that.
func (d *Context) Move(at time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.Err() != nil {
		return
	}
	d.moved.Store(int64(at.Sub(d.first)))
	if d.timer != nil {
		d.timer.Reset(time.Until(at))
	}
}

// Err returns why it has ended, or nil before that. It reads the clock, so it may return
// an error a moment before Done is closed.
func (d *Context) Err() error {
	if err := d.parent.Err(); err != nil {
		return err
	}
	switch {
	case d.stopped.Load():
		return context.Canceled
	case time.Until(d.at()) > 0:
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
		d.timed, d.cancel = context.WithCancelCause(d.parent)
		d.timer = time.AfterFunc(time.Until(d.at()), d.end)
		if d.stopped.Load() {
			d.cancel(context.Canceled)
		}
	}
	return d.timed
}

// end is called by the timer.
func (d *Context) end() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if left := time.Until(d.at()); left > 0 { // it was moved meanwhile
		d.timer.Reset(left)
		return
	}
	d.cancel(context.DeadlineExceeded)
}

// Stop ends it and frees its timer.
func (d *Context) Stop() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stopped.Store(true) // before Done is closed, because Err is called after it
	if d.cancel != nil {
		d.timer.Stop()
		d.cancel(context.Canceled)
	}
}
