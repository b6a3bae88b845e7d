package diag

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
)

// Source is one file as its author wrote it.
type Source struct {
	// Name is the name of the file in messages.
	Name string `json:"name"`
	Text []byte `json:"text"`
}

// Pos is a position in a text. The zero value means that the position is unknown.
type Pos struct {
	// Offset counts bytes from 0.
	Offset int
	// Line and Col count from 1; Col counts Unicode code points.
	Line, Col int
}

// IsValid reports whether p is not the zero value.
func (p Pos) IsValid() bool { return p.Line > 0 }

// Span is a range of one file, from Start to before End.
type Span struct {
	File       string
	Start, End Pos
}

// At returns the span of width characters on one line of a file.
func At(file string, line, col, width int) Span {
	return Span{File: file, Start: Pos{Line: line, Col: col}, End: Pos{Line: line, Col: col + width}}
}

// To returns the span from the start of s to the end of t.
func (s Span) To(t Span) Span { return Span{File: s.File, Start: s.Start, End: t.End} }

// String returns "file:line:col", or only the file if the position is unknown.
func (s Span) String() string {
	if !s.Start.IsValid() {
		return s.File
	}
	return fmt.Sprintf("%s:%d:%d", s.File, s.Start.Line, s.Start.Col)
}

// Severity distinguishes errors and warnings.
type Severity int

const (
	Error Severity = iota
	Warning
)

// String returns "error" or "warning".
func (s Severity) String() string {
	if s == Warning {
		return "warning"
	}
	return "error"
}

// Diagnostic is an error or a warning at a position.
type Diagnostic struct {
	// Code is "E410" or "W302"; empty for files without codes.
	Code     string
	Severity Severity
	Span     Span
	// Message is one line in lower case that says what to do.
	Message string
}

// String returns the first line that Print writes: position, severity, message.
func (d Diagnostic) String() string {
	return d.Span.String() + ": " + d.label() + ": " + clean(d.Message)
}

func (d Diagnostic) label() string {
	if d.Code == "" {
		return d.Severity.String()
	}
	return d.Severity.String() + "[" + d.Code + "]"
}

// diagnosticJSON is a Diagnostic as JSON.
type diagnosticJSON struct {
	Code     string `json:"code"`
	Severity string `json:"severity"`
	File     string `json:"file"`
	Line     int    `json:"line"`
	Col      int    `json:"col"`
	EndLine  int    `json:"endLine"`
	EndCol   int    `json:"endCol"`
	Message  string `json:"message"`
}

// MarshalJSON returns {code,severity,file,line,col,endLine,endCol,message}.
func (d Diagnostic) MarshalJSON() ([]byte, error) {
	return json.Marshal(diagnosticJSON{
		d.Code, d.Severity.String(), d.Span.File,
		d.Span.Start.Line, d.Span.Start.Col, d.Span.End.Line, d.Span.End.Col, d.Message,
	})
}

// UnmarshalJSON reads what MarshalJSON returns. The offsets of the span are lost.
func (d *Diagnostic) UnmarshalJSON(text []byte) error {
	var sent diagnosticJSON
	if err := json.Unmarshal(text, &sent); err != nil {
		return err
	}
	*d = Diagnostic{Code: sent.Code, Message: sent.Message, Span: Span{
		File: sent.File, Start: Pos{Line: sent.Line, Col: sent.Col}, End: Pos{Line: sent.EndLine, Col: sent.EndCol},
	}}
	if sent.Severity == Warning.String() {
		d.Severity = Warning
	}
	return nil
}

// JSONForm returns the zero value of what MarshalJSON encodes: documents describe the JSON by it.
func (d Diagnostic) JSONForm() []any { return []any{diagnosticJSON{}} }

// List is a list of diagnostics. The zero value is empty. A List is not safe for concurrent
// use.
type List []Diagnostic

// Errorf adds an error at span.
func (l *List) Errorf(code string, span Span, format string, args ...any) {
	*l = append(*l, Diagnostic{Code: code, Span: span, Message: fmt.Sprintf(format, args...)})
}

// Warnf adds a warning at span.
func (l *List) Warnf(code string, span Span, format string, args ...any) {
	*l = append(*l, Diagnostic{Code: code, Severity: Warning, Span: span, Message: fmt.Sprintf(format, args...)})
}

// Append adds the diagnostics of other.
func (l *List) Append(other List) { *l = append(*l, other...) }

// HasErrors reports whether at least one entry is an error.
func (l List) HasErrors() bool {
	return slices.ContainsFunc(l, func(d Diagnostic) bool { return d.Severity == Error })
}

// Strict returns a copy of l in which every warning is an error with the same code.
func (l List) Strict() List {
	strict := slices.Clone(l)
	for i := range strict {
		strict[i].Severity = Error
	}
	return strict
}

// Sorted returns a copy of l ordered by file name, position and code, without duplicates.
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

// MaxFindings limits the diagnostics that are sent, or printed as JSON.
const MaxFindings = 100

// Excerpt is the part of a list that is sent, or printed as JSON.
type Excerpt struct {
	// Findings are at most MaxFindings entries, in sorted order, errors rather than warnings. Excerpt of a list does
	// not return nil.
	Findings []Diagnostic `json:"findings"`
	// Total is the number of all entries, without duplicates.
	Total int `json:"total"`
}

// Excerpt returns the part of l to send, or to print as JSON.
func (l List) Excerpt() Excerpt {
	sorted := l.Sorted()
	e := Excerpt{Findings: append([]Diagnostic{}, sorted...), Total: len(sorted)}
	if len(sorted) > MaxFindings {
		slices.SortStableFunc(e.Findings, func(a, b Diagnostic) int { return cmp.Compare(a.Severity, b.Severity) })
		e.Findings = List(e.Findings[:MaxFindings]).Sorted()
	}
	return e
}

// Lines returns the line of each finding, as String does, and one with the number of those that e does not have.
func (e Excerpt) Lines() []string {
	var lines []string
	for _, d := range e.Findings {
		lines = append(lines, d.String())
	}
	if more := e.Total - len(e.Findings); more > 0 {
		lines = append(lines, fmt.Sprintf("… and %d more", more))
	}
	return lines
}
