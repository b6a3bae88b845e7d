package live_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// event is what a stream of events sends: an event, or a comment.
type event struct {
	kind, watch, id, data string
	comment               string
	at                    time.Time // when it was received
}

// watching has no limits on connections or time: what a test watches ends with its context.
var watching = &http.Client{Transport: &http.Transport{DisableCompression: true, DisableKeepAlives: true}}

// stream is an open stream of events.
type stream struct {
	events chan event // closed at its end
	answer *http.Response
	stop   context.CancelFunc
	clean  bool // the answer was whole; valid after its end
}

// openStream sends a request that asks for events. If the answer is another one, it returns its status.
func openStream(ctx context.Context, method, url, body string, headers ...string) (*stream, int, error) {
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
	answer, err := watching.Do(req)
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
	go s.read(ctx)
	return s, 200, nil
}

// read reads events until the stream ends, or stop is called.
func (s *stream) read(ctx context.Context) {
	defer close(s.events)
	defer s.answer.Body.Close()
	lines := bufio.NewReader(s.answer.Body)
	var e event
	var data []string
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			s.clean = err == io.EOF && line == "" && e == event{}
			return
		}
		line = strings.TrimSuffix(line, "\n")
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case line == "":
			if e == (event{}) {
				continue
			}
			e.data, e.at = strings.Join(data, "\n"), time.Now()
			select {
			case s.events <- e:
			case <-ctx.Done():
				return
			}
			e, data = event{}, nil
		case name == "":
			e.comment = value
		case name == "event":
			e.kind = value
		case name == "watch":
			e.watch = value
		case name == "id":
			e.id = value
		case name == "data":
			data = append(data, value)
		}
	}
}

// commit is the number of the commit that the event names.
func (e *event) commit() (n uint64, err error) {
	_, err = fmt.Sscanf(e.id, "%d-", &n)
	return n, err
}

// status is that of the problem in the event.
func (e *event) status() (n int) {
	var problem struct{ Status int }
	_ = json.Unmarshal([]byte(e.data), &problem)
	return problem.Status
}
