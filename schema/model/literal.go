package model

import (
	"strings"

	"runner.example/schema"
	"runner.example/schema/syntax"
)

// Value is the value of a literal.
func Value(l *syntax.Literal) schema.Value {
	switch l.Kind {
	case syntax.StringLit:
		return schema.TextValue(l.Text)
	case syntax.IntLit, syntax.SizeLit:
		return schema.IntValue(l.Int)
	case syntax.DecimalLit:
		return schema.DecimalValue(trimZeros(l.Text))
	case syntax.DurationLit:
		return schema.SpanValue(l.Duration)
	case syntax.BoolLit:
		return schema.BoolValue(l.Bool)
	}
	panic("BUG: unknown kind of literal")
}

// trimZeros removes leading zeros from a decimal, and the sign from zero.
func trimZeros(text string) string {
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
