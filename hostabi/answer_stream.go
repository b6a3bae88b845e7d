package hostabi

import (
	"context"
	"fmt"
	"time"

	"runner.example/hostabi/abi"
	"runner.example/internal/fault"
	"runner.example/state/entity"
	"runner.example/state/store"
)

// A streamed answer is sent while the handler runs. response_begin commits the transaction of the request and sends the
// head, response_write sends a part of the body. From then on each operation on the store is a transaction of its own,
// and the limits of a run are limits of a second.

// AnswerStream sends an answer in parts, to a client. The goroutine that runs the guest calls it.
type AnswerStream interface {
	// Begin sends the head of an answer; the body is not used. If not all of it could be sent at once, waits is true,
	// and Flush must be called before Write. With an error the client is gone.
	Begin(r *abi.Response) (waits bool, err error)
	// Write takes at most StreamPart bytes of the body, which it copies. waits and the error are as those of Begin.
	Write(part []byte) (waits bool, err error)
	// Flush waits until the rest is sent. With an error the client is gone.
	Flush() error
	// Gone returns a channel that is closed when the client hangs up while no part is written, as far as the system reports
	// that. It is called after Begin.
	Gone() <-chan struct{}
}

// StreamPart is the most bytes that an AnswerStream takes at once.
const StreamPart = 64 << 10

// NotCommitted ends a run whose answer could not begin, because its transaction was not committed. The Update of the
// transaction decides what follows.
type NotCommitted struct{ Cause error }

func (e *NotCommitted) Error() string { return fmt.Sprintf("the answer did not begin: %v", e.Cause) }

// Unwrap gives the cause.
func (e *NotCommitted) Unwrap() error { return e.Cause }

// answerState is the state of a run's streamed answer.
type answerState struct {
	streaming  bool // response_begin has sent the head
	collecting bool // response_begin was called, and the parts become the body of an ordinary answer
	gone       bool // the client takes no more
	broken     bool // the handler has answered an error since
	second     time.Time
}

// Streaming reports whether the answer has begun: its transaction is committed and its head sent. Then the run cannot be
// repeated, and its answer cannot be replaced.
func (c *Call) Streaming() bool { return c.streaming }

// BrokenOff returns the error with which a streamed answer is broken off; nil: it is not.
func (c *Call) BrokenOff() error {
	if !c.broken {
		return nil
	}
	return &fault.Fault{Code: fault.Code(c.Response.Code), Detail: c.Response.Detail}
}

// breakOff is response_error of an answer that has begun: its status cannot be changed.
func (c *Call) breakOff(status int32, code, message []byte) {
	r := &c.Response
	r.Code, r.Detail, c.broken = string(code), string(message), true
	if r.Code == "" {
		r.Code = string(fault.OfStatus(int(status)))
	}
}

// Gone reports whether the client took no more of a streamed answer when the handler wrote the last part, or has hung up
// while the handler waited.
func (c *Call) Gone() bool { return c.gone }

// clientGone returns a channel that is closed when the client of a streamed answer hangs up. It is nil if the run has no
// such client, or knows already that it is gone.
func (c *Call) clientGone() <-chan struct{} {
	if !c.streaming || c.gone {
		return nil
	}
	return c.Stream.Gone()
}

// cancelPending cancels the operations that are under way, because the client is gone. The handler may start others in the
// short time that it has to end.
func (c *Call) cancelPending() {
	c.gone = true
	if ops := c.pending; ops != nil {
		ops.cancel()
		ops.ctx, ops.cancel = context.WithCancel(c.Context)
	}
}

// errClientGone is the error of an operation that was canceled because the client is gone.
var errClientGone = fault.New(fault.Unavailable, "the client of the answer has hung up")

func responseBegin(c *Call, g guest) int32 { return int32(c.beginAnswer(g.number(0))) }

// beginAnswer begins an answer, whose headers are there.
func (c *Call) beginAnswer(status int32) abi.Errno {
	r := &c.Response
	if r.Status != 0 || status < 200 || status > 599 || bodiless(status) {
		return abi.Invalid
	}
	if !hasHeader(r.Headers, []byte("content-type")) {
		r.AddHeader([]byte("content-type"), []byte("application/octet-stream"))
	}
	if c.Stream == nil || c.Player != nil {
		r.Status, r.Body, c.collecting = int(status), r.Body[:0], true
		return 0
	}
	c.takeStreamSlot()
	ended := c.commit(status)
	r.Status, c.streaming, c.second = int(status), true, c.now()
	waits, err := c.Stream.Begin(r)
	if ended != nil { // what was committed is not refused: the client sees the head of an answer that is cut off
		c.unwind(ended)
	}
	c.deliver(waits, err)
	return 0
}

// deliver waits until what an AnswerStream has taken is sent.
func (c *Call) deliver(waits bool, err error) {
	if err == nil && waits {
		c.pause(func() { err = c.Stream.Flush() })
	}
	c.gone = err != nil
}

// commit ends the transaction of the request, as the end of an ordinary answer of this status does. The error is why
// the run must end although the transaction is committed.
func (c *Call) commit(status int32) (ended error) {
	if c.Tx == nil {
		return nil
	}
	if c.outdated {
		c.unwind(&NotCommitted{entity.ErrOutdated})
	}
	var err error
	switch {
	case status >= 400 && !c.keepsWrites:
		c.Tx.Drop()
		c.setCookie = "" // of a session that is not opened
	case c.Tx.Writes():
		ended = c.waitFor(func() { err = c.Tx.Commit() })
	default:
		err = c.Tx.Commit()
	}
	c.Tx, c.rowsReady = nil, false
	if err != nil {
		c.unwind(&NotCommitted{err})
	}
	return ended
}

func responseWrite(c *Call, g guest) int32 {
	body, ok := g.bytes(0)
	r := &c.Response
	switch {
	case !ok || !c.streaming && !c.collecting:
		return int32(abi.Invalid)
	case c.collecting && len(r.Body)+len(body) > c.limits.ResponseBytes:
		if c.Player != nil { // the parts were sent, perhaps
			return 0
		}
		return int32(abi.TooLarge)
	case c.collecting:
		c.moved += len(body)
		r.Body = append(r.Body, body...)
		return 0
	}
	c.hostCalls-- // the client's speed and the CPU time limit these
	return int32(c.sendParts(body))
}

// sendParts sends a part of an answer that has begun.
func (c *Call) sendParts(body []byte) abi.Errno {
	for len(body) > 0 && !c.gone {
		part := body[:min(len(body), StreamPart)]
		body = body[len(part):]
		c.deliver(c.Stream.Write(part))
	}
	if c.gone {
		return abi.Unavailable
	}
	return 0
}

// perform runs an operation that does not wait: in the request's transaction, or in one of its own when the answer has
// begun.
func (c *Call) perform(op operation, name string, args []byte, out *entity.Result) error {
	if !c.streaming || !op.countsAsStoreOp {
		return op.run(c, name, args, out)
	}
	defer func() { c.Tx, c.rowsReady = nil, false }()
	_, err := c.Host.Store.Update(c.Context, func(tx *store.Tx) error {
		c.Tx, c.rowsReady = tx, false
		err := op.run(c, name, args, out)
		if err == nil && tx.Writes() {
			c.pause(func() { err = tx.Commit() })
		}
		return err
	})
	if c.outdated {
		c.unwind(&Trap{"the schema of the rows has changed since the answer began"})
	}
	if err == store.ErrConflict {
		return fault.New(fault.WriteConflict, "other requests have changed the same rows")
	}
	return err
}

// refill gives a streamed answer the budgets of another second.
func (c *Call) refill() {
	now := c.now()
	if d := now.Sub(c.second); 0 <= d && d < time.Second {
		return
	}
	c.second = now
	c.hostCalls, c.moved, c.storeOps, c.fetches = 0, 0, 0, 0
	c.refused = false
	c.log = logBudget{dropped: c.log.dropped}
	if c.pending != nil {
		c.pending.bytesLeft.Store(int64(c.limits.MovedBytes))
	}
}
