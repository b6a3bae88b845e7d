package changes

import (
	"slices"

	"runner.example/internal/diag"
	"runner.example/schema"
	"runner.example/schema/report"
	"runner.example/schema/syntax"
)

// Removed are the declarations with @removed. Nothing can refer to them: all other checks see an app
// without them. The zero value is empty.
type Removed struct {
	Entities []*syntax.EntityDecl
	// Fields are those of entities that are not removed, by the names of these.
	Fields map[string][]*syntax.FieldDecl
	// Names are the entities and fields by their names: "Order.note" by "note".
	Names map[string]string
}

// Take records the entities and fields with @removed, and returns the declarations without them.
func (r *Removed) Take(decls []syntax.Decl) []syntax.Decl {
	if r.Names == nil {
		r.Fields, r.Names = map[string][]*syntax.FieldDecl{}, map[string]string{}
	}
	var rest []syntax.Decl
	for _, d := range decls {
		e, ok := d.(*syntax.EntityDecl)
		switch {
		case !ok:
		case syntax.FindAttr(e.NameAttrs, "removed") != nil:
			r.Entities = append(r.Entities, e)
			r.Names[e.Name.Name] = e.Name.Name
			continue
		default:
			d = r.takeFields(e)
		}
		rest = append(rest, d)
	}
	return rest
}

func (r *Removed) takeFields(e *syntax.EntityDecl) *syntax.EntityDecl {
	rest := *e
	rest.Fields = nil
	for _, f := range e.Fields {
		isNeeded := f.Attr("tenant") != nil || f.Type != nil && f.Type.Name.Name == "id"
		if f.Attr("removed") == nil || isNeeded { // removing it is refused
			rest.Fields = append(rest.Fields, f)
		}
		if f.Attr("removed") == nil {
			continue
		}
		r.Fields[e.Name.Name] = append(r.Fields[e.Name.Name], f)
		r.Names[f.Name.Name] = e.Name.Name + "." + f.Name.Name
	}
	return &rest
}

// AddTo adds the removed entities and fields to the model.
func (r *Removed) AddTo(s *schema.Schema) {
	for _, e := range r.Entities {
		s.Removed = append(s.Removed, schema.Removed{Name: e.Name.Name, Span: e.Loc})
	}
	for _, e := range s.Entities {
		for _, f := range r.Fields[e.Name] {
			e.Removed = append(e.Removed, schema.Removed{Name: f.Name.Name, Span: f.Loc})
		}
	}
}

// removedChecker checks @removed.
type removedChecker struct{ checker }

func (c *removedChecker) check() {
	named := map[string]diag.Span{}
	for _, d := range c.decls {
		switch d := d.(type) {
		case *syntax.EnumDecl:
			named[d.Name.Name] = d.Loc
		case *syntax.TypeDecl:
			named[d.Name.Name] = d.Loc
		case *syntax.EntityDecl:
			named[d.Name.Name] = d.Loc
		}
	}
	for _, e := range c.removed.Entities {
		if other, twice := named[e.Name.Name]; twice {
			c.errorf("E261", e.Name.Loc,
				"%s is @removed, and declared again at %s: remove one of them, or give the new one another name",
				e.Name.Name, report.At(e.Name.Loc, other))
		}
		c.checkAttrs("entity "+e.Name.Name, e.NameAttrs)
	}
	for _, e := range c.entities {
		for _, f := range c.removed.Fields[e.Name.Name] {
			c.checkField(e, f)
		}
	}
	for _, f := range notStored(c.decls) {
		if attr := f.Attr("removed"); attr != nil {
			c.errorf("E261", attr.Loc,
				"@removed is for entities and their fields: %s is not stored, so delete its line", f.Name.Name)
		}
	}
}

// notStored returns the fields that are not of entities: those of types, and parameters.
func notStored(decls []syntax.Decl) (fields []*syntax.FieldDecl) {
	for _, d := range decls {
		switch d := d.(type) {
		case *syntax.TypeDecl:
			fields = append(fields, d.Fields...)
		case *syntax.FunctionsDecl:
			for _, f := range d.Functions {
				fields = append(fields, f.Params...)
			}
		case *syntax.JobsDecl:
			for _, f := range d.Jobs {
				fields = append(fields, f.Params...)
			}
		}
	}
	return fields
}

func (c *removedChecker) checkField(e *syntax.EntityDecl, f *syntax.FieldDecl) {
	name := e.Name.Name + "." + f.Name.Name
	attr := f.Attr("removed")
	isOther := func(other *syntax.FieldDecl) bool { return other.Name.Name == f.Name.Name && other != f }
	switch again := slices.IndexFunc(e.Fields, isOther); {
	case again >= 0:
		c.errorf("E261", f.Name.Loc,
			"%s is @removed, and declared again at %s: remove one of them, or give the new one another name",
			name, report.At(f.Name.Loc, e.Fields[again].Name.Loc))
	case f.Type != nil && f.Type.Name.Name == "id":
		c.errorf("E261", attr.Loc, "%s is the id of the rows and cannot be removed", name)
	case f.Attr("tenant") != nil:
		c.errorf("E261", attr.Loc, "%s is the tenant of the rows and cannot be removed", name)
	case f.Attr("inverse") != nil:
		c.errorf("E261", attr.Loc, "%s is not stored: delete its line", name)
	}
	c.checkAttrs(name, f.Attrs)
}

func (c *removedChecker) checkAttrs(what string, attrs []*syntax.FieldAttr) {
	if attr := syntax.FindAttr(attrs, "was"); attr != nil {
		c.errorf("E261", attr.Loc,
			"%s is @removed, so it keeps its stored name: remove @was, and write the name that rows have", what)
	}
}
