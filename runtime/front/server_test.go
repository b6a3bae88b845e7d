package front_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"runner.example/hostabi/abi"
	"runner.example/runtime/front"
)

// logBook keeps what a server logs.
type logBook struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logBook) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *logBook) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// own is a loopback address that only this process uses, so no other process can get a
// port that was closed here.
var own = fmt.Sprintf("127.%d.%d.%d", 1+os.Getpid()>>16&0x7f, os.Getpid()>>8&0xff, os.Getpid()&0xff)

// serving runs a real server on a loopback port until the test ends.
type serving struct {
	*front.Server
	addr string
	log  *logBook
}

func serve(t testing.TB, opt front.Options, handle func(*front.Exchange)) *serving {
	t.Helper()
	book := &logBook{}
	opt.Listen = own + ":0"
	opt.Logger = slog.New(slog.NewJSONHandler(book, &slog.HandlerOptions{Level: slog.LevelDebug}))
	ln, err := front.Listen(opt)
	if err != nil {
		t.Fatal(err)
	}
	s := &serving{nil, ln.Addr().String(), book}
	s.Server = run(t, ln, opt, handle)
	return s
}

// startOn serves connections of any listener, such as pipes.
func startOn(t testing.TB, ln net.Listener, opt front.Options, handle func(*front.Exchange)) {
	t.Helper()
	opt.Logger = slog.New(slog.DiscardHandler)
	run(t, ln, opt, handle)
}

func run(t testing.TB, ln net.Listener, opt front.Options, handle func(*front.Exchange)) *front.Server {
	s := front.New(opt, handle)
	done := make(chan error, 1)
	go func() { done <- s.Serve(ln) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := s.Shutdown(ctx); err != nil {
			t.Errorf("shutdown: %v", err)
		}
		if err := <-done; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	return s
}

func (s *serving) dial(t testing.TB) net.Conn {
	t.Helper()
	nc, err := net.Dial("tcp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = nc.Close() })
	if err := nc.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	return nc
}

// answer is one parsed answer.
type answer struct {
	*http.Response
	body string
}

// talk writes raw bytes to a new connection and reads every answer
// until the server closes, which it does at the latest when the caller is done.
func (s *serving) talk(t testing.TB, raw string) []answer {
	t.Helper()
	nc := s.dial(t)
	if _, err := io.WriteString(nc, raw); err != nil {
		t.Fatal(err)
	}
	if err := nc.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	return readAnswers(t, nc)
}

func readAnswers(t testing.TB, nc net.Conn) []answer {
	t.Helper()
	var all []answer
	for r := bufio.NewReader(nc); ; {
		if _, err := r.Peek(1); err == io.EOF {
			return all
		}
		all = append(all, readAnswer(t, r, "GET"))
	}
}

func readAnswer(t testing.TB, r *bufio.Reader, method string) answer {
	t.Helper()
	res, err := http.ReadResponse(r, &http.Request{Method: method})
	if err != nil {
		t.Fatalf("read answer: %v", err)
	}
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatalf("read body: %v", err)
	}
	return answer{res, string(body)}
}

func text(status int, body string) *abi.Response {
	return &abi.Response{
		Status:  status,
		Headers: []abi.Pair{{Name: []byte("content-type"), Value: []byte("text/plain")}},
		Body:    []byte(body),
	}
}

// hello answers everything and reads every body.
func hello(x *front.Exchange) {
	x.BuildHeaders()
	if err := x.ReadBody(1 << 20); err != nil {
		x.Refuse(err, front.Extra{})
		return
	}
	x.Send(&abi.Response{Status: 200, Body: []byte(`{"hello":"world"}`)})
}

func TestARequestIsServedAndTheConnectionStays(t *testing.T) {
	s := serve(t, front.Options{}, hello)
	got := s.talk(t, strings.Repeat("GET / HTTP/1.1\r\nHost: a\r\n\r\n", 3))
	if len(got) != 3 {
		t.Fatalf("%d answers to 3 requests", len(got))
	}
	for _, a := range got {
		if a.StatusCode != 200 || a.body != `{"hello":"world"}` || a.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%s %v %q", a.Status, a.Header, a.body)
		}
		if a.Header.Get("Server") != "" || a.Header.Get("Date") == "" || len(a.Header.Get("X-Request-Id")) != 26 {
			t.Errorf("headers %v", a.Header)
		}
	}
}
