package node

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"

	"runner.example/internal/telemetry"
)

// told is where a log is written to; come is closed when it has a line.
type told struct {
	mu   sync.Mutex
	text bytes.Buffer
	once sync.Once
	come chan struct{}
}

func (w *told) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	defer w.once.Do(func() { close(w.come) })
	return w.text.Write(p)
}

func (w *told) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.String()
}

// A service that goes on sending after its answer has the HTTP client write that to
// package log, whole.
func TestLibraryLogLinesDoNotQuoteInput(t *testing.T) {
	out := &told{come: make(chan struct{})}
	logLibraries(telemetry.NewLogger(out, telemetry.Options{}))
	t.Cleanup(func() {
		log.SetFlags(log.LstdFlags)
		log.SetOutput(os.Stderr)
	})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	more := make(chan struct{})
	go func() {
		conn, err := ln.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		request, err := http.ReadRequest(bufio.NewReader(conn))
		if err != nil {
			return
		}
		fmt.Fprint(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
		<-more
		fmt.Fprintf(conn, "you sent %s\n{\"level\":\"ERROR\"}\n\x1b[31m", request.Header.Get("Authorization"))
		<-out.come
	}()
	request, err := http.NewRequest("GET", "http://"+ln.Addr().String(), nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer canary")
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	answer, err := transport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, answer.Body); err != nil {
		t.Fatal(err)
	}
	close(more)
	<-out.come
	if text := out.String(); !strings.Contains(text, `"level":"WARN"`) || !strings.Contains(text, "Unsolicited response") ||
		strings.Contains(text, "canary") || strings.Contains(text, "ERROR") || strings.Count(text, "\n") != 1 {
		t.Errorf("logged: %s", text)
	}
	log.Print(strings.Repeat("long ", 1000))
	if n := len(out.String()); n > 1000 {
		t.Errorf("a long line takes the log to %d bytes", n)
	}
}
