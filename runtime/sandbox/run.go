package sandbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"runner.example/hostabi"
	"runner.example/internal/cpuqueue"
	"runner.example/internal/fault"
)

// Run runs one handler in a sandbox that is as the module's initialization left
// it, until the handler returns, fails, or the time of call.Context or the
// processor time of the request's runs is over. nil says that it answered and
// returned: the answer is call.Response. Otherwise the error is a *fault.Fault,
// or an *Unavailable around one:
//
//	HandlerFailed       it trapped, exited or returned without an answer
//	HandlerTimeout      its time was over
//	HandlerOutOfMemory  it failed after it was refused more memory
//	HandlerUnavailable  it has run out of time too often, for this caller or for all;
//	                    nothing ran
//	Overloaded          there was no place, no memory or no processor for it
//	NotReady            the module is closed; nothing ran
//
// and the answer in call.Response must not be used. The call is begun and ended
// here; nothing of it is touched after Run returned.
func (m *Module) Run(call *hostabi.Call, handler string) error {
	return m.run(call, handler, nil)
}

func (m *Module) run(call *hostabi.Call, handler string, usage *usage) error {
	call.Begin()
	index, ok := m.byName[handler]
	if !ok {
		return failed(fmt.Errorf("module %s has no handler %q", m.name, handler))
	}
	h := &m.states[index]
	breaker := &h.breaker
	probe, err := breaker.admit(call)
	if err != nil {
		return err
	}
	ran := false
	var outcome error        // of the guest
	var queued time.Duration // in line for a place, after it had waited for something
	began, spent := m.engine.options.Now(), call.CPU()
	defer func() {
		own := call.CPU() - spent + call.Waited() - queued
		breaker.verdict(call, probe, ran, !m.engine.options.NoBreaker && struck(call.Context, outcome, own, m.engine.options.Now()-began))
	}()
	call.Handler = h.name
	if h.cpu.AlwaysLong() && !m.engine.cpu.Fits(call.Context, &h.cpu) {
		return errNoCPU
	}
	if err := m.engine.slots.enter(call.Context, h, m.engine.options.QueueWait); err != nil {
		return err
	}
	defer m.engine.slots.Release(h)
	s, err := m.pool.borrow()
	if err != nil {
		return err
	}
	// Whatever happens in between, the pool learns what became of it.
	defer func() { m.takeBack(s, call, index, ran) }()
	if s == nil && m.image != nil {
		if s, err = m.clone(); err != nil {
			return fault.Wrap(err, fault.Overloaded, "there is no room for another sandbox; try again")
		}
	}
	if s == nil {
		if usage != nil {
			usage.making = m.engine.options.Now()
		}
		if s, err = m.boot(call); errors.Is(err, errNoMemory) {
			return fault.Wrap(err, fault.Overloaded, "there is no room for another sandbox; try again")
		}
		outcome = err
	}
	refused, stood := false, false
	if outcome == nil {
		if usage != nil {
			usage.begin(m.engine)
		}
		outcome = s.call(call, index)
		if usage != nil {
			usage.end(s, call)
		}
		refused = s.memory.refused
		queued = s.parking.waited
		all := m.engine.options.Now() - began
		full, late := errors.Is(outcome, cpuqueue.ErrFull), errors.Is(outcome, hostabi.ErrTimeOver)
		m.engine.cpu.Done(&s.task, full, outcome == nil)
		most := func(waited time.Duration) bool { return waited > 0 && waited >= all/2 }
		stood = full || late && (most(s.task.Waited()) || most(queued))
	}
	ran = true
	call.End()
	if stood {
		return errNoCPU
	}
	return judge(call, refused, outcome)
}

var errNoCPU = fault.New(fault.Overloaded, "the CPU queue is full; try again")

// takeBack restores a sandbox after a request, or throws it away: one that makes
// its own start for each request, one whose run did not come to an end, and one
// that cannot be restored.
func (m *Module) takeBack(s *sandbox, call *hostabi.Call, handler int, ran bool) {
	switch {
	case s == nil:
	case m.image == nil || !ran || s.restore(call, handler, s.ended) != nil:
		s.discard()
		s = nil
	default:
		s.releaseCPU()
		s.used, s.trimmed = m.engine.beat.Load(), false
	}
	m.pool.giveBack(s)
}

// judge says what became of a run that ended with err.
func judge(call *hostabi.Call, refused bool, err error) error {
	exit, exited := errors.AsType[*hostabi.Exit](err)
	if exited && exit.Status == 0 && call.Response.Status != 0 {
		err, exited = nil, false // to exit well is a way to return
	}
	switch {
	case errors.Is(err, hostabi.ErrTimeOver), errors.Is(err, hostabi.ErrCPUSpent):
		return timedOut(err)
	case err == nil && call.Context.Err() != nil:
		return timedOut(call.Context.Err())
	case err != nil && refused:
		return fault.Wrap(err, fault.HandlerOutOfMemory, "the handler ran out of memory")
	case exited:
		return failed(fmt.Errorf("handler exited with status %d", exit.Status))
	case err != nil:
		return failed(err)
	case call.Response.Status == 0:
		return failed(errors.New("handler returned without an answer"))
	}
	return nil
}

// struck reports whether a run ended in a way that its handler's breaker counts.
// Of the time that was over, own is what the handler itself computed or waited:
// one that mostly stood in line behind others is not to blame, nor is one whose
// time was ended by others before it was late.
func struck(ctx context.Context, err error, own, all time.Duration) bool {
	switch {
	case errors.Is(err, hostabi.ErrTimeOver):
		return own >= all/4 && !errors.Is(ctx.Err(), context.Canceled)
	case errors.Is(err, hostabi.ErrCPUSpent), errors.Is(err, errStack):
		return true
	}
	return false
}

func failed(cause error) error {
	return fault.Wrap(cause, fault.HandlerFailed, "the handler failed")
}

func timedOut(cause error) error {
	return fault.Wrap(cause, fault.HandlerTimeout, "the handler did not answer in time")
}
