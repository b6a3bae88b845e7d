package live_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"runner.example/tests/harness"
)

// event is an event of a watch, or a comment, and when it was received.
type event struct {
	harness.Event
	at time.Time
}

// unlimited is a client without limits on connections or time: a stream ends with its context.
var unlimited = &http.Client{Transport: &http.Transport{DisableCompression: true, DisableKeepAlives: true}}

// stream is an open stream of events.
type stream struct {
	events chan event // closed at its end
	answer *http.Response
	stop   context.CancelFunc
	clean  bool // the answer was complete; valid when events is closed
}

// openStream sends a request for a stream of events. If the server sends another answer, it returns the status and an error.
func openStream(ctx context.Context, t testing.TB, method, url, body string, headers ...string) (*stream, int, error) {
	ctx, stop := context.WithCancel(ctx)
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		stop()
		return nil, 0, err
	}
	req.Header.Set("Accept", "text/event-stream")
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for _, line := range headers {
		if name, value, ok := strings.Cut(line, ": "); ok {
			req.Header.Add(name, value)
		}
	}
	answer, err := unlimited.Do(req)
	if err != nil {
		stop()
		return nil, 0, err
	}
	if answer.StatusCode != 200 || answer.Header.Get("Content-Type") != "text/event-stream" {
		text, _ := io.ReadAll(answer.Body)
		answer.Body.Close()
		stop()
		return nil, answer.StatusCode, fmt.Errorf("%d %s: %s", answer.StatusCode, answer.Header.Get("Content-Type"), text)
	}
	s := &stream{events: make(chan event, 100), answer: answer, stop: stop}
	go s.read(ctx, t)
	return s, 200, nil
}

// read reads events until the stream ends, or stop is called.
func (s *stream) read(ctx context.Context, t testing.TB) {
	defer close(s.events)
	defer s.answer.Body.Close()
	lines := harness.ReadEvents(t, s.answer)
	for {
		e, err := lines.Next()
		if err != nil {
			s.clean = err == io.EOF && e == harness.Event{}
			return
		}
		select {
		case s.events <- event{e, time.Now()}:
		case <-ctx.Done():
			return
		}
	}
}

// commit returns the number of the commit in the id of the event.
func (e *event) commit() (n uint64, err error) {
	_, err = fmt.Sscanf(e.ID, "%d-", &n)
	return n, err
}

// status returns the status of the problem in the event; 0 if there is none.
func (e *event) status() (n int) {
	var problem struct{ Status int }
	_ = json.Unmarshal([]byte(e.Data), &problem)
	return problem.Status
}
