package hostabi

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"runner.example/hostabi/abi"
	"runner.example/internal/cost"
	"runner.example/internal/fault"
	"runner.example/state/entity"
)

const (
	// maxPending is how many operations of a run may be pending.
	maxPending = 64
	// maxHeldBytes is the size of pending results from which no further operation can be
	// started that has its result at once.
	maxHeldBytes = 16 << 20
)

// work is the part of an operation that waits. It runs in another goroutine, so it touches
// neither the Call nor the guest. It ends when its context does.
type work func(context.Context) (answer, error)

// answer appends the result as JSON. The meter counts that work.
type answer func([]byte, *cost.Meter) ([]byte, error)

// pendingOperation is one operation that call_start has started. The guest knows it by its
// number, the ticket of the ABI.
//
//	started ──► done ──► reported by call_wait ──► taken by call_take
//	              └───────────────────────────────────^
type pendingOperation struct {
	number   int
	op       string
	reported bool
	taken    bool // guarded by pendingOperations.mu
	fetch    bool // it is of a Fetch: the guest does not know its number

	done   chan struct{} // closed when the fields below are set
	result entity.Result // of an operation that did not wait
	answer answer        // of one that did
	err    error
}

// pendingOperations are those of one run. A Call that starts none has no such value. A run may start any number of
// them, so it keeps only those that are not taken.
type pendingOperations struct {
	all        []*pendingOperation // not taken, in the order of their numbers
	started    int                 // the number of the next one
	unreported int                 // neither reported nor taken
	heldBytes  int                 // bytes in results
	ctx        context.Context
	cancel     context.CancelFunc
	running    sync.WaitGroup
	inFlight   chan struct{}     // holds a value for each outbound request in flight
	bytesLeft  atomic.Int64      // that fetches may still receive
	sleepers   []*sleeper        // whose time has not come
	incoming   map[int]*incoming // that are open, by number
	received   int               // the number of the last one
	holds      Sandbox           // what their memory is taken from; nil: none
	computed   atomic.Int64      // nanoseconds that long work has computed, and that are not charged

	mu    sync.Mutex
	done  []*pendingOperation // that call_wait may report, in the order of completion
	ready chan struct{}       // has a value when done has become longer
}

// pendingOps returns the run's pending operations, which it makes at the first call.
func (c *Call) pendingOps() *pendingOperations {
	if c.pending == nil {
		c.pending = &pendingOperations{ready: make(chan struct{}, 1), inFlight: make(chan struct{}, maxInFlight)}
		c.pending.bytesLeft.Store(int64(c.limits.MovedBytes))
		c.pending.ctx, c.pending.cancel = context.WithCancel(c.Context)
	}
	return c.pending
}

// reserve counts bytes of fetched answers: a run receives no more than it can read.
func (ops *pendingOperations) reserve(n int) bool { return ops.bytesLeft.Add(-int64(n)) >= 0 }

// endPending cancels the pending operations and waits for them.
func (c *Call) endPending() {
	if c.pending == nil {
		return
	}
	c.pending.cancel()
	c.pending.running.Wait()
	c.AddCPU(c.takeComputed())
	for number := range c.pending.incoming {
		c.closeIncoming(number)
	}
	for _, t := range c.pending.all {
		c.logFailed(t.err)
	}
	c.pending = nil
}

// callStart starts one operation. One that does not wait is completed at once, so these run
// in the order in which the handler starts them. An error in the operation's arguments
// becomes its result.
func callStart(c *Call, g guest) int32 {
	name, op, args, err := c.readOperation(g)
	if c.Recorder == nil && c.Player == nil {
		return c.startOperation(name, op, args, err)
	}
	return c.tapeStart(name, op, args, err)
}

func (c *Call) startOperation(name string, op operation, args []byte, err error) int32 {
	if err != nil {
		return c.fail("", err)
	}
	ops := c.pendingOps()
	switch {
	case len(ops.all) >= maxPending:
		return c.fail("", fault.New(fault.Limit,
			"a request may have at most %d pending operations: take the result of one first", maxPending))
	case op.begin == nil && ops.heldBytes >= maxHeldBytes:
		return c.fail("", fault.New(fault.Limit,
			"the results of pending operations are larger than %d MiB: take the result of one first", maxHeldBytes>>20))
	}
	if err := c.countStoreOp(op); err != nil {
		return c.fail("", err)
	}
	t := ops.start(name)
	if op.begin != nil {
		c.begin(t, op, args)
		return int32(t.number)
	}
	if t.err = c.perform(op, name, args, &t.result); t.err != nil {
		c.checkTime() // the request's time may have ended it
	}
	ops.heldBytes += len(t.result.JSON)
	ops.finish(t)
	return int32(t.number)
}

func (ops *pendingOperations) start(op string) *pendingOperation {
	t := &pendingOperation{number: ops.started, op: op, done: make(chan struct{})}
	ops.all = append(ops.all, t)
	ops.started++
	ops.unreported++
	return t
}

// startFetch is start for a Fetch, which is not reported.
func (ops *pendingOperations) startFetch() *pendingOperation {
	t := ops.start("fetch")
	t.fetch, t.reported = true, true
	ops.unreported--
	return t
}

func (ops *pendingOperations) finish(t *pendingOperation) {
	ops.mu.Lock()
	if !t.taken && !t.fetch {
		ops.done = append(ops.done, t)
	}
	close(t.done)
	ops.mu.Unlock()
	ops.wake()
}

// wake ends a wait for ready, the next one if there is none.
func (ops *pendingOperations) wake() {
	select {
	case ops.ready <- struct{}{}:
	default: // it has a value
	}
}

// begin reads the arguments of an operation that waits, and runs it in another goroutine.
func (c *Call) begin(t *pendingOperation, op operation, args []byte) {
	ops := c.pending
	do, err := op.begin(c, args)
	if err != nil {
		t.err = err
		ops.finish(t)
		return
	}
	ops.run(t, do)
}

// run runs an operation in another goroutine.
func (ops *pendingOperations) run(t *pendingOperation, do work) {
	ctx := ops.ctx // it is another one when the client of a streamed answer has left
	ops.running.Go(func() {
		defer ops.finish(t)
		defer func() {
			if p := recover(); p != nil {
				t.err = fmt.Errorf("BUG: %s: %v", t.op, p)
			}
		}()
		t.answer, t.err = do(ctx)
	})
}

// callWait returns the number of the operation that completed first, each one once.
func callWait(c *Call, _ guest) int32 {
	if c.Recorder == nil && c.Player == nil {
		return c.waitOperation()
	}
	return c.tapeWait()
}

func (c *Call) waitOperation() int32 {
	ops := c.pending
	for ops != nil && ops.unreported > 0 {
		if t := ops.next(); t != nil {
			t.reported = true
			ops.unreported--
			return int32(t.number)
		}
		c.moveTime(nil)
		await(c, ops.ready)
	}
	return int32(abi.NotFound)
}

// next removes the first operation that is done from the list, and returns it.
func (ops *pendingOperations) next() *pendingOperation {
	ops.mu.Lock()
	defer ops.mu.Unlock()
	if len(ops.done) == 0 {
		return nil
	}
	t := ops.done[0]
	ops.done = slices.Delete(ops.done, 0, 1)
	return t
}

// callTake waits for a pending operation, and makes its result the last result.
func callTake(c *Call, g guest) int32 {
	number := int(g.number(0))
	if c.Recorder == nil && c.Player == nil {
		return c.takeOperation(number)
	}
	return c.tapeTake(number)
}

func (c *Call) takeOperation(number int) int32 {
	t := c.pending.find(number)
	if t == nil || t.fetch {
		return c.fail("", fault.New(fault.Invalid, "the pending operation %d is unknown, or its result was already taken", number))
	}
	return c.take(t)
}

// find returns the operation with a number that is not taken; nil: there is none.
func (ops *pendingOperations) find(number int) *pendingOperation {
	if ops == nil {
		return nil
	}
	for _, t := range ops.all {
		if t.number == number {
			return t
		}
	}
	return nil
}

func (c *Call) take(t *pendingOperation) int32 {
	for c.pending.sleeps(t) {
		c.moveTime(t)
	}
	await(c, t.done)
	if took := c.takeComputed(); took > 0 {
		if err := c.Charge(took); err != nil {
			c.unwind(err)
		}
	}
	c.pending.remove(t)
	result, err := t.result, t.err
	if err == nil && t.answer != nil {
		result.JSON, err = t.answer(c.result.JSON[:0], &c.work)
	}
	if err == context.Canceled && c.gone {
		err = errClientGone
	}
	if err != nil {
		c.logFailed(err)
		c.checkTime() // the request's time may have ended it
		return c.fail(t.op, err)
	}
	c.result, c.called, c.succeeded, c.unread = result, true, true, 0
	c.lastError.isLast = false
	return int32(len(c.result.JSON))
}

// remove says that the result of a pending operation is taken.
func (ops *pendingOperations) remove(t *pendingOperation) {
	same := func(other *pendingOperation) bool { return other == t }
	ops.all = slices.DeleteFunc(ops.all, same)
	ops.mu.Lock()
	t.taken = true
	ops.done = slices.DeleteFunc(ops.done, same)
	ops.mu.Unlock()
	ops.heldBytes -= len(t.result.JSON)
	if !t.reported {
		ops.unreported--
	}
}
