package vars

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"unicode/utf8"

	"runner.example/internal/diag"
	"runner.example/schema"
	"runner.example/schema/model"
	"runner.example/schema/syntax"
)

// Types are the types of variables.
var Types = []string{"string", "int", "decimal", "bool", "url", "duration", "rate"}

// MaxBytes is the size of the largest value.
const MaxBytes = 64 << 10

// Value is the value of a variable.
type Value struct {
	// JSON is the value as handlers read it.
	JSON json.RawMessage
	// Text is the value of a string or a URL.
	Text string
	// Rate is the value of a rate, else nil.
	Rate *syntax.Rate
}

// Default returns the value that a declaration has; it must have one. The error says what to
// write, without the name of the variable.
func Default(d *syntax.VarDecl) (Value, error) {
	return valueOf(d.Type.Name, d)
}

// Parse reads the text that an operator has set for a variable of the type. The error says what
// to write, without the name and the text.
func Parse(typ, text string) (Value, error) {
	switch {
	case len(text) > MaxBytes:
		return Value{}, fmt.Errorf("has more than %d KiB", MaxBytes>>10)
	case !utf8.ValidString(text):
		return Value{}, errors.New("is not UTF-8")
	case typ == "string" || typ == "url":
		return textValue(typ, text)
	}
	// The grammar of the schema is that of values too.
	const before = "var V: int = "
	file, found := syntax.Parse(diag.Source{Name: "value", Text: []byte(before + text)})
	if found.HasErrors() || len(file.Decls) != 1 || len(file.Comments) > 0 {
		return Value{}, wrongForm(typ)
	}
	d := file.Decls[0].(*syntax.VarDecl)
	whole := syntax.Node{}
	switch {
	case d.Default != nil:
		whole = d.Default.Node
	case d.Rate != nil:
		whole = d.Rate.Node
	}
	if whole.Loc.Start.Offset != len(before) || whole.Loc.End.Offset != len(before)+len(text) {
		return Value{}, wrongForm(typ)
	}
	return valueOf(typ, d)
}

// valueOf reads the default of a declaration as a value of the type.
func valueOf(typ string, d *syntax.VarDecl) (Value, error) {
	if d.Rate != nil {
		if typ != "rate" {
			return Value{}, wrongForm(typ)
		}
		return rateValue(d.Rate)
	}
	lit := d.Default
	switch {
	case (typ == "string" || typ == "url") && lit.Kind == syntax.StringLit:
		return textValue(typ, lit.Text)
	case typ == "bool" && lit.Kind == syntax.BoolLit:
		return Value{JSON: model.Value(lit).AppendPlain(nil)}, nil
	case typ == "int" && lit.Kind == syntax.IntLit:
		if lit.Int > schema.MaxSafeInteger || lit.Int < -schema.MaxSafeInteger {
			return Value{}, errors.New("is beyond ±9,007,199,254,740,991")
		}
		return Value{JSON: model.Value(lit).AppendPlain(nil)}, nil
	case typ == "decimal" && (lit.Kind == syntax.IntLit || lit.Kind == syntax.DecimalLit):
		return Value{JSON: strconv.AppendQuote(nil, string(model.Value(lit).AppendPlain(nil)))}, nil
	case typ == "duration" && lit.Kind == syntax.DurationLit:
		return Value{JSON: strconv.AppendFloat(nil, lit.Duration.Seconds(), 'f', -1, 64)}, nil
	}
	return Value{}, wrongForm(typ)
}

func textValue(typ, text string) (Value, error) {
	if typ == "url" {
		if _, err := (&schema.Type{Kind: schema.URL}).ParseText(text); err != nil {
			return Value{}, wrongForm(typ)
		}
	}
	encoded, err := json.Marshal(text)
	return Value{JSON: encoded, Text: text}, err
}

func rateValue(r *syntax.Rate) (Value, error) {
	known := slices.ContainsFunc(schema.RateUnits, func(u schema.RateUnit) bool { return u.Name == r.Unit.Name })
	if !known || r.By != nil || r.Count.Int < 1 {
		return Value{}, wrongForm("rate")
	}
	return Value{JSON: strconv.AppendQuote(nil, fmt.Sprintf("%d/%s", r.Count.Int, r.Unit.Name)), Rate: r}, nil
}

var forms = map[string]string{
	"string":   `is not a string: write it in quotes`,
	"int":      `is not a whole number: write one such as 20`,
	"decimal":  `is not a decimal: write one such as 19.5`,
	"bool":     `is not a bool: write true or false`,
	"url":      `is not a URL: write one such as https://mail.example.com`,
	"duration": `is not a duration: write one such as 30s, 5m or 7d`,
	"rate":     `is not a rate: write one such as 600/minute, per second, minute, hour or day`,
}

func wrongForm(typ string) error { return errors.New(forms[typ]) }
