package diag

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// maxPrinted is the number of entries that Print writes, before a count of the rest.
	maxPrinted = 20
	// maxColumns is how much of a source line is printed, in code points.
	maxColumns = 160
)

// Print writes the excerpt of a list to w as text. For each entry it writes a line with the position
// in the form that editors parse and, if the file is in sources, the source line with carets
// under the span. After 20 entries it writes the number of the others.
func Print(w io.Writer, sources []Source, e Excerpt) error {
	return print(w, sources, e, plain)
}

// PrintColor is Print with ANSI colours, for a terminal.
func PrintColor(w io.Writer, sources []Source, e Excerpt) error {
	return print(w, sources, e, colored)
}

type palette struct{ bold, red, yellow, off string }

var (
	plain   = palette{}
	colored = palette{bold: "\x1b[1m", red: "\x1b[1;31m", yellow: "\x1b[1;33m", off: "\x1b[0m"}
)

func print(w io.Writer, sources []Source, e Excerpt, pal palette) error {
	var out bytes.Buffer
	shown := e.Findings[:min(len(e.Findings), maxPrinted)]
	for _, d := range shown {
		paint := pal.red
		if d.Severity == Warning {
			paint = pal.yellow
		}
		fmt.Fprintf(&out, "%s%s:%s %s%s:%s %s\n", pal.bold, clean(d.Span.String()), pal.off, paint, d.label(), pal.off,
			clean(d.Message))
		if line, ok := sourceLine(sources, d.Span); ok {
			text, marks := excerpt(line, d.Span)
			fmt.Fprintf(&out, "%5d | %s\n      | %s%s%s\n", d.Span.Start.Line, text, paint, marks, pal.off)
		}
	}
	if more := e.Total - len(shown); more > 0 {
		fmt.Fprintf(&out, "… and %d more\n", more)
	}
	_, err := w.Write(out.Bytes())
	return err
}

// sourceLine finds the line on which span starts.
func sourceLine(sources []Source, span Span) (string, bool) {
	for _, src := range sources {
		if src.Name != span.File || !span.Start.IsValid() {
			continue
		}
		rest := src.Text
		for n := 1; n < span.Start.Line; n++ {
			i := bytes.IndexByte(rest, '\n')
			if i < 0 {
				return "", false
			}
			rest = rest[i+1:]
		}
		line, _, _ := bytes.Cut(rest, []byte("\n"))
		return string(bytes.TrimSuffix(line, []byte("\r"))), true
	}
	return "", false
}

// excerpt returns the part of line to print, and the carets under it.
func excerpt(line string, span Span) (text, marks string) {
	runes := []rune(clean(line))
	start := min(max(span.Start.Col-1, 0), len(runes))
	end := len(runes)
	if span.End.Line == span.Start.Line {
		end = min(span.End.Col-1, end)
	}
	end = max(end, start+1)

	before, after := "", ""
	if len(runes) > maxColumns {
		from := max(0, min(start-maxColumns/4, len(runes)-maxColumns))
		to := from + maxColumns
		if to < len(runes) {
			after = "…"
		}
		if from > 0 {
			before = "…"
		}
		runes = runes[from:to]
		start, end = start-from, min(end-from, maxColumns)
	}

	var b strings.Builder
	b.WriteString(strings.Repeat(" ", utf8.RuneCountInString(before)))
	for _, r := range runes[:start] {
		if r != '\t' {
			r = ' '
		}
		b.WriteRune(r)
	}
	b.WriteString(strings.Repeat("^", max(end-start, 1)))
	return before + string(runes) + after, b.String()
}

// clean replaces characters that could control a terminal or break the line. It keeps the
// number of code points.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r)) {
			return unicode.ReplacementChar
		}
		return r
	}, s)
}
