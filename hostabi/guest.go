package hostabi

import (
	"context"
	"errors"
	"fmt"
	"time"

	"runner.example/hostabi/abi"
	"runner.example/internal/clock"
)

// Sandbox is what host functions need of the sandbox that runs the guest. The goroutine
// that runs the guest calls the methods.
type Sandbox interface {
	// Wait is called when the guest begins and ends to wait for something that needs no
	// processor. When the call for the end returns, the guest continues, unless the
	// request's time is over. So it may make the guest wait for longer. An error ends
	// the run; after an error of Wait(true), Wait(false) is not called.
	Wait(begins bool) error
	// BeginStream is called before the answer begins, see response_begin: from then on the guest is one of
	// those whose answers are streamed. With an error the run ends.
	BeginStream() error
	// Worked is called, while the guest waits for it, with the time that host functions
	// have computed since the last call. Less than WorkedMost is not reported.
	Worked(time.Duration)
	// Working is called from a host function that has computed for a while. It may make
	// the function wait. With an error the run ends.
	Working() error
	// Hold takes so many bytes of the memory that all handlers may have, for what the host keeps for the guest,
	// and reports whether there were as many. Release gives them back.
	Hold(bytes int) bool
	Release(bytes int)
}

// Guest is the context that a guest runs under: host functions find the Call of the run in
// it. A sandbox has one for its whole life and binds it to one Call after another; one
// goroutine at a time may use it.
type Guest struct {
	context.Context
	// Sandbox runs the guest; nil: only the request's time ends a run.
	Sandbox Sandbox

	call   *Call
	worked time.Duration // not reported yet
	began  time.Time     // of the host function that is timed; zero: none
	waited time.Duration // of the call, at that time
}

// AsGuest returns g. A sandbox may pass a context that embeds a Guest.
func (g *Guest) AsGuest() *Guest { return g }

// guestOf returns the guest whose host function has this context.
func guestOf(ctx context.Context) *Guest { return ctx.(interface{ AsGuest() *Guest }).AsGuest() }

// WorkedMost is the time that host functions may compute before it is reported.
const WorkedMost = 100 * time.Microsecond

func (g *Guest) beginWork() { g.began, g.waited = clock.Mark(), g.call.waited }

// Unreported is the time that host functions have computed since Worked was called, the
// current one included. It is for Working.
func (g *Guest) Unreported() time.Duration {
	if g.began.IsZero() {
		return g.worked
	}
	return g.worked + time.Since(g.began) - (g.call.waited - g.waited)
}

// endWork ends the timing of a host function, without the time that the guest waited.
func (g *Guest) endWork() {
	g.worked, g.began = g.Unreported(), time.Time{}
	if g.worked >= WorkedMost && g.Sandbox != nil {
		worked := g.worked
		g.worked = 0
		g.Sandbox.Worked(worked)
	}
}

// Bind makes call the one that host functions use from now on; nil unbinds the last one.
func (g *Guest) Bind(call *Call) {
	if g.call != nil {
		g.call.sandbox, g.call.guest = nil, nil
	}
	g.worked, g.began = 0, time.Time{}
	if g.call = call; call != nil {
		call.sandbox, call.guest = g.Sandbox, g
	}
}

// Call returns the Call that is bound, or nil.
func (g *Guest) Call() *Call { return g.call }

// A host function panics with these to end a run. The guest does not continue, and the
// sandbox stays usable.
var (
	ErrTimeOver = errors.New("the request's time is over")
	// ErrCPUSpent: the request's runs have used all of their CPU time.
	ErrCPUSpent = errors.New("the request has used all of its CPU time")
	// ErrReplayEnds: the Player has no answer, see its Divergence and Reached.
	ErrReplayEnds = errors.New("the recording ends here")
)

// Exit is the value that proc_exit panics with, by pointer.
type Exit struct{ Status uint32 }

func (e *Exit) Error() string { return fmt.Sprintf("exited with status %d", e.Status) }

// EndsCall says that the call ends without a trace. third_party/wazero/ends.patch asks it.
func (e *Exit) EndsCall() bool { return e.Status == 0 }

// unwind ends the run with an intended panic.
func (c *Call) unwind(why error) {
	c.inside = false
	panic(why)
}

// HostFailed reports whether the last run ended with an unintended panic of a host
// function. That is a bug, and the state of the sandbox is unknown.
func (c *Call) HostFailed() bool { return c.inside }

// timeEvery is the number of host calls between two checks of the request's time. A guest
// that makes no calls is stopped by its fuel.
const timeEvery = 8

// enter counts a host call and checks the limits, which do not stop a call that answers.
// A slow call always checks the request's time.
func (c *Call) enter(answering, slow bool) abi.Errno {
	if slow || c.hostCalls%timeEvery == 0 {
		c.checkTime()
	}
	c.hostCalls++
	if c.streaming {
		c.refill()
	}
	switch {
	case c.initializing || c.stopping || c.Request == nil:
		return abi.Denied
	case answering:
		return 0
	case c.hostCalls > c.limits.HostCalls || c.moved > c.limits.MovedBytes:
		return abi.Limit
	}
	return 0
}

func (c *Call) checkTime() {
	if !c.stopping && c.Context.Err() != nil {
		c.unwind(ErrTimeOver)
	}
}

// Charge takes CPU time from the budget of the request's runs. With an error that or the
// request's time is over, and the run must end.
func (c *Call) Charge(cpu time.Duration) error {
	if c.Context.Err() != nil {
		return ErrTimeOver
	}
	if c.AddCPU(cpu); c.cpu > c.limits.CPU {
		return ErrCPUSpent
	}
	return nil
}

// look is asked by the meter of the run's work.
func (c *Call) checkRun() error {
	switch {
	case c.Context.Err() != nil:
		return ErrTimeOver
	case c.sandbox == nil:
		return nil
	}
	return c.sandbox.Working()
}

// checkWork ends the run if the meter has stopped the work.
func (c *Call) checkWork() {
	if err := c.work.Err(); err != nil {
		c.unwind(err)
	}
}

// sleep waits for d, and ends the run if the request's time is over before. It returns early when the client of a
// streamed answer hangs up.
func (c *Call) sleep(d time.Duration) {
	if d <= 0 || c.Player != nil {
		return
	}
	if c.Host != nil && c.Host.Sleep != nil {
		c.Host.Sleep(d)
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	gone := c.clientGone()
	c.pause(func() {
		select {
		case <-timer.C:
		case <-gone:
			c.cancelPending()
		case <-c.Context.Done():
		}
	})
}

// await waits until ready has a value or is closed, and ends the run if the request's time
// is over before. If the client of a streamed answer hangs up, the pending operations end.
func await[T any](c *Call, ready <-chan T) {
	select {
	case <-ready:
		return
	default:
	}
	gone := c.clientGone()
	c.pause(func() {
		select {
		case <-ready:
			return
		case <-c.Context.Done():
			return
		case <-gone:
			c.cancelPending()
		}
		select {
		case <-ready:
		case <-c.Context.Done():
		}
	})
}

// pause runs what waits for something that needs no processor, and ends the run if the request's time is over then.
func (c *Call) pause(wait func()) {
	if err := c.waitFor(wait); err != nil {
		c.unwind(err)
	}
}

// waitFor is pause that returns why the run must end. If the guest may not wait, it ends the run before.
func (c *Call) waitFor(wait func()) error {
	if c.sandbox != nil {
		if err := c.sandbox.Wait(true); err != nil {
			c.unwind(err)
		}
	}
	began := clock.Mark()
	wait()
	var err error
	if c.sandbox != nil {
		err = c.sandbox.Wait(false)
	}
	c.waited += time.Since(began)
	if c.Context.Err() != nil {
		err = ErrTimeOver
	}
	return err
}
