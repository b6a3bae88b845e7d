package operations_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/gorilla/websocket"

	"runner.example/tests/harness"
)

// startDevWithProxy starts `runner dev` on an app with sessions, and with another server as [dev] proxy.
func startDevWithProxy(t *testing.T, other string) *harness.Server {
	t.Helper()
	schema := "auth { session cookie(\"sid\") { idle: 30m } }\n" + harness.DevSchema
	a := harness.NewApp(t, schema, "[dev]\nproxy = \""+other+"\"\n[auth]\ninsecure_cookies = true\n")
	a.Write("handlers/hello.ts", harness.HelloSource("one"))
	s := a.Start("dev")
	s.WaitForBody("/v1/hello", "one")
	return s
}

func TestDevForwardsRequestsThatNoRouteMatches(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		w.Header().Set("X-Other", "yes")
		w.WriteHeader(http.StatusTeapot)
		fmt.Fprintf(w, "%s %s %d bytes, host %s, for %s\n", r.Method, r.URL, len(body), r.Host, r.Header.Get("X-Forwarded-For"))
		for _, name := range []string{"Authorization", "X-Api-Key", "Cookie", "Accept"} {
			fmt.Fprintf(w, "%s: %q\n", name, r.Header[name])
		}
	}))
	defer other.Close()
	s := startDevWithProxy(t, other.URL)
	body := strings.Repeat("b", 300_000)
	got := s.Do("PUT", "/@vite/client?t=1&x=%20y", body, "Authorization: Bearer x", "X-API-Key: y", "Cookie: a=1; sid=secret; b=\"2\"", "Accept: text/*")
	want := "PUT /@vite/client?t=1&x=%20y 300000 bytes, host " + strings.TrimPrefix(other.URL, "http://") + ", for 127.0.0.1\n" +
		"Authorization: []\nX-Api-Key: []\nCookie: [\"a=1; b=\\\"2\\\"\"]\nAccept: [\"text/*\"]\n"
	if got.Status != http.StatusTeapot || got.Body != want || got.Header.Get("X-Other") != "yes" {
		t.Errorf("%d %v\n%s\nwant\n%s", got.Status, got.Header, got.Body, want)
	}
	for range 3 { // a forwarded request leaves its connection usable
		s.WantBody("/v1/hello", "one")
		if got := s.Do("GET", "/", ""); got.Status != http.StatusTeapot || !strings.HasPrefix(got.Body, "GET / 0 bytes") {
			t.Errorf("%d %s", got.Status, got.Body)
		}
	}
	if got := s.Do("HEAD", "/", ""); got.Status != http.StatusTeapot || got.Body != "" {
		t.Errorf("HEAD: %d %q", got.Status, got.Body)
	}
	if got := s.Do("POST", "/v1/hello", ""); got.Status != 405 {
		t.Errorf("another method of a route: %d %s", got.Status, got.Body)
	}
	if got := s.Raw("GET /../x HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", 0); !strings.HasPrefix(got, "HTTP/1.1 400 ") {
		t.Errorf("a path that is not in normal form: %s", got)
	}
	chunked := "POST /in/chunks HTTP/1.1\r\nHost: a.localhost:80\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"
	const received = "POST /in/chunks 5 bytes"
	if got, _ := s.Exchange(chunked, 0, func(reply string) bool { return strings.Contains(reply, received) }); !strings.Contains(got, received) {
		t.Errorf("a body in chunks: %s", got)
	}
	for host, want := range map[string]int{
		"localhost": 418, "LOCALHOST:8080": 418, "[::1]:8080": 418, "192.0.2.7": 418, "localhost.example": 421, "example.com:8080": 421,
	} {
		if got := s.Raw("GET / HTTP/1.1\r\nHost: "+host+"\r\nConnection: close\r\n\r\n", 0); !strings.HasPrefix(got, fmt.Sprintf("HTTP/1.1 %d ", want)) {
			t.Errorf("for the host %s: %s", host, got)
		}
	}

	s.Stop()
	s = s.App.Serve() // which does not know the other server
	if got := s.Do("GET", "/", ""); got.Status != 404 {
		t.Errorf("runner serve: %d %s", got.Status, got.Body)
	}
}

func TestDevForwardsPartsOfAnAnswerAtOnce(t *testing.T) {
	more := make(chan struct{})
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintln(w, "first")
		w.(http.Flusher).Flush()
		<-more
		fmt.Fprintln(w, "second")
	}))
	defer other.Close()
	s := startDevWithProxy(t, other.URL)
	answer, err := http.Get(s.URL + "/events")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	lines := bufio.NewScanner(answer.Body)
	if !lines.Scan() || lines.Text() != "first" {
		t.Fatalf("%q, %v", lines.Text(), lines.Err())
	}
	close(more)
	if !lines.Scan() || lines.Text() != "second" || lines.Scan() {
		t.Errorf("%q, %v", lines.Text(), lines.Err())
	}
}

func TestDevForwardsWebSockets(t *testing.T) {
	ended := make(chan error, 1)
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		upgrader := websocket.Upgrader{Subprotocols: []string{"vite-hmr"}}
		c, err := upgrader.Upgrade(w, r, nil)
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		for err == nil {
			var kind int
			var message []byte
			if kind, message, err = c.ReadMessage(); err == nil {
				err = c.WriteMessage(kind, message)
			}
		}
		ended <- err
	}))
	defer other.Close()
	s := startDevWithProxy(t, other.URL)
	dialer := websocket.Dialer{Subprotocols: []string{"vite-hmr"}}
	dial := func() *websocket.Conn {
		header := http.Header{"Origin": {other.URL}}
		c, _, err := dialer.Dial("ws"+strings.TrimPrefix(s.URL, "http")+"/?token=x", header)
		if err != nil {
			t.Fatal(err)
		}
		if c.Subprotocol() != "vite-hmr" {
			t.Errorf("the protocol is %q", c.Subprotocol())
		}
		return c
	}
	c := dial()
	for _, want := range []string{"short", strings.Repeat("long ", 100_000), ""} {
		if err := c.WriteMessage(websocket.TextMessage, []byte(want)); err != nil {
			t.Fatal(err)
		}
		if _, got, err := c.ReadMessage(); err != nil || string(got) != want {
			t.Fatalf("%d bytes, %v, want %d", len(got), err, len(want))
		}
	}
	s.WantBody("/v1/hello", "one")
	if err := c.WriteMessage(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseNormalClosure, "")); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; !websocket.IsCloseError(err, websocket.CloseNormalClosure) {
		t.Errorf("the other server saw %v", err)
	}
	_ = c.Close()

	c = dial()
	defer c.Close()
	s.Stop() // does not wait for it
	if err := <-ended; err == nil {
		t.Error("the WebSocket is still open")
	}
	if _, _, err := c.ReadMessage(); err == nil {
		t.Error("the client's WebSocket is still open")
	}
}

func TestDevReportsThatTheOtherServerDoesNotAnswer(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := ln.Addr().String()
	_ = ln.Close()
	s := startDevWithProxy(t, "http://"+address)
	want := "[dev] proxy: http://" + address + " does not answer: connection refused\n"
	for range 2 {
		if got := s.Do("GET", "/page", ""); got.Status != 502 || got.Body != want {
			t.Errorf("%d %q, want %q", got.Status, got.Body, want)
		}
	}
	if log := s.Stderr.String(); strings.Count(log, "runner: warning: "+want) != 1 {
		t.Errorf("the log does not say it once:\n%s", log)
	}
}
