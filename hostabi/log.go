package hostabi

import (
	"bytes"
	"context"
	"log/slog"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// logBudget is what a run has written of its log.
type logBudget struct {
	lines, bytes int // as the log has them
	spent        bool
	dropped      int // lines after that
}

// admit counts a line of that size in the log, as one that is dropped when the budget does
// not cover it, and all after it.
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

// logText is the function log. It has no result: a text outside guest memory is
// dropped like one that is over the budget.
func logText(c *Call, g guest) int32 {
	text, ok := g.bytes(1)
	if !ok {
		c.log.dropped++
		return 0
	}
	level := slog.LevelDebug
	switch n := g.number(0); {
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

// What a line takes in the log beside its text: in JSON, which is the longer format.
const (
	lineBytes    = len(`{"time":"2006-01-02T15:04:05.000Z","level":"ERROR","msg":"","source":"guest"}` + "\n")
	requestBytes = len(`,"requestId":"","route":"","attempt":1`)
	cutMark      = "…"
)

// logLine writes one line of the guest's as far as its budget goes: the line
// that spends it is cut, those after it are counted.
func (c *Call) logLine(level slog.Level, text []byte) {
	around := lineBytes
	if r := c.Request; r != nil {
		around += requestBytes + len(r.ID) + len(r.Route)
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

// fits returns how much of text fits in the log, with cutMark after it if that is not
// all of it, and how many bytes it takes there.
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

// loggedSize returns how many bytes a rune takes in the log at most: printable escapes
// some runes, and the log formats escape further ones.
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

// logDropped tells, once, how many lines were dropped.
func (c *Call) logDropped() {
	if n := c.log.dropped; n > 0 {
		c.log.dropped = 0
		c.write(slog.LevelWarn, strconv.Itoa(n)+" lines dropped")
	}
}

func (c *Call) write(level slog.Level, text string) {
	attrs := []slog.Attr{slog.String("source", "guest")}
	if c.Request != nil {
		attrs = append(attrs,
			slog.String("requestId", c.Request.ID),
			slog.String("route", c.Request.Route),
			slog.Int("attempt", c.Attempt))
	}
	c.Host.Logger.LogAttrs(context.Background(), level, text, attrs...)
}

// printable shows text with its control characters written out (line ends and
// changes of direction among them), so that no line of a guest's can end early,
// steer a terminal or read as another.
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

// isClean reports a rune that is shown as it is.
func isClean(r rune) bool {
	return !unicode.In(r, unicode.Cc, unicode.Bidi_Control, unicode.Zl, unicode.Zp)
}

// output cuts a stream into log lines. It holds a line back until its end, and
// no more of it than the log would take.
type logStream struct {
	call  *Call
	level slog.Level
	line  []byte
}

// Write never fails: what is over the budget is dropped and counted.
func (o *logStream) Write(p []byte) (int, error) {
	rest := p
	for {
		if o.call.log.spent {
			o.drop(rest)
			return len(p), nil
		}
		line, after, ended := bytes.Cut(rest, []byte("\n"))
		if room := o.call.limits.LogBytes + 1 - len(o.line); room > 0 {
			o.line = append(o.line, line[:min(room, len(line))]...)
		}
		if !ended {
			return len(p), nil
		}
		o.call.logLine(o.level, bytes.TrimSuffix(o.line, []byte("\r")))
		o.line = o.line[:0]
		rest = after
	}
}

// drop counts the lines that would end in p, all at once, and holds back as much
// of the one after them as tells that there is one.
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
		o.call.logLine(o.level, o.line)
		o.line = o.line[:0]
	}
}
