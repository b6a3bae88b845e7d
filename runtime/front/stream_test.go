package front_test

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"runner.example/hostabi/abi"
	"runner.example/runtime/front"
)

// sendParts streams parts, as a handler does.
func sendParts(x *front.Exchange, parts ...string) error {
	err := flushed(x)(x.BeginStream(&abi.Response{Status: 200, Headers: []abi.Pair{{Name: []byte("content-type"), Value: []byte("text/event-stream")}}}))
	for _, part := range parts {
		if err != nil {
			break
		}
		err = streamed(x, part)
	}
	return err
}

// Parts are as long as a body, over TLS or not, for fast clients and slow ones.
func TestPartsOfAnAnswerArriveInOrder(t *testing.T) {
	pair, pool := certificate(t)
	parts := make([]string, 200)
	for n := range parts {
		parts[n] = strings.Repeat(string(rune('a'+n%26)), 1+n*n)
	}
	want := strings.Join(parts, "")
	for name, certificate := range map[string]*tls.Certificate{"plain": nil, "TLS": pair} {
		t.Run(name, func(t *testing.T) {
			ln, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			startOn(t, ln, front.Options{Certificate: certificate}, func(x *front.Exchange) {
				err := sendParts(x, parts...)
				x.EndStream(err == nil, nil)
				if err != nil {
					t.Error(err)
				}
			})
			client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}}
			defer client.CloseIdleConnections()
			scheme := "http://"
			if certificate != nil {
				scheme = "https://"
			}
			for range 3 { // on one connection
				answer, err := client.Get(scheme + ln.Addr().String() + "/")
				if err != nil {
					t.Fatal(err)
				}
				body, err := io.ReadAll(answer.Body)
				if err != nil || string(body) != want {
					t.Errorf("%d bytes and %v, want %d bytes", len(body), err, len(want))
				}
			}
		})
	}
}

func TestAnAnswerThatIsNotWholeHasNoEnd(t *testing.T) {
	s := serve(t, front.Options{}, func(x *front.Exchange) {
		_ = sendParts(x, "data: half")
		switch string(x.Request.Path) {
		case "/panics":
			panic("in a handler")
		case "/interrupted":
			x.Interrupt()
		}
		x.EndStream(false, []byte("event: error\n\n"))
	})
	for path, want := range map[string]string{"/": "data: half\n\nevent: error\n\n", "/panics": "data: half", "/interrupted": ""} {
		answer, err := http.Get("http://" + s.addr + path)
		if err != nil {
			if path != "/interrupted" {
				t.Error(err)
			}
			continue
		}
		body, err := io.ReadAll(answer.Body)
		if err == nil || path != "/interrupted" && string(body) != want {
			t.Errorf("%s: %q ends with %v", path, body, err)
		}
	}
}

func TestASilentStreamOfEventsGetsComments(t *testing.T) {
	servedOnce(t)
	synctest.Test(t, func(t *testing.T) {
		t.Cleanup(func() { time.Sleep(time.Minute) })
		s := newStage()
		startOn(t, s, front.Options{}, func(x *front.Exchange) {
			_ = sendParts(x, "data: 1\n\n")
			time.Sleep(35 * time.Second)
			_ = streamed(x, "data: half")
			time.Sleep(20 * time.Second) // inside of an event
			_ = streamed(x, "\n\n")
			x.EndStream(true, nil)
		})
		ours, theirs := net.Pipe()
		defer ours.Close()
		s.conns <- piped{theirs}
		write(t, ours, "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
		answer, err := http.ReadResponse(bufio.NewReader(ours), nil)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(answer.Body)
		if want := "data: 1\n\n:\n\n:\n\ndata: half\n\n"; string(body) != want || err != nil {
			t.Errorf("the body is %q (%v), want %q", body, err, want)
		}
	})
}

func streamed(x *front.Exchange, part string) error { return flushed(x)(x.WritePart([]byte(part))) }

// flushed waits until what was written is sent.
func flushed(x *front.Exchange) func(waits bool, err error) error {
	return func(waits bool, err error) error {
		if err == nil && waits {
			err = x.Flush()
		}
		return err
	}
}

func TestAClientThatReadsNothingIsGone(t *testing.T) {
	ended := make(chan error, 1)
	s := serve(t, front.Options{WriteTimeout: 50 * time.Millisecond}, func(x *front.Exchange) {
		part := bytes.Repeat([]byte("x"), 64<<10)
		err := flushed(x)(x.BeginStream(&abi.Response{Status: 200}))
		for err == nil {
			err = streamed(x, string(part))
		}
		x.EndStream(false, nil)
		ended <- err
	})
	nc, err := net.Dial("tcp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	write(t, nc, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	if err := <-ended; err == nil || errors.Is(err, io.EOF) {
		t.Errorf("the stream ends with %v", err)
	}
}

// A stream that waits after a large part keeps no buffer for it.
func TestAStreamThatWaitsHasNoBuffer(t *testing.T) {
	const streams, length = 100, 64 << 10
	part, end := strings.Repeat("x", length), make(chan struct{})
	s := serve(t, front.Options{}, func(x *front.Exchange) {
		err := sendParts(x, part)
		<-end
		x.EndStream(err == nil, nil)
	})
	defer close(end)
	heap := func() int {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC() // what a pool has is freed by the second one
		runtime.ReadMemStats(&m)
		return int(m.HeapAlloc)
	}
	var before int
	for n := range streams + 1 {
		conn, err := net.Dial("tcp", s.addr)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		answer := bufio.NewReaderSize(conn, 1<<10)
		for line := ""; line != "\r\n"; {
			var err error
			if line, err = answer.ReadString('\n'); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := answer.Discard(len("10000\r\n") + length + len("\r\n")); err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			before = heap()
		}
	}
	if each := (heap() - before) / streams; each > length/2 {
		t.Errorf("a stream that waits keeps %d bytes", each)
	}
}

// Comments, parts and Interrupt come from different goroutines.
func TestAStreamIsInterruptedAtAnyTime(t *testing.T) {
	s := serve(t, front.Options{}, func(x *front.Exchange) {
		var all sync.WaitGroup
		err := sendParts(x)
		all.Go(x.Interrupt)
		for n := 0; err == nil && n < 1000; n++ {
			err = streamed(x, "data: x\n\n")
		}
		all.Wait()
		x.EndStream(err == nil, nil)
	})
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 20 {
				if answer, err := http.Get("http://" + s.addr + "/"); err == nil {
					_, _ = io.Copy(io.Discard, answer.Body)
					answer.Body.Close()
				}
			}
		})
	}
	all.Wait()
}

func TestACommentThatIsNotSentComesBeforeTheNextPart(t *testing.T) {
	if got, want := front.Framed("\n\n\r\n", "data"), "\n\n\r\n4\r\ndata\r\n"; got != want {
		t.Errorf("%q is sent, want %q", got, want)
	}
}

// A handler may end before it has waited until the head is sent.
func TestTheHeadOfAnAnswerWithoutBodyIsAlwaysSent(t *testing.T) {
	pair, pool := certificate(t)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	startOn(t, ln, front.Options{Certificate: pair}, func(x *front.Exchange) {
		_, _ = x.BeginStream(&abi.Response{Status: 200})
		x.EndStream(false, nil)
	})
	client := &http.Client{
		Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}, Timeout: 10 * time.Second,
	}
	defer client.CloseIdleConnections()
	for range 2 {
		answer, err := client.Head("https://" + ln.Addr().String() + "/")
		if err != nil || answer.StatusCode != 200 {
			t.Fatalf("%v %v", answer, err)
		}
	}
}
