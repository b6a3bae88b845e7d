package front_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"runner.example/internal/fault"
	"runner.example/runtime/front"
)

func write(t testing.TB, nc net.Conn, text string) {
	t.Helper()
	if _, err := io.WriteString(nc, text); err != nil {
		t.Fatal(err)
	}
}

// ended says whether the server has closed the connection.
func ended(t testing.TB, r io.Reader) bool {
	t.Helper()
	_, err := r.Read(make([]byte, 1))
	return err == io.EOF || errors.Is(err, syscall.ECONNRESET)
}

// piped is an end of a pipe that has an address.
type piped struct{ net.Conn }

func (piped) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 7)} }

// bubble serves pipes in a synctest bubble, where a pause of the machine takes no time.
func bubble(t *testing.T, opt front.Options, test func(t *testing.T, dial func() net.Conn)) {
	t.Helper()
	bubbleOf(t, opt, hello, test)
}

// bubbleOf is bubble with another handler.
func bubbleOf(t *testing.T, opt front.Options, handle func(*front.Exchange), test func(t *testing.T, dial func() net.Conn)) {
	t.Helper()
	servedOnce(t)
	synctest.Test(t, func(t *testing.T) {
		t.Cleanup(func() { time.Sleep(time.Minute) }) // in which the last of fasthttp's goroutines end
		s := newStage()
		startOn(t, s, opt, handle)
		test(t, func() net.Conn {
			ours, theirs := net.Pipe()
			t.Cleanup(func() { _ = ours.Close() })
			s.conns <- piped{theirs}
			return ours
		})
	})
}

// servedOnce has served a request outside of any bubble: fasthttp begins a
// goroutine for the date then, which does not end.
func servedOnce(t *testing.T) {
	s := newStage()
	startOn(t, s, front.Options{}, hello)
	s.play(second, 0)
}

func TestASlowRequestIsAnsweredWithTimeout(t *testing.T) {
	const limit = 150 * time.Millisecond
	bubble(t, front.Options{ReadTimeout: limit}, func(t *testing.T, dial func() net.Conn) {
		for _, sent := range []string{"G", "GET / HTTP/1.1\r\nHost:", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nab",
			"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab"} {
			nc := dial()
			write(t, nc, sent)
			began := time.Now()
			r := bufio.NewReader(nc)
			if a := readAnswer(t, r, "GET"); a.StatusCode != 408 || problemOf(t, a).Code != "request_timeout" || !a.Close || time.Since(began) != limit {
				t.Errorf("%q: %s %s after %s", sent, a.Status, a.body, time.Since(began))
			}
			if !ended(t, r) {
				t.Errorf("%q: the connection stayed", sent)
			}
		}
	})
}

func TestSlowBytesDoNotExtendTheTimeout(t *testing.T) {
	const limit = 150 * time.Millisecond
	bubble(t, front.Options{ReadTimeout: limit}, func(t *testing.T, dial func() net.Conn) {
		nc := dial()
		started := time.Now()
		go func() {
			drip := time.NewTicker(10 * time.Millisecond)
			defer drip.Stop()
			for range drip.C {
				if _, err := nc.Write([]byte("G")); err != nil {
					return
				}
			}
		}()
		if a := readAnswer(t, bufio.NewReader(nc), "GET"); a.StatusCode != 408 {
			t.Errorf("%s", a.Status)
		}
		if took := time.Since(started); took > 2*limit {
			t.Errorf("took %s", took)
		}
	})
}

func TestAnIdleConnectionIsClosedWithoutAnAnswer(t *testing.T) {
	const read, idle = 50 * time.Millisecond, 70 * time.Millisecond
	bubble(t, front.Options{ReadTimeout: read, IdleTimeout: idle}, func(t *testing.T, dial func() net.Conn) {
		silent := func(what string, r io.Reader, want time.Duration) {
			t.Helper()
			began := time.Now()
			if got, err := io.ReadAll(r); len(got) > 0 || err != nil || time.Since(began) != want {
				t.Errorf("%s: %q, %v after %s", what, got, err, time.Since(began))
			}
		}
		silent("a new connection", dial(), idle)
		nc := dial()
		write(t, nc, second)
		r := bufio.NewReader(nc)
		readAnswer(t, r, "GET")
		silent("an idle connection", r, idle)
	})
}

func TestTheTimeOfTheFirstRequestBeginsWithItsFirstByte(t *testing.T) {
	const read, idle = 50 * time.Millisecond, 70 * time.Millisecond
	bubble(t, front.Options{ReadTimeout: read, IdleTimeout: idle}, func(t *testing.T, dial func() net.Conn) {
		late := dial()
		time.Sleep(idle - time.Millisecond)
		write(t, late, second[:1])
		time.Sleep(read - time.Millisecond)
		write(t, late, second[1:])
		if a := readAnswer(t, bufio.NewReader(late), "GET"); a.StatusCode != 200 {
			t.Errorf("a late request: %s", a.Status)
		}
		slow := dial()
		write(t, slow, second[:1])
		began := time.Now()
		if a := readAnswer(t, bufio.NewReader(slow), "GET"); a.StatusCode != 408 || time.Since(began) != read {
			t.Errorf("a slow request: %s after %s", a.Status, time.Since(began))
		}
	})
}

// Every request sets its own deadline. The deadline of an earlier request must neither
// shorten nor extend a later one.
func TestEveryRequestOfAConnectionHasItsOwnDeadlines(t *testing.T) {
	const read, written, idle, pause = 50 * time.Millisecond, 30 * time.Millisecond, 70 * time.Millisecond, 20 * time.Millisecond
	opt := front.Options{ReadTimeout: read, WriteTimeout: written, IdleTimeout: idle}
	bubble(t, opt, func(t *testing.T, dial func() net.Conn) {
		used := func() (net.Conn, *bufio.Reader) {
			nc := dial()
			r := bufio.NewReader(nc)
			for range 20 {
				time.Sleep(pause)
				write(t, nc, second[:1])
				time.Sleep(pause)
				write(t, nc, second[1:])
				time.Sleep(pause)
				if a := readAnswer(t, r, "GET"); a.StatusCode != 200 {
					t.Fatalf("%s", a.Status)
				}
			}
			time.Sleep(pause)
			return nc, r
		}
		nc, r := used()
		write(t, nc, second[:1])
		began := time.Now()
		if a := readAnswer(t, r, "GET"); a.StatusCode != 408 || time.Since(began) != read {
			t.Errorf("a slow request: %s after %s, want %s", a.Status, time.Since(began), read)
		}
		nc, r = used()
		write(t, nc, second)
		time.Sleep(written + 1)
		if got, err := io.ReadAll(r); len(got) > 0 || err != nil {
			t.Errorf("an answer that was read after the timeout: %q, %v", got, err)
		}
		nc, r = used()
		write(t, nc, second)
		time.Sleep(written - 1)
		if a := readAnswer(t, r, "GET"); a.StatusCode != 200 {
			t.Errorf("an answer that was read before the timeout: %s", a.Status)
		}
	})
}

// Slow connections cost what they hold and nothing else: an honest caller is
// served among them, and all of them end.
func TestSlowConnectionsDoNotBlockOthers(t *testing.T) {
	bubble(t, front.Options{ReadTimeout: time.Second}, func(t *testing.T, dial func() net.Conn) {
		const slow = 200
		conns := make([]net.Conn, slow)
		for i := range conns {
			conns[i] = dial()
			write(t, conns[i], "GET / HTTP/1.1\r\nX")
		}
		began := time.Now()
		for range 50 {
			nc := dial()
			write(t, nc, second)
			if a := readAnswer(t, bufio.NewReader(nc), "GET"); a.StatusCode != 200 {
				t.Fatalf("%s", a.Status)
			}
		}
		if took := time.Since(began); took > 0 {
			t.Errorf("an honest caller waits %s", took)
		}
		for _, nc := range conns {
			if a := readAnswer(t, bufio.NewReader(nc), "GET"); a.StatusCode != 408 {
				t.Fatalf("%s", a.Status)
			}
		}
	})
}

func TestContinueIsSentOnlyWhenTheBodyIsRead(t *testing.T) {
	const head = "POST %s HTTP/1.1\r\nHost: a\r\nExpect: 100-Continue\r\n%s\r\n\r\n"
	const goOn = "HTTP/1.1 100 Continue\r\n\r\n"
	s := serve(t, front.Options{}, func(x *front.Exchange) {
		if string(x.Request.Path) == "/refused" {
			x.Refuse(&fault.Fault{Code: fault.MissingCredentials}, front.Extra{})
			return
		}
		if err := x.ReadBody(5); err != nil {
			x.Refuse(err, front.Extra{})
			return
		}
		x.Send(text(200, string(x.Request.Body)))
	})
	for _, row := range []struct{ framing, body string }{{"Content-Length: 5", "hello"}, {"Transfer-Encoding: chunked", "5\r\nhello\r\n0\r\n\r\n"}} {
		nc := s.dial(t)
		r := bufio.NewReader(nc)
		for range 2 { // the second on a connection whose last answer may sit somewhere
			write(t, nc, fmt.Sprintf(head, "/", row.framing))
			if got, err := r.Peek(len(goOn)); string(got) != goOn {
				t.Fatalf("%s: read %q, %v before the body", row.framing, got, err)
			}
			_, _ = r.Discard(len(goOn))
			write(t, nc, row.body)
			if a := readAnswer(t, r, "POST"); a.StatusCode != 200 || a.body != "hello" {
				t.Errorf("%s: %s %q", row.framing, a.Status, a.body)
			}
		}
		for _, refused := range []struct {
			path, framing string
			status        int
		}{{"/refused", row.framing, 401}, {"/", "Content-Length: 6", 413}} {
			nc := s.dial(t)
			write(t, nc, fmt.Sprintf(head, refused.path, refused.framing))
			r := bufio.NewReader(nc)
			if a := readAnswer(t, r, "POST"); a.StatusCode != refused.status || !a.Close {
				t.Errorf("%s: %s, close %v", refused.path, a.Status, a.Close)
			}
			if !ended(t, r) {
				t.Errorf("%s: the connection stayed for a body that may or may not come", refused.path)
			}
		}
	}
	nc := s.dial(t)
	write(t, nc, fmt.Sprintf(head, "/", "Content-Length: 5")+"hello") // did not wait: is not told to go on
	if a := readAnswer(t, bufio.NewReader(nc), "POST"); a.StatusCode != 200 || a.body != "hello" {
		t.Errorf("%s %q", a.Status, a.body)
	}
}

// A caller in the middle of a large body still gets its answer in whole: to
// close with bytes unread would be a reset, and drop what is on its way.
func TestAClientThatStillSendsGetsItsAnswer(t *testing.T) {
	answer := strings.Repeat("a", 8<<20)
	s := serve(t, front.Options{}, func(x *front.Exchange) {
		if err := x.ReadBody(10); err == nil {
			t.Error("a body beyond its limit was read")
		}
		x.Send(text(413, answer))
	})
	for range 3 {
		nc := s.dial(t)
		write(t, nc, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 400000\r\n\r\n"+strings.Repeat("b", 100_000))
		if a := readAnswer(t, bufio.NewReader(nc), "POST"); a.StatusCode != 413 || a.body != answer {
			t.Errorf("%s, %d bytes", a.Status, len(a.body))
		}
	}
}

// So does one whose next request comes while the server ends.
func TestAClientThatStillSendsGetsItsAnswerDuringShutdown(t *testing.T) {
	answer := strings.Repeat("a", 8<<20)
	begun, finish := make(chan struct{}), make(chan struct{})
	s := serve(t, front.Options{}, func(x *front.Exchange) {
		close(begun)
		<-finish
		x.Send(text(200, answer))
	})
	nc := s.dial(t)
	write(t, nc, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	<-begun
	done := make(chan error, 1)
	go func() { done <- s.Shutdown(t.Context()) }()
	for { // until it has begun to end
		nc, err := net.Dial("tcp", s.addr)
		if err != nil {
			break
		}
		_ = nc.Close()
	}
	write(t, nc, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n"+strings.Repeat("b", 100_000))
	close(finish)
	r := bufio.NewReader(nc)
	if a := readAnswer(t, r, "GET"); a.StatusCode != 200 || a.body != answer || !a.Close {
		t.Errorf("%s, %d bytes, close %v", a.Status, len(a.body), a.Close)
	}
	if _, err := r.ReadByte(); err != io.EOF {
		t.Errorf("the connection ends with %v", err)
	}
	_ = nc.Close()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestBodiesOfAllSizesAreReadExactly(t *testing.T) {
	s := serve(t, front.Options{}, func(x *front.Exchange) {
		if err := x.ReadBody(1 << 20); err != nil {
			x.Refuse(err, front.Extra{})
			return
		}
		x.Request.Body = []byte("in its place")
		if err := x.ReadBody(1 << 20); err != nil { // again
			x.Refuse(err, front.Extra{})
			return
		}
		x.Send(text(200, string(x.Request.Body)))
	})
	client := &http.Client{}
	defer client.CloseIdleConnections()
	for _, size := range []int{0, 1, 4095, 4096, 4097, 65535, 65536, 65537, 200_000, 1 << 20} {
		body := strings.Repeat("0123456789abcdef!", size/17+1)[:size]
		for _, reader := range []io.Reader{strings.NewReader(body), struct{ io.Reader }{strings.NewReader(body)}} { // with a length, in chunks
			res, err := client.Post("http://"+s.addr, "text/plain", reader)
			if err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(res.Body)
			_ = res.Body.Close()
			if err != nil || res.StatusCode != 200 || string(got) != body {
				t.Errorf("%d bytes as %T: %s, %d bytes back, %v", size, reader, res.Status, len(got), err)
			}
		}
	}
	res, err := client.Post("http://"+s.addr, "text/plain", strings.NewReader(strings.Repeat("a", 1<<20+1)))
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	if res.StatusCode != 413 {
		t.Errorf("%s", res.Status)
	}
}

func TestAPanicIsOneAnswerAndOneLogLine(t *testing.T) {
	s := serve(t, front.Options{}, func(x *front.Exchange) {
		x.AddHeader("Vary", []byte("Origin"))
		x.AddHeader("Access-Control-Allow-Origin", []byte("https://app.example.com"))
		x.AddHeader("Set-Cookie", []byte("a=b"))
		switch string(x.Request.Path) {
		case "/early":
			panic("secret trap")
		case "/late":
			x.Send(text(200, "half an answer"))
			panic(errors.New("secret trap"))
		case "/twice":
			x.Send(text(200, "once"))
			x.Send(text(200, "twice"))
		case "/silent":
		default:
			hello(x)
		}
	})
	for _, path := range []string{"/early", "/late", "/twice", "/silent"} {
		all := s.talk(t, "GET "+path+" HTTP/1.1\r\nHost: a\r\n\r\n"+second)
		if len(all) != 2 || all[0].StatusCode != 500 || problemOf(t, all[0]).Code != "handler_failed" ||
			strings.Contains(all[0].body, "secret") || all[1].StatusCode != 200 {
			t.Errorf("%s: %v", path, all)
			continue
		}
		// Of the host's own headers those stay that say which pages may read the answer.
		if h := all[0].Header; h.Get("Vary") != "Origin" || h.Get("Access-Control-Allow-Origin") != "https://app.example.com" || path != "/silent" && h.Get("Set-Cookie") != "" {
			t.Errorf("%s: headers %v", path, h)
		}
		if line := lineWith(s.log.String(), all[0].Header.Get("X-Request-Id")); line == "" || path != "/silent" && !strings.Contains(line, "conn_test.go") {
			t.Errorf("%s: logged %q", path, line)
		}
	}
}

func lineWith(log, part string) string {
	for line := range strings.Lines(log) {
		if strings.Contains(line, part) {
			return line
		}
	}
	return ""
}

func TestTheCauseOfARefusalIsLoggedAndNotSent(t *testing.T) {
	s := serve(t, front.Options{}, func(x *front.Exchange) {
		x.Refuse(fault.Wrap(errors.New("disk on fire"), fault.Unavailable, "the store is away"), front.Extra{})
	})
	a := s.talk(t, second)[0]
	if strings.Contains(a.body, "fire") || problemOf(t, a).Detail != "the store is away" {
		t.Errorf("%s", a.body)
	}
	if line := lineWith(s.log.String(), a.Header.Get("X-Request-Id")); !strings.Contains(line, "disk on fire") {
		t.Errorf("logged %q", s.log)
	}
}

func TestDataOfAClientIsNotLogged(t *testing.T) {
	const canary = "rnk_0123456789abcdefghijklmnopqrst012345"
	s := serve(t, front.Options{MaxConnsPerIP: 50}, hello)
	for _, raw := range []string{
		"GET /" + canary + " HTTP/1.1\r\nHost: a\r\n\r\n",
		"GET /?k=" + canary + " HTTP/1.1\r\nHost: a\r\n\r\n",
		"GET /?k=" + canary + "\x01 HTTP/1.1\r\nHost: a\r\n\r\n",
		"GET " + canary + " HTTP/1.1\r\nHost: a\r\n\r\n",
		"GET http://" + canary + "@a/ HTTP/1.1\r\nHost: a\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: " + canary + "@a\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer " + canary + "\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer\r\n " + canary + "\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: a\r\nAuthorization Bearer " + canary + "\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer " + canary + "\x00\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer " + canary,
		"GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: " + canary + "\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: " + canary + "\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: a\r\nTrailer: " + canary + "\r\n\r\n",
		"GET / HTTP/" + canary + "\r\nHost: a\r\n\r\n",
		canary + " / HTTP/1.1\r\nHost: a\r\n\r\n",
		canary,
		"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n" + canary + "\r\n",
		"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1;" + canary + "\r\na\r\n0\r\n" + canary + "\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 40\r\n\r\n" + canary,
		"GET / HTTP/1.1\r\nHost: a\r\nX: " + strings.Repeat(canary, 500) + "\r\n\r\n",
	} {
		for _, a := range s.talk(t, raw) {
			if a.StatusCode >= 400 && strings.Contains(a.body+fmt.Sprint(a.Header), canary) {
				t.Errorf("%q is answered with %v %s", raw, a.Header, a.body)
			}
		}
	}
	if strings.Contains(s.log.String(), canary) {
		t.Errorf("logged: %s", lineWith(s.log.String(), canary))
	}
}

func TestShutdownWaitsForRunningRequests(t *testing.T) {
	begun, finish := make(chan struct{}), make(chan struct{})
	s := serve(t, front.Options{}, func(x *front.Exchange) {
		if string(x.Request.Path) == "/slow" {
			close(begun)
			<-finish
		}
		hello(x)
	})
	idle, fresh, busy := s.dial(t), s.dial(t), s.dial(t)
	write(t, idle, second)
	idleReader := bufio.NewReader(idle)
	readAnswer(t, idleReader, "GET")
	write(t, busy, "GET /slow HTTP/1.1\r\nHost: a\r\n\r\n"+second)
	<-begun
	done := make(chan error, 1)
	go func() { done <- s.Shutdown(t.Context()) }()
	if !ended(t, idleReader) || !ended(t, fresh) {
		t.Error("a connection that waits stayed open")
	}
	if nc, err := net.Dial("tcp", s.addr); err == nil {
		_ = nc.Close()
		t.Error("a connection was accepted")
	}
	select {
	case err := <-done:
		t.Fatalf("shutdown did not wait: %v", err)
	default:
	}
	close(finish)
	r := bufio.NewReader(busy)
	if a := readAnswer(t, r, "GET"); a.StatusCode != 200 || !a.Close {
		t.Errorf("%s, close %v", a.Status, a.Close)
	}
	if !ended(t, r) {
		t.Error("another request was served")
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestShutdownClosesConnectionsWhenItsTimeEnds(t *testing.T) {
	begun, finish := make(chan struct{}), make(chan struct{})
	s := serve(t, front.Options{}, func(x *front.Exchange) {
		close(begun)
		<-finish
		hello(x)
	})
	nc := s.dial(t)
	write(t, nc, second)
	<-begun
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Shutdown(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("shutdown: %v", err)
	}
	if !ended(t, nc) {
		t.Error("the connection stayed open")
	}
	close(finish)
}

func TestServingAfterShutdownEndsAtOnce(t *testing.T) {
	opt := front.Options{Listen: own + ":0", Logger: slog.New(slog.DiscardHandler)}
	ln, err := front.Listen(opt)
	if err != nil {
		t.Fatal(err)
	}
	s := front.New(opt, hello)
	if err := s.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	if err := s.Serve(ln); err != nil {
		t.Error(err)
	}
	if nc, err := net.Dial("tcp", ln.Addr().String()); err == nil {
		_ = nc.Close()
		t.Error("the listener stayed open")
	}
}

func TestConnectionsBeyondTheLimitWaitForASlot(t *testing.T) {
	s := serve(t, front.Options{MaxConns: 2, MaxConnsPerIP: 2}, hello)
	first, other := s.dial(t), s.dial(t)
	for _, nc := range []net.Conn{first, other} {
		write(t, nc, second)
		readAnswer(t, bufio.NewReader(nc), "GET")
	}
	third := s.dial(t) // in the kernel's queue
	write(t, third, second)
	if err := third.SetReadDeadline(time.Now().Add(50 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if n, err := third.Read(make([]byte, 1)); n > 0 || !isTimeout(err) {
		t.Fatalf("read %d, %v without a slot", n, err)
	}
	_ = first.Close()
	if err := third.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if a := readAnswer(t, bufio.NewReader(third), "GET"); a.StatusCode != 200 {
		t.Errorf("%s", a.Status)
	}
}

func isTimeout(err error) bool {
	ne, ok := errors.AsType[net.Error](err)
	return ok && ne.Timeout()
}

func TestConnectionsPerAddressAreLimited(t *testing.T) {
	s := serve(t, front.Options{MaxConns: 10, MaxConnsPerIP: 2}, hello)
	var held []net.Conn
	for range 2 {
		nc := s.dial(t)
		write(t, nc, second)
		readAnswer(t, bufio.NewReader(nc), "GET")
		held = append(held, nc)
	}
	for range 20 { // a slot that such a connection kept would be missed
		if !ended(t, s.dial(t)) {
			t.Fatal("a third connection stayed open")
		}
	}
	for _, nc := range held {
		_ = nc.Close()
	}
	// The share is given back when the server has seen the close.
	for deadline := time.Now().Add(time.Minute); ; {
		nc := s.dial(t)
		_, _ = io.WriteString(nc, second)
		if _, err := http.ReadResponse(bufio.NewReader(nc), nil); err == nil {
			return
		}
		_ = nc.Close()
		if time.Now().After(deadline) {
			t.Fatal("the share was not given back")
		}
	}
}

// An IPv6 caller has a /64 to call from, and one share for all of it.
func TestConnectionsPerIPv6NetworkAreLimited(t *testing.T) {
	begun, finish := make(chan struct{}), make(chan struct{})
	s := newStage()
	startOn(t, s, front.Options{MaxConnsPerIP: 1}, func(x *front.Exchange) {
		if string(x.Request.Path) == "/hold" {
			close(begun)
			<-finish
		}
		x.Send(text(200, x.Address().String()))
	})
	from := func(address, raw string) string { return string(s.playFrom(net.ParseIP(address), raw, 0)) }
	held := make(chan string, 1)
	go func() { held <- from("2001:db8::1", "GET /hold HTTP/1.1\r\nHost: a\r\n\r\n") }()
	<-begun
	if got := from("2001:db8::ffff", second); got != "" {
		t.Errorf("the same network: %q", got)
	}
	if got := from("2001:db8:0:1::1", second); !strings.HasSuffix(got, "2001:db8:0:1::1") {
		t.Errorf("another network: %q", got)
	}
	close(finish)
	if got := <-held; !strings.HasSuffix(got, "2001:db8::1") {
		t.Errorf("the first: %q", got)
	}
}

func TestAnAddressInUseIsOneClearError(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	_, err = front.Listen(front.Options{Listen: ln.Addr().String()})
	if !errors.Is(err, syscall.EADDRINUSE) {
		t.Fatalf("error %v", err)
	}
	for _, part := range []string{ln.Addr().String(), "in use", "--listen", "[front] listen"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q does not say %q", err, part)
		}
	}
	if _, err := front.Listen(front.Options{Listen: "nonsense"}); err == nil || !strings.Contains(err.Error(), "nonsense") {
		t.Errorf("error %v", err)
	}
}

// A server continues after an accept that fails because no file descriptor is free.
func TestServingContinuesAfterAFailedAccept(t *testing.T) {
	s := &faltering{stage: newStage()}
	s.left.Store(3)
	startOn(t, s, front.Options{}, mirror)
	if got := summary(t, s.play(second, 0)); len(got) != 1 || got[0] != "200 GET /second []" {
		t.Errorf("got %q", got)
	}
}

type faltering struct {
	*stage
	left atomic.Int32
}

func (f *faltering) Accept() (net.Conn, error) {
	if f.left.Add(-1) >= 0 {
		return nil, syscall.EMFILE
	}
	return f.stage.Accept()
}

func TestConcurrentClientsGetTheirOwnAnswers(t *testing.T) {
	s := serve(t, front.Options{}, mirror)
	var wait sync.WaitGroup
	for i := range 8 {
		wait.Go(func() {
			for j := range 100 {
				body := fmt.Sprintf("%d-%d", i, j)
				raw := fmt.Sprintf("POST /%s HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%s", body, len(body), body)
				all := s.talk(t, raw+raw)
				want := fmt.Sprintf("POST /%s content-length=%d [%s]", body, len(body), body)
				if len(all) != 2 || all[0].body != want || all[1].body != want {
					t.Errorf("got %v, want %q", all, want)
				}
			}
		})
	}
	wait.Wait()
}

func TestInvalidOptionsAreNamed(t *testing.T) {
	opt := front.Options{MaxHeaderBytes: 1, MaxHeaderLines: -1, MaxTargetBytes: -1, ReadTimeout: -1, WriteTimeout: -1, IdleTimeout: -1, MaxConns: -1, MaxConnsPerIP: -1, Hosts: []string{"a/b"}}
	err := opt.Validate()
	if err == nil {
		t.Fatal("all is well")
	}
	for _, part := range []string{"header_bytes", "header_lines", "target_bytes", "read_timeout", "write_timeout", "idle_timeout", "max_connections", "max_connections_per_ip", `"a/b"`, "logger"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q does not name %s", err, part)
		}
	}
	if err := (front.Options{Logger: slog.New(slog.DiscardHandler)}).Validate(); err != nil {
		t.Errorf("the defaults: %v", err)
	}
}

// The budget of a request that is served: its id, which outlives it.
func TestAServedRequestAllocatesOnce(t *testing.T) {
	if front.RaceDetector {
		t.Skip("a sync.Pool drops values at random under the race detector")
	}
	answer := text(200, `{"hello":"world"}`)
	s := serve(t, front.Options{}, func(x *front.Exchange) {
		if x.BuildHeaders(); x.ReadBody(1<<10) == nil {
			x.Send(answer)
		}
	})
	nc := s.dial(t)
	request := []byte("POST /orders?limit=10&after=x%20y HTTP/1.1\r\nHost: localhost\r\nAccept: */*\r\nAuthorization: Bearer x\r\nX-Forwarded-For: 1.1.1.1\r\nContent-Length: 5\r\n\r\nhello")
	reply := make([]byte, 4<<10)
	once := func() {
		if _, err := nc.Write(request); err != nil {
			t.Fatal(err)
		}
		if _, err := nc.Read(reply); err != nil {
			t.Fatal(err)
		}
	}
	once()
	if got := testing.AllocsPerRun(500, once); got > 1 {
		t.Errorf("%v allocations for a request, want 1", got)
	}
}

func BenchmarkHello(b *testing.B) {
	answer := text(200, `{"hello":"world"}`)
	s := serve(b, front.Options{}, func(x *front.Exchange) {
		if x.BuildHeaders(); x.ReadBody(1<<10) == nil {
			x.Send(answer)
		}
	})
	nc := s.dial(b)
	if err := nc.SetDeadline(time.Time{}); err != nil {
		b.Fatal(err)
	}
	request, reply := []byte("GET /hello HTTP/1.1\r\nHost: localhost\r\nAccept: */*\r\nUser-Agent: bench\r\n\r\n"), make([]byte, 4<<10)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := nc.Write(request); err != nil {
			b.Fatal(err)
		}
		if _, err := nc.Read(reply); err != nil {
			b.Fatal(err)
		}
	}
}
