package telemetry

import (
	"bytes"
	"io"
	"sync"
)

// maxLine is how much of an incomplete line is kept. Longer ones are cut.
const maxLine = 64 << 10

// Redactor is a writer that passes on whole redacted lines, each in one write. A line
// without an end is kept until it is complete or Flush is called. It is cut if it grows
// longer than 64 KiB meanwhile.
type Redactor struct {
	mu     sync.Mutex
	w      io.Writer
	values *Values
	rest   []byte
	// cutting: the line was cut, and the rest of it is discarded.
	cutting bool
}

// NewRedactor returns a Redactor that writes to w and hides the values, which may be nil,
// besides text with the form of a secret.
func NewRedactor(w io.Writer, values *Values) *Redactor { return &Redactor{w: w, values: values} }

// Write passes on p. It returns the error of the underlying writer together with the whole
// length of p, so that callers do not write p again.
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

// Flush writes an incomplete line.
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

// keep adds to the incomplete line. A line that is too long is cut before its last word,
// because a part of a token cannot be recognized.
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
