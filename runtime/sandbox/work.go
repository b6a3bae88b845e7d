package sandbox

import (
	"context"
	"time"

	"runner.example/hostabi"
	"runner.example/internal/cost"
)

// Work is what the host computes for a request beside the runs of its handler, such as
// checking its body. It is measured as they are, and goes on in turns as they do. The
// zero Work is ready; it may be begun again after its end. One goroutine at a time may
// use it.
type Work struct {
	account account
	meter   cost.Meter
	look    func() error
	ctx     context.Context
	began   time.Duration
	cpu     time.Duration // that it may have
	used    time.Duration
	long    bool // it is measured
}

// BeginWork begins work for a handler that the module has, and gives what counts it:
// its errors are faults, HandlerTimeout when ctx has ended or the work has had so much
// processor time, Overloaded when others keep it from being done in time. End must be
// called, whatever happens.
func (m *Module) BeginWork(ctx context.Context, w *Work, handler string, cpu time.Duration) *cost.Meter {
	if w.look == nil {
		w.look = w.advance
		w.account.runner.ready = make(chan struct{}, 1)
	}
	now := m.engine.now()
	w.account.engine = m.engine
	w.account.meter = meter{first: now}
	w.account.runner = runner{lane: &m.lanes[m.byName[handler]], began: now, ready: w.account.runner.ready}
	w.ctx, w.began, w.cpu, w.used, w.long = ctx, now, cpu, 0, false
	w.meter.Reset(w.look)
	return &w.meter
}

// advance is asked once in a while. Short work is not measured, as short runs are not.
func (w *Work) advance() error {
	a := &w.account
	now := a.engine.now()
	if !w.long {
		passed := now - w.began
		if passed < measureEvery {
			return nil
		}
		w.long, w.used = true, passed
		a.meter.remark(now, 0)
	}
	spent, err := a.measure(w.ctx, now, 0)
	w.used += spent
	switch {
	case err != nil:
		return errNoTurn
	case w.ctx.Err() != nil:
		return timedOut(hostabi.ErrTimeOver)
	case w.used > w.cpu:
		return timedOut(hostabi.ErrCPUSpent)
	}
	return nil
}

// End ends the work, and tells what it has used of a processor.
func (w *Work) End() time.Duration {
	a := &w.account
	if now := a.engine.now(); w.long {
		w.used += a.meter.spent(now, 0)
	} else {
		w.used = now - w.began
	}
	a.giveTurn()
	w.ctx = nil
	return w.used
}
