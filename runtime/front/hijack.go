package front

import (
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"time"
)

// ServeHTTP lets a handler of net/http answer the request: from its head on, as the client has sent it, apart from the case
// of header names. Upgrade is possible. It returns when the answer or the upgraded connection has ended, and the client's
// connection is closed then. Shutdown does not wait for it. It is called before anything else is read or answered.
func (x *Exchange) ServeHTTP(h http.Handler) {
	c := x.conn
	x.status, x.hijacked = http.StatusOK, true // known to the handler alone
	c.read, c.write = deadline{}, deadline{}
	_ = c.Conn.SetDeadline(time.Time{}) // fails if the connection is closed, as reads then do
	taken := &hijacked{c: c, head: x.headers.raw, done: make(chan struct{})}
	c.hijacked.Store(true)
	if c.gate.closing() { // perhaps before Close could see it
		_ = c.Conn.Close()
	}
	server := http.Server{Handler: h, ErrorLog: log.New(io.Discard, "", 0)}
	server.SetKeepAlivesEnabled(false)
	_ = server.Serve(&oneConn{taken}) // the error is that of the second Accept
}

// oneConn is a listener for one connection.
type oneConn struct{ conn *hijacked }

// Accept returns the connection, and later net.ErrClosed when that has been closed.
func (l *oneConn) Accept() (net.Conn, error) {
	if c := l.conn; !c.accepted {
		c.accepted = true
		return c, nil
	}
	<-l.conn.done
	return nil, net.ErrClosed
}

func (l *oneConn) Close() error   { return nil }
func (l *oneConn) Addr() net.Addr { return l.conn.LocalAddr() }

// hijacked is a connection for net/http. It begins with a head that has been read.
type hijacked struct {
	c        *conn
	head     []byte
	accepted bool
	once     sync.Once
	done     chan struct{} // closed by Close
}

func (h *hijacked) Read(p []byte) (int, error) {
	if len(h.head) > 0 {
		n := copy(p, h.head)
		h.head = h.head[n:]
		return n, nil
	}
	if c := h.c; c.r < c.w {
		n := copy(p, c.in[c.r:c.w])
		c.r += n
		return n, nil
	}
	return h.c.receive(p)
}

func (h *hijacked) Write(p []byte) (int, error) { return h.c.send(p) }

// Close ends reads. The server closes the connection itself.
func (h *hijacked) Close() error {
	h.once.Do(func() {
		_ = h.c.Conn.SetReadDeadline(time.Unix(1, 0)) // fails if the connection is closed
		close(h.done)
	})
	return nil
}

func (h *hijacked) LocalAddr() net.Addr                { return h.c.LocalAddr() }
func (h *hijacked) RemoteAddr() net.Addr               { return h.c.RemoteAddr() }
func (h *hijacked) SetDeadline(t time.Time) error      { return h.c.Conn.SetDeadline(t) }
func (h *hijacked) SetReadDeadline(t time.Time) error  { return h.c.Conn.SetReadDeadline(t) }
func (h *hijacked) SetWriteDeadline(t time.Time) error { return h.c.Conn.SetWriteDeadline(t) }
