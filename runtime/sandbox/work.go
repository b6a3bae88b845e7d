package sandbox

import (
	"context"
	"time"

	"runner.example/hostabi"
	"runner.example/internal/cost"
	"runner.example/runtime/cpuqueue"
)

// Work is computation of the host for a request outside of its handler's runs, such as
// checking its body. It is measured and scheduled like a run. The zero Work is ready to
// use, and may be begun again after its end. One goroutine at a time may use it.
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

// BeginWork begins work for a handler of the module and the caller of a call, and returns the
// Meter that counts it. Other fields of the call need not be set. The Meter's errors are faults:
// HandlerTimeout when ctx has ended or the work has used cpu, Overloaded when it does not get a
// CPU slot in time. End must always be called.
func (m *Module) BeginWork(ctx context.Context, w *Work, call *hostabi.Call, handler string,
	cpu time.Duration) *cost.Meter {
	if w.look == nil {
		w.look = w.advance
	}
	now := m.engine.options.Now()
	w.account.engine = m.engine
	w.account.meter = meter{first: now}
	w.account.slot.call = call
	w.account.task.Reset(&m.states[m.byName[handler]].cpu, now)
	w.ctx, w.began, w.cpu, w.used, w.long = ctx, now, cpu, 0, false
	w.meter.Reset(w.look)
	return &w.meter
}

// advance is called once in a while. Short work is not measured, like short runs.
func (w *Work) advance() error {
	a := &w.account
	now := a.engine.options.Now()
	if !w.long {
		passed := now - w.began
		if passed < measureEvery {
			return nil
		}
		w.long, w.used = true, passed
		a.meter.remark(a.engine, now, 0)
	}
	spent, err := a.measure(w.ctx, now, 0)
	w.used += spent
	switch {
	case err == cpuqueue.ErrFull:
		return errNoCPU
	case err != nil || w.ctx.Err() != nil:
		return timedOut(hostabi.ErrTimeOver)
	case w.used > w.cpu:
		return timedOut(usedUp(w.cpu, hostabi.ErrCPUSpent))
	}
	return nil
}

// End ends the work, and returns the CPU time that it used.
func (w *Work) End() time.Duration {
	a := &w.account
	if now := a.engine.options.Now(); w.long {
		w.used += a.meter.spent(a.engine, now, 0)
	} else {
		w.used = now - w.began
	}
	a.finish()
	w.ctx = nil
	return w.used
}
