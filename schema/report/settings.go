package report

import (
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"runner.example/schema/syntax"
)

// These methods read the values of settings. They report a value of the wrong form and
// return false or nil. A nil value could not be read and has been reported.

// Expected reports that a value of another form is expected.
func (r *Report) Expected(v syntax.SettingValue, what string) {
	if v != nil {
		r.Errorf("E100", v.Span(), "expected %s, found %s", what, describeValue(v))
	}
}

func describeValue(v syntax.SettingValue) string {
	switch v := v.(type) {
	case *syntax.Literal:
		return v.Raw
	case *syntax.NameSetting:
		return v.Name.Name
	case *syntax.MapSetting:
		return "a block"
	}
	return "a list"
}

// Literal requires a literal of a kind.
func (r *Report) Literal(v syntax.SettingValue, kind syntax.LiteralKind, what string) (*syntax.Literal, bool) {
	lit, ok := v.(*syntax.Literal)
	if !ok || lit.Kind != kind {
		r.Expected(v, what)
		return nil, false
	}
	return lit, true
}

// String requires a string.
func (r *Report) String(v syntax.SettingValue) (*syntax.Literal, bool) {
	return r.Literal(v, syntax.StringLit, "a string")
}

// Duration requires a duration above zero. usual is the unit that people mean by a number alone.
func (r *Report) Duration(v syntax.SettingValue, usual string) (time.Duration, bool) {
	lit, ok := v.(*syntax.Literal)
	switch {
	case !ok:
		r.Expected(v, "a duration (30m, 90d)")
		return 0, false
	case lit.Kind != syntax.DurationLit:
		r.Errorf("E100", lit.Loc, "expected a duration (30m, 90d), found %s%s", lit.Raw, lit.DurationHint(usual))
		return 0, false
	}
	if lit.Duration <= 0 {
		r.Expected(v, "a duration above zero")
		return 0, false
	}
	return lit.Duration, true
}

// BareName requires a name without arguments.
func (r *Report) BareName(v syntax.SettingValue, what string) (syntax.Ident, bool) {
	name, ok := v.(*syntax.NameSetting)
	if !ok || name.Call {
		r.Expected(v, what)
		return syntax.Ident{}, false
	}
	return name.Name, name.Name.Name != ""
}

// Claim requires claim("name", …), and returns its arguments.
func (r *Report) Claim(v syntax.SettingValue) []syntax.SettingValue {
	name, ok := v.(*syntax.NameSetting)
	if !ok || name.Name.Name != "claim" || len(name.Args) == 0 {
		r.Expected(v, `claim("…")`)
		return nil
	}
	return name.Args
}

// NameList requires a list of names.
func (r *Report) NameList(v syntax.SettingValue) []syntax.Ident {
	list, ok := v.(*syntax.ListSetting)
	if !ok {
		r.Expected(v, "a list of names in brackets")
		return nil
	}
	var names []syntax.Ident
	for _, elem := range list.Elems {
		if lit, ok := elem.(*syntax.Literal); ok && lit.Kind == syntax.StringLit && syntax.IsName(lit.Text) {
			r.Errorf("E100", lit.Loc, "expected a name, found %s: write it without quotes", lit.Raw)
			names = append(names, syntax.Ident{Node: lit.Node, Name: lit.Text})
		} else if name, ok := r.BareName(elem, "a name"); ok {
			names = append(names, name)
		}
	}
	return names
}

// RoleList requires a list of roles: names or strings.
func (r *Report) RoleList(v syntax.SettingValue) []syntax.Ident {
	list, ok := v.(*syntax.ListSetting)
	if !ok {
		r.Expected(v, "a list of roles in brackets")
		return nil
	}
	var roles []syntax.Ident
	for _, elem := range list.Elems {
		lit, ok := elem.(*syntax.Literal)
		switch {
		case !ok || lit.Kind != syntax.StringLit:
			if name, ok := r.BareName(elem, "a role: a name or a string"); ok {
				roles = append(roles, name)
			}
		case strings.TrimSpace(lit.Text) == "" || utf8.RuneCountInString(lit.Text) > maxRole ||
			strings.ContainsFunc(lit.Text, unicode.IsControl):
			r.Errorf("E100", lit.Loc, "expected a role of 1 to %d characters without control characters, found %s",
				maxRole, lit.Raw)
		default:
			roles = append(roles, syntax.Ident{Node: lit.Node, Name: lit.Text})
		}
	}
	return roles
}

// maxRole is the length of the longest role, in characters.
const maxRole = 120

// StringList requires a list of strings.
func (r *Report) StringList(v syntax.SettingValue) []*syntax.Literal {
	list, ok := v.(*syntax.ListSetting)
	if !ok {
		r.Expected(v, "a list of strings in brackets")
		return nil
	}
	var strs []*syntax.Literal
	for _, elem := range list.Elems {
		if lit, ok := r.String(elem); ok {
			strs = append(strs, lit)
		}
	}
	return strs
}
