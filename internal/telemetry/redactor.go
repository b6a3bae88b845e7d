package telemetry

import (
	"bytes"
	"io"
	"sync"
)

// maxLine is how much of a line is kept back while its end has not come. What
// is longer is cut.
const maxLine = 64 << 10

// Redactor is a writer that lets whole lines through, redacted, each in one
// write. What comes after the last line end is kept until the line is
// complete or Flush says that it is; one that grows longer than 64 KiB while it
// is kept is cut.
type Redactor struct {
	mu     sync.Mutex
	w      io.Writer
	values *Values
	rest   []byte
	// cutting: the line was cut and what is left of it is dropped.
	cutting bool
}

// NewRedactor returns a Redactor that writes to w and hides the values, which may be nil,
// beside what looks like a secret.
func NewRedactor(w io.Writer, values *Values) *Redactor { return &Redactor{w: w, values: values} }

// Write takes over p. It reports an error of the writer below, with all of p
// taken: a log that cannot be written is no reason to write it twice.
func (r *Redactor) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	end := bytes.LastIndexByte(p, '\n') + 1
	lines, rest := p[:end], p[end:]
	if len(lines) > 0 && (len(r.rest) > 0 || r.cutting) {
		first := bytes.IndexByte(lines, '\n') + 1
		r.keep(lines[:first-1])
		lines = append(append(r.rest, '\n'), lines[first:]...)
		r.rest, r.cutting = nil, false
	}
	r.keep(rest)
	if len(lines) == 0 {
		return len(p), nil
	}
	_, err := r.w.Write(Redact(r.values.hide(lines)))
	return len(p), err
}

// Flush ends a line that was begun.
func (r *Redactor) Flush() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.rest) == 0 {
		return nil
	}
	line := append(r.rest, '\n')
	r.rest, r.cutting = nil, false
	_, err := r.w.Write(Redact(r.values.hide(line)))
	return err
}

// keep adds to the line that has no end yet. One that grows too long loses its
// last word with all that follows, since half a token is no longer known as one.
func (r *Redactor) keep(part []byte) {
	if r.cutting {
		return
	}
	r.rest = append(r.rest, part...)
	if len(r.rest) > maxLine {
		r.rest = r.rest[:bytes.LastIndexAny(r.rest[:maxLine], " \t\",;=&")+1]
		r.rest = append(r.rest, "… (cut)"...)
		r.cutting = true
	}
}
