package etcdlog_test

import (
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"runner.example/store/commitlog"
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

// A connection that hangs delays entries by seconds only, and not until it is found to be broken, if
// the tip is asked for.
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
	add := func() {
		batch++
		if err := direct.Append(t.Context(), commitlog.ID{Proposer: 1, Batch: batch}, []byte("entry")); err != nil {
			t.Error(err)
		}
	}
	add()
	n.has(t, 1)
	for _, r := range relays { // the watch uses one of them
		release := r.hang()
		add()
		began := time.Now()
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			n.has(t, int(batch))
		}()
		asked := time.NewTicker(100 * time.Millisecond)
		for waits := true; waits; {
			select {
			case <-ended:
				waits = false
			case <-asked.C:
				go func() { _, _ = n.Tip(t.Context()) }() // some hang
			}
		}
		asked.Stop()
		if took := time.Since(began); took > 9*time.Second { // 11 s if only gRPC finds out
			t.Errorf("an entry took %s", took)
		}
		release()
	}
}
