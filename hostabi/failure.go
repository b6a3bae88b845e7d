package hostabi

import (
	"bytes"
	"log/slog"
	"strings"
	"unicode/utf8"

	"runner.example/internal/fault"
	"runner.example/internal/symbols"
)

// Failure says why code of a guest failed. Its texts are printable: control characters are escaped.
// They may contain secrets.
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
	maxNameBytes   = 300 // of the function of a frame, and of its file
)

// report is a failure that the guest has reported with log level 4.
type report struct {
	Failure
	size     int  // of the line
	stopping bool // the guest wrote it while the host stopped it
}

// reportFailure reads the first maxReportText bytes of a report: a line with the kind, the lines of the
// message, and a line for each frame (symbols.ParseFrame).
func (c *Call) reportFailure(text []byte) {
	text = text[:min(len(text), maxReportText)]
	kind, rest, _ := bytes.Cut(text, []byte("\n"))
	r := report{size: len(text), stopping: c.stopping}
	var message []byte
	for line := range bytes.Lines(rest) {
		line = bytes.TrimRight(line, "\r\n")
		f, ok := symbols.ParseFrame(string(line[:min(len(line), 3*maxNameBytes)]))
		switch {
		case ok && len(r.Frames) == symbols.MaxFrames:
		case ok:
			f.Function, f.File = clip([]byte(f.Function), maxNameBytes), clip([]byte(f.File), maxNameBytes)
			r.Frames = append(r.Frames, f)
		case len(r.Frames) == 0 && len(message) < maxReportBytes:
			if len(message) > 0 {
				message = append(message, '\n')
			}
			message = append(message, line...)
		}
	}
	r.Kind, r.Message = clip(kind, maxKindBytes), clip(message, maxReportBytes)
	if !bytes.Contains(message, []byte(c.lastError.message)) { // the handler fails for another reason
		c.lastError.isLast = false
	}
	if c.Request == nil { // the initialization: its error is that of the module
		c.logLine(slog.LevelError, []byte(r.Failure.String()))
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

// SetFailure records that the run failed with f, as the host sees it. byHost: the host ended the run
// or refused its result, so the kind stays that of f, whatever the guest reports.
// It is called after End.
func (c *Call) SetFailure(f Failure, byHost bool) {
	c.failed, c.byHost = &f, byHost
}

// Failures returns why the run failed, nil if it did not fail, and the other reports of the guest, as
// far as the budget of log lines allows. The last report about a trap replaces what the host saw; the
// one about a limit adds its message and frames. It logs the number of dropped lines if End has not.
// A second call returns nothing.
func (c *Call) Failures() (failure *Failure, others []Failure) {
	last := c.lastReport()
	for i := range c.reports {
		r := &c.reports[i]
		if r != last && c.log.admit(c.limits, r.size+lineBytes+requestBytes) {
			others = append(others, r.Failure)
		}
	}
	failure = c.failed
	switch {
	case last != nil && failure == nil:
		failure = &last.Failure
	case last != nil && c.byHost:
		failure.Message = last.Message
		if len(last.Frames) > 0 {
			failure.Frames = last.Frames
		}
	case last != nil:
		failure.Kind, failure.Message = last.Kind, last.Message
		failure.Frames = symbols.Join(last.Frames, failure.Frames)
	}
	c.logDropped()
	c.reports, c.failed = nil, nil
	return failure, others
}

// lastReport returns the report about the failure of the run; nil: there is none.
func (c *Call) lastReport() *report {
	if c.failed == nil && c.Response.Code != string(fault.HandlerFailed) || len(c.reports) == 0 {
		return nil
	}
	if r := &c.reports[len(c.reports)-1]; r.stopping == (c.failed != nil && c.byHost) {
		return r
	}
	return nil
}
