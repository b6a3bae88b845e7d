package etcdlog_test

import (
	"context"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"runner.example/state/store/commitlog"
)

// relay is an address of a server whose connections can be made to hang.
type relay struct {
	net.Listener
	server string
	mu     sync.Mutex
	conns  []*relayed
}

// relayed is a connection through a relay.
type relayed struct {
	net.Conn
	gate sync.RWMutex // locked for writing while nothing passes
}

// Write sends to the client.
func (c *relayed) Write(b []byte) (int, error) {
	c.gate.RLock()
	defer c.gate.RUnlock()
	return c.Conn.Write(b)
}

func newRelay(t *testing.T, server string) *relay {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{Listener: ln, server: strings.TrimPrefix(server, "http://")}
	t.Cleanup(func() { ln.Close() })
	go func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", r.server)
			if err != nil {
				conn.Close()
				continue
			}
			c := &relayed{Conn: conn}
			r.mu.Lock()
			r.conns = append(r.conns, c)
			r.mu.Unlock()
			go func() { _, _ = io.Copy(out, conn); out.Close() }()
			go func() { _, _ = io.Copy(c, out); conn.Close() }()
		}
	}()
	return r
}

// hang lets nothing pass from the server on the connections that there are, until release.
func (r *relay) hang() (release func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	held := r.conns
	for _, c := range held {
		c.gate.Lock()
	}
	return func() {
		for _, c := range held {
			c.gate.Unlock()
		}
	}
}

// A connection that hangs is left for another server, and not kept until gRPC finds after 11 s that it is
// broken, and connects to the same server again.
func TestAHangingConnectionIsLeft(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for seconds")
	}
	t.Parallel()
	server := oneServer(t)
	relays := []*relay{newRelay(t, server), newRelay(t, server)}
	n := open(t, []string{"http://" + relays[0].Addr().String(), "http://" + relays[1].Addr().String()}, 0)
	direct := open(t, []string{server}, 0)
	batch := uint64(0)
	add := func(to *node) {
		batch++
		for to.Append(t.Context(), commitlog.ID{Proposer: 1, Batch: batch}, []byte("entry")) != nil {
			if t.Context().Err() != nil {
				return
			}
		}
	}
	add(n)
	n.has(t, 1)
	for range 2 { // the first one is used, and then the second one
		left := n.client.Left()
		var releases []func()
		for _, r := range relays { // the one that is used hangs, whichever it is; new connections do not
			releases = append(releases, r.hang())
		}
		add(direct)
		n.has(t, int(batch))
		select {
		case <-left:
		default:
			t.Error("the entry came from the server whose connection hangs")
		}
		add(n)
		for _, release := range releases {
			release()
		}
	}
}

// A server that is not the first one is used only while the first one does not work.
func TestTheFirstServerIsUsedAgain(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for seconds")
	}
	t.Parallel()
	o := options(t, t.TempDir(), 1)[0]
	start(t, o)
	first, second := newRelay(t, o.ClientURL), newRelay(t, o.ClientURL)
	c := dial(t, nil, "http://"+first.Addr().String(), "http://"+second.Addr().String())
	left := c.Left()
	until := func(what string, done func() bool) {
		t.Helper()
		for end := time.Now().Add(time.Minute); !done(); {
			if time.Now().After(end) {
				t.Fatalf("%s within a minute", what)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			_ = c.Claim(ctx, "a") // not at a server that hangs
			cancel()
		}
	}
	until("the first server is not used", func() bool { return first.count() > 0 })
	n := second.count()
	select {
	case <-left: // it was too slow once
	default:
		if n != 0 {
			t.Errorf("the second server has %d connections while the first one works", n)
		}
	}
	release := first.hang()
	until("the second server is not used", func() bool { return second.count() > 0 })
	release()
	before := first.count()
	c.ReturnToPreferred(t.Context()) // the first connection asks whether it works
	until("the first server is not used again", func() bool { return first.count() >= before+2 })
}

// count returns how many connections there were.
func (r *relay) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.conns)
}
