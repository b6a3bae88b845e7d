package admin

import (
	"log/slog"
	"net"
	"sync"
	"time"

	"runner.example/internal/caller"
)

// maxConnsPerAddress limits the connections that one address, or the /64 of an IPv6 address, has
// open: a quarter of all.
const maxConnsPerAddress = maxRemoteConns / 4

// addressLimit is a listener that closes connections of an address that has maxConnsPerAddress
// open.
type addressLimit struct {
	net.Listener
	logger *slog.Logger

	mu     sync.Mutex
	open   map[string]int // by the name of the address
	logged time.Time      // when a closed connection was logged last
}

func newAddressLimit(ln net.Listener, logger *slog.Logger) *addressLimit {
	return &addressLimit{Listener: ln, logger: logger, open: map[string]int{}}
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
	address := addressOf(conn.RemoteAddr().String())
	name := string(caller.AppendAddress(nil, address))
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open[name] >= maxConnsPerAddress {
		if now := time.Now(); now.Sub(l.logged) >= time.Second { // clients can cause many
			l.logged = now
			l.logger.Warn("admin connection closed: its address has too many open", "address", address.String())
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
