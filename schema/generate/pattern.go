package generate

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
	"unicode"
)

// ecmaPattern converts a pattern of the schema (RE2) to one of JSON Schema (ECMA-262 with the
// flag u) that matches the same texts.
func ecmaPattern(re *regexp.Regexp) string {
	parsed, err := syntax.Parse(re.String(), syntax.Perl)
	if err != nil {
		panic("BUG: compiled pattern does not parse: " + err.Error())
	}
	return ecma(parsed)
}

func ecma(re *syntax.Regexp) string {
	switch re.Op {
	case syntax.OpNoMatch:
		return "[]"
	case syntax.OpEmptyMatch:
		return "(?:)"
	case syntax.OpLiteral:
		return ecmaLiteral(re)
	case syntax.OpCharClass:
		return ecmaClass(re.Rune)
	case syntax.OpAnyCharNotNL:
		return `[^\n]`
	case syntax.OpAnyChar:
		return "[^]"
	case syntax.OpBeginLine:
		return `(?<![^\n])`
	case syntax.OpEndLine:
		return `(?![^\n])`
	case syntax.OpBeginText:
		return "^"
	case syntax.OpEndText:
		return "$"
	case syntax.OpWordBoundary:
		return `\b`
	case syntax.OpNoWordBoundary:
		return `\B`
	case syntax.OpCapture:
		return "(?:" + ecma(re.Sub[0]) + ")"
	case syntax.OpStar:
		return ecmaRepeated(re, "*")
	case syntax.OpPlus:
		return ecmaRepeated(re, "+")
	case syntax.OpQuest:
		return ecmaRepeated(re, "?")
	case syntax.OpRepeat:
		switch re.Max {
		case re.Min:
			return ecmaRepeated(re, fmt.Sprintf("{%d}", re.Min))
		case -1:
			return ecmaRepeated(re, fmt.Sprintf("{%d,}", re.Min))
		}
		return ecmaRepeated(re, fmt.Sprintf("{%d,%d}", re.Min, re.Max))
	case syntax.OpConcat:
		var out strings.Builder
		for _, sub := range re.Sub {
			if sub.Op == syntax.OpAlternate {
				out.WriteString("(?:" + ecma(sub) + ")")
			} else {
				out.WriteString(ecma(sub))
			}
		}
		return out.String()
	case syntax.OpAlternate:
		parts := make([]string, len(re.Sub))
		for i, sub := range re.Sub {
			parts[i] = ecma(sub)
		}
		return strings.Join(parts, "|")
	}
	panic("BUG: unknown part of a pattern: " + re.Op.String())
}

// ecmaRepeated writes a repetition, with a group if more than one character is repeated.
// Whether it is greedy does not matter for a match.
func ecmaRepeated(re *syntax.Regexp, times string) string {
	sub := re.Sub[0]
	switch sub.Op {
	case syntax.OpCharClass, syntax.OpAnyChar, syntax.OpAnyCharNotNL, syntax.OpCapture:
		return ecma(sub) + times
	case syntax.OpLiteral:
		if len(sub.Rune) == 1 {
			return ecma(sub) + times
		}
	}
	return "(?:" + ecma(sub) + ")" + times
}

func ecmaLiteral(re *syntax.Regexp) string {
	var out strings.Builder
	for _, r := range re.Rune {
		folded := []rune{r, r}
		if re.Flags&syntax.FoldCase != 0 {
			for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
				folded = append(folded, f, f)
			}
		}
		if len(folded) > 2 {
			out.WriteString(ecmaClass(folded))
		} else {
			out.WriteString(ecmaRune(r, `^$\.*+?()[]{}|/`))
		}
	}
	return out.String()
}

// ecmaClass writes a character class. A class that includes the first and the last character
// is written as a negated class.
func ecmaClass(ranges []rune) string {
	not := ""
	if n := len(ranges); n > 0 && ranges[0] == 0 && ranges[n-1] == unicode.MaxRune {
		var gaps []rune
		for i := 1; i < n-1; i += 2 {
			gaps = append(gaps, ranges[i]+1, ranges[i+1]-1)
		}
		not, ranges = "^", gaps
	}
	var out strings.Builder
	for i := 0; i < len(ranges); i += 2 {
		out.WriteString(ecmaRune(ranges[i], `^-\[]`))
		switch {
		case ranges[i+1] == ranges[i]:
			continue
		case ranges[i+1] > ranges[i]+1:
			out.WriteByte('-')
		}
		out.WriteString(ecmaRune(ranges[i+1], `^-\[]`))
	}
	return "[" + not + out.String() + "]"
}

// ecmaRune writes a character, escaped if it is in special.
func ecmaRune(r rune, special string) string {
	switch {
	case strings.ContainsRune(special, r):
		return `\` + string(r)
	case r >= ' ' && r < 0x7f:
		return string(r)
	case r > 0xffff:
		return fmt.Sprintf(`\u{%x}`, r)
	}
	return fmt.Sprintf(`\u%04x`, r)
}
