package hostabi

import (
	"bytes"
	"log/slog"
	"strings"
	"unicode/utf8"

	"runner.example/internal/fault"
	"runner.example/internal/symbols"
)

// Failure says why code of a guest failed. Its texts are printable. They may have secrets.
type Failure struct {
	// Kind is plain words: "exception", "out of bounds memory access".
	Kind    string
	Message string          // may be empty
	Frames  []symbols.Frame // at most symbols.MaxFrames, innermost first
}

// String returns the failure in one line: kind, message, innermost frame.
func (f Failure) String() string {
	text := f.Kind
	if f.Message != "" {
		text += ": " + f.Message
	}
	if len(f.Frames) > 0 {
		text += " at " + f.Frames[0].String()
	}
	return text
}

// The limits of what a guest reports.
const (
	maxReports     = 8
	maxReportText  = 32 << 10 // that is read; the guest cannot be stopped meanwhile
	maxReportBytes = 4096     // of the message
	maxKindBytes   = 60
	maxPlaceBytes  = 300 // of a frame's function, and of its file
)

// report is a failure that the guest has reported by a line of the log.
type report struct {
	Failure
	size     int  // of the line
	stopping bool // it says where the host stopped the guest
}

// reportFailure reads a report: the kind, the message, which may have several lines, and the
// frames, a line each (symbols.ParseFrame). It reads the first maxReportText bytes.
func (c *Call) reportFailure(text []byte) {
	text = text[:min(len(text), maxReportText)]
	kind, rest, _ := bytes.Cut(text, []byte("\n"))
	r := report{size: len(text), stopping: c.stopping}
	var message []byte
	for line := range bytes.Lines(rest) {
		line = bytes.TrimRight(line, "\r\n")
		f, ok := symbols.ParseFrame(string(line[:min(len(line), 3*maxPlaceBytes)]))
		switch {
		case ok && len(r.Frames) == symbols.MaxFrames:
		case ok:
			f.Function, f.File = clip([]byte(f.Function), maxPlaceBytes), clip([]byte(f.File), maxPlaceBytes)
			r.Frames = append(r.Frames, f)
		case len(r.Frames) == 0 && len(message) < maxReportBytes:
			if len(message) > 0 {
				message = append(message, '\n')
			}
			message = append(message, line...)
		}
	}
	r.Kind, r.Message = clip(kind, maxKindBytes), clip(message, maxReportBytes)
	if c.invalid.value != nil && bytes.Contains(message, []byte(c.invalid.message)) && c.refusedCallersValue() {
		c.logLine(slog.LevelInfo, []byte(r.Kind+": "+r.Message)) // the answer will be 400
		return
	}
	if c.Request == nil { // the initialization: its error is that of the module
		text := r.Kind + ": " + r.Message
		if len(r.Frames) > 0 {
			text += " at " + r.Frames[0].String()
		}
		c.logLine(slog.LevelError, []byte(text))
		return
	}
	if len(c.reports) == maxReports {
		c.reports = append(c.reports[:0], c.reports[1:]...)
		c.log.dropped++
	}
	c.reports = append(c.reports, r)
}

// clip is the printable form of text, cut to max bytes, if possible before a word: a part of a secret is
// not recognized.
func clip(text []byte, max int) string {
	const longestWord = 512
	whole := printable(text[:min(len(text), max+1)])
	if len(whole) <= max {
		return whole
	}
	for max > 0 && !utf8.RuneStart(whole[max]) {
		max--
	}
	if i := strings.LastIndexAny(whole[:max], " \t\",;=&") + 1; i > 0 && max-i < longestWord {
		max = i
	}
	return whole[:max] + cutMark
}

// Fail says that the run failed with f, as the host sees it. limit: a limit of the host ended
// it. The sandbox calls it after End.
func (c *Call) Fail(f Failure, limit bool) {
	c.failed, c.limited = &f, limit
}

// Failures returns what the run failed with, nil if it did not fail, and what the guest has
// reported beside it, as far as the budget of the log lines covers that. What the guest has
// reported about a trap replaces what the host saw. A second call returns nothing.
func (c *Call) Failures() (failure *Failure, others []Failure) {
	cause := c.cause()
	for i := range c.reports {
		r := &c.reports[i]
		if r != cause && c.log.admit(c.limits, r.size+lineBytes+requestBytes) {
			others = append(others, r.Failure)
		}
	}
	failure = c.failed
	switch {
	case cause != nil && failure == nil:
		failure = &cause.Failure
	case cause != nil:
		if len(cause.Frames) > 0 {
			failure.Frames = cause.Frames
		}
		if !c.limited {
			failure.Kind, failure.Message = cause.Kind, cause.Message
		}
	}
	c.logDropped()
	c.reports, c.failed = nil, nil
	return failure, others
}

// cause is the report about the failure of the run; nil: there is none.
func (c *Call) cause() *report {
	if c.failed == nil && c.Response.Code != string(fault.HandlerFailed) || len(c.reports) == 0 {
		return nil
	}
	if r := &c.reports[len(c.reports)-1]; r.stopping == (c.failed != nil && c.limited) {
		return r
	}
	return nil
}
