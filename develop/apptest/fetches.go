package apptest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// fetches answers the requests that handlers send, in place of the network: the test does, when it listens. Any goroutine may
// use it.
type fetches struct {
	mu         sync.Mutex
	listens    bool
	replaced   chan struct{} // closed when another one listens
	last       int
	waiting    map[int]chan fetchAnswer // of requests that the test has not answered
	unexpected []string
	queue      chan *sentFetch
	closed     chan struct{}
	closeOnce  sync.Once
}

// sentFetch is a request of a handler.
type sentFetch struct {
	ID      int         `json:"id"`
	Method  string      `json:"method"`
	URL     string      `json:"url"`
	Headers [][2]string `json:"headers"`
	Body    []byte      `json:"body"`
}

// fetchAnswer is the test's answer.
type fetchAnswer struct {
	ID      int         `json:"id"`
	Status  int         `json:"status"`
	Headers [][2]string `json:"headers"`
	Body    []byte      `json:"body"`
	// Unexpected: no function of the test answers it. Error: the network fails with this text.
	Unexpected bool   `json:"unexpected"`
	Error      string `json:"error"`
}

func newFetches() *fetches {
	return &fetches{waiting: map[int]chan fetchAnswer{}, queue: make(chan *sentFetch, 64), closed: make(chan struct{})}
}

func (f *fetches) close() { f.closeOnce.Do(func() { close(f.closed) }) }

var errUnanswered = errors.New("no outbound.on of the test answers it")

// RoundTrip answers a request of a handler.
func (f *fetches) RoundTrip(r *http.Request) (*http.Response, error) {
	sent := &sentFetch{Method: r.Method, URL: r.URL.String(), Headers: [][2]string{}}
	for name, values := range r.Header {
		for _, value := range values {
			sent.Headers = append(sent.Headers, [2]string{strings.ToLower(name), value})
		}
	}
	slices.SortStableFunc(sent.Headers, func(a, b [2]string) int { return strings.Compare(a[0], b[0]) })
	if r.Body != nil {
		var err error
		if sent.Body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
	}
	answered := make(chan fetchAnswer, 1)
	f.mu.Lock()
	f.last++
	sent.ID = f.last
	if !f.listens {
		f.unexpected = append(f.unexpected, describe(sent))
		f.mu.Unlock()
		return nil, errUnanswered
	}
	f.waiting[sent.ID] = answered
	f.mu.Unlock()
	select {
	case f.queue <- sent:
	case <-f.closed:
		return nil, errUnanswered
	case <-r.Context().Done():
		return nil, context.Cause(r.Context())
	}
	select {
	case a := <-answered:
		return a.response(f, r, sent)
	case <-f.closed:
		return nil, errUnanswered
	case <-r.Context().Done():
		return nil, context.Cause(r.Context())
	}
}

func (a fetchAnswer) response(f *fetches, r *http.Request, sent *sentFetch) (*http.Response, error) {
	switch {
	case a.Unexpected:
		f.mu.Lock()
		f.unexpected = append(f.unexpected, describe(sent))
		f.mu.Unlock()
		return nil, errUnanswered
	case a.Error != "":
		return nil, errors.New(a.Error)
	}
	got := &http.Response{
		StatusCode: a.Status, Status: fmt.Sprintf("%d %s", a.Status, http.StatusText(a.Status)), Proto: "HTTP/1.1",
		ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(a.Body)),
		ContentLength: int64(len(a.Body)), Request: r,
	}
	for _, h := range a.Headers {
		got.Header.Add(h[0], h[1])
	}
	return got, nil
}

// describe describes a request in a few lines.
func describe(sent *sentFetch) string {
	text := sent.Method + " " + sent.URL
	for _, h := range sent.Headers {
		if h[0] != "user-agent" && h[0] != "traceparent" {
			text += "\n  " + h[0] + ": " + h[1]
		}
	}
	if len(sent.Body) > 0 {
		const most = 500
		body := string(sent.Body[:min(len(sent.Body), most)])
		text += "\n  " + strings.ToValidUTF8(body, "�")
	}
	return text
}

// next waits for the next request of a handler; nil: the environment is closed, or next was called again.
func (f *fetches) next(ctx context.Context) (*sentFetch, error) {
	f.mu.Lock()
	f.listens = true
	if f.replaced != nil {
		close(f.replaced)
	}
	replaced := make(chan struct{})
	f.replaced = replaced
	f.mu.Unlock()
	select {
	case sent := <-f.queue:
		return sent, nil
	case <-replaced:
		return nil, nil
	case <-f.closed:
		return nil, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// answer answers a request that next returned.
func (f *fetches) answer(a fetchAnswer) error {
	f.mu.Lock()
	waiting := f.waiting[a.ID]
	delete(f.waiting, a.ID)
	f.mu.Unlock()
	if waiting == nil {
		return fmt.Errorf("BUG: unknown fetch %d", a.ID)
	}
	waiting <- a
	return nil
}

// takeUnexpected returns the requests that nothing has answered, and forgets them.
func (f *fetches) takeUnexpected() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := f.unexpected
	f.unexpected = nil
	return all
}
