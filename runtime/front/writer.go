package front

import (
	"bufio"
	"errors"
	"io"
	"log/slog"
	"net/netip"

	"runner.example/internal/clock"
	"runner.example/internal/system/memory"
	"runner.example/internal/system/socket"
)

// freeBytes is how much of an unsent answer is written before its memory is freed.
const freeBytes = 256 << 10

var errNoMemory = errors.New("no memory for an answer that waits for its reader")

// largeAnswer is an answer whose body is written by the connection, not by fasthttp.
type largeAnswer struct {
	body []byte
	// memory is outside the heap and contains body; nil: body is in the heap.
	memory []byte
	// start is the first byte of memory that is not freed, done the end of what was
	// written.
	start, done int
	head        []byte
	// headOver: the next write ends the head. begun: writeAnswer was called.
	headOver, begun bool
	// content has the bytes of the answer in place of body, and memory is their buffer; nil: they are in body.
	content *contentBody
	// address is what the bytes count for; the zero Addr: none.
	address netip.Addr

	backlog *backlog
	unsent  *unsent // nil: the answer does not wait for its reader
}

// answerBody gives fasthttp the connection as the body of its answer.
type answerBody conn

// Read is never called, because of SupportsBodyWriteTo.
func (*answerBody) Read([]byte) (int, error) { panic("BUG: front: body of an answer read") }

// SupportsBodyWriteTo makes fasthttp call WriteTo.
func (*answerBody) SupportsBodyWriteTo() bool { return true }

// WriteTo writes the body after the head. w may hold the end of the head.
func (b *answerBody) WriteTo(w io.Writer) (int64, error) {
	size := int64(len(b.answer.body))
	if b.answer.content != nil {
		size = b.answer.content.length
	}
	b.answer.headOver = true
	if err := w.(*bufio.Writer).Flush(); err != nil || b.answer.begun {
		return size, err
	}
	return size, (*conn)(b).writeAnswer()
}

// Close ends the body, written or not.
func (b *answerBody) Close() error {
	b.answer.free(len(b.answer.memory))
	if b.answer.content != nil {
		_ = b.answer.content.source.Close() // it was only read
	}
	b.answer = largeAnswer{}
	return nil
}

// sendBody makes body that of the answer. The connection owns it from then on.
func (c *conn) sendBody(x *Exchange, body []byte) {
	x.ctx.Response.SetBodyStream((*answerBody)(c), len(body)) // which closes the previous one
	if x.framing.headOnly {
		return
	}
	c.answer = largeAnswer{body: body, address: c.unsentAddress(x), backlog: x.srv.backlog}
	if len(x.memory) > 0 && &body[0] == &x.memory[0] {
		c.answer.memory, x.memory = x.memory, nil
	}
}

// unsentAddress returns what the unsent bytes of an answer count for.
func (c *conn) unsentAddress(x *Exchange) netip.Addr {
	address := c.peer
	if c.trusted {
		if address = x.Address(); trusted(x.srv.live.Load().proxies, address) {
			address = netip.Addr{}
		}
	}
	return addressBucket(address)
}

// Write writes fasthttp's bytes, and after a head the body of its answer.
func (c *conn) Write(p []byte) (int, error) {
	a := &c.answer
	switch {
	case c.discards:
		return len(p), nil
	case a.body == nil && a.content == nil:
		return c.send(p)
	}
	switch {
	case !a.headOver:
		a.head = append(a.head, p...)
		return len(p), nil
	case len(a.head) > 0:
		a.head = append(a.head, p...)
	default:
		a.head = p
	}
	return len(p), c.writeAnswer()
}

// writeAnswer writes head and body. What the kernel does not accept at once waits in
// memory that the backlog limits.
func (c *conn) writeAnswer() error {
	a := &c.answer
	a.begun = true
	direct := c.direct()
	if direct != nil && a.content == nil {
		err := a.write(direct, false)
		if len(a.head)+len(a.body) == 0 || err != nil && !c.write.early(err) {
			return err
		}
	}
	if err := c.applyWriteDeadline(); err != nil {
		return err
	}
	if direct != nil && a.content != nil && a.content.file != nil {
		return c.sendFile(direct)
	}
	if err := a.leaveHeap(); err != nil {
		c.warnCut()
		c.reset()
		return err
	}
	a.unsent = &unsent{address: a.address, since: clock.Mark(), acked: func() uint64 { return socket.Acked(c.Conn) }, reset: c.reset}
	a.unsent.begun = a.unsent.acked()
	a.backlog.hold(a.unsent, int64(len(a.memory)-a.start))
	err := c.writeRest(direct)
	a.free(len(a.memory))
	if a.backlog.drop(a.unsent) {
		c.warnCut()
	}
	if err != nil {
		c.reset() // otherwise the kernel would keep for minutes what it still has
	}
	return err
}

func (c *conn) warnCut() {
	c.gate.srv.metrics.overload.With("answers").Inc()
	c.gate.warn("answer cut off, answer_memory is full", slog.String("address", c.answer.address.String()))
}

func (c *conn) writeRest(direct *socket.Writer) error {
	a := &c.answer
	switch {
	case a.content != nil:
		return c.copyContent()
	case direct != nil:
		return a.write(direct, true)
	}
	if _, err := c.send(a.head); err != nil {
		return err
	}
	for len(a.body) > 0 {
		n, err := c.send(a.body[:min(len(a.body), freeBytes)])
		if err != nil {
			return err
		}
		a.body, a.done = a.body[n:], a.done+n
		a.free(a.done)
	}
	return nil
}

// write writes the rest of the answer: all of it, or what the kernel accepts without
// waiting. The memory of what is written is freed.
func (a *largeAnswer) write(direct *socket.Writer, all bool) error {
	for len(a.head)+len(a.body) > 0 {
		n, err := direct.Write(a.head, a.body, all)
		if err != nil || n == 0 {
			return err
		}
		head := min(n, len(a.head))
		a.head, a.body, a.done = a.head[head:], a.body[n-head:], a.done+n-head
		if a.done-a.start >= freeBytes {
			a.free(a.done)
		}
	}
	return nil
}

// leaveHeap moves the body to memory outside the heap.
func (a *largeAnswer) leaveHeap() error {
	if a.memory != nil {
		return nil
	}
	memory := a.backlog.allocate(len(a.body))
	if memory == nil {
		return errNoMemory
	}
	a.body = memory[:copy(memory, a.body)]
	a.memory, a.start, a.done = memory, 0, 0
	return nil
}

// free frees the pages of memory before end.
func (a *largeAnswer) free(end int) {
	end = min(end, len(a.memory)) / memory.PageBytes * memory.PageBytes
	if end <= a.start {
		return
	}
	n := end - a.start
	memory.Free(a.memory[a.start:end])
	a.start = end
	if a.unsent != nil {
		a.backlog.free(a.unsent, int64(n))
	} else {
		a.backlog.giveBack(int64(n))
	}
}

// reset closes the connection and discards what the kernel holds for the client.
func (c *conn) reset() {
	if tcp, ok := c.Conn.(interface{ SetLinger(sec int) error }); ok {
		_ = tcp.SetLinger(0)
	}
	_ = c.Conn.Close()
}
