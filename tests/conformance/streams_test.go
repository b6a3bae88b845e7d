package conformance_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"runner.example/keystore"
	"runner.example/runtime"
	"runner.example/state/store"
)

// liveServer serves a guest as the runner does.
type liveServer struct {
	url  string
	log  bytes.Buffer // to be read after stop
	stop func()
}

func (g *guest) serveLive(t *testing.T) *liveServer {
	t.Helper()
	s := &liveServer{}
	st, err := store.Open(store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	keys, err := keystore.Open(t.Context(), st, keystore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	rt, err := runtime.New(runtime.Options{
		Store: st, Keystore: keys, Logger: slog.New(slog.NewTextHandler(&s.log, nil)), Sandbox: sandboxOptions(t),
	})
	if err != nil {
		t.Fatal(err)
	}
	bundle := &runtime.Bundle{Schema: g.schema, Sources: g.sources, Modules: g.moduleFiles(t), Secrets: g.secrets}
	if err := rt.Activate(t.Context(), bundle, runtime.Activation{}); err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.url = "http://" + ln.Addr().String()
	served := make(chan error, 1)
	go func() { served <- rt.Serve(ln) }()
	s.stop = func() {
		if err := errors.Join(rt.Shutdown(context.WithoutCancel(t.Context())), <-served, rt.Close(), keys.Close(), st.Close()); err != nil {
			t.Error(err)
		}
	}
	return s
}

// send sends a request and returns its answer, whose body is not read yet.
func (s *liveServer) send(t *testing.T, method, path, body string, headers ...string) *http.Response {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	request, err := http.NewRequestWithContext(ctx, method, s.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = answer.Body.Close() })
	return answer
}

// read returns the answer to GET and the error of reading it.
func (s *liveServer) read(t *testing.T, path string, headers ...string) (*http.Response, string, error) {
	t.Helper()
	answer := s.send(t, http.MethodGet, path, "", headers...)
	body, err := io.ReadAll(answer.Body)
	return answer, string(body), err
}

// streamsAnswers reads answers in parts while their handlers run.
func (g *guest) streamsAnswers(t *testing.T) {
	s := g.serveLive(t)

	answer := s.send(t, http.MethodGet, "/streams/parts", "")
	part := make([]byte, len("one\n"))
	_, err := io.ReadFull(answer.Body, part)
	if err != nil || string(part) != "one\n" || answer.StatusCode != 200 || answer.Header.Get("Content-Type") != "text/plain" {
		t.Errorf("parts: %v %q, %v", answer, part, err)
	}
	if added := s.send(t, http.MethodPost, "/go", `{"item":"go"}`); added.StatusCode != 201 { // for which the handler waits
		t.Fatalf("the order was not added: %v", added)
	}
	rest, err := io.ReadAll(answer.Body)
	if err != nil || string(rest) != "two\nthree\n" {
		t.Errorf("parts: the rest is %q, %v", rest, err)
	}

	const events = "event: tick\nid: 1\ndata: last 41\n\ndata: a\ndata: b\ndata: c\ndata: \ndata: d\n\nid: 2\nretry: 1500\n\nevent: bye\ndata: \n\n"
	answer, body, err := s.read(t, "/streams/events", "Last-Event-ID", "41")
	if err != nil || body != events || answer.Header.Get("Content-Type") != "text/event-stream" {
		t.Errorf("events: %q %q, %v", answer.Header, body, err)
	}

	for what, sent := range map[string]string{"fails": "one\n", "uncaught": "one\n", "refused": "event: error\ndata: {\"code\":\"handler_failed\","} {
		answer, body, err := s.read(t, "/streams/"+what)
		if answer.StatusCode != 200 || !strings.HasPrefix(body, sent) || !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%s: %d %q is not cut off: %v", what, answer.StatusCode, body, err)
		}
	}

	for item, want := range map[string]string{"before": `{"count":2}`, "after": `{"count":1}`} {
		if _, body, err := s.read(t, "/go/count?q="+item); err != nil || body != want {
			t.Errorf("%s: %s orders, want %s: %v", item, body, want, err)
		}
	}

	answer = s.send(t, http.MethodGet, "/streams/forever", "")
	if _, err := io.ReadFull(answer.Body, make([]byte, 1<<20)); err != nil {
		t.Error(err)
	}
	if err := answer.Body.Close(); err != nil { // closes the connection
		t.Error(err)
	}
	s.stop()
	if n := strings.Count(s.log.String(), "handler failed"); n != 2 || !strings.Contains(s.log.String(), "boom") {
		t.Errorf("%d failures are logged, want 2:\n%s", n, s.log.String())
	}
}
