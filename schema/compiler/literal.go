package compiler

import (
	"strings"

	"runner.example/schema"
	"runner.example/schema/syntax"
)

// constantOf is the value of a literal.
func constantOf(l *syntax.Literal) schema.Value {
	switch l.Kind {
	case syntax.StringLit:
		return schema.TextValue(l.Text)
	case syntax.IntLit, syntax.SizeLit:
		return schema.IntValue(l.Int)
	case syntax.DecimalLit:
		return schema.DecimalValue(tidyDigits(l.Text))
	case syntax.DurationLit:
		return schema.SpanValue(l.Duration)
	case syntax.BoolLit:
		return schema.BoolValue(l.Bool)
	}
	panic("BUG: a literal of an unknown kind")
}

// tidyDigits cuts needless zeros off the front of a decimal, and the sign off a
// zero.
func tidyDigits(text string) string {
	digits, negative := strings.CutPrefix(text, "-")
	whole, fraction, point := strings.Cut(digits, ".")
	whole = strings.TrimLeft(whole, "0")
	negative = negative && strings.Trim(whole+fraction, "0") != ""
	if whole == "" {
		whole = "0"
	}
	if point {
		whole += "." + fraction
	}
	if negative {
		return "-" + whole
	}
	return whole
}
