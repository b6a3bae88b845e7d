package sandbox

import (
	"context"
	"errors"
	"time"

	"runner.example/hostabi"
)

// A module that exports runner_stopped can say where a run was when its time or its CPU time
// was over, or when it failed after it was refused memory. If it computes when its time is
// over, it may go on for lastTime: sched_yield then returns intr, so that an interpreter can
// store its position. Then runner_stopped is called in the memory as it is, and may compute
// for reportTime, or for lastTime if the run has no CPU slot; in TypeScript it takes 1 ms. All are CPU
// time: on a busy machine much more time may pass. After it was refused memory it may have sparePages
// more, for its error.
const (
	lastTime   = 5 * time.Millisecond
	reportTime = 20 * time.Millisecond
	sparePages = 4
	// Allocators ask twice for the memory of the handler before they fail.
	refusalsBeforeSpare = 2
)

// stop says why the host stops the guest, and how much CPU time it has from the mark of its meter on.
type stop struct {
	because error // nil: it does not
	left    time.Duration
}

// charge takes CPU time from the request's budget, and stops the run if it is over.
func (s *sandbox) charge(call *hostabi.Call, spent, now time.Duration) {
	err := call.Charge(spent)
	if err == nil {
		return
	}
	if !s.module.program.Reports || cancelled(call) {
		panic(err)
	}
	call.Stopping(false)
	s.stopAfter(lastTime, err, now, call)
}

// cancelled reports whether nobody waits for what the run says: its client has gone, or the server stops.
func cancelled(call *hostabi.Call) bool { return errors.Is(call.Context.Err(), context.Canceled) }

// stopAfter stops the guest after so much more CPU time. Until then it keeps its thread: if it changed
// threads, the time that has passed would count.
func (s *sandbox) stopAfter(d time.Duration, because error, now time.Duration, call *hostabi.Call) {
	s.keepThread()
	s.stop = stop{because, d}
	s.meter.remark(s.engine, now, call.Waited())
}

// checkStop ends a run that the host stops. It measures the CPU time only if so much time has passed.
func (s *sandbox) checkStop(now time.Duration) {
	m := &s.meter
	if now-m.mark < s.stop.left {
		return
	}
	if s.stop.left -= m.spent(s.engine, now, m.waited); s.stop.left <= 0 {
		panic(s.stop.because)
	}
	m.remark(s.engine, now, m.waited)
}

// stopped reports whether a run ended with err because of a limit.
func (s *sandbox) stopped(err error) bool {
	return err != nil && s.memory.refused != nil || errors.Is(err, hostabi.ErrTimeOver) ||
		errors.Is(err, hostabi.ErrCPUSpent)
}

// report calls runner_stopped after a run that ended with err. Its failure is ignored: then the
// log has no place. The sandbox still has the active calls of the run.
func (s *sandbox) report(call *hostabi.Call, err error) {
	call.Stopping(true)
	most := reportTime
	if !s.task.Running() {
		most = lastTime
	}
	s.stopAfter(most, err, s.engine.options.Now(), call)
	s.fuel.Set(uint64(s.nextSlice()))
	s.depth.Set(0)
	last, block := s.last, s.block
	_ = s.invoke(s.function(exportStopped))
	s.last, s.block = last, block
}
