package hostabi

import (
	"bytes"
	"log/slog"

	"runner.example/internal/symbols"
)

// crash keeps what a guest writes to standard error from a line on that begins as the message of
// Go's runtime before it ends the program, until it is known whether the run fails.
type crash struct {
	text []byte // lines with their ends
	more int    // lines that are not in text
}

// maxCrashBytes is how much of such a text is read, and logged if the run does not fail. The log may
// take more.
const maxCrashBytes = 16 << 10

// add adds a line. false: the line is not part of such a text.
func (c *crash) add(line []byte, most int) bool {
	if len(c.text) == 0 && !symbols.BeginsGoCrash(line) {
		return false
	}
	if c.more > 0 || len(c.text)+len(line) >= most {
		c.more++
		return true
	}
	c.text = append(append(c.text, line...), '\n')
	return true
}

// Crash returns why the guest ended itself, if it has written that to standard error as Go's runtime
// does. The text is then not logged. The sandbox calls it before End when the guest has trapped or exited.
func (c *Call) Crash() (f Failure, ok bool) {
	c.stderr.flush()
	told, ok := symbols.ParseGoCrash(string(c.crash.text))
	if !ok {
		return f, false
	}
	c.crash = crash{}
	f = Failure{Kind: told.Kind, Message: clip([]byte(told.Message), maxReportBytes)}
	for _, frame := range told.Frames {
		frame.Function, frame.File = clip([]byte(frame.Function), maxPlaceBytes), clip([]byte(frame.File), maxPlaceBytes)
		f.Frames = append(f.Frames, frame)
	}
	return f, true
}

// logCrash logs the lines that were kept, if there are any.
func (c *Call) logCrash() {
	kept := c.crash
	if c.crash = (crash{}); len(kept.text) == 0 {
		return
	}
	for line := range bytes.Lines(kept.text) {
		c.logLine(slog.LevelWarn, bytes.TrimSuffix(line, []byte("\n")))
	}
	c.log.dropped += kept.more
}
