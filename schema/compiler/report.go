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

// noteUnread records the strings and numbers that the parser reported.
func (r *report) noteUnread(found diag.List) {
	for _, d := range found {
		if d.Code == "E002" || d.Code == "E004" {
			r.unread[start(d.Span)] = true
		}
	}
}

func start(span diag.Span) diag.Span {
	return diag.Span{File: span.File, Start: span.Start}
}

// errorf reports an error, unless the lexer reported one at the same place.
func (r *report) errorf(code string, span diag.Span, format string, args ...any) {
	if !r.unread[start(span)] {
		r.found.Errorf(code, span, format, args...)
	}
}

func (r *report) warnf(code string, span diag.Span, format string, args ...any) {
	r.found.Warnf(code, span, format, args...)
}

// missing reports a name that is not declared, unless it may be declared in a part that could
// not be read.
func (r *report) missing(code string, span diag.Span, format string, args ...any) {
	if !r.broken {
		r.errorf(code, span, format, args...)
	}
}

// maxHints is the number of diagnostics that can have suggestions. Finding a suggestion is
// slow, and only the first diagnostics are printed.
const maxHints = 50

// didYouMean is a suggestion to append to a message, or "".
func (r *report) didYouMean(word string, candidates ...[]string) string {
	if len(r.found) >= maxHints {
		return ""
	}
	return diag.DidYouMean(word, candidates...)
}

// hint says what to write instead of an unknown word, to append to a message.
func (r *report) hint(known diag.Vocabulary, word string, declared []string) string {
	if len(r.found) >= maxHints {
		return ""
	}
	return known.Hint(word, declared...)
}

// at is the position of first, without the file name if from is in the same file.
func at(from, first diag.Span) string {
	if from.File == first.File {
		return fmt.Sprintf("line %d", first.Start.Line)
	}
	return fmt.Sprintf("%s:%d", first.File, first.Start.Line)
}
