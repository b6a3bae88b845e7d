package console

import (
	"errors"
	"fmt"
	"strings"

	"runner.example/internal/diag"
	"runner.example/internal/fault"
)

// The exit statuses; the help text lists them.
const (
	StatusFailed      = 1
	StatusMisused     = 2
	StatusInvalid     = 3
	StatusNotFound    = 4
	StatusState       = 5
	StatusUnreachable = 6
	StatusInterrupted = 130
)

// Failure is an error with an exit status, and a hint what to type next.
type Failure struct {
	Status int
	Err    error
	Hint   string
}

func (f *Failure) Error() string { return f.Err.Error() }
func (f *Failure) Unwrap() error { return f.Err }

// Misused returns a Failure for an invalid command line.
func Misused(format string, args ...any) *Failure {
	return &Failure{Status: StatusMisused, Err: fmt.Errorf(format, args...)}
}

// Invalid returns a Failure for an invalid value, file or configuration.
func Invalid(format string, args ...any) *Failure {
	return &Failure{Status: StatusInvalid, Err: fmt.Errorf(format, args...)}
}

// Problems is the error of files with diagnostics.
type Problems struct {
	// What is printed after the diagnostics: "the schema is invalid: 2 errors".
	What    string
	Sources []diag.Source
	List    diag.List
	// Total is the number of all diagnostics if List has only some of them; else 0.
	Total int
}

// Excerpt returns the diagnostics to print or to send.
func (m *Problems) Excerpt() diag.Excerpt {
	e := m.List.Excerpt()
	e.Total = max(e.Total, m.Total)
	return e
}

func (m *Problems) Error() string { return m.What }

// Parts returns the errors that are joined in err; each is printed on its own line.
func Parts(err error) []error {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	var all []error
	for _, one := range joined.Unwrap() {
		all = append(all, Parts(one)...)
	}
	return all
}

// HintOf returns the hint of an error, of its Failure or else of its fault; "" if it has none.
func HintOf(err error) string {
	if f, ok := errors.AsType[*Failure](err); ok && f.Hint != "" {
		return f.Hint
	}
	if f, ok := errors.AsType[*fault.Fault](err); ok {
		return f.Hint
	}
	return ""
}

// Counted returns the numbers of errors and warnings in a list, as text.
func Counted(list diag.List) string {
	failed, warnings := 0, 0
	for _, d := range list.Sorted() {
		if d.Severity == diag.Error {
			failed++
		} else {
			warnings++
		}
	}
	switch {
	case warnings == 0:
		return Plural(failed, "error")
	case failed == 0:
		return Plural(warnings, "warning")
	}
	return Plural(failed, "error") + " and " + Plural(warnings, "warning")
}

// Plural returns a number with a noun.
func Plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	if stem, ok := strings.CutSuffix(what, "y"); ok && !strings.ContainsAny(stem[len(stem)-1:], "aeiou") {
		return fmt.Sprintf("%d %sies", n, stem) // entities, entries, but keys
	}
	return fmt.Sprintf("%d %ss", n, what)
}
