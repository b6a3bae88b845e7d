package schema

import (
	"io"
	"regexp"
	"regexp/syntax"
	"unicode/utf8"

	"runner.example/internal/cost"
)

// Matching a pattern takes time in proportion to its text and its program: in the worst case
// every instruction runs for every character, about 6 ns each. So both are limited, and
// their product.
const (
	MaxPatternProgram = 4096    // instructions
	MaxPatternSteps   = 1 << 22 // characters × instructions
)

// PatternProgram is the number of instructions of a compiled pattern, 0 if the pattern is
// not valid.
func PatternProgram(pattern string) int {
	re, err := syntax.Parse(pattern, syntax.Perl) // as regexp.Compile does
	if err != nil {
		return 0
	}
	program, err := syntax.Compile(re.Simplify())
	if err != nil {
		return 0
	}
	return len(program.Inst)
}

// LongestText is the maximum number of characters of a text of the type; 0 is unlimited.
func (t *Type) LongestText() int {
	switch {
	case t.HasMaxLen:
		return t.MaxLen
	case t.Kind == Email:
		return maxEmail
	case t.Kind == URL:
		return maxURL
	}
	return 0
}

// SetPattern sets Pattern.
func (t *Type) SetPattern(re *regexp.Regexp) { t.Pattern, t.program = re, PatternProgram(re.String()) }

// matches reports whether the text matches the pattern. When m fails, the result is not
// valid.
func (t *Type) matches(s string, m *cost.Meter) bool {
	if m == nil || len(s)*t.program < cost.Every {
		return m.Spend(len(s)*t.program) == nil && t.Pattern.MatchString(s)
	}
	return t.Pattern.MatchReader(&meteredText{s, t.program, m})
}

// meteredText is a text to match. It ends early when the meter fails.
type meteredText struct {
	rest    string
	program int
	meter   *cost.Meter
}

// ReadRune returns the next character.
func (r *meteredText) ReadRune() (rune, int, error) {
	if r.rest == "" || r.meter.Spend(r.program) != nil {
		return 0, 0, io.EOF
	}
	c, n := utf8.DecodeRuneInString(r.rest)
	r.rest = r.rest[n:]
	return c, n, nil
}
