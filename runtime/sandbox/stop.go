package sandbox

import (
	"errors"
	"time"

	"runner.example/hostabi"
)

// A module that exports runner_stopped can say where a run was when its time or its CPU time
// was over, or when it failed after it was refused memory. If it computes when its time is
// over, it may go on for lastTime: sched_yield then returns intr, so that an interpreter can
// store its position. Then runner_stopped is called in the memory as it is, and may compute
// for reportTime. A run without a CPU slot has at most longAfter for each. After it was refused
// memory it may have sparePages more, for its error.
const (
	lastTime   = 5 * time.Millisecond
	reportTime = 50 * time.Millisecond
	sparePages = 4
	// Allocators ask twice for the memory of the handler before they fail.
	refusalsBeforeSpare = 2
)

// stop says why and when the host stops the guest.
type stop struct {
	because error // nil: it does not
	at      time.Duration
}

// charge takes CPU time from the request's budget, and ends the run if it is over.
func (s *sandbox) charge(call *hostabi.Call, spent, now time.Duration) {
	err := call.Charge(spent)
	if err == nil {
		return
	}
	if !s.module.program.Reports {
		panic(err)
	}
	call.Stopping(false)
	s.stop = stop{because: err, at: now + s.briefly(lastTime)}
}

// briefly returns d, or at most longAfter for a run without a CPU slot.
func (s *sandbox) briefly(d time.Duration) time.Duration {
	if s.task.Running() {
		return d
	}
	return min(d, longAfter)
}

// checkStop ends a run that the host stops.
func (s *sandbox) checkStop(now time.Duration) {
	if now >= s.stop.at {
		panic(s.stop.because)
	}
}

// stopped reports whether a run ended with err because of a limit.
func (s *sandbox) stopped(err error) bool {
	return err != nil && s.memory.refused != nil || errors.Is(err, hostabi.ErrTimeOver) || errors.Is(err, hostabi.ErrCPUSpent)
}

// report calls runner_stopped after a run that ended with err. Its failure is ignored: then the
// log has no place.
func (s *sandbox) report(call *hostabi.Call, err error) {
	call.Stopping(true)
	s.stop = stop{because: err, at: s.engine.options.Now() + s.briefly(reportTime)}
	s.fuel.Set(uint64(s.nextSlice()))
	s.depth.Set(0)
	_ = s.invoke(s.function(exportStopped))
}
