package apptest

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"

	"runner.example/hostabi/recording"
)

// maxLogBytes is how much of the log of a test is kept: its end.
const maxLogBytes = 64 << 10

// testLog keeps the lines that the log of one test has. Any goroutine may use it.
type testLog struct {
	mu   sync.Mutex
	text bytes.Buffer
	cut  bool
}

// logger returns a logger that writes into the book. Lines have no time: the test's stands still.
func (b *testLog) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(b, &slog.HandlerOptions{
		ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
			if len(groups) == 0 && (a.Key == slog.TimeKey || a.Key == "requestId" || a.Key == "took") {
				return slog.Attr{}
			}
			return a
		},
	}))
}

func (b *testLog) Write(line []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.text.Len()+len(line) > maxLogBytes {
		b.text.Next(b.text.Len() - maxLogBytes/2)
		b.cut = true
	}
	return b.text.Write(line)
}

// trace writes the host calls of a run of a handler, a line for each.
func (b *testLog) trace(r *recording.Recording) {
	n := 0
	for i := range r.Events {
		if e := &r.Events[i]; e.IsCall() {
			n++
			text := fmt.Sprintf("%s: call %d: %s → %s", r.Handler, n, e.Request(), e.Reply())
			if short := []rune(text); len(short) > maxTraceRunes {
				text = string(short[:maxTraceRunes]) + "…"
			}
			_, _ = b.Write([]byte(strings.ReplaceAll(text, "\n", " ") + "\n")) // it returns no error
		}
	}
}

// maxTraceRunes is the length of the line of a host call.
const maxTraceRunes = 400

// lines returns the lines, the oldest first.
func (b *testLog) lines() (lines []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for line := range bytes.Lines(b.text.Bytes()) {
		lines = append(lines, string(bytes.TrimRight(line, "\n")))
	}
	if b.cut {
		lines[0] = "…" // it may be half a line
	}
	return lines
}

// output is the log of a test file: what it writes with console.log.
type output struct{ session *session }

func (o output) Enabled(context.Context, slog.Level) bool { return true }
func (o output) WithAttrs([]slog.Attr) slog.Handler       { return o }
func (o output) WithGroup(string) slog.Handler            { return o }

func (o output) Handle(_ context.Context, r slog.Record) error {
	text := r.Message
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "text" {
			text = a.Value.String()
		}
		return true
	})
	o.session.mu.Lock()
	defer o.session.mu.Unlock()
	o.session.output = append(o.session.output, text)
	return nil
}

// takeOutput returns what the test has written.
func (s *session) takeOutput() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	lines := s.output
	s.output = nil
	return lines
}
