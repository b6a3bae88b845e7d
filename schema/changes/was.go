package changes

import (
	"slices"
	"strings"

	"runner.example/internal/diag"
	"runner.example/schema/report"
	"runner.example/schema/syntax"
)

// Check checks the @was and @removed of declarations: those that Take has returned. errorf reports an
// error.
func Check(decls []syntax.Decl, removed *Removed,
	errorf func(code string, span diag.Span, format string, args ...any)) {
	c := checker{decls: decls, removed: removed, errorf: errorf}
	for _, d := range decls {
		if e, ok := d.(*syntax.EntityDecl); ok {
			c.entities = append(c.entities, e)
		}
	}
	(&renameChecker{c}).check()
	(&removedChecker{c}).check()
}

// checker is what both checkers know.
type checker struct {
	decls    []syntax.Decl
	entities []*syntax.EntityDecl
	removed  *Removed
	errorf   func(code string, span diag.Span, format string, args ...any)
}

// renameChecker checks @was: the earlier name of an entity, a field or an enum's value. Whether
// rows have that name is checked when the schema is compared with them.
type renameChecker struct{ checker }

// renamed is something that may have an earlier name.
type renamed struct {
	what  string // in messages: "Order.note", "entity Order"
	name  syntax.Ident
	attrs []*syntax.FieldAttr
}

func (c *renameChecker) check() {
	var entities []renamed
	for _, e := range c.entities {
		entities = append(entities, renamed{"entity " + e.Name.Name, e.Name, e.NameAttrs})
		c.onlyAttrs("an entity", e.NameAttrs, "was", "removed")
		var fields []renamed
		for _, f := range e.Fields {
			fields = append(fields, renamed{e.Name.Name + "." + f.Name.Name, f.Name, f.Attrs})
			if attr := f.Attr("was"); attr != nil && f.Type != nil && (f.Type.Name.Name == "id" || f.Attr("inverse") != nil) {
				c.errorf("E260", attr.Loc, "%s.%s is not stored under a name: remove @was", e.Name.Name, f.Name.Name)
			}
		}
		for _, f := range c.removed.Fields[e.Name.Name] {
			fields = append(fields, renamed{name: f.Name})
		}
		c.checkNames(fields)
	}
	for _, e := range c.removed.Entities {
		entities = append(entities, renamed{name: e.Name})
		c.onlyAttrs("an entity", e.NameAttrs, "was", "removed")
	}
	c.checkNames(entities)
	for _, d := range c.decls {
		if d, ok := d.(*syntax.EnumDecl); ok {
			var values []renamed
			for i, v := range d.Values {
				values = append(values, renamed{"value " + v.Name + " of enum " + d.Name.Name, v, d.Attrs[i]})
				c.onlyAttrs("a value of an enum", d.Attrs[i], "was")
			}
			c.checkNames(values)
		}
	}
	for _, f := range notStored(c.decls) {
		if attr := f.Attr("was"); attr != nil {
			c.errorf("E260", attr.Loc, "@was is for fields of entities: the values of %s are not stored", f.Name.Name)
		}
	}
}

// onlyAttrs reports attributes that are for fields only.
func (c *renameChecker) onlyAttrs(where string, attrs []*syntax.FieldAttr, known ...string) {
	for _, attr := range attrs {
		if !slices.Contains(known, attr.Name.Name) {
			c.errorf("E110", attr.Loc, "@%s is for fields: after the name of %s write only @%s",
				attr.Name.Name, where, strings.Join(known, " or @"))
		}
	}
}

// checkNames checks the earlier names of all that share a namespace.
func (c *renameChecker) checkNames(list []renamed) {
	declared, claimed := map[string]renamed{}, map[string]string{}
	for _, r := range list {
		if _, twice := declared[r.name.Name]; !twice {
			declared[r.name.Name] = r
		}
	}
	for _, r := range list {
		seen := false
		for _, attr := range r.attrs {
			if attr.Name.Name != "was" || attr.Arg == nil {
				continue
			}
			before := attr.Arg.Text
			now, kept := declared[before]
			switch {
			case seen:
				c.errorf("E260", attr.Loc, "%s has two earlier names: keep the @was of the name that stored rows have", r.what)
			case !syntax.IsName(before):
				c.errorf("E260", attr.Loc, "@was(%s) of %s is not a name: write the name that it had before", attr.Arg.Raw, r.what)
			case before == r.name.Name:
				c.errorf("E260", attr.Loc,
					"@was(%s) of %s is its own name: remove @was, or write the name that it had before", attr.Arg.Raw, r.what)
			case kept:
				c.errorf("E260", attr.Loc, "@was(%s) of %s: %s is still declared at %s: remove one of them",
					attr.Arg.Raw, r.what, before, report.At(attr.Loc, now.name.Loc))
			case claimed[before] != "":
				c.errorf("E260", attr.Loc, "%s and %s both have @was(%s): only one of them can have the values",
					claimed[before], r.what, attr.Arg.Raw)
			default:
				claimed[before] = r.what
			}
			seen = true
		}
	}
}
