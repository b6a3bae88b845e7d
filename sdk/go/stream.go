package runner

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"runner.example/sdk/go/internal/answer"
	"runner.example/sdk/go/internal/host"
)

// ErrClientGone is the error of a Writer whose client takes no more of the answer, for example because it has closed the
// connection. The handler then has about a second to end. It may return the error, which is not a failure.
var ErrClientGone = errors.New("the client is gone")

// Stream answers in parts, which are sent while the function runs, with status 200 or the one given:
//
//	return runner.Stream(func(w *runner.Writer) error {
//		for page := range pages {
//			if _, err := w.Write(page); err != nil {
//				return err
//			}
//		}
//		return nil
//	}).WithHeader("content-type", "text/csv"), nil
//
// The transaction of the request commits before the function runs. If it conflicts, the handler runs again and the
// function does not run. In the function each operation is a transaction of its own. If the function returns an error,
// the answer is broken off, and the client can see that: it gets no end of the body, and of events one of type error
// before, with the code.
func Stream(write func(w *Writer) error, status ...int) Response {
	r := Response{status: 200, stream: write}
	for _, s := range status {
		r.status = s
	}
	return r
}

// Events answers with server-sent events, which the function sends with Writer.Event. See Stream.
func Events(write func(w *Writer) error) Response {
	return Stream(write).WithHeader("content-type", "text/event-stream")
}

// Writer sends the parts of an answer. Only the function that gets it may use it.
type Writer struct{ host host.Host }

// Write sends a part at once, and waits for a slow client. The error is ErrClientGone if the client takes no more.
func (w *Writer) Write(part []byte) (int, error) {
	err := w.host.Write(part)
	var failure *host.Error
	switch {
	case err == nil:
		return len(part), nil
	case errors.As(err, &failure) && failure.Code == "unavailable":
		return 0, ErrClientGone
	}
	return 0, fmt.Errorf("write %d bytes of the answer: %w", len(part), err)
}

// WriteString is Write for a string.
func (w *Writer) WriteString(part string) (int, error) { return w.Write([]byte(part)) }

// Event is a server-sent event. Empty fields are left out.
type Event struct {
	// Event is the type of the event. Browsers call an empty one "message".
	Event string
	// Data may have several lines.
	Data string
	// ID is what the client sends in the header Last-Event-ID when it connects again.
	ID string
	// Retry is how long the client waits before it connects again.
	Retry time.Duration
}

// Event sends an event at once. Event and ID must not have line ends and zero bytes.
func (w *Writer) Event(e Event) error {
	if strings.ContainsAny(e.Event+e.ID, "\r\n\x00") {
		return fmt.Errorf("send the event %q with the ID %q: neither may have a line end or a zero byte", e.Event, e.ID)
	}
	_, err := w.Write(e.encode())
	return err
}

var lineEnds = strings.NewReplacer("\r\n", "\n", "\r", "\n")

func (e Event) encode() []byte {
	var b []byte
	field := func(name, value string) { b = append(append(append(b, name...), value...), '\n') }
	if e.Event != "" {
		field("event: ", e.Event)
	}
	if e.ID != "" {
		field("id: ", e.ID)
	}
	if e.Retry > 0 {
		field("retry: ", strconv.FormatInt(e.Retry.Milliseconds(), 10))
	}
	if e.Data != "" || e.Event != "" { // else the client would see an empty message
		for line := range strings.SplitSeq(lineEnds.Replace(e.Data), "\n") {
			field("data: ", line)
		}
	}
	return append(b, '\n')
}

// sendStream sends an answer in parts, after its headers.
func sendStream(h host.Host, r Response) error {
	if err := h.Begin(r.status); err != nil {
		return refused(fmt.Sprintf("begin an answer with status %d", r.status), err, answer.Body(r.status, 1))
	}
	if err := r.stream(&Writer{h}); !errors.Is(err, ErrClientGone) {
		return err
	}
	return nil
}
