package hostabi

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"runner.example/entity"
	"runner.example/hostabi/abi"
	"runner.example/internal/cost"
	"runner.example/internal/fault"
)

const (
	// maxPending is how many operations of a run may be started and not taken.
	maxPending = 64
	// maxHeldBytes is what the results of those may have until no operation more
	// is done for later.
	maxHeldBytes = 16 << 20
)

// work is the part of an operation that waits. Another goroutine does it, so it
// touches nothing of the Call and nothing of the guest. It ends when its context
// does.
type work func(context.Context) (answer, error)

// answer appends its JSON; the meter counts what that takes.
type answer func([]byte, *cost.Meter) ([]byte, error)

// ticket is one operation that call_start has begun.
//
//	started ──► done ──► told by call_wait ──► taken by call_take
//	              └───────────────────────────────^
type pendingOperation struct {
	number   int
	op       string
	reported bool
	taken    bool

	done   chan struct{} // closed when what follows is set
	result entity.Result // of an operation that did not wait
	answer answer        // of one that did
	err    error
}

// tickets are those of one run. A Call that starts nothing has none.
type pendingOperations struct {
	all        []*pendingOperation // by number; nil when taken
	open       int                 // not taken
	unreported int                 // neither told nor taken
	held       int                 // bytes in results
	ctx        context.Context
	cancel     context.CancelFunc
	running    sync.WaitGroup
	inFlight   chan struct{} // holds one for each fetch that is under way
	bytesLeft  atomic.Int64  // bytes that fetches may still get

	mu    sync.Mutex
	done  []*pendingOperation // in the order in which they were; some are taken
	ready chan struct{}       // one, when done has become longer
}

// issued gives the run's tickets, and makes room for them at the first.
func (c *Call) pendingOps() *pendingOperations {
	if c.pending == nil {
		c.pending = &pendingOperations{ready: make(chan struct{}, 1), inFlight: make(chan struct{}, maxInFlight)}
		c.pending.bytesLeft.Store(int64(c.limits.MovedBytes))
		c.pending.ctx, c.pending.cancel = context.WithCancel(c.Context)
	}
	return c.pending
}

// admit counts bytes of answers: a run gets no more than it could read.
func (ops *pendingOperations) reserve(n int) bool { return ops.bytesLeft.Add(-int64(n)) >= 0 }

// endTickets ends what is still under way, and waits for it.
func (c *Call) endPending() {
	if c.pending == nil {
		return
	}
	c.pending.cancel()
	c.pending.running.Wait()
	for _, t := range c.pending.all {
		if t != nil {
			c.logFailed(t.err)
		}
	}
	c.pending = nil
}

// callStart begins one operation. One that does not wait is done at once: what a
// handler starts is done in the order in which it was started. A mistake in the
// operation's arguments is told as its result.
func callStart(c *Call, g guest) int32 {
	name, op, args, err := c.asked(g)
	if err != nil {
		return c.fail("", err)
	}
	ops := c.pendingOps()
	switch {
	case ops.open >= maxPending:
		return c.fail("", fault.New(fault.Limit, "a request may have %d operations started: take the result of one first", maxPending))
	case op.begin == nil && ops.held >= maxHeldBytes:
		return c.fail("", fault.New(fault.Limit, "the results of operations that were started have more than %d MiB: take one first", maxHeldBytes>>20))
	}
	if err := c.countStoreOp(op); err != nil {
		return c.fail("", err)
	}
	t := ops.start(name)
	if op.begin != nil {
		c.begin(t, op, args)
		return int32(t.number)
	}
	if t.err = op.run(c, name, args, &t.result); t.err != nil {
		c.checkTime() // it may be what stopped the operation
	}
	ops.held += len(t.result.JSON)
	ops.finish(t)
	return int32(t.number)
}

func (ops *pendingOperations) start(op string) *pendingOperation {
	t := &pendingOperation{number: len(ops.all), op: op, done: make(chan struct{})}
	ops.all = append(ops.all, t)
	ops.open++
	ops.unreported++
	return t
}

func (ops *pendingOperations) finish(t *pendingOperation) {
	close(t.done)
	ops.mu.Lock()
	ops.done = append(ops.done, t)
	ops.mu.Unlock()
	select {
	case ops.ready <- struct{}{}:
	default: // somebody is told already
	}
}

// begin reads the arguments of an operation that waits, and has another
// goroutine do it.
func (c *Call) begin(t *pendingOperation, op operation, args []byte) {
	ops := c.pending
	do, err := op.begin(c, args)
	if err != nil {
		t.err = err
		ops.finish(t)
		return
	}
	ops.running.Go(func() {
		defer ops.finish(t)
		defer func() {
			if p := recover(); p != nil {
				t.err = fmt.Errorf("BUG: %s: %v", t.op, p)
			}
		}()
		t.answer, t.err = do(ops.ctx)
	})
}

// callWait tells the ticket of the operation that was done first, each once.
func callWait(c *Call, _ guest) int32 {
	ops := c.pending
	for ops != nil && ops.unreported > 0 {
		if t := ops.next(); t != nil {
			t.reported = true
			ops.unreported--
			return int32(t.number)
		}
		await(c, ops.ready)
	}
	return int32(abi.NotFound)
}

// next takes the first ticket that is done and not taken off the list.
func (ops *pendingOperations) next() *pendingOperation {
	ops.mu.Lock()
	defer ops.mu.Unlock()
	for len(ops.done) > 0 {
		t := ops.done[0]
		ops.done = ops.done[1:]
		if !t.taken {
			return t
		}
	}
	return nil
}

// callTake makes the outcome of a ticket's operation the last result, and waits
// for it when there is none yet.
func callTake(c *Call, g guest) int32 {
	number := int(g.number(0))
	if c.pending == nil || number < 0 || number >= len(c.pending.all) || c.pending.all[number] == nil {
		return c.fail("", fault.New(fault.Invalid, "there is no ticket %d, or it was taken", number))
	}
	return c.take(c.pending.all[number])
}

func (c *Call) take(t *pendingOperation) int32 {
	await(c, t.done)
	ops := c.pending
	ops.all[t.number], t.taken = nil, true
	ops.open--
	ops.held -= len(t.result.JSON)
	if !t.reported {
		ops.unreported--
	}
	result, err := t.result, t.err
	if err == nil && t.answer != nil {
		result.JSON, err = t.answer(c.result.JSON[:0], &c.work)
	}
	t.result, t.answer = entity.Result{}, nil // which the list of those that are done may still hold
	if err != nil {
		c.logFailed(err)
		c.checkTime() // it may be what stopped the operation
		return c.fail(t.op, err)
	}
	c.result, c.called, c.succeeded = result, true, true
	return int32(len(c.result.JSON))
}
