package runner_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	runner "runner.example/sdk/go"
	"runner.example/sdk/go/internal/host"
	"runner.example/sdk/go/runnertest"
)

// streamed runs a handler with this answer.
func streamed(t *testing.T, response runner.Response) runnertest.Result {
	t.Helper()
	return runnertest.Run(t, func(*runner.Context, *runner.Request) (runner.Response, error) { return response, nil }, runnertest.Request{})
}

func TestStreamSendsEachPart(t *testing.T) {
	result := streamed(t, runner.Stream(func(w *runner.Writer) error {
		if _, err := w.WriteString("one,"); err != nil {
			return err
		}
		return json.NewEncoder(w).Encode(2)
	}, 201).WithHeader("content-type", "text/csv"))
	if result.Status != 201 || string(result.Body) != "one,2\n" || result.Header("content-type") != "text/csv" || result.BrokenOff {
		t.Errorf("%+v", result)
	}
}

func TestAStreamThatFailsIsBrokenOff(t *testing.T) {
	for _, row := range []struct {
		err  error
		code string
		logs int
	}{
		{errors.New("boom"), "handler_failed", 1},
		{&runner.HostError{Code: "not_found", Message: "no such order", Op: "get"}, "not_found", 0},
	} {
		result := streamed(t, runner.Stream(func(w *runner.Writer) error {
			_, err := w.WriteString("one")
			return errors.Join(err, row.err)
		}))
		if result.Status != 200 || string(result.Body) != "one" || !result.BrokenOff || result.Code != row.code || len(result.Logs) != row.logs {
			t.Errorf("%v: %+v", row.err, result)
		}
	}
}

func TestAStreamWithAStatusThatHasNoBodyDoesNotBegin(t *testing.T) {
	result := streamed(t, runner.Stream(func(*runner.Writer) error { panic("it runs") }, 204))
	if result.Status != 500 || result.Code != "handler_failed" {
		t.Errorf("%+v", result)
	}
}

func TestEventsAreInLines(t *testing.T) {
	for _, row := range []struct {
		event runner.Event
		want  string
	}{
		{runner.Event{Data: "a"}, "data: a\n\n"},
		{runner.Event{Data: "a\r\nb\rc\n\nd"}, "data: a\ndata: b\ndata: c\ndata: \ndata: d\n\n"},
		{runner.Event{Event: "tick"}, "event: tick\ndata: \n\n"},
		{runner.Event{ID: "7", Retry: 1500 * time.Millisecond}, "id: 7\nretry: 1500\n\n"},
		{runner.Event{Event: "e", ID: "7", Retry: time.Second, Data: "x"}, "event: e\nid: 7\nretry: 1000\ndata: x\n\n"},
		{runner.Event{Event: "a\nb"}, ""},
		{runner.Event{ID: "a\rb"}, ""},
		{runner.Event{ID: "a\x00b"}, ""},
	} {
		var failed error
		result := streamed(t, runner.Events(func(w *runner.Writer) error {
			failed = w.Event(row.event)
			return nil
		}))
		if string(result.Body) != row.want || (failed != nil) != (row.want == "") || result.Header("content-type") != "text/event-stream" {
			t.Errorf("%+v: %q, %v", row.event, result.Body, failed)
		}
	}
}

// goneHost is a host whose client is gone, as that of Blank is.
type goneHost struct {
	host.Blank
	failed *bool
}

func (h goneHost) SendError(int, string, string) error {
	*h.failed = true
	return nil
}

func TestAClientThatIsGoneIsNoFailure(t *testing.T) {
	for _, wrap := range []string{"%w", "write a row: %w"} {
		failed := false
		runner.Serve(goneHost{failed: &failed}, func(*runner.Context, *runner.Request) (runner.Response, error) {
			return runner.Stream(func(w *runner.Writer) error {
				_, err := fmt.Fprint(w, "one")
				if !errors.Is(err, runner.ErrClientGone) {
					t.Errorf("the error is %v", err)
				}
				return fmt.Errorf(wrap, err)
			}), nil
		})
		if failed {
			t.Errorf("%s: the run failed", wrap)
		}
	}
}
