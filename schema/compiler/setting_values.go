package compiler

import (
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"runner.example/schema/syntax"
)

// These methods read the values of settings. They report a value of the wrong form and
// return false or nil. A nil value could not be read and has been reported.

func (r *report) expected(v syntax.SettingValue, what string) {
	if v != nil {
		r.errorf("E100", v.Span(), "expected %s, found %s", what, describeValue(v))
	}
}

func describeValue(v syntax.SettingValue) string {
	switch v := v.(type) {
	case *syntax.Literal:
		return v.Raw
	case *syntax.NameSetting:
		return v.Name.Name
	}
	return "a list"
}

func (r *report) literal(v syntax.SettingValue, kind syntax.LiteralKind, what string) (*syntax.Literal, bool) {
	lit, ok := v.(*syntax.Literal)
	if !ok || lit.Kind != kind {
		r.expected(v, what)
		return nil, false
	}
	return lit, true
}

func (r *report) str(v syntax.SettingValue) (*syntax.Literal, bool) {
	return r.literal(v, syntax.StringLit, "a string")
}

// duration requires a duration above zero.
func (r *report) duration(v syntax.SettingValue) (time.Duration, bool) {
	lit, ok := v.(*syntax.Literal)
	switch {
	case !ok:
		r.expected(v, "a duration (30m, 90d)")
		return 0, false
	case lit.Kind != syntax.DurationLit:
		r.errorf("E100", lit.Loc, "expected a duration (30m, 90d), found %s%s", lit.Raw, lit.DurationHint())
		return 0, false
	}
	if lit.Duration <= 0 {
		r.expected(v, "a duration above zero")
		return 0, false
	}
	return lit.Duration, true
}

// bareName requires a name without arguments.
func (r *report) bareName(v syntax.SettingValue, what string) (syntax.Ident, bool) {
	name, ok := v.(*syntax.NameSetting)
	if !ok || name.Call {
		r.expected(v, what)
		return syntax.Ident{}, false
	}
	return name.Name, name.Name.Name != ""
}

// claim requires claim("name", …) and returns its arguments.
func (r *report) claim(v syntax.SettingValue) []syntax.SettingValue {
	name, ok := v.(*syntax.NameSetting)
	if !ok || name.Name.Name != "claim" || len(name.Args) == 0 {
		r.expected(v, `claim("…")`)
		return nil
	}
	return name.Args
}

// nameList requires a list of names.
func (r *report) nameList(v syntax.SettingValue) []syntax.Ident {
	list, ok := v.(*syntax.ListSetting)
	if !ok {
		r.expected(v, "a list of names in brackets")
		return nil
	}
	var names []syntax.Ident
	for _, elem := range list.Elems {
		if lit, ok := elem.(*syntax.Literal); ok && lit.Kind == syntax.StringLit && syntax.IsName(lit.Text) {
			r.errorf("E100", lit.Loc, "expected a name, found %s: write it without quotes", lit.Raw)
			names = append(names, syntax.Ident{Node: lit.Node, Name: lit.Text})
		} else if name, ok := r.bareName(elem, "a name"); ok {
			names = append(names, name)
		}
	}
	return names
}

// roleList requires a list of roles: names or strings.
func (r *report) roleList(v syntax.SettingValue) []syntax.Ident {
	list, ok := v.(*syntax.ListSetting)
	if !ok {
		r.expected(v, "a list of roles in brackets")
		return nil
	}
	var roles []syntax.Ident
	for _, elem := range list.Elems {
		lit, ok := elem.(*syntax.Literal)
		switch {
		case !ok || lit.Kind != syntax.StringLit:
			if name, ok := r.bareName(elem, "a role: a name or a string"); ok {
				roles = append(roles, name)
			}
		case strings.TrimSpace(lit.Text) == "" || utf8.RuneCountInString(lit.Text) > maxRole || strings.ContainsFunc(lit.Text, unicode.IsControl):
			r.errorf("E100", lit.Loc, "expected a role of 1 to %d characters without control characters, found %s", maxRole, lit.Raw)
		default:
			roles = append(roles, syntax.Ident{Node: lit.Node, Name: lit.Text})
		}
	}
	return roles
}

// maxRole is the length of the longest role, in characters.
const maxRole = 120

// stringList requires a list of strings.
func (r *report) stringList(v syntax.SettingValue) []*syntax.Literal {
	list, ok := v.(*syntax.ListSetting)
	if !ok {
		r.expected(v, "a list of strings in brackets")
		return nil
	}
	var strs []*syntax.Literal
	for _, elem := range list.Elems {
		if lit, ok := r.str(elem); ok {
			strs = append(strs, lit)
		}
	}
	return strs
}

// settingsOnce reports repeated settings.
func (r *report) settingsOnce(settings []*syntax.Setting) {
	taken := seenNames{}
	for _, s := range settings {
		if _, twice := taken.add(s.Name); twice {
			r.errorf("E402", s.Name.Loc, "setting %q is given twice", s.Name.Name)
		}
	}
}
