package languageserver

import (
	"bytes"
	"slices"
	"unicode/utf16"
	"unicode/utf8"

	"go.lsp.dev/protocol"
	"go.lsp.dev/uri"

	"runner.example/internal/diag"
)

// text is a file with the places of its lines. It is immutable.
type text struct {
	path string
	// src has lines that end with a newline alone.
	src []byte
	// crlf reports that the lines of the document end with CRLF.
	crlf bool
	// starts are the offsets of the lines.
	starts []int
	// utf8 reports that the client counts bytes, not UTF-16 units.
	utf8 bool
}

func newText(path string, src []byte, bytewise bool) *text {
	t := &text{path: path, src: src, starts: []int{0}, utf8: bytewise}
	if bytes.Contains(src, []byte("\r\n")) {
		t.crlf = true
		t.src = bytes.ReplaceAll(src, []byte("\r\n"), []byte("\n"))
	}
	for i, b := range t.src {
		if b == '\n' {
			t.starts = append(t.starts, i+1)
		}
	}
	return t
}

func (t *text) uri() uri.URI { return uri.File(t.path) }

// line returns the n-th line without its end, counted from 0; nil if there is none.
func (t *text) line(n int) []byte {
	if n < 0 || n >= len(t.starts) {
		return nil
	}
	end := len(t.src)
	if n+1 < len(t.starts) {
		end = t.starts[n+1] - 1
	}
	return t.src[t.starts[n]:end]
}

// units is the length of a part of a line as the client counts it.
func (t *text) units(part []byte) int {
	if t.utf8 {
		return len(part)
	}
	n := 0
	for _, r := range string(part) {
		n += max(utf16.RuneLen(r), 1)
	}
	return n
}

// at is the place of an offset.
func (t *text) at(offset int) protocol.Position {
	offset = min(max(offset, 0), len(t.src))
	line, found := slices.BinarySearch(t.starts, offset)
	if !found {
		line--
	}
	return place(line, t.units(t.src[t.starts[line]:offset]))
}

func place(line, character int) protocol.Position {
	return protocol.Position{Line: uint32(max(line, 0)), Character: uint32(max(character, 0))} //nolint:gosec // both are sizes of a text
}

// position is a place that a diagnostic names by line and code point.
func (t *text) position(p diag.Pos) protocol.Position {
	line := t.line(p.Line - 1)
	end := 0
	for n := 1; n < p.Col && end < len(line); n++ {
		_, size := utf8.DecodeRune(line[end:])
		end += size
	}
	return place(p.Line-1, t.units(line[:end]))
}

// spanned is the range of a span of a diagnostic, whose offsets may be unknown.
func (t *text) spanned(s diag.Span) protocol.Range {
	return protocol.Range{Start: t.position(s.Start), End: t.position(s.End)}
}

// between is the range between two offsets.
func (t *text) between(start, end int) protocol.Range {
	return protocol.Range{Start: t.at(start), End: t.at(end)}
}

// of is the range of a node of the tree.
func (t *text) of(s diag.Span) protocol.Range { return t.between(s.Start.Offset, s.End.Offset) }

// slice is the source of a node of the tree.
func (t *text) slice(s diag.Span) string {
	start, end := s.Start.Offset, s.End.Offset
	if start < 0 || end > len(t.src) || start > end {
		return ""
	}
	return string(t.src[start:end])
}

// offset returns the offset of a place. One after the end of its line or of the text is at that end.
func (t *text) offset(p protocol.Position) int {
	n := int(p.Line)
	if n >= len(t.starts) {
		return len(t.src)
	}
	line := t.line(n)
	if t.utf8 {
		return t.starts[n] + min(int(p.Character), len(line))
	}
	end, units := 0, int(p.Character)
	for units > 0 && end < len(line) {
		r, size := utf8.DecodeRune(line[end:])
		if units -= max(utf16.RuneLen(r), 1); units < 0 {
			break // in the middle of a surrogate pair
		}
		end += size
	}
	return t.starts[n] + end
}

// change returns the text after an edit of the client.
func (t *text) change(e protocol.TextDocumentContentChangeEvent) *text {
	switch e := e.(type) {
	case *protocol.TextDocumentContentChangeWholeDocument:
		return newText(t.path, []byte(e.Text), t.utf8)
	case *protocol.TextDocumentContentChangePartial:
		start := t.offset(e.Range.Start)
		end := max(t.offset(e.Range.End), start)
		changed := newText(t.path, slices.Concat(t.src[:start], []byte(e.Text), t.src[end:]), t.utf8)
		changed.crlf = t.crlf
		return changed
	}
	return t
}

// edit replaces what is between two offsets.
func (t *text) edit(start, end int, with string) protocol.TextEdit {
	return protocol.TextEdit{Range: t.between(start, end), NewText: with}
}
