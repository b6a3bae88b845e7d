package compiler

import (
	"slices"
	"strings"

	"runner.example/schema/report"
	"runner.example/schema/syntax"
)

// renameChecker checks @was: the earlier name of an entity, a field or an enum's value. Whether
// rows have that name is checked when the schema is compared with them.
type renameChecker struct{ *app }

// renamed is something that may have an earlier name.
type renamed struct {
	what  string // in messages: "Order.note", "entity Order"
	name  syntax.Ident
	attrs []*syntax.FieldAttr
}

func (c *renameChecker) check() {
	var entities []renamed
	for _, e := range c.entities {
		entities = append(entities, renamed{"entity " + e.name(), e.decl.Name, e.decl.NameAttrs})
		c.onlyAttrs("an entity", e.decl.NameAttrs, "was", "removed")
		var fields []renamed
		for _, f := range e.decl.Fields {
			fields = append(fields, renamed{e.name() + "." + f.Name.Name, f.Name, f.Attrs})
			if attr := f.Attr("was"); attr != nil && f.Type != nil && (f.Type.Name.Name == "id" || f.Attr("inverse") != nil) {
				c.Errorf("E260", attr.Loc, "%s.%s is not stored under a name: remove @was", e.name(), f.Name.Name)
			}
		}
		for _, f := range c.goneFields[e.name()] {
			fields = append(fields, renamed{name: f.Name})
		}
		c.checkNames(fields)
	}
	for _, e := range c.goneEntities {
		entities = append(entities, renamed{name: e.Name})
		c.onlyAttrs("an entity", e.NameAttrs, "was", "removed")
	}
	c.checkNames(entities)
	for _, d := range c.decls {
		switch d := d.(type) {
		case *syntax.EnumDecl:
			var values []renamed
			for i, v := range d.Values {
				values = append(values, renamed{"value " + v.Name + " of enum " + d.Name.Name, v, d.Attrs[i]})
				c.onlyAttrs("a value of an enum", d.Attrs[i], "was")
			}
			c.checkNames(values)
		case *syntax.TypeDecl:
			c.onlyStored(d.Fields)
		case *syntax.FunctionsDecl:
			for _, f := range d.Functions {
				c.onlyStored(f.Params)
			}
		case *syntax.JobsDecl:
			for _, f := range d.Jobs {
				c.onlyStored(f.Params)
			}
		}
	}
}

// onlyAttrs reports attributes that are for fields only.
func (c *renameChecker) onlyAttrs(where string, attrs []*syntax.FieldAttr, known ...string) {
	for _, attr := range attrs {
		if !slices.Contains(known, attr.Name.Name) {
			c.Errorf("E110", attr.Loc, "@%s is for fields: after the name of %s write only @%s", attr.Name.Name, where, strings.Join(known, " or @"))
		}
	}
}

// onlyStored reports attributes that are for fields of entities only.
func (c *renameChecker) onlyStored(fields []*syntax.FieldDecl) {
	for _, f := range fields {
		if attr := f.Attr("was"); attr != nil {
			c.Errorf("E260", attr.Loc, "@was is for fields of entities: the values of %s are not stored", f.Name.Name)
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
				c.Errorf("E260", attr.Loc, "%s has two earlier names: keep the @was of the name that stored rows have", r.what)
			case !syntax.IsName(before):
				c.Errorf("E260", attr.Loc, "@was(%s) of %s is not a name: write the name that it had before", attr.Arg.Raw, r.what)
			case before == r.name.Name:
				c.Errorf("E260", attr.Loc, "@was(%s) of %s is its own name: remove @was, or write the name that it had before", attr.Arg.Raw, r.what)
			case kept:
				c.Errorf("E260", attr.Loc, "@was(%s) of %s: %s is still declared at %s: remove one of them", attr.Arg.Raw, r.what, before, report.At(attr.Loc, now.name.Loc))
			case claimed[before] != "":
				c.Errorf("E260", attr.Loc, "%s and %s both have @was(%s): only one of them can have the values", claimed[before], r.what, attr.Arg.Raw)
			default:
				claimed[before] = r.what
			}
			seen = true
		}
	}
}
