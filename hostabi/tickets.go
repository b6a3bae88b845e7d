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
	// maxTickets is how many operations of a run may be started and not taken.
	maxTickets = 64
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
type ticket struct {
	number int
	op     string
	told   bool
	taken  bool

	done   chan struct{} // closed when what follows is set
	result entity.Result // of an operation that did not wait
	answer answer        // of one that did
	err    error
}

// tickets are those of one run. A Call that starts nothing has none.
type tickets struct {
	all     []*ticket // by number; nil when taken
	open    int       // not taken
	untold  int       // neither told nor taken
	held    int       // bytes in results
	ctx     context.Context
	cancel  context.CancelFunc
	running sync.WaitGroup
	flying  chan struct{} // holds one for each fetch that is under way
	room    atomic.Int64  // bytes that fetches may still get

	mu   sync.Mutex
	done []*ticket     // in the order in which they were; some are taken
	news chan struct{} // one, when done has become longer
}

// issued gives the run's tickets, and makes room for them at the first.
func (c *Call) issued() *tickets {
	if c.tickets == nil {
		c.tickets = &tickets{news: make(chan struct{}, 1), flying: make(chan struct{}, maxFlying)}
		c.tickets.room.Store(int64(c.limits.MovedBytes))
		c.tickets.ctx, c.tickets.cancel = context.WithCancel(c.Context)
	}
	return c.tickets
}

// admit counts bytes of answers: a run gets no more than it could read.
func (ts *tickets) admit(n int) bool { return ts.room.Add(-int64(n)) >= 0 }

// endTickets ends what is still under way, and waits for it.
func (c *Call) endTickets() {
	if c.tickets == nil {
		return
	}
	c.tickets.cancel()
	c.tickets.running.Wait()
	for _, t := range c.tickets.all {
		if t != nil {
			c.logFailed(t.err)
		}
	}
	c.tickets = nil
}

// callStart begins one operation. One that does not wait is done at once: what a
// handler starts is done in the order in which it was started. A mistake in the
// operation's arguments is told as its result.
func callStart(c *Call, g guest) int32 {
	name, op, args, err := c.asked(g)
	if err != nil {
		return c.fail("", err)
	}
	ts := c.issued()
	switch {
	case ts.open >= maxTickets:
		return c.fail("", fault.New(fault.Limit, "a request may have %d operations started: take the result of one first", maxTickets))
	case op.begin == nil && ts.held >= maxHeldBytes:
		return c.fail("", fault.New(fault.Limit, "the results of operations that were started have more than %d MiB: take one first", maxHeldBytes>>20))
	}
	if err := c.countStoreOp(op); err != nil {
		return c.fail("", err)
	}
	t := ts.start(name)
	if op.begin != nil {
		c.begin(t, op, args)
		return int32(t.number)
	}
	if t.err = op.run(c, name, args, &t.result); t.err != nil {
		c.checkTime() // it may be what stopped the operation
	}
	ts.held += len(t.result.JSON)
	ts.finish(t)
	return int32(t.number)
}

func (ts *tickets) start(op string) *ticket {
	t := &ticket{number: len(ts.all), op: op, done: make(chan struct{})}
	ts.all = append(ts.all, t)
	ts.open++
	ts.untold++
	return t
}

func (ts *tickets) finish(t *ticket) {
	close(t.done)
	ts.mu.Lock()
	ts.done = append(ts.done, t)
	ts.mu.Unlock()
	select {
	case ts.news <- struct{}{}:
	default: // somebody is told already
	}
}

// begin reads the arguments of an operation that waits, and has another
// goroutine do it.
func (c *Call) begin(t *ticket, op operation, args []byte) {
	ts := c.tickets
	do, err := op.begin(c, args)
	if err != nil {
		t.err = err
		ts.finish(t)
		return
	}
	ts.running.Go(func() {
		defer ts.finish(t)
		defer func() {
			if p := recover(); p != nil {
				t.err = fmt.Errorf("BUG: %s: %v", t.op, p)
			}
		}()
		t.answer, t.err = do(ts.ctx)
	})
}

// callWait tells the ticket of the operation that was done first, each once.
func callWait(c *Call, _ guest) int32 {
	ts := c.tickets
	for ts != nil && ts.untold > 0 {
		if t := ts.next(); t != nil {
			t.told = true
			ts.untold--
			return int32(t.number)
		}
		await(c, ts.news)
	}
	return int32(abi.NotFound)
}

// next takes the first ticket that is done and not taken off the list.
func (ts *tickets) next() *ticket {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	for len(ts.done) > 0 {
		t := ts.done[0]
		ts.done = ts.done[1:]
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
	if c.tickets == nil || number < 0 || number >= len(c.tickets.all) || c.tickets.all[number] == nil {
		return c.fail("", fault.New(fault.Invalid, "there is no ticket %d, or it was taken", number))
	}
	return c.take(c.tickets.all[number])
}

func (c *Call) take(t *ticket) int32 {
	await(c, t.done)
	ts := c.tickets
	ts.all[t.number], t.taken = nil, true
	ts.open--
	ts.held -= len(t.result.JSON)
	if !t.told {
		ts.untold--
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
