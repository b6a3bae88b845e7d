package http_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"runner.example/tests/harness"
)

// slowClients are connections that only hold what they have: idle ones, and requests whose
// head or body arrives byte by byte.
type slowClients struct {
	s       *harness.Server
	pause   time.Duration // between two bytes
	begun   sync.WaitGroup
	ended   sync.WaitGroup
	stop    chan struct{}
	end     func()       // closes the connections; a second call does nothing
	timeout atomic.Int64 // slow requests that were answered 408
	other   atomic.Int64 // slow requests that ended otherwise, before stop
}

// newSlowClients opens the connections, from many addresses. It returns when all of them are
// open and have sent their first bytes. A slow request that has ended is sent again.
func newSlowClients(s *harness.Server, idle, slow int, pause time.Duration) *slowClients {
	c := &slowClients{s: s, pause: pause, stop: make(chan struct{})}
	c.end = sync.OnceFunc(func() {
		close(c.stop)
		c.ended.Wait()
	})
	s.T.Cleanup(c.end)
	for i := range idle + slow {
		c.begun.Add(1)
		c.ended.Go(func() {
			first := sync.OnceFunc(c.begun.Done)
			defer first()
			for send := c.idle; ; {
				if i >= idle {
					send = c.slow
				}
				conn, err := dialFrom(s, fmt.Sprintf("127.0.%d.%d", 2+i/250, 1+i%250))
				if err != nil {
					s.T.Error(err)
					return
				}
				again := send(conn, i, first)
				conn.Close()
				if !again {
					return
				}
			}
		})
	}
	c.begun.Wait()
	return c
}

// idle keeps a connection open, half of them after a request.
func (c *slowClients) idle(conn *net.TCPConn, i int, first func()) (again bool) {
	if i%2 == 0 {
		if _, err := io.WriteString(conn, "GET /hello HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
			c.s.T.Error(err)
		}
		if n, err := conn.Read(make([]byte, 4096)); err != nil {
			c.s.T.Errorf("%d bytes before an idle time: %v", n, err)
		}
	}
	first()
	<-c.stop
	_ = conn.SetReadDeadline(time.Now()) // what has arrived by now is read
	if _, err := conn.Read(make([]byte, 1)); err == io.EOF {
		c.s.T.Error("the server closed an idle connection before idle_timeout")
	}
	return false
}

// slow sends a request byte by byte until the server answers.
func (c *slowClients) slow(conn *net.TCPConn, i int, first func()) (again bool) {
	begin := "GET /hello HTTP/1.1\r\nHost: x\r\nX-Slow: "
	if i%2 == 0 {
		begin = "POST /dump HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n"
	}
	_, err := io.WriteString(conn, begin)
	for first(); err == nil; {
		select {
		case <-c.stop:
			return false
		default:
		}
		if _, err = io.WriteString(conn, "a"); err != nil {
			break
		}
		_ = conn.SetReadDeadline(time.Now().Add(c.pause))
		answer := make([]byte, 4096)
		if n, _ := conn.Read(answer); n > 0 {
			if strings.HasPrefix(string(answer[:n]), "HTTP/1.1 408 ") {
				c.timeout.Add(1)
				return true
			}
			err = fmt.Errorf("%.100q", answer[:n])
		}
	}
	c.other.Add(1)
	c.s.T.Logf("a slow request ended with %v", err)
	return true
}

// honest sends n requests, each second one on a new connection, and returns their times in
// ascending order.
func honest(s *harness.Server, n int) []time.Duration {
	s.T.Helper()
	fresh := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: harness.Timeout}
	all := make([]time.Duration, n)
	for i := range all {
		client := harness.Client
		if i%2 == 0 {
			client = fresh
		}
		began := time.Now()
		got, err := client.Get(s.URL + "/hello")
		if err != nil {
			s.T.Fatal(err)
		}
		_, err = io.Copy(io.Discard, got.Body)
		if got.Body.Close(); err != nil || got.StatusCode != 200 {
			s.T.Fatalf("%d, %v", got.StatusCode, err)
		}
		all[i] = time.Since(began)
	}
	return all
}

// Idle connections and slow requests delay no other request: each slow one is answered 408
// after read_timeout. The long form compares the slowest of the others with those of a server
// without slow clients.
func TestSlowloris(t *testing.T) {
	idle, slow, rounds, n, timeout, pause := 500, 250, 1, 200, "500ms", 20*time.Millisecond
	if harness.Soak {
		idle, slow, rounds, n, timeout, pause = 10_000, 5_000, 5, 2000, "10s", 2*time.Second
	}
	s := harness.NewApp(t, harness.ProbeSchema, fmt.Sprintf("[front]\nread_timeout = %q\nidle_timeout = \"10m\"\nmax_connections = 16000\n", timeout), "echo").Serve()
	var without, beside []time.Duration
	var held int64
	honest(s, 20)
	for range rounds {
		without = append(without, honest(s, n)...)
		before := s.Resources().Bytes
		c := newSlowClients(s, idle, slow, pause)
		beside = append(beside, honest(s, n)...)
		held = max(held, s.Resources().Bytes-before)
		s.WaitUntil("slow requests are answered", func() bool { return c.timeout.Load()+c.other.Load() >= int64(slow) })
		c.end()
		if c.other.Load() > 0 {
			t.Errorf("%d slow requests were not answered 408", c.other.Load())
		}
	}
	if got := s.Do("GET", "/hello", ""); got.Status != 200 {
		t.Errorf("afterwards: %d", got.Status)
	}
	slices.Sort(without)
	slices.Sort(beside)
	p := func(all []time.Duration, percent int) time.Duration { return all[len(all)*percent/100] }
	ratio := float64(p(beside, 99)) / float64(p(without, 99))
	t.Logf("beside %d idle and %d slow connections, which take %d MiB: p50 %s, without them %s; p99 %s, without them %s: %.2f times",
		idle, slow, held>>20, p(beside, 50), p(without, 50), p(beside, 99), p(without, 99), ratio)
	if harness.Soak && ratio > 2 {
		t.Errorf("p99 is %.2f times that without slow connections, more than twice", ratio)
	}
}
