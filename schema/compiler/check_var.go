package compiler

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"runner.example/internal/diag"
	"runner.example/schema"
	"runner.example/schema/report"
	"runner.example/schema/syntax"
	"runner.example/schema/vars"
)

// Unset says what a variable without a value is.
type Unset int

const (
	// Refused: it is an error. The app is about to be served.
	Refused Unset = iota
	// Assumed: it is a warning, and what depends on the value is not checked.
	Assumed
	// Ignored: no variable has a value, and that is not reported. Defaults are ignored too.
	Ignored
)

// varPrefix begins the name of the environment variable that sets a variable.
const varPrefix = "RUNNER_VARS_"

// varTypes are the types of variables, with the names that other languages have for them.
var varTypes = diag.Vocabulary{
	Known: vars.Types,
	Others: map[string][]string{
		"text": {"string"}, "str": {"string"}, "uri": {"url"}, "origin": {"url"}, "integer": {"int"},
		"number": {"int", "decimal"},
		"float":  {"decimal"}, "money": {"decimal"}, "boolean": {"bool"}, "timespan": {"duration"},
		"interval": {"duration"}, "limit": {"rate"},
	},
}

func (a *app) declareVar(d *syntax.VarDecl) {
	name := d.Name
	if first, twice := a.vars[name.Name]; twice {
		a.Errorf("E200", name.Loc, "variable %q is already declared at %s", name.Name, report.At(name.Loc, first.Name.Loc))
		return
	}
	a.vars[name.Name] = d
	a.schema.Vars = append(a.schema.Vars, &schema.Var{
		Name: name.Name, Doc: d.Doc, Type: d.Type.Name, JSON: json.RawMessage("null"),
	})
}

// varValue is a value with where it is from, for messages.
type varValue struct {
	vars.Value
	from string
}

// fillVars finds the values of all variables, and fills them in where one stands for a literal.
func (a *app) fillVars() {
	values := map[string]varValue{}
	for _, v := range a.schema.Vars {
		value, ok := a.varValue(a.vars[v.Name])
		if ok {
			v.JSON, v.From = value.JSON, value.from
			values[v.Name] = value
		}
	}
	for _, use := range a.varUses {
		a.fillVar(use, values)
	}
}

// varValue returns the value of a variable. It reports a missing or a wrong one.
func (a *app) varValue(d *syntax.VarDecl) (value varValue, ok bool) {
	typ, name := d.Type, d.Name.Name
	if !slices.Contains(vars.Types, typ.Name) {
		if typ.Name != "" {
			a.Errorf("E540", typ.Loc, "variable %s: unknown type %q%s", name, typ.Name, a.Hint(varTypes, typ.Name, nil))
		}
		return value, false
	}
	if d.Default != nil || d.Rate != nil {
		var err error
		value.from = fmt.Sprintf("the default at %s:%d", d.Loc.File, d.Loc.Start.Line)
		if value.Value, err = vars.Default(d); err != nil {
			a.Errorf("E540", d.DefaultSpan(), "variable %s: the default %v", name, err)
			return value, false
		}
		ok = true
	}
	if a.opt.Unset == Ignored {
		return varValue{}, false
	}
	if set, given := a.opt.Vars[name]; given {
		var err error
		value.from = set.Place.String()
		if value.Value, err = vars.Parse(typ.Name, set.Text); err != nil {
			a.Found.Errorf("E542", set.Place, "the value of variable %s, which is declared at %s:%d, %v",
				name, d.Loc.File, d.Loc.Start.Line, err)
			return value, false
		}
		return value, true
	}
	if !ok {
		a.unset(d)
	}
	return value, ok
}

// unset reports a variable without a value.
func (a *app) unset(d *syntax.VarDecl) {
	const format = "variable %s has no value: set %s, or the name under [vars] in runner.toml, or give it a default%s"
	args := []any{d.Name.Name, varPrefix + d.Name.Name, a.misnamed(d.Name.Name)}
	if a.opt.Unset == Assumed {
		a.Warnf("W541", d.Name.Loc, format, args...)
	} else {
		a.Errorf("E541", d.Name.Loc, format, args...)
	}
}

// misnamed names a value that may be meant for the variable, to append to a message.
func (a *app) misnamed(name string) string {
	var others []string
	for _, set := range slices.Sorted(maps.Keys(a.opt.Vars)) {
		if a.vars[set] == nil {
			others = append(others, set)
		}
	}
	if other := diag.Suggest(name, others); other != "" {
		return fmt.Sprintf(" (%s sets %s: did you mean %s?)", a.opt.Vars[other].Place, other, name)
	}
	return ""
}

// fillVar fills in the value of a variable where it stands for a literal.
func (a *app) fillVar(use syntax.VarUse, values map[string]varValue) {
	name, d := use.Name, a.vars[use.Name.Name]
	value, known := values[use.Name.Name]
	want, form := []string{"string", "url"}, "a string"
	if use.Rate != nil {
		want, form = []string{"rate"}, "a rate such as 600/minute"
	}
	switch {
	case d == nil:
		a.Missing(name.Name, "E543", name.Loc, "no variable %q is declared: write %s, or declare `var %s: %s`%s",
			name.Name, form, name.Name, want[0], a.DidYouMean(name.Name, a.schema.VarNames()))
	case slices.Contains(vars.Types, d.Type.Name) && !slices.Contains(want, d.Type.Name):
		a.Errorf("E543", name.Loc, "variable %s is of type %s, and this must be %s: declare it as %s",
			name.Name, d.Type.Name, form, strings.Join(want, " or "))
		known = false
	}
	switch {
	case known && use.String != nil:
		use.String.Text = value.Text
	case known:
		use.Rate.Count, use.Rate.Unit = value.Rate.Count, value.Rate.Unit
	case use.String != nil:
		use.String.Text = name.Name
	}
	if known {
		a.Filled[name.Loc] = value.from
	} else {
		a.Assumed[name.Loc] = true
	}
}
