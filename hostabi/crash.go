package hostabi

import (
	"bytes"
	"log/slog"

	"runner.example/internal/symbols"
)

// crash holds back lines of standard error that may be what Go's runtime writes before it ends the
// program, until it is known whether the run fails. The first line begins as such a text does
// (symbols.BeginsGoCrash).
type crash struct {
	text    []byte // lines with their ends
	dropped int    // lines that are not in text
}

// maxCrashBytes is how much of such a text is held back if the limit of the log is smaller.
const maxCrashBytes = 16 << 10

// add adds a line, up to maxBytes of text. false: the line is not part of such a text.
func (c *crash) add(line []byte, maxBytes int) bool {
	if len(c.text) == 0 && !symbols.BeginsGoCrash(line) {
		return false
	}
	if c.dropped > 0 || len(c.text)+len(line) >= maxBytes {
		c.dropped++
		return true
	}
	c.text = append(append(c.text, line...), '\n')
	return true
}

// Crash returns the failure that Go's runtime wrote to standard error before it ended the guest. The
// text is then not logged. ok is false if it wrote none. The sandbox calls it before End when the guest
// has trapped or exited.
func (c *Call) Crash() (f Failure, ok bool) {
	c.stderr.flush()
	parsed, ok := symbols.ParseGoCrash(string(c.crash.text))
	if !ok {
		return f, false
	}
	c.crash = crash{}
	f = Failure{Kind: parsed.Kind, Message: clip([]byte(parsed.Message), maxReportBytes)}
	for _, frame := range parsed.Frames {
		frame.Function, frame.File = clip([]byte(frame.Function), maxNameBytes), clip([]byte(frame.File), maxNameBytes)
		f.Frames = append(f.Frames, frame)
	}
	return f, true
}

// logCrash logs the lines that were held back, if there are any.
func (c *Call) logCrash() {
	held := c.crash
	if c.crash = (crash{}); len(held.text) == 0 {
		return
	}
	for line := range bytes.Lines(held.text) {
		c.logLine(slog.LevelWarn, bytes.TrimSuffix(line, []byte("\n")))
	}
	c.log.dropped += held.dropped
}
