package front_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"runner.example/hostabi/abi"
	"runner.example/internal/fault"
	"runner.example/runtime/front"
)

// never is a time at which nothing ends.
func never() time.Time { return time.Now().Add(time.Hour) }

// readParts reads a body with buffers of this size, and returns it with the number of its parts.
func readParts(x *front.Exchange, size int, limit int64) (body string, parts int, err error) {
	var all strings.Builder
	p := make([]byte, size)
	for {
		n, err := x.ReadPart(p, limit, never())
		all.Write(p[:n])
		switch {
		case err == io.EOF && n == 0:
			return all.String(), parts, nil
		case err != nil:
			return all.String(), parts, err
		}
		parts++
	}
}

// partsHandler answers the body, or what is wrong with it.
func partsHandler(size int, limit int64) func(x *front.Exchange) {
	return func(x *front.Exchange) {
		body, _, err := readParts(x, size, limit)
		if err != nil {
			x.Refuse(err, front.Extra{})
			return
		}
		x.Send(text(200, body))
	}
}

func chunked(parts ...string) string {
	var b strings.Builder
	for _, part := range parts {
		fmt.Fprintf(&b, "%x\r\n%s\r\n", len(part), part)
	}
	return b.String() + "0\r\n\r\n"
}

func TestABodyIsReadInParts(t *testing.T) {
	large := strings.Repeat("0123456789abcdef", 20_000)
	for _, size := range []int{1, 7, 4 << 10, 64 << 10} {
		s := serve(t, front.Options{}, partsHandler(size, 1<<20))
		for name, c := range map[string]struct{ framing, sent, body string }{
			"none":            {"", "", ""},
			"length":          {"Content-Length: 5\r\n", "hello", "hello"},
			"chunks":          {"Transfer-Encoding: chunked\r\n", chunked("a", "bc"), "abc"},
			"trailers":        {"Transfer-Encoding: chunked\r\n", "3\r\nabc\r\n0\r\nX-Sum: 1\r\n\r\n", "abc"},
			"large":           {fmt.Sprintf("Content-Length: %d\r\n", len(large)), large, large},
			"chunks of large": {"Transfer-Encoding: chunked\r\n", chunked(large[:100_000], large[100_000:]), large},
		} {
			if size == 1 && len(c.body) > 1000 {
				continue
			}
			head := "POST / HTTP/1.1\r\nHost: a\r\n" + c.framing + "\r\n"
			answers := s.talk(t, head+c.sent+second) // the next request follows at once
			if len(answers) != 2 || answers[0].StatusCode != 200 || answers[0].body != c.body || answers[1].StatusCode != 200 {
				t.Errorf("%s, parts of %d bytes: %d answers, the first %.100v", name, size, len(answers), answers[0])
			}
		}
	}
}

func TestABodyThatIsReadInPartsIsRefused(t *testing.T) {
	s := serve(t, front.Options{}, partsHandler(1000, 10))
	for sent, code := range map[string]fault.Code{
		"Content-Length: 11\r\n\r\n12345678901":                           fault.BodyTooLarge,
		"Transfer-Encoding: chunked\r\n\r\n" + chunked("123456", "78901"): fault.BodyTooLarge,
		"Transfer-Encoding: chunked\r\n\r\nx\r\n":                         fault.InvalidRequest,
		"Transfer-Encoding: chunked\r\n\r\n3\r\nabcd\r\n0\r\n\r\n":        fault.InvalidRequest,
		"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n bad\r\n\r\n": fault.InvalidRequest,
	} {
		answers := s.talk(t, "POST / HTTP/1.1\r\nHost: a\r\n"+sent+second)
		if len(answers) != 1 || problemOf(t, answers[0]).Code != string(code) || !answers[0].Close {
			t.Errorf("%q: %v, want %s and the end of the connection", sent, answers, code)
		}
	}
}

// Each pause of the client may last for the read timeout, and all of them until the end that the caller gives.
func TestASlowBodyThatIsReadInPartsHasATimeForEachPart(t *testing.T) {
	const limit = 100 * time.Millisecond
	servedOnce(t)
	synctest.Test(t, func(t *testing.T) {
		t.Cleanup(func() { time.Sleep(time.Minute) })
		s := newStage()
		var end time.Time
		startOn(t, s, front.Options{ReadTimeout: limit}, func(x *front.Exchange) {
			p := make([]byte, 100)
			for {
				switch _, err := x.ReadPart(p, 100, end); {
				case err == io.EOF:
					x.Send(text(200, "whole"))
					return
				case err != nil:
					x.Refuse(err, front.Extra{})
					return
				}
			}
		})
		post := func(pause time.Duration, all time.Duration) (status int, took time.Duration) {
			ours, theirs := net.Pipe()
			defer ours.Close()
			began := time.Now()
			end = began.Add(all)
			s.conns <- piped{theirs}
			go func() {
				_, err := io.WriteString(ours, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n")
				for n := 0; n < 10 && err == nil; n++ {
					time.Sleep(pause)
					_, err = io.WriteString(ours, "x")
				}
			}()
			return readAnswer(t, bufio.NewReader(ours), "POST").StatusCode, time.Since(began)
		}
		if status, took := post(limit-1, time.Hour); status != 200 || took < 9*limit {
			t.Errorf("pauses below the limit: %d after %s", status, took)
		}
		if status, took := post(limit+1, time.Hour); status != 408 || took != limit {
			t.Errorf("a pause above the limit: %d after %s", status, took)
		}
		if status, took := post(limit-1, 5*limit); status != 408 || took != 5*limit {
			t.Errorf("pauses that end too late: %d after %s", status, took)
		}
	})
}

func TestAClientThatHangsUpInItsBodyIsSeen(t *testing.T) {
	ended := make(chan error, 1)
	s := serve(t, front.Options{}, func(x *front.Exchange) {
		body, _, err := readParts(x, 100, 1000)
		if body != "half" {
			err = errors.Join(err, fmt.Errorf("the body is %q", body))
		}
		ended <- err
		x.Refuse(err, front.Extra{})
	})
	nc := s.dial(t)
	write(t, nc, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\nhalf")
	if err := nc.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; fault.CodeOf(err) != fault.InvalidRequest {
		t.Errorf("the body ends with %v", err)
	}
}

// What is not read of a body must not be taken for a request.
func TestAfterABodyThatIsNotReadTheConnectionEnds(t *testing.T) {
	for parts, stays := range map[int]bool{0: false, 1: false, 2: true} {
		s := serve(t, front.Options{}, func(x *front.Exchange) {
			for range parts {
				if _, err := x.ReadPart(make([]byte, 5), 1000, never()); err != nil && err != io.EOF {
					t.Error(err)
				}
			}
			x.Send(text(200, "early"))
		})
		smuggled := "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n12345\r\n" + fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(second), second)
		if answers := s.talk(t, smuggled); len(answers) != 1 || answers[0].body != "early" || !answers[0].Close {
			t.Errorf("after %d parts of chunks: %v", parts, answers)
		}
		answers := s.talk(t, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n1234567890"+second)
		if want := 1; stays || parts == 0 { // all of it was read, or has arrived with the head
			want = 2
			if len(answers) != want {
				t.Errorf("after %d parts of a short body: %v", parts, answers)
			}
		} else if len(answers) != want || !answers[0].Close {
			t.Errorf("after %d parts of a short body: %v", parts, answers)
		}
	}
}

func TestContinueIsSentBeforeTheFirstPartAndNeverInsideOfAnAnswer(t *testing.T) {
	const asks = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\nConnection: close\r\n\r\n"
	const go100 = "HTTP/1.1 100 Continue\r\n\r\n"
	for name, begins := range map[string]bool{"read first": false, "answered first": true} {
		s := serve(t, front.Options{}, func(x *front.Exchange) {
			if begins {
				if _, err := x.BeginStream(&abi.Response{Status: 200}); err != nil {
					t.Error(err)
				}
			}
			body, _, err := readParts(x, 100, 1000)
			if err != nil || body != "hello" {
				t.Errorf("the body is %q, %v", body, err)
			}
			if begins {
				err := streamed(x, body)
				x.EndStream(err == nil, nil)
			} else {
				x.Send(text(200, body))
			}
		})
		nc := s.dial(t)
		write(t, nc, asks)
		r := bufio.NewReader(nc)
		got := make([]byte, len(go100))
		if _, err := io.ReadFull(r, got); err != nil || string(got) != go100 {
			t.Fatalf("%s: %q, %v", name, got, err)
		}
		write(t, nc, "hello")
		if a := readAnswer(t, r, "POST"); a.StatusCode != 200 || a.body != "hello" {
			t.Errorf("%s: %v", name, a)
		}
	}
}

// A body is sent back while it is read, through buffers that hold much less of it.
func TestABodyIsSentBackWhileItIsRead(t *testing.T) {
	s := serve(t, front.Options{}, func(x *front.Exchange) {
		err := flushed(x)(x.BeginStream(&abi.Response{Status: 200}))
		p := make([]byte, 64<<10)
		for err == nil {
			var n int
			if n, err = x.ReadPart(p, 1<<40, never()); err == nil {
				err = streamed(x, string(p[:n]))
			}
		}
		x.EndStream(err == io.EOF, nil)
	})
	nc := s.dial(t)
	const pieces, size = 500, 64 << 10
	piece := make([]byte, size)
	for i := range piece {
		piece[i] = byte(rand.Uint32())
	}
	sent := make(chan error, 1)
	go func() {
		_, err := fmt.Fprintf(nc, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n", pieces*size)
		for n := 0; n < pieces && err == nil; n++ {
			_, err = nc.Write(piece)
		}
		sent <- err
	}()
	a := readAnswer(t, bufio.NewReader(nc), "POST")
	if err := <-sent; err != nil || a.body != string(bytes.Repeat(piece, pieces)) {
		t.Errorf("%d bytes come back, %v", len(a.body), err)
	}
}

// Whatever the chunks are, a body in parts is the body that is read as a whole, or is refused as that is.
func FuzzABodyInPartsIsTheWholeBody(f *testing.F) {
	f.Add([]byte(chunked("a", "bc", strings.Repeat("d", 5000))), uint16(3))
	f.Add([]byte("5;x=1\r\nhello\r\n0\r\nA: b\r\n\r\n"), uint16(100))
	f.Add([]byte("5\nhello\r\n0\r\n\r\n"), uint16(1))
	f.Add([]byte("fffffffffffffffff\r\n"), uint16(9))
	const limit = 8000
	outcome := func(body string, err error) string {
		if err != nil {
			return string(fault.CodeOf(err))
		}
		return "body " + body
	}
	outcomes := make(chan string, 2)
	size := 1
	s := serve(f, front.Options{ReadTimeout: time.Second}, func(x *front.Exchange) {
		if string(x.Request.Path) == "/parts" {
			body, _, err := readParts(x, size, limit)
			outcomes <- outcome(body, err)
		} else {
			err := x.ReadBody(limit)
			outcomes <- outcome(string(x.Request.Body), err)
		}
		x.Refuse(fault.New(fault.NotFound, "fuzzed"), front.Extra{})
	})
	f.Fuzz(func(t *testing.T, body []byte, part uint16) {
		size = int(part) + 1
		send := func(path string) string {
			nc := s.dial(t)
			defer nc.Close()
			write(t, nc, "POST "+path+" HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n")
			_, _ = nc.Write(body) // fails if the server has refused it already
			if half, ok := nc.(*net.TCPConn); ok {
				_ = half.CloseWrite()
			}
			return <-outcomes
		}
		if whole, parts := send("/whole"), send("/parts"); whole != parts {
			t.Errorf("%q: %.200q as a whole, %.200q in parts of %d bytes", body, whole, parts, size)
		}
	})
}
