package recording

import (
	"log/slog"
	"time"

	"runner.example/internal/clock"
)

// Recorder collects the events of one run after another. The zero value is ready. One goroutine at a time uses it.
type Recorder struct {
	events    []Event
	bytes     []byte // the buffer of the events
	began     time.Time
	truncated bool
}

// Elapsed is the time since the run began.
func (r *Recorder) Elapsed() time.Duration { return time.Since(r.began) }

// keptBytes and keptEvents are the largest buffers that an idle Recorder keeps.
const keptBytes, keptEvents = 64 << 10, 256

// Begin discards the events, for another run.
func (r *Recorder) Begin() {
	clear(r.events) // the errors
	r.events, r.bytes = r.events[:0], r.bytes[:0]
	if cap(r.events) > keptEvents {
		r.events = nil
	}
	if cap(r.bytes) > keptBytes {
		r.bytes = nil
	}
	r.began, r.truncated = clock.Mark(), false
}

// Add adds an event without its answer, and returns its index for Answer. It copies args. The index is -1 if the
// recording is too large: then no more is recorded.
func (r *Recorder) Add(kind, name string, args []byte, number int) int {
	if r.truncated || len(r.events) == MaxEvents || len(r.bytes)+len(args) > MaxBytes {
		r.truncated = true
		return -1
	}
	r.events = append(r.events, Event{
		Kind: kind, Name: name, Args: r.copy(args), Number: number, At: int64(time.Since(r.began) / time.Microsecond), Took: -1,
	})
	return len(r.events) - 1
}

// Event returns the event at an index of Add. It is valid until another one is added.
func (r *Recorder) Event(at int) *Event { return &r.events[at] }

// Answer adds the answer of the event at an index of Add, which must not be -1. It copies result.
func (r *Recorder) Answer(at int, result []byte) {
	e := &r.events[at]
	if len(r.bytes)+len(result) > MaxBytes {
		r.truncated = true
		return
	}
	e.Result = r.copy(result)
	e.Took = int64(time.Since(r.began)/time.Microsecond) - e.At
}

// Log adds a line of the log.
func (r *Recorder) Log(level slog.Level, text string) {
	if at := r.Add(Log, level.String(), []byte(text), 0); at >= 0 {
		r.events[at].Took = 0
	}
}

// copy returns a copy of b in the buffer of the recorder. When the buffer grows, earlier copies keep the old memory.
func (r *Recorder) copy(b []byte) Text {
	at := len(r.bytes)
	r.bytes = append(r.bytes, b...)
	return r.bytes[at:len(r.bytes):len(r.bytes)]
}

// Take moves the events to a Recording, which owns them.
func (r *Recorder) Take(to *Recording) {
	to.Events, to.Truncated = r.events, to.Truncated || r.truncated
	r.events, r.bytes = nil, nil
}
