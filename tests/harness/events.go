package harness

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// Event is one event of a text/event-stream.
type Event struct {
	Kind, Watch, ID, Data string
	// Comment is the text of a comment that came instead of an event.
	Comment string
}

// Events is an open stream of events.
type Events struct {
	*http.Response
	t     testing.TB
	lines *bufio.Reader
}

// Watch opens a stream of events, and fails the test if the answer has another status or type. The body is that of a POST,
// and empty for a GET. The test closes the stream at its end.
func (s *Server) Watch(t testing.TB, path, body string, headers ...string) *Events {
	t.Helper()
	answer := s.TryWatch(t, path, body, headers...)
	if answer.StatusCode != 200 || answer.Header.Get("Content-Type") != "text/event-stream" {
		text, err := io.ReadAll(answer.Body)
		t.Fatalf("watch %s: %d %s %s %v", path, answer.StatusCode, answer.Header.Get("Content-Type"), text, err)
	}
	return answer
}

// TryWatch is Watch with any answer.
func (s *Server) TryWatch(t testing.TB, path, body string, headers ...string) *Events {
	t.Helper()
	method := "GET"
	if body != "" {
		method = "POST"
	}
	req, err := http.NewRequest(method, s.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", "text/event-stream")
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Set(name, value)
	}
	answer, err := Client.Do(req)
	if err != nil {
		t.Fatalf("watch %s: %v\n%s", path, err, s.Stderr.String())
	}
	t.Cleanup(func() { answer.Body.Close() })
	return ReadEvents(t, answer)
}

// ReadEvents reads the events of an answer, whose body the caller closes.
func ReadEvents(t testing.TB, answer *http.Response) *Events {
	return &Events{answer, t, bufio.NewReader(answer.Body)}
}

// Next returns the next event or comment. The error is io.EOF at the end of a stream that is whole.
func (e *Events) Next() (event Event, err error) {
	var data []string
	for {
		line, err := e.lines.ReadString('\n')
		if err != nil {
			return event, err
		}
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ":")
		value = strings.TrimPrefix(value, " ")
		switch name {
		case "event":
			event.Kind = value
		case "watch":
			event.Watch = value
		case "id":
			event.ID = value
		case "data":
			data = append(data, value)
		case "":
			if value != "" {
				event.Comment = value
				continue
			}
			event.Data = strings.Join(data, "\n")
			return event, nil
		default:
			return event, fmt.Errorf("unknown field in %q", line)
		}
	}
}

// Want fails the test unless the next event is of the kind, and its data contains text. It returns the event.
func (e *Events) Want(kind, text string) Event {
	e.t.Helper()
	got, err := e.Next()
	if err != nil || got.Kind != kind || !strings.Contains(got.Data, text) {
		e.t.Fatalf("the next event is %+v (%v), want %s with %q", got, err, kind, text)
	}
	return got
}

// WantEnd fails the test unless the stream ends now, and is whole.
func (e *Events) WantEnd() {
	e.t.Helper()
	if got, err := e.Next(); err != io.EOF {
		e.t.Errorf("after the last event there is %+v (%v)", got, err)
	}
}

// Close hangs up.
func (e *Events) Close() {
	e.t.Helper()
	if err := e.Body.Close(); err != nil {
		e.t.Error(err)
	}
}
