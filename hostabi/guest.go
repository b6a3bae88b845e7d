package hostabi

import (
	"context"
	"errors"
	"fmt"
	"time"

	"runner.example/hostabi/abi"
)

// Guest is the context that a guest runs under: by it host functions find the
// Call whose run they are part of. A sandbox has one for as long as it lives and
// binds it to one Call after another; one goroutine at a time may use it.
type Guest struct {
	context.Context
	// Owner is whoever made the Guest, for host functions of its own.
	Owner any
	// Waits is told when the guest begins and ends to wait for something that
	// needs no processor. When it was told of the end and returns, the guest goes on,
	// unless the request's time is over: so it may make the guest wait for longer.
	// nil: nobody wants to know.
	Waits func(begins bool)
	// Worked is told, while the guest waits for it, that host functions have
	// computed for so long since it was last told; less than WorkedMost is not
	// worth it. nil: nobody wants to know.
	Worked func(time.Duration)
	// Working is called from within a host function that has computed for a while. It may
	// make the function wait. If it returns an error, the run ends with it. nil: only the
	// request's time ends the run.
	Working func() error

	call   *Call
	worked time.Duration // of which nobody was told
	began  time.Time     // the host function that is timed; zero: none is
	waited time.Duration // of the call, then
}

// WorkedMost is how long host functions may compute until it is told.
const WorkedMost = 100 * time.Microsecond

func (g *Guest) beginWork() { g.began, g.waited = time.Now(), g.call.waited }

// Unreported is how long host functions have computed that Worked was not told of, the one
// at hand included. It is for Working.
func (g *Guest) Unreported() time.Duration {
	if g.began.IsZero() {
		return g.worked
	}
	return g.worked + time.Since(g.began) - (g.call.waited - g.waited)
}

// endWork does not count what the guest waited for.
func (g *Guest) endWork() {
	g.worked, g.began = g.Unreported(), time.Time{}
	if g.worked >= WorkedMost && g.Worked != nil {
		worked := g.worked
		g.worked = 0
		g.Worked(worked)
	}
}

// Bind makes call the one that host functions work with from now on; nil unbinds
// the last.
func (g *Guest) Bind(call *Call) {
	if g.call != nil {
		g.call.onWait, g.call.onWork = nil, nil
	}
	g.worked, g.began = 0, time.Time{}
	if g.call = call; call != nil {
		call.onWait, call.onWork = g.Waits, g.Working
	}
}

// Call is the one that was bound, nil without any.
func (g *Guest) Call() *Call { return g.call }

// What a host function panics with to end a run: the guest is unwound and does
// not run again. The sandbox stays usable after them.
var (
	// ErrTimeOver: the request's time is over.
	ErrTimeOver = errors.New("the request's time is over")
	// ErrCPUSpent: the request's runs have had all the processor time that
	// they may have.
	ErrCPUSpent = errors.New("the request's processor time is spent")
)

// Exit is what proc_exit panics with, by pointer.
type Exit struct{ Status uint32 }

func (e *Exit) Error() string { return fmt.Sprintf("exited with status %d", e.Status) }

// unwind ends the run with a panic that is meant.
func (c *Call) unwind(why error) {
	c.inside = false
	panic(why)
}

// HostFailed reports whether the last run ended within a host function, by a
// panic that is none of the above: our mistake, after which nobody knows what
// state the sandbox is in.
func (c *Call) HostFailed() bool { return c.inside }

// timeEvery is how many host calls may go by between two looks at the clock. A
// guest that does nothing else is stopped by its fuel.
const timeEvery = 8

// enter counts a host call and says whether it may go on; an answer may always
// be given. slow calls look at the clock each time.
func (c *Call) enter(answering, slow bool) abi.Errno {
	if slow || c.hostCalls%timeEvery == 0 {
		c.checkTime()
	}
	c.hostCalls++
	switch {
	case c.initializing || c.Request == nil:
		return abi.Denied
	case answering:
		return 0
	case c.hostCalls > c.limits.HostCalls || c.moved > c.limits.MovedBytes:
		return abi.Limit
	}
	return 0
}

func (c *Call) checkTime() {
	if c.Context.Err() != nil {
		c.unwind(ErrTimeOver)
	}
}

// Spend takes processor time from the budget of the request's runs, and ends
// the run, as host functions do, when that or the request's time is over.
func (c *Call) Spend(cpu time.Duration) {
	if err := c.Charge(cpu); err != nil {
		c.unwind(err)
	}
}

// Charge is Spend for a host function that still runs, which must end with the error.
func (c *Call) Charge(cpu time.Duration) error {
	if c.Context.Err() != nil {
		return ErrTimeOver
	}
	if c.AddCPU(cpu); c.cpu > c.limits.CPU {
		return ErrCPUSpent
	}
	return nil
}

// AddCPU adds processor time that was used outside of the runs of the request.
func (c *Call) AddCPU(cpu time.Duration) { c.cpu += cpu }

// look is asked by the meter of the run's work.
func (c *Call) look() error {
	switch {
	case c.Context.Err() != nil:
		return ErrTimeOver
	case c.onWork == nil:
		return nil
	}
	return c.onWork()
}

// checkWork ends the run when its work had to end.
func (c *Call) checkWork() {
	if err := c.work.Err(); err != nil {
		c.unwind(err)
	}
}

// CPU is how long the runs for this request have been on a processor, and CPULeft how
// long they still may.
func (c *Call) CPU() time.Duration { return c.cpu }

// CPULeft is described with CPU.
func (c *Call) CPULeft() time.Duration { return c.limits.CPU - c.cpu }

// Waited is how long the guest has waited, in this run, for what needs no
// processor.
func (c *Call) Waited() time.Duration { return c.waited }

// HostCalls is how many functions of the module "runner" this run has called,
// and Moved how many bytes they have copied beyond the request's body.
func (c *Call) HostCalls() int { return c.hostCalls }

// Moved is described with HostCalls.
func (c *Call) Moved() int { return max(0, c.moved) }

// sleep waits, and ends the run when its time is over before that.
func (c *Call) sleep(d time.Duration) {
	if d <= 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	await(c, timer.C)
}

// await waits for one value of ready, or its close, and ends the run when its
// time is over before that.
func await[T any](c *Call, ready <-chan T) {
	select {
	case <-ready:
		return
	default:
	}
	if c.onWait != nil {
		c.onWait(true)
	}
	began, over := time.Now(), false
	select {
	case <-ready:
	case <-c.Context.Done():
		over = true
	}
	if c.onWait != nil {
		c.onWait(false)
		over = over || c.Context.Err() != nil
	}
	c.waited += time.Since(began)
	if over {
		c.unwind(ErrTimeOver)
	}
}
