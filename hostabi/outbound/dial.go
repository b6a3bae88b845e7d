package outbound

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"time"

	"runner.example/internal/netaddr"
)

// reachable reports whether connections to an address are allowed.
func reachable(a netip.Addr, allowPrivate bool) bool {
	switch netaddr.ClassOf(a) {
	case netaddr.Public:
		return true
	case netaddr.Private:
		return allowPrivate
	}
	return false
}

const (
	maxDialled    = 6 // addresses of a name
	dialTime      = 5 * time.Second
	leastDialTime = time.Second
	handshakeTime = 5 * time.Second
	retryEvery    = 10 * time.Millisecond
)

var errUnreachable = errors.New("the address is not one that handlers may reach")

// fetchKey is the key of the fetch's context in the context of its dial. The transport would
// continue the dial for other fetches.
type fetchKey struct{}

// withFetch returns a context that also ends with the fetch.
func withFetch(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	fetch, ok := ctx.Value(fetchKey{}).(context.Context)
	if !ok {
		return ctx, cancel
	}
	stop := context.AfterFunc(fetch, cancel)
	return ctx, func() {
		stop()
		cancel()
	}
}

// dial resolves a name, and connects to one of its allowed addresses.
func (s *side) dial(ctx context.Context, network, address string) (net.Conn, error) {
	ctx, cancel := withFetch(ctx)
	defer cancel()
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	if err := s.client.enter(ctx); err != nil {
		return nil, err
	}
	socket, err := s.connect(ctx, network, host, port)
	if err != nil {
		<-s.client.open
		return nil, err
	}
	return &conn{Conn: socket, leave: sync.OnceFunc(func() { <-s.client.open })}, nil
}

// dialTLS is dial with a TLS handshake.
func (s *side) dialTLS(ctx context.Context, network, address string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	plain, err := s.dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	ctx, cancel := withFetch(ctx)
	defer cancel()
	ctx, end := context.WithTimeout(ctx, handshakeTime)
	defer end()
	secure := tls.Client(plain, &tls.Config{
		MinVersion: tls.VersionTLS12, RootCAs: s.client.options.Roots, ServerName: host, NextProtos: []string{"http/1.1"},
	})
	if err := secure.HandshakeContext(ctx); err != nil {
		_ = plain.Close()
		return nil, &handshakeError{err}
	}
	return secure, nil
}

// enter waits until another connection may be opened, and closes idle ones for it.
func (c *Client) enter(ctx context.Context) error {
	select {
	case c.open <- struct{}{}:
		return nil
	default:
	}
	again := time.NewTicker(retryEvery)
	defer again.Stop()
	for {
		c.Close()
		select {
		case c.open <- struct{}{}:
			return nil
		case <-again.C: // some may be idle now
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// conn is a connection that is counted until Close.
type conn struct {
	net.Conn
	leave func()
}

// Close closes the connection, so that another one may be opened.
func (c *conn) Close() error {
	defer c.leave()
	return c.Conn.Close()
}

func (s *side) connect(ctx context.Context, network, host, port string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	addresses, err := s.addresses(ctx, host)
	if err != nil {
		return nil, err
	}
	var all []error
	for i, a := range addresses {
		conn, err := s.dialOne(ctx, network, net.JoinHostPort(a.String(), port), len(addresses)-i)
		if err == nil {
			return conn, nil
		}
		all = append(all, err)
	}
	return nil, errors.Join(all...)
}

// addresses are those of a host that may be reached, as many as are tried.
func (s *side) addresses(ctx context.Context, host string) ([]netip.Addr, error) {
	found, err := []netip.Addr(nil), error(nil)
	if literal, wrong := netip.ParseAddr(host); wrong == nil {
		found = []netip.Addr{literal}
	} else if found, err = s.client.options.Resolve(ctx, host); err != nil {
		return nil, err
	}
	var may []netip.Addr
	for _, a := range found {
		if reachable(a, s.allowPrivate) {
			may = append(may, a.Unmap())
		}
	}
	if len(may) == 0 {
		return nil, fmt.Errorf("dial %s at %v: %w", host, found, errUnreachable)
	}
	return may[:min(len(may), maxDialled)], nil
}

// dialOne dials an address with its share of the remaining time.
func (s *side) dialOne(ctx context.Context, network, address string, left int) (net.Conn, error) {
	if end, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, max(leastDialTime, time.Until(end)/time.Duration(left)))
		defer cancel()
	}
	return s.dialer.DialContext(ctx, network, address)
}

// control checks the address that a socket is about to connect to.
func (s *side) control(_, address string, _ syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil || !reachable(to.Addr(), s.allowPrivate) {
		return fmt.Errorf("connect to %s: %w", address, errUnreachable)
	}
	return nil
}
