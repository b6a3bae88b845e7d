package http_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"testing"
	"time"

	"runner.example/tests/harness"
)

const largeAnswer = 8 << 20

// dialFrom connects from a loopback address, with a small receive buffer.
func dialFrom(s *harness.Server, address string) (*net.TCPConn, error) {
	d := net.Dialer{
		LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}, Timeout: harness.Timeout,
		Control: harness.ReceiveBuffer(64 << 10),
	}
	conn, err := d.Dial("tcp", s.Addr)
	if err != nil {
		return nil, err
	}
	return conn.(*net.TCPConn), nil
}

// askForLarge requests the large response and reads its first byte.
func askForLarge(s *harness.Server, address string) (*net.TCPConn, *bufio.Reader, error) {
	conn, err := dialFrom(s, address)
	if err != nil {
		return nil, nil, err
	}
	s.T.Cleanup(func() { conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(harness.Timeout))
	if _, err := io.WriteString(conn, "GET /large HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"); err != nil {
		return conn, nil, err
	}
	in := bufio.NewReader(conn)
	_, err = in.Peek(1)
	return conn, in, err
}

// Clients that do not read their responses share one limit of memory, and each address has
// its own. A client that reads is served beside them, and the memory is returned.
func TestUnreadResponsesHaveAMemoryLimit(t *testing.T) {
	if os.Getenv("RUNNER_TEST_RACE") != "" {
		t.Skip("the race detector takes memory of its own")
	}
	for _, row := range []struct {
		name      string
		addresses int
		perIP     int64
	}{{"of many addresses", 200, 96 << 20}, {"of one address", 1, 48 << 20}} {
		t.Run(row.name, func(t *testing.T) { unreadAnswers(t, row.addresses, row.perIP) })
	}
}

func unreadAnswers(t *testing.T, addresses int, perIP int64) {
	const (
		answers   = 96 << 20
		instances = 2
		memory    = 16 << 20
	)
	readers := 100
	if harness.Soak {
		readers = 400
	}
	s := harness.NewApp(t, `routes("/", auth: none, rateLimit: none) { GET /large -> large }`, fmt.Sprintf("[front]\nanswer_memory = \"%dmb\"\nanswer_memory_per_ip = \"%dmb\"\nwrite_timeout = \"1h\"\n[sandbox]\ninstances = %d\nmemory = \"%dmb\"\nqueue_wait = \"1m\"\n",
		answers>>20, perIP>>20, instances, memory>>20), "bounds").Serve()
	if got := s.Do("GET", "/large", ""); got.Status != 200 || len(got.Body) != largeAnswer {
		t.Fatalf("%d, %d bytes", got.Status, len(got.Body))
	}
	idle := s.Resources().Bytes

	fair, in, err := askForLarge(s, "127.0.0.9")
	if err != nil {
		t.Fatal(err)
	}
	read := make(chan error, 1)
	go func() { // reads 3 MiB per second while the others connect
		res, err := http.ReadResponse(in, nil)
		if err == nil {
			var n int64
			for tick := time.NewTicker(10 * time.Millisecond); err == nil && n < largeAnswer; <-tick.C {
				var got int64
				got, err = io.CopyN(io.Discard, res.Body, min(32<<10, largeAnswer-n))
				n += got
			}
		}
		fair.Close()
		read <- err
	}()
	conns := make([]*net.TCPConn, readers)
	var all sync.WaitGroup
	for caller := range 8 {
		all.Go(func() {
			for i := caller; i < readers; i += 8 {
				var err error
				if conns[i], _, err = askForLarge(s, fmt.Sprintf("127.0.1.%d", i%addresses+1)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()

	whole := 0
	for _, conn := range conns {
		_ = conn.SetDeadline(time.Now().Add(harness.Timeout))
		if n, _ := io.Copy(io.Discard, conn); n > largeAnswer-(8<<10) {
			whole++
		}
	}
	if err := <-read; err != nil {
		t.Errorf("the reader that reads was cut off: %v", err)
	}
	if addresses == 1 {
		perIP += (1 + instances) * largeAnswer // the response of the client that reads, and those that handlers produce
	}
	peak, bound := s.Resources().PeakBytes, idle+perIP+instances*memory
	t.Logf("idle %d MiB, peak %d MiB, documented %d MiB; %d of %d answers whole", idle>>20, peak>>20, bound>>20, whole, readers)
	if peak > bound+bound/10 {
		t.Errorf("the process had %d MiB, and is to have %d at most", peak>>20, bound>>20)
	}
	if whole < int(perIP/largeAnswer)-4 || whole == readers {
		t.Errorf("%d of %d answers came whole, with memory for %d", whole, readers, perIP/largeAnswer)
	}
	for end := time.Now().Add(harness.Timeout); s.Resources().Bytes > idle+40<<20; {
		if time.Now().After(end) {
			t.Fatalf("%d MiB are not given back", (s.Resources().Bytes-idle)>>20)
		}
	}
}
