package sandbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"runner.example/hostabi"
	"runner.example/internal/fault"
	"runner.example/runtime/compile"
	"runner.example/runtime/cpuqueue"
)

// Run runs one handler in a sandbox that is as the module's initialization left it. The run
// ends when the handler returns or fails, when call.Context ends, or when the request's CPU
// time is spent. nil: the handler answered, and call.Response is the answer. Otherwise
// call.Response must not be used, and the error is a *fault.Fault, or an *Unavailable
// around one:
//
//	HandlerFailed       it trapped, exited or returned without an answer
//	HandlerTimeout      its time was over
//	HandlerOutOfMemory  it failed after it was refused more memory
//	HandlerUnavailable  it ran out of time too often, for this caller or for all;
//	                    it did not run
//	Overloaded          it got no instance slot, no memory or no CPU slot in time, or
//	                    had to wait when no more guests may park
//	NotReady            the module is closed; it did not run
//
// If the handler failed, call.Failures returns why and where. Run begins and ends the call, and does not
// use it after it returned.
func (m *Module) Run(call *hostabi.Call, handler string) error {
	return m.run(call, handler, nil)
}

func (m *Module) run(call *hostabi.Call, handler string, usage *usage) error {
	var f failure
	err := m.runIn(call, handler, usage, &f)
	if f.kind != "" { // now that others can have the instance slot
		m.describe(call, &f)
	}
	return err
}

// runIn is run in an instance slot. It describes a failure of the guest in f.
func (m *Module) runIn(call *hostabi.Call, handler string, usage *usage, f *failure) error {
	call.Begin()
	index, ok := m.byName[handler]
	if !ok {
		return failed(fmt.Errorf("module %s has no handler %q", m.name, handler))
	}
	h := &m.states[index]
	c := m.claim(call, index)
	breaker := &h.breaker
	probe, err := noProbe, error(nil)
	if call.Player == nil {
		probe, err = breaker.admit(&m.engine.strikes, call)
	}
	if err != nil {
		m.engine.metrics.overload.With("breaker").Inc()
		return err
	}
	ran := false
	var outcome error        // of the guest
	var queued time.Duration // for an instance slot, after it had parked
	var all time.Duration    // that the run took
	began, spent := m.engine.options.Now(), call.CPU()
	defer func() {
		if call.Player != nil { // what a replay does is not counted
			return
		}
		own := call.CPU() - spent + call.Waited() - queued
		breaker.verdict(&m.engine.strikes, call, probe, ran,
			!m.engine.options.NoBreaker && !endedStream(call, outcome) && struck(call.Context, outcome, own, all))
	}()
	call.Handler = h.name
	metrics, measured := &m.engine.metrics, m.engine.options.Metrics != nil
	if h.cpu.AlwaysLong() && !m.engine.cpu.Fits(call.Context, &h.cpu) {
		metrics.overload.With("cpu").Inc()
		return errNoCPU
	}
	if err := m.engine.slots.enter(call.Context, c, m.engine.options.QueueWait); err != nil {
		metrics.overload.With("instances").Inc()
		return err
	}
	if measured {
		metrics.wait.Observe((m.engine.options.Now() - began).Seconds())
	}
	defer m.engine.slots.leave(c)
	s, err := m.pool.borrow()
	if err != nil {
		return err
	}
	defer func() { m.takeBack(s, call, index, ran) }()
	if s == nil && m.image != nil {
		if s, err = m.clone(); err != nil {
			metrics.overload.With("memory").Inc()
			return fault.Wrap(err, fault.Overloaded, "there is no memory for another sandbox; try again")
		}
	}
	if s == nil {
		if usage != nil {
			usage.making = m.engine.options.Now()
		}
		if s, err = m.boot(call); errors.Is(err, errNoMemory) {
			metrics.overload.With("memory").Inc()
			return fault.Wrap(err, fault.Overloaded, "there is no memory for another sandbox; try again")
		}
		outcome, all = err, m.engine.options.Now()-began
	}
	var refused error // why the guest got no memory
	stood := false
	if outcome == nil {
		if usage != nil {
			usage.begin(m.engine)
		}
		waited := call.Waited()
		if measured {
			call.Spent.Time -= m.engine.options.Now()
		}
		s.lockThread()
		outcome = s.call(c, index)
		s.unlockThread()
		if measured {
			call.Spent.Time += m.engine.options.Now() - (call.Waited() - waited)
			call.Spent.Fuel += s.spentFuel()
		}
		if usage != nil {
			usage.end(s, call)
		}
		refused = s.memory.refused
		queued = s.slot.waited
		if !s.slot.waits {
			h.expect(false)
		}
		all = m.engine.options.Now() - began
		m.engine.cpu.Done(&s.task, errors.Is(outcome, cpuqueue.ErrFull), outcome == nil)
		most := func(waited time.Duration) bool { return waited > 0 && waited >= all/2 }
		stood = errors.Is(outcome, hostabi.ErrTimeOver) && !call.Streaming() &&
			(most(s.task.Waited()) || most(queued) || c.turn != nil && most(c.turn.task.Waited()))
	}
	ran = true
	if outcome != nil && !errors.Is(outcome, hostabi.ErrTimeOver) && !errors.Is(outcome, hostabi.ErrCPUSpent) {
		if crash, ok := call.Crash(); ok {
			f.crash = &crash
		}
	}
	call.End()
	switch {
	case stood, errors.Is(outcome, cpuqueue.ErrFull):
		metrics.overload.With("cpu").Inc()
		return errNoCPU
	case errors.Is(outcome, errCannotPark):
		metrics.overload.With("waits").Inc()
		return errCannotPark
	}
	crash := f.crash
	*f, err = classify(call, refused, outcome)
	f.crash = crash
	if err != nil && s != nil {
		s.locate(f)
	}
	return err
}

var errNoCPU = fault.New(fault.Overloaded, "the CPU queue is full; try again")

// takeBack restores a sandbox after a request and returns it to the pool. It discards a
// sandbox that has no image, one whose run panicked, and one that cannot be restored.
func (m *Module) takeBack(s *sandbox, call *hostabi.Call, handler int, ran bool) {
	switch {
	case s == nil:
	case m.image == nil || !ran || m.restore(s, call, handler) != nil:
		s.discard()
		s = nil
	default:
		s.finish()
		s.used, s.trimmed = m.engine.idleTick.Load(), false
	}
	m.pool.giveBack(s)
}

// restore restores a sandbox after a request.
func (m *Module) restore(s *sandbox, call *hostabi.Call, handler int) error {
	if m.engine.options.Metrics == nil {
		return s.restore(call, handler, s.ended)
	}
	began := m.engine.options.Now()
	err := s.restore(call, handler, s.ended)
	if err == nil {
		m.engine.metrics.restore.Observe((m.engine.options.Now() - began).Seconds())
		m.engine.metrics.pages.Observe(float64(s.memory.restored))
	}
	return err
}

// oneLine is an error of the guest without its stack trace, which has numbers for names.
type oneLine struct{ error }

func (e oneLine) Error() string { return compile.FirstLine(e.error) }
func (e oneLine) Unwrap() error { return e.error }

// struck reports whether a run ended in a way that its handler's breaker counts. own is the
// part of all its time in which the handler itself computed or waited. A run that mostly
// queued behind others does not count, nor one that was cancelled.
func struck(ctx context.Context, err error, own, all time.Duration) bool {
	switch {
	case errors.Is(err, hostabi.ErrTimeOver):
		return own >= all/4 && !errors.Is(ctx.Err(), context.Canceled)
	case errors.Is(err, hostabi.ErrCPUSpent), errors.Is(err, errStack):
		return true
	}
	return false
}

// endedStream reports whether a streamed answer, or the reading of a body in parts, has ended because its time was over.
// The breaker does not count that.
func endedStream(call *hostabi.Call, err error) bool {
	return (call.Streaming() || call.HasReadParts()) && errors.Is(err, hostabi.ErrTimeOver)
}

// usedUp adds the limit of the CPU time to cause.
func usedUp(limit time.Duration, cause error) error {
	return fmt.Errorf("handler used more than %s of CPU ([sandbox] cpu): %w", limit, cause)
}

func failed(cause error) error {
	return fault.Wrap(cause, fault.HandlerFailed, "the handler failed")
}

func timedOut(cause error) error {
	return fault.Wrap(cause, fault.HandlerTimeout, "the handler did not answer in time")
}
