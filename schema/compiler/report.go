package compiler

import (
	"fmt"
	"sort"
	"strings"

	"runner.example/internal/diag"
	"runner.example/schema/syntax"
)

// report collects diagnostics and suppresses those that may only follow from a syntax error.
type report struct {
	found diag.List
	// unread are the parts of each file that could not be read. Nothing in them is reported
	// again.
	unread map[string][]diag.Span
	// words are the names in these parts, folded. A name that seems to be missing may be
	// declared there.
	words map[string]bool
	// removed are entities and fields with @removed, by their names: "Order.note" by "note".
	removed map[string]string
	// lost: names may be missing that are not in words.
	lost bool
	// filled are the places where a variable stands for a literal, with where its value is
	// from. At assumed places it has none: no other error about its value is reported there.
	filled  map[diag.Span]string
	assumed map[diag.Span]bool
}

// noteUnread records the parts of a file that the parser could not read.
func (r *report) noteUnread(file *syntax.File) {
	r.lost = r.lost || file.Lost
	r.unread[file.Name] = file.Unread
	rest := file.Tokens
	for _, part := range file.Unread {
		before := "" // the name before the token: perhaps one name was written as two
		for len(rest) > 0 && rest[0].Loc.Start.Offset < part.End.Offset {
			token := rest[0]
			rest = rest[1:]
			if token.Loc.Start.Offset < part.Start.Offset || token.Text == "-" {
				continue
			}
			for word := range strings.FieldsFuncSeq(token.Text, func(c rune) bool { return !syntax.IsLetter(c) && !syntax.IsDigit(c) }) {
				r.words[folded(word)], r.words[folded(before+word)] = true, true
				before = word
			}
			if !syntax.IsName(token.Text) {
				before = ""
			}
		}
	}
}

// folded is a name without differences of style: placedAt and placed_at are the same.
func folded(name string) string { return strings.ToLower(strings.ReplaceAll(name, "_", "")) }

// isUnread reports whether span begins in a part that could not be read.
func (r *report) isUnread(span diag.Span) bool {
	parts := r.unread[span.File]
	i := sort.Search(len(parts), func(i int) bool { return parts[i].End.Offset > span.Start.Offset })
	return i < len(parts) && parts[i].Start.Offset <= span.Start.Offset
}

// broken reports whether a part of a file could not be read.
func (r *report) broken() bool { return r.lost || len(r.words) > 0 }

// mayDeclare reports whether name may be declared in a part that could not be read.
func (r *report) mayDeclare(name string) bool { return r.lost || r.words[folded(name)] }

// errorf reports an error, unless its place could not be read.
func (r *report) errorf(code string, span diag.Span, format string, args ...any) {
	from, filled := r.filled[span]
	switch {
	case r.isUnread(span), r.assumed[span]:
	case filled:
		r.found.Errorf(code, span, "%s (it is from %s)", fmt.Sprintf(format, args...), from)
	default:
		r.found.Errorf(code, span, format, args...)
	}
}

// warnf reports a warning, unless its place could not be read.
func (r *report) warnf(code string, span diag.Span, format string, args ...any) {
	if !r.isUnread(span) {
		r.found.Warnf(code, span, format, args...)
	}
}

// missing reports that name is not declared, unless it may be declared in a part that could
// not be read.
func (r *report) missing(name, code string, span diag.Span, format string, args ...any) {
	switch {
	case r.mayDeclare(name):
	case r.removed[name] != "":
		r.errorf(code, span, "%s: %s is @removed", fmt.Sprintf(format, args...), r.removed[name])
	default:
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
