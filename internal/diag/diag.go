package diag

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
)

// Source is one file as its author wrote it.
type Source struct {
	// Name is how messages call the file.
	Name string
	Text []byte
}

// Pos is a place in a text. The zero value means "no particular place".
type Pos struct {
	// Offset counts bytes from 0.
	Offset int
	// Line and Col count from 1; Col counts Unicode code points.
	Line, Col int
}

// IsValid reports that p is a place and not the zero value.
func (p Pos) IsValid() bool { return p.Line > 0 }

// Span is a piece of one file: Start belongs to it, End is the first place
// behind it.
type Span struct {
	File       string
	Start, End Pos
}

// To returns the span from the start of s to the end of t.
func (s Span) To(t Span) Span { return Span{File: s.File, Start: s.Start, End: t.End} }

// String gives "file:line:col", or the file alone when the span has no place.
func (s Span) String() string {
	if !s.Start.IsValid() {
		return s.File
	}
	return fmt.Sprintf("%s:%d:%d", s.File, s.Start.Line, s.Start.Col)
}

// Severity says whether a Diagnostic stops the work.
type Severity int

const (
	Error Severity = iota
	Warning
)

// String gives "error" or "warning".
func (s Severity) String() string {
	if s == Warning {
		return "warning"
	}
	return "error"
}

// Diagnostic is one mistake, or one doubtful thing, at one place.
type Diagnostic struct {
	// Code is "E410" or "W302", empty where there is no table of codes.
	Code     string
	Severity Severity
	Span     Span
	// Message is lower case, one line, and says what to do.
	Message string
}

// String gives the first line that Print writes: place, severity, message.
func (d Diagnostic) String() string {
	return d.Span.String() + ": " + d.label() + ": " + clean(d.Message)
}

func (d Diagnostic) label() string {
	if d.Code == "" {
		return d.Severity.String()
	}
	return d.Severity.String() + "[" + d.Code + "]"
}

// MarshalJSON gives {code,severity,file,line,col,endLine,endCol,message}.
func (d Diagnostic) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Code     string `json:"code"`
		Severity string `json:"severity"`
		File     string `json:"file"`
		Line     int    `json:"line"`
		Col      int    `json:"col"`
		EndLine  int    `json:"endLine"`
		EndCol   int    `json:"endCol"`
		Message  string `json:"message"`
	}{
		d.Code, d.Severity.String(), d.Span.File,
		d.Span.Start.Line, d.Span.Start.Col, d.Span.End.Line, d.Span.End.Col, d.Message,
	})
}

// List collects diagnostics. The zero value is empty and ready. A List is not
// safe for concurrent use.
type List []Diagnostic

// Errorf adds an error at span.
func (l *List) Errorf(code string, span Span, format string, args ...any) {
	*l = append(*l, Diagnostic{Code: code, Span: span, Message: fmt.Sprintf(format, args...)})
}

// Warnf adds a warning at span.
func (l *List) Warnf(code string, span Span, format string, args ...any) {
	*l = append(*l, Diagnostic{Code: code, Severity: Warning, Span: span, Message: fmt.Sprintf(format, args...)})
}

// Append adds all of other.
func (l *List) Append(other List) { *l = append(*l, other...) }

// HasErrors reports that at least one entry is an error.
func (l List) HasErrors() bool {
	return slices.ContainsFunc(l, func(d Diagnostic) bool { return d.Severity == Error })
}

// Strict returns a copy of l in which every warning is an error. The codes stay.
func (l List) Strict() List {
	strict := slices.Clone(l)
	for i := range strict {
		strict[i].Severity = Error
	}
	return strict
}

// Sorted returns a copy of l ordered by file name, position and code, with
// entries that say the same at the same place told once.
func (l List) Sorted() List {
	sorted := slices.Clone(l)
	slices.SortStableFunc(sorted, func(a, b Diagnostic) int {
		return cmp.Or(
			cmp.Compare(a.Span.File, b.Span.File),
			cmp.Compare(a.Span.Start.Line, b.Span.Start.Line),
			cmp.Compare(a.Span.Start.Col, b.Span.Start.Col),
			cmp.Compare(a.Code, b.Code),
			cmp.Compare(a.Message, b.Message),
		)
	})
	return slices.CompactFunc(sorted, func(a, b Diagnostic) bool {
		return a.Code == b.Code && a.Span.File == b.Span.File && a.Span.Start == b.Span.Start && a.Message == b.Message
	})
}

// MarshalJSON gives an array in sorted order; an empty list is [].
func (l List) MarshalJSON() ([]byte, error) {
	return json.Marshal(append([]Diagnostic{}, l.Sorted()...))
}
