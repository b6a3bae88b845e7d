package front

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"runner.example/internal/clock"
	"runner.example/internal/system/socket"
)

// Listen opens the address of the options. The error of an address in use names it and both
// ways to change it.
func Listen(opt Options) (net.Listener, error) {
	opt = opt.filled()
	ln, err := net.Listen("tcp", opt.Listen)
	switch {
	case err == nil:
		return ln, nil
	case socket.InUse(err):
		return nil, fmt.Errorf(
			"listen on %s: the port is in use; stop the other server or choose another port with --listen or [front] listen: %w",
			opt.Listen, socket.Cause(err))
	case socket.NotPermitted(err):
		return nil, fmt.Errorf(
			"listen on %s: the port is reserved; choose one above 1023 with --listen or [front] listen: %w",
			opt.Listen, socket.Cause(err))
	}
	return nil, fmt.Errorf("listen on %s, set by --listen or [front] listen: %w", opt.Listen, err)
}

// gate is the listener that fasthttp gets: it accepts only if a slot is free, continues
// when file descriptors run out, and returns wrapped connections.
type gate struct {
	net.Listener
	srv   *Server
	log   *slog.Logger
	slots chan struct{}
	done  chan struct{}
	close func() error
	// grace is how long a connection is idle at least before Close ends it.
	grace atomic.Int64

	mu    sync.Mutex
	conns map[*conn]struct{}
	perIP map[netip.Addr]int
	// empty is closed when conns is empty, and nothing is accepted any more; nil: nobody waits.
	empty chan struct{}

	lastWarning atomic.Int64 // unix seconds
}

func newGate(ln net.Listener, srv *Server) *gate {
	g := &gate{
		Listener: ln,
		srv:      srv,
		log:      srv.opt.Logger,
		slots:    make(chan struct{}, srv.opt.MaxConns),
		done:     make(chan struct{}),
		conns:    make(map[*conn]struct{}),
		perIP:    make(map[netip.Addr]int),
	}
	g.grace.Store(int64(idleGrace))
	g.close = sync.OnceValue(func() error {
		close(g.done)
		return ln.Close()
	})
	return g
}

// Accept returns the next connection to serve, and net.ErrClosed after Close: with any
// other error fasthttp would stop the server.
func (g *gate) Accept() (net.Conn, error) {
	select {
	case g.slots <- struct{}{}:
	case <-g.done:
		return nil, net.ErrClosed
	}
	pause := 5 * time.Millisecond
	for {
		nc, err := g.Listener.Accept()
		if err == nil {
			if c := g.admit(nc); c != nil {
				return c, nil
			}
			continue
		}
		if errors.Is(err, net.ErrClosed) {
			return nil, net.ErrClosed
		}
		g.warn("connection not accepted", slog.Any("cause", err))
		select {
		case <-g.done:
			return nil, net.ErrClosed
		case <-time.After(pause):
		}
		pause = min(2*pause, time.Second)
	}
}

// fast returns the connection that is read from and written to. The race detector must see the bytes.
func fast(nc net.Conn) net.Conn {
	if raceDetector {
		return nc
	}
	return socket.Fast(nc)
}

// admit counts the connection, or closes it if its address has too many.
func (g *gate) admit(nc net.Conn) *conn {
	c := &conn{timed: timed{Conn: fast(nc)}, gate: g, peer: peerOf(nc)}
	live := g.srv.live.Load()
	c.trusted = trusted(live.proxies, c.peer)
	if live.tls != nil {
		c.tls = tls.Server(&c.timed, live.tls)
	}
	bucket := addressBucket(c.peer)
	g.mu.Lock()
	over := !c.trusted && g.perIP[bucket] >= g.srv.opt.MaxConnsPerIP
	if !over {
		g.perIP[bucket]++
		g.conns[c] = struct{}{}
	}
	g.mu.Unlock()
	if over {
		_ = nc.Close()
		g.srv.metrics.overload.With("connections").Inc()
		g.warn("connection closed: its address has max_connections_per_ip open", slog.String("address", c.peer.String()))
		return nil
	}
	return c
}

// release returns what admit and Accept took.
func (g *gate) release(c *conn) {
	bucket := addressBucket(c.peer)
	g.mu.Lock()
	delete(g.conns, c)
	if g.perIP[bucket]--; g.perIP[bucket] == 0 {
		delete(g.perIP, bucket)
	}
	if g.empty != nil && len(g.conns) == 0 {
		close(g.empty)
		g.empty = nil
	}
	g.mu.Unlock()
	<-g.slots
}

// Close makes Accept return and ends the connections that wait for a request, or that net/http
// uses.
func (g *gate) Close() error {
	err := g.close()
	g.mu.Lock()
	defer g.mu.Unlock()
	for c := range g.conns {
		c.endIdle(g.idleGrace())
		if c.hijacked.Load() {
			_ = c.Conn.Close()
		}
	}
	return err
}

func (g *gate) idleGrace() time.Duration { return time.Duration(g.grace.Load()) }

// wait waits until all connections are closed, or until ctx ends. It is called once, after Close.
func (g *gate) wait(ctx context.Context) error {
	g.mu.Lock()
	empty := make(chan struct{})
	if len(g.conns) == 0 {
		close(empty)
	} else {
		g.empty = empty
	}
	g.mu.Unlock()
	select {
	case <-empty:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// abort closes all connections; their workers then release them.
func (g *gate) abort() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for c := range g.conns {
		_ = c.Conn.Close()
	}
}

// warn logs at most one line a second, because these events come in floods.
func (g *gate) warn(text string, attr slog.Attr) {
	now := clock.System().Unix()
	if last := g.lastWarning.Load(); last != now && g.lastWarning.CompareAndSwap(last, now) {
		g.log.Warn(text, attr)
	}
}

// open returns the number of open connections.
func (g *gate) open() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.conns)
}

func (g *gate) closing() bool {
	select {
	case <-g.done:
		return true
	default:
		return false
	}
}
