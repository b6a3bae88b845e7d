package front

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"runtime/debug"
	"sync/atomic"
	"time"

	"runner.example/internal/clock"
	"runner.example/internal/fault"
	"runner.example/internal/system/socket"
)

// restatement is what fasthttp reads in place of each request.
const restatement = "GET / HTTP/1.1\r\nHost: x\r\n\r\n"

const (
	// inputBytes is the size of an idle connection's read buffer. A larger head gets a
	// larger buffer while it is served.
	inputBytes = 4 << 10
	// lingerTime limits the wait for a client that still sends bytes which are discarded:
	// closing at once would reset the connection, and the client might not read the answer.
	lingerTime = time.Second
	// idleGrace is how long a connection is idle at least before a shutdown closes it: a client that has just
	// got an answer may send its next request at that moment, and a POST that meets the end is lost.
	idleGrace = 500 * time.Millisecond
	// lastRead is how long such a connection is then read: for what has arrived already.
	lastRead = 5 * time.Millisecond
)

// conn reads the client's bytes and gives fasthttp the restatement. Only the connection's
// goroutine reads; Close may be called by any goroutine, and twice.
//
//	in:  | served │ not yet parsed │ free │
//	     0        r                w      cap
type conn struct {
	timed
	gate    *gate
	peer    netip.Addr
	trusted bool
	// tls encrypts the bytes of timed; nil means that the connection is not encrypted.
	tls *tls.Conn

	in   []byte
	r, w int
	scan headScan

	// exchange is set from the end of a head until fasthttp calls serve.
	exchange *Exchange
	// begun: fasthttp has had the first byte of the restatement, and gets the rest when the
	// head is complete.
	begun bool
	// answer is a large answer to write.
	answer largeAnswer
	// discards: the answer was streamed, and what fasthttp writes in its place is discarded.
	discards bool

	linger atomic.Bool // Close must expect more from the client
	closed atomic.Bool
	// hijacked means that net/http uses the connection.
	hijacked atomic.Bool
}

// Read gives fasthttp the first byte of the restatement with the client's first byte, so
// that it no longer counts the connection as idle. The rest follows when the head is
// complete, or refused. Errors between requests are always io.EOF: fasthttp would send
// answers of its own for others.
func (c *conn) Read(p []byte) (int, error) {
	if !c.begun {
		c.discards = false
		if c.wait() != nil {
			return 0, io.EOF
		}
		c.begun = true
		p[0] = restatement[0]
		return 1, nil
	}
	if len(p) < len(restatement)-1 {
		panic("BUG: front: fasthttp reads in parts")
	}
	c.begun = false
	c.exchange = c.readExchange()
	return copy(p, restatement[1:]), nil
}

// wait returns when there are bytes to read.
func (c *conn) wait() error {
	if c.r < c.w {
		return nil
	}
	c.r, c.w = 0, 0
	if len(c.in) > inputBytes {
		c.in = nil
	}
	idle, err := c.waitIdle()
	if ended := c.endWait(); err == nil || !idle || !ended {
		return err
	}
	// The server shuts down. What has arrived is a request whose client does not know that.
	if err := c.SetReadDeadline(clock.In(lastRead)); err != nil {
		return err
	}
	return c.fill()
}

// waitIdle makes the connection encrypted, and returns when there are bytes to read. It reports whether the
// handshake has succeeded.
func (c *conn) waitIdle() (idle bool, err error) {
	if c.tls != nil && !c.tls.ConnectionState().HandshakeComplete {
		if err := c.handshake(); err != nil {
			c.gate.log.Debug("TLS handshake failed", slog.String("address", c.peer.String()), slog.Any("cause", err))
			return false, err
		}
	}
	if err := c.mayIdle(c.gate.srv.opt.IdleTimeout); err != nil {
		return true, err
	}
	return true, c.fill()
}

// mayIdle gives the connection until limit, or less when the gate closes, to the first byte of a request or to the
// end of its handshake.
func (c *conn) mayIdle(limit time.Duration) error {
	err := c.beginIdle(limit)
	if c.gate.closing() { // perhaps before beginIdle
		c.endIdle(c.gate.idleGrace())
	}
	return err
}

// handshake makes the connection encrypted. Its time limit is that of reading a request.
func (c *conn) handshake() error {
	limit := c.gate.srv.opt.ReadTimeout
	if err := cmp.Or(c.mayIdle(limit), c.SetWriteDeadline(clock.In(limit))); err != nil {
		return err
	}
	return c.tls.Handshake()
}

// receive reads bytes that the client has sent.
func (c *conn) receive(p []byte) (int, error) {
	if c.tls != nil {
		return c.tls.Read(p)
	}
	return c.timed.Read(p)
}

// direct returns the socket, if bytes are written to it as they are; nil: they are encrypted, or the system has no such
// writes.
func (c *conn) direct() *socket.Writer {
	if c.tls != nil {
		return nil
	}
	return socket.Direct(c.Conn)
}

// send writes bytes for the client.
func (c *conn) send(p []byte) (int, error) {
	if c.tls != nil {
		return c.tls.Write(p)
	}
	return c.timed.Write(p)
}

// readExchange reads a head to its end into an exchange, which has a refusal if the head
// cannot be served.
func (c *conn) readExchange() *Exchange {
	x := c.gate.srv.pool.Get().(*Exchange)
	now := clock.Mark()
	x.begin(c, now)
	_ = c.SetReadDeadline(now.Add(c.gate.srv.opt.ReadTimeout)) // fails if the connection is closed, as reads then do
	n, refusal := c.readHead()
	if refusal != nil {
		x.refuseHead(c.in[c.r:c.w], refusal)
		return x
	}
	x.takeHead(c.in[c.r+c.scan.start : c.r+n])
	c.r += n
	return x
}

// readHead returns the length of the head that begins at r.
func (c *conn) readHead() (n int, refusal *fault.Fault) {
	// fasthttp does not recover from panics.
	defer func() {
		if cause := recover(); cause != nil {
			refusal = fault.Wrap(fmt.Errorf("panic: %v\n%s", cause, debug.Stack()), fault.Internal,
				"the request could not be read")
		}
	}()
	c.scan = headScan{}
	for {
		n, refusal = c.scan.next(c.in[c.r:c.w], &c.gate.srv.opt)
		if n > 0 || refusal != nil {
			return n, refusal
		}
		if err := c.fill(); err != nil {
			return 0, readFault(err, "head")
		}
	}
}

// fill reads at least one byte after w. The bytes between r and w may move.
func (c *conn) fill() error {
	switch {
	case c.in == nil:
		c.in = make([]byte, inputBytes)
	case c.r == c.w:
		c.r, c.w = 0, 0
	case c.w == len(c.in) && c.r > 0:
		c.w = copy(c.in, c.in[c.r:c.w])
		c.r = 0
	case c.w == len(c.in):
		grown := make([]byte, 2*len(c.in))
		copy(grown, c.in)
		c.in = grown
	}
	for range 8 {
		n, err := c.receive(c.in[c.w:])
		c.w += n
		if n > 0 {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return io.ErrNoProgress
}

// readFault returns the client's fault for a failed read.
func readFault(err error, part string) *fault.Fault {
	if ne, ok := errors.AsType[net.Error](err); ok && ne.Timeout() {
		return fault.New(fault.RequestTimeout, "the %s of the request took too long to arrive", part)
	}
	return fault.New(fault.InvalidRequest, "the connection ended before the %s of the request did", part)
}

// finish ends the exchange: the body was read, or can be skipped, or the connection is
// closed. fasthttp writes the answer then.
func (c *conn) finish(x *Exchange) {
	if x.hijacked {
		c.discards = true
		c.linger.Store(true)
		x.ctx.Response.SetConnectionClose()
		return
	}
	_ = c.SetWriteDeadline(clock.In(x.srv.opt.WriteTimeout)) // fails if the connection is closed, as writes then do
	if x.stream != nil {
		c.discards = true
		if !x.stream.keepAlive {
			c.linger.Store(true)
			x.ctx.Response.SetConnectionClose()
		}
		return
	}
	whole := x.framing.known && c.skipBody(x)
	if whole && x.framing.keepAlive && !x.srv.drains.Load() {
		if x.framing.minor == 0 {
			x.ctx.Response.Header.Set("Connection", "keep-alive")
		}
		return
	}
	// A client that asked to close sends no more. Another client may have sent its next
	// request already.
	if !whole || c.r < c.w || x.framing.keepAlive {
		c.linger.Store(true)
	}
	x.ctx.Response.SetConnectionClose()
}

// skipBody skips a body that has arrived completely, and waits for nothing. It reports
// whether the next byte of the connection begins another request.
func (c *conn) skipBody(x *Exchange) bool {
	switch {
	case x.body.done:
		return true
	case x.body.begun || x.framing.chunked || x.framing.length > int64(c.w-c.r):
		return false
	}
	c.r += int(x.framing.length)
	return true
}

// Close closes the connection and returns its slot, once.
func (c *conn) Close() error {
	if !c.closed.CompareAndSwap(false, true) {
		return nil
	}
	defer c.gate.release(c)
	if c.tls != nil {
		_ = c.tls.CloseWrite() // says that nothing was cut off; fails before the handshake
	}
	if c.linger.Load() {
		c.drain()
	}
	return c.Conn.Close()
}

// drain closes the sending side and reads until the client closes, or for lingerTime.
func (c *conn) drain() {
	half, ok := c.Conn.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil || c.Conn.SetReadDeadline(clock.In(lingerTime)) != nil {
		return
	}
	_, _ = io.Copy(io.Discard, struct{ io.Reader }{c.Conn})
}
