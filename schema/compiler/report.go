package compiler

import (
	"fmt"

	"runner.example/internal/diag"
)

// report collects diagnostics and suppresses those that only follow from a syntax error.
type report struct {
	found diag.List
	// unread are the starts of strings and numbers with a lexical error: their values
	// are not what the author meant.
	unread map[diag.Span]bool
	// broken: the parser skipped a part that may declare names. A name that seems to be
	// missing may be declared there, so it is not reported.
	broken bool
}

// misread notes the strings and numbers that the parser reported: what they
// hold is not what was meant.
func (r *report) misread(found diag.List) {
	for _, d := range found {
		if d.Code == "E002" || d.Code == "E004" {
			r.unread[start(d.Span)] = true
		}
	}
}

func start(span diag.Span) diag.Span {
	return diag.Span{File: span.File, Start: span.Start}
}

// errorf reports an error.
func (r *report) errorf(code string, span diag.Span, format string, args ...any) {
	if !r.unread[start(span)] {
		r.found.Errorf(code, span, format, args...)
	}
}

// warnf reports a warning.
func (r *report) warnf(code string, span diag.Span, format string, args ...any) {
	r.found.Warnf(code, span, format, args...)
}

// missing reports that something named is not there, unless it may stand in a
// part that could not be read.
func (r *report) missing(code string, span diag.Span, format string, args ...any) {
	if !r.broken {
		r.errorf(code, span, format, args...)
	}
}

// maxHints bounds how many mistakes are told with a suggestion: finding one
// takes time, and only the first mistakes are read.
const maxHints = 50

// didYouMean is the suggestion to put behind a message, or nothing.
func (r *report) didYouMean(word string, candidates ...[]string) string {
	if len(r.found) >= maxHints {
		return ""
	}
	return diag.DidYouMean(word, candidates...)
}

// at says where first is, seen from another place.
func at(from, first diag.Span) string {
	if from.File == first.File {
		return fmt.Sprintf("line %d", first.Start.Line)
	}
	return fmt.Sprintf("%s:%d", first.File, first.Start.Line)
}
