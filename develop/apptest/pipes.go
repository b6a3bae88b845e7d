package apptest

import (
	"context"
	"net"
	"sync"
)

// pipes is a listener whose connections are pipes in memory.
type pipes struct {
	accepted chan net.Conn
	closed   chan struct{}

	mu      sync.Mutex
	ended   bool
	clients []net.Conn // that were dialed
}

func newPipes() *pipes { return &pipes{accepted: make(chan net.Conn), closed: make(chan struct{})} }

// address is that of all clients of an environment, and of its server.
var address = &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 80}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.accepted:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

// Close also closes all connections.
func (p *pipes) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return nil
	}
	p.ended = true
	close(p.closed)
	for _, c := range p.clients {
		_ = c.Close() // closing a pipe never fails
	}
	return nil
}

func (p *pipes) Addr() net.Addr { return address }

// dial connects a client.
func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case p.accepted <- pipe{server}:
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.ended {
			_ = client.Close()
		}
		p.clients = append(p.clients, client)
		return client, nil
	case <-p.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// pipe is a connection with an address, which the front counts connections by.
type pipe struct{ net.Conn }

func (pipe) RemoteAddr() net.Addr { return address }
func (pipe) LocalAddr() net.Addr  { return address }
