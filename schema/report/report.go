package report

import (
	"fmt"
	"sort"
	"strings"

	"runner.example/internal/diag"
	"runner.example/schema/syntax"
)

// Report collects diagnostics and suppresses those that may only follow from another one. One goroutine
// may use it.
type Report struct {
	Found diag.List
	// unread are the parts of each file that could not be read. Nothing in them is reported
	// again.
	unread map[string][]diag.Span
	// words are the names in these parts, folded. A name that seems to be missing may be
	// declared there.
	words map[string]bool
	// Removed are entities and fields with @removed, by their names: "Order.note" by "note".
	Removed map[string]string
	// lost: names may be missing that are not in words.
	lost bool
	// Filled are the places where a variable stands for a literal, with where its value is
	// from. At Assumed places it has none: no other error about its value is reported there.
	Filled  map[diag.Span]string
	Assumed map[diag.Span]bool
}

// New returns a report without diagnostics.
func New() *Report {
	return &Report{
		unread: map[string][]diag.Span{}, words: map[string]bool{}, Removed: map[string]string{},
		Filled: map[diag.Span]string{}, Assumed: map[diag.Span]bool{},
	}
}

// NoteUnread records the parts of a file that the parser could not read.
func (r *Report) NoteUnread(file *syntax.File) {
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
			for word := range strings.FieldsFuncSeq(token.Text, func(c rune) bool {
				return !syntax.IsLetter(c) && !syntax.IsDigit(c)
			}) {
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
func (r *Report) isUnread(span diag.Span) bool {
	parts := r.unread[span.File]
	i := sort.Search(len(parts), func(i int) bool { return parts[i].End.Offset > span.Start.Offset })
	return i < len(parts) && parts[i].Start.Offset <= span.Start.Offset
}

// Broken reports whether a part of a file could not be read.
func (r *Report) Broken() bool { return r.lost || len(r.words) > 0 }

// MayDeclare reports whether name may be declared in a part that could not be read.
func (r *Report) MayDeclare(name string) bool { return r.lost || r.words[folded(name)] }

// Errorf reports an error, unless its place could not be read.
func (r *Report) Errorf(code string, span diag.Span, format string, args ...any) {
	from, filled := r.Filled[span]
	switch {
	case r.isUnread(span), r.Assumed[span]:
	case filled:
		r.Found.Errorf(code, span, "%s (it is from %s)", fmt.Sprintf(format, args...), from)
	default:
		r.Found.Errorf(code, span, format, args...)
	}
}

// Warnf reports a warning, unless its place could not be read.
func (r *Report) Warnf(code string, span diag.Span, format string, args ...any) {
	if !r.isUnread(span) {
		r.Found.Warnf(code, span, format, args...)
	}
}

// Missing reports that name is not declared, unless it may be declared in a part that could
// not be read.
func (r *Report) Missing(name, code string, span diag.Span, format string, args ...any) {
	switch {
	case r.MayDeclare(name):
	case r.Removed[name] != "":
		r.Errorf(code, span, "%s: %s is @removed", fmt.Sprintf(format, args...), r.Removed[name])
	default:
		r.Errorf(code, span, format, args...)
	}
}

// maxHints is the number of diagnostics that can have suggestions. Finding a suggestion is
// slow, and only the first diagnostics are printed.
const maxHints = 50

// DidYouMean is a suggestion to append to a message, or "".
func (r *Report) DidYouMean(word string, candidates ...[]string) string {
	if len(r.Found) >= maxHints {
		return ""
	}
	return diag.DidYouMean(word, candidates...)
}

// Hint says what to write instead of an unknown word, to append to a message.
func (r *Report) Hint(known diag.Vocabulary, word string, declared []string) string {
	if len(r.Found) >= maxHints {
		return ""
	}
	return known.Hint(word, declared...)
}

// At is the position of first, for a message at from: without the file name if both are in one file.
func At(from, first diag.Span) string {
	if from.File == first.File {
		return fmt.Sprintf("line %d", first.Start.Line)
	}
	return fmt.Sprintf("%s:%d", first.File, first.Start.Line)
}
