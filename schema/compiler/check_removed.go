package compiler

import (
	"runner.example/schema"
	"runner.example/schema/report"
	"runner.example/schema/syntax"
)

// removals are the declarations with @removed. Nothing can refer to them: all checks but those of
// removedChecker see an app without them.
type removals struct {
	goneEntities []*syntax.EntityDecl
	// goneFields are those of entities that are not removed, by the names of these.
	goneFields map[string][]*syntax.FieldDecl
}

// withoutRemoved records the entities and fields with @removed, and returns the declarations
// without them.
func (a *app) withoutRemoved(decls []syntax.Decl) []syntax.Decl {
	var rest []syntax.Decl
	for _, d := range decls {
		e, ok := d.(*syntax.EntityDecl)
		switch {
		case !ok:
		case syntax.FindAttr(e.NameAttrs, "removed") != nil:
			a.schema.Typed = true
			a.goneEntities = append(a.goneEntities, e)
			a.Removed[e.Name.Name] = e.Name.Name
			continue
		default:
			d = a.withoutRemovedFields(e)
		}
		rest = append(rest, d)
	}
	return rest
}

func (a *app) withoutRemovedFields(e *syntax.EntityDecl) *syntax.EntityDecl {
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
		a.goneFields[e.Name.Name] = append(a.goneFields[e.Name.Name], f)
		a.Removed[f.Name.Name] = e.Name.Name + "." + f.Name.Name
	}
	return &rest
}

// addRemoved adds the removed entities and fields to the model.
func (a *app) addRemoved() {
	for _, e := range a.goneEntities {
		a.schema.Removed = append(a.schema.Removed, schema.Removed{Name: e.Name.Name, Span: e.Loc})
	}
	for _, e := range a.schema.Entities {
		for _, f := range a.goneFields[e.Name] {
			e.Removed = append(e.Removed, schema.Removed{Name: f.Name.Name, Span: f.Loc})
		}
	}
}

// removedChecker checks @removed.
type removedChecker struct{ *app }

func (c *removedChecker) check() {
	for _, e := range c.goneEntities {
		if other := c.named[e.Name.Name]; other != nil {
			c.Errorf("E261", e.Name.Loc, "%s is @removed, and declared again at %s: remove one of them, or give the new one another name", e.Name.Name, report.At(e.Name.Loc, other.Span()))
		}
		c.checkAttrs("entity "+e.Name.Name, e.NameAttrs)
	}
	for _, e := range c.entities {
		for _, f := range c.goneFields[e.name()] {
			c.checkField(e, f)
		}
	}
	for _, d := range c.decls {
		switch d := d.(type) {
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

func (c *removedChecker) checkField(e *entityInfo, f *syntax.FieldDecl) {
	name := e.name() + "." + f.Name.Name
	attr := f.Attr("removed")
	switch other := e.fields[f.Name.Name]; {
	case other != nil && other != f:
		c.Errorf("E261", f.Name.Loc, "%s is @removed, and declared again at %s: remove one of them, or give the new one another name", name, report.At(f.Name.Loc, other.Name.Loc))
	case f.Type != nil && f.Type.Name.Name == "id":
		c.Errorf("E261", attr.Loc, "%s is the id of the rows and cannot be removed", name)
	case f.Attr("tenant") != nil:
		c.Errorf("E261", attr.Loc, "%s is the tenant of the rows and cannot be removed", name)
	case f.Attr("inverse") != nil:
		c.Errorf("E261", attr.Loc, "%s is not stored: delete its line", name)
	}
	c.checkAttrs(name, f.Attrs)
}

func (c *removedChecker) checkAttrs(what string, attrs []*syntax.FieldAttr) {
	if attr := syntax.FindAttr(attrs, "was"); attr != nil {
		c.Errorf("E261", attr.Loc, "%s is @removed, so it keeps its stored name: remove @was, and write the name that rows have", what)
	}
}

// onlyStored reports @removed where nothing is stored.
func (c *removedChecker) onlyStored(fields []*syntax.FieldDecl) {
	for _, f := range fields {
		if attr := f.Attr("removed"); attr != nil {
			c.Errorf("E261", attr.Loc, "@removed is for entities and their fields: %s is not stored, so delete its line", f.Name.Name)
		}
	}
}
