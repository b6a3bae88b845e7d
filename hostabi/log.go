package hostabi

import (
	"bytes"
	"context"
	"log/slog"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// logBudget counts what a run has logged.
type logBudget struct {
	lines, bytes int // as written to the log
	spent        bool
	dropped      int // lines after that
}

// admit counts a line of that size, and reports whether the budget covers it. If not, this
// line and all later ones are dropped.
func (b *logBudget) admit(limits Limits, size int) bool {
	if b.spent || b.bytes+size > limits.LogBytes {
		b.spent = true
		b.dropped++
		return false
	}
	b.lines++
	b.bytes += size
	b.spent = b.lines == limits.LogLines
	return true
}

// logText is the function log, which has no result. A text outside of guest memory is
// dropped like one over the budget.
func logText(c *Call, g guest) int32 {
	text, ok := g.bytes(1)
	if !ok || c.muted {
		c.log.dropped++
		return 0
	}
	level := slog.LevelDebug
	switch n := g.number(0); {
	case n == levelFailure:
		c.reportFailure(text)
		return 0
	case n == 1:
		level = slog.LevelInfo
	case n == 2:
		level = slog.LevelWarn
	case n >= 3:
		level = slog.LevelError
	}
	c.logLine(level, text)
	return 0
}

// levelFailure is the level of a text that says why the handler fails.
const levelFailure = 4

// The size of a logged line beside its text, in JSON, which is the longer format.
const (
	lineBytes    = len(`{"time":"2006-01-02T15:04:05.000Z","level":"ERROR","msg":"","source":"guest"}` + "\n")
	requestBytes = len(`,"requestId":"","route":"","attempt":1`)
	traceBytes   = len(`,"traceId":"4bf92f3577b34da6a3ce929d0e0e4736"`)
	cutMark      = "…"
)

// logLine writes one line of the guest within the budget: the line that exceeds it is cut,
// later ones are only counted.
func (c *Call) logLine(level slog.Level, text []byte) {
	c.logCrash()
	around := lineBytes
	if r := c.Request; r != nil {
		around += requestBytes + len(r.ID) + len(r.Route)
		if r.Trace().ID != "" {
			around += traceBytes
		}
	}
	room := c.limits.LogBytes - c.log.bytes - around
	end, size := fits(text, room)
	if !c.log.admit(c.limits, around+size) {
		return
	}
	line := printable(text[:end])
	if end < len(text) {
		line += cutMark
		c.log.spent = true
	}
	c.write(level, line)
}

// fits returns how much of text fits in room bytes of the log, with cutMark after it unless
// all of it fits, and how many bytes that takes.
func fits(text []byte, room int) (end, size int) {
	cut, cutSize := 0, len(cutMark)
	for end < len(text) {
		r, n := utf8.DecodeRune(text[end:])
		size += loggedSize(r)
		end += n
		if size > room {
			return cut, cutSize
		}
		if size+len(cutMark) <= room {
			cut, cutSize = end, size+len(cutMark)
		}
	}
	return end, size
}

// loggedSize returns the most bytes that a rune takes in the log. printable escapes some
// runes, and the log formats escape others.
func loggedSize(r rune) int {
	switch {
	case r == '"' || r == '\\':
		return 2
	case r < utf8.RuneSelf && strconv.IsPrint(r):
		return 1
	case !isClean(r):
		return len(strconv.QuoteRuneToASCII(r)) - len(`''`) + 1 // its backslash is escaped
	case strconv.IsPrint(r):
		return utf8.RuneLen(r)
	case r < 0x1_0000:
		return len(`\u0000`)
	}
	return len(`\U00000000`)
}

// logDropped logs, once, how many lines were dropped.
func (c *Call) logDropped() {
	if n := c.log.dropped; n > 0 {
		c.log.dropped = 0
		c.write(slog.LevelWarn, strconv.Itoa(n)+" lines dropped")
	}
}

func (c *Call) write(level slog.Level, text string) {
	if c.Recorder != nil {
		c.Recorder.Log(level, text)
	}
	attrs := []slog.Attr{slog.String("source", "guest")}
	if c.Request != nil {
		attrs = append(attrs,
			c.Request.LogID(),
			slog.String("route", c.Request.Route),
			slog.Int("attempt", c.Attempt))
	}
	c.Host.Logger.LogAttrs(context.Background(), level, text, attrs...)
}

// printable escapes control characters, line ends and changes of direction, so that a
// guest's line cannot end early, control a terminal, or look like another line.
func printable(text []byte) string {
	if bytes.IndexFunc(text, func(r rune) bool { return r == utf8.RuneError || !isClean(r) }) < 0 {
		return string(text)
	}
	var b strings.Builder
	for _, r := range string(text) { // what is not UTF-8 becomes U+FFFD
		if isClean(r) {
			b.WriteRune(r)
			continue
		}
		quoted := strconv.QuoteRuneToASCII(r)
		b.WriteString(quoted[1 : len(quoted)-1])
	}
	return b.String()
}

// isClean reports whether a rune is logged unchanged.
func isClean(r rune) bool {
	return !unicode.In(r, unicode.Cc, unicode.Bidi_Control, unicode.Zl, unicode.Zp)
}

// output cuts a stream into log lines. It keeps a line until its end, and no
// more of it than the log takes.
type logStream struct {
	call  *Call
	level slog.Level
	line  []byte
	most  int // bytes of line that are kept
}

// Write never fails. Lines over the budget are dropped and counted.
func (o *logStream) Write(p []byte) (int, error) {
	rest := p
	for {
		if o.call.log.spent && !o.hasCrashes() {
			o.drop(rest)
			return len(p), nil
		}
		line, after, ended := bytes.Cut(rest, []byte("\n"))
		if room := o.most + 1 - len(o.line); room > 0 {
			o.line = append(o.line, line[:min(room, len(line))]...)
		}
		if !ended {
			return len(p), nil
		}
		o.end(bytes.TrimSuffix(o.line, []byte("\r")))
		o.line = o.line[:0]
		rest = after
	}
}

// hasCrashes reports whether the stream is standard error, in which Go's runtime writes a crash.
func (o *logStream) hasCrashes() bool { return o == &o.call.stderr }

// colors are the sequences that programs write for colors on a terminal.
var colors = regexp.MustCompile(`\x1b\[[0-9;]*m`)

// end logs a line without its colors, unless it is held back as part of a crash.
func (o *logStream) end(line []byte) {
	if bytes.IndexByte(line, '\x1b') >= 0 {
		line = colors.ReplaceAll(line, nil)
	}
	if !o.hasCrashes() || !o.call.crash.add(line, o.most) {
		o.call.logLine(o.level, line)
	}
}

// drop counts the lines that end in p, and keeps one byte of an incomplete last line, so
// that flush counts it.
func (o *logStream) drop(p []byte) {
	if ends := bytes.Count(p, []byte("\n")); ends > 0 {
		o.call.log.dropped += ends
		o.line = o.line[:0]
		p = p[bytes.LastIndexByte(p, '\n')+1:]
	}
	if len(o.line) == 0 && len(p) > 0 {
		o.line = append(o.line, p[0])
	}
}

func (o *logStream) flush() {
	if len(o.line) > 0 {
		o.end(o.line)
		o.line = o.line[:0]
	}
}
