package connlimit

import (
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/net/netutil"

	"runner.example/internal/caller"
	"runner.example/internal/clock"
)

// Listen returns a listener of TCP that accepts at most so many connections at once; others wait. One
// address, or the /64 of an IPv6 address, has a quarter of them at most: others that it opens are closed.
// Logger is told of that, with the name of the listener.
func Listen(ln net.Listener, conns int, name string, logger *slog.Logger) net.Listener {
	return netutil.LimitListener(&addressLimit{Listener: ln, most: conns / 4, name: name, logger: logger,
		open: map[string]int{}}, conns)
}

// addressLimit is a listener that closes connections of an address that has too many open.
type addressLimit struct {
	net.Listener
	most   int
	name   string
	logger *slog.Logger

	mu     sync.Mutex
	open   map[string]int // by the name of the address
	logged time.Time      // when a closed connection was logged last
}

// Accept implements net.Listener.
func (l *addressLimit) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if counted := l.count(conn); counted != nil {
			return counted, nil
		}
		_ = conn.Close() // the client sees that
	}
}

// count counts a connection until it is closed; nil: its address has too many.
func (l *addressLimit) count(conn net.Conn) net.Conn {
	address := netip.MustParseAddrPort(conn.RemoteAddr().String()).Addr().Unmap()
	name := string(caller.AppendAddress(nil, address))
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open[name] >= l.most {
		if now := clock.Mark(); now.Sub(l.logged) >= time.Second { // clients can cause many
			l.logged = now
			l.logger.Warn("connection closed: its address has too many open", "listener", l.name, "address", address.String())
		}
		return nil
	}
	l.open[name]++
	return &countedConn{conn, sync.OnceFunc(func() { l.release(name) })}
}

func (l *addressLimit) release(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open[name]--; l.open[name] == 0 {
		delete(l.open, name)
	}
}

// countedConn is a connection that no longer counts when it is closed.
type countedConn struct {
	net.Conn
	release func()
}

// Close implements net.Conn. The client sees the end of the connection after it was released.
func (c *countedConn) Close() error {
	c.release()
	return c.Conn.Close()
}
