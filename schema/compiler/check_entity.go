package compiler

import (
	"slices"

	"runner.example/schema/report"
	"runner.example/schema/syntax"
)

// entityChecker checks enums, types and entities.
type entityChecker struct {
	*app
	fields fieldChecker
	// inverseOf names, for a to-one field, the to-many field that is its inverse.
	inverseOf map[*syntax.FieldDecl]string
}

func (c *entityChecker) checkEnums() {
	for _, d := range c.decls {
		enum, ok := d.(*syntax.EnumDecl)
		if !ok {
			continue
		}
		c.fields.typeName("enum", enum.Name)
		taken := seenNames{}
		for _, v := range enum.Values {
			if first, twice := taken.add(v); twice {
				c.Errorf("E211", v.Loc, "value %q is already declared in %s at %s", v.Name, enum.Name.Name, report.At(v.Loc, first))
			}
		}
	}
}

func (c *entityChecker) checkTypes() {
	for _, d := range c.decls {
		if typ, ok := d.(*syntax.TypeDecl); ok {
			c.fields.typeName("type", typ.Name)
			c.fields.checkFields(typ.Name.Name, typ.Fields)
			c.fields.refuseFiles(typ.Fields)
		}
	}
}

// checkEntities checks fields, attributes and relations of all entities.
func (c *entityChecker) checkEntities() {
	for _, e := range c.entities {
		c.fields.typeName("entity", e.decl.Name)
		c.fields.checkFields(e.name(), e.decl.Fields)
		c.checkID(e)
		c.checkTenant(e)
		for _, f := range e.decl.Fields {
			if f.Type != nil && f.Name.Name != "" {
				c.checkAttrs(e, f)
				c.checkRelation(e, f)
				c.checkInsertable(e, f)
			}
		}
		for _, attr := range e.decl.Attrs {
			c.checkIndex(e, attr)
		}
	}
}

func (c *entityChecker) checkID(e *entityInfo) {
	var ids []*syntax.FieldDecl
	for _, f := range e.decl.Fields {
		if f.Type != nil && f.Type.Name.Name == "id" {
			ids = append(ids, f)
		}
	}
	id := e.fields["id"]
	switch {
	case e.name() == "":
	case len(ids) > 1:
		c.Errorf("E210", e.decl.Name.Loc, "entity %s has more than one id field", e.name())
	case id == nil || id.Type != nil && (id.Type.Name.Name != "id" || id.Type.List || id.Type.Optional):
		c.Missing("id", "E210", e.decl.Name.Loc, "entity %s has no id field: add `id: id`", e.name())
	}
}

func (c *entityChecker) checkTenant(e *entityInfo) {
	marked := 0
	for _, f := range e.decl.Fields {
		attr := f.Attr("tenant")
		if attr == nil || f.Type == nil {
			continue
		}
		marked++
		if f.Type.Optional {
			c.Errorf("E222", attr.Loc, "@tenant field %s.%s cannot be optional: every row must belong to a tenant",
				e.name(), f.Name.Name)
		}
		switch {
		case !c.tenantSet:
			c.Missing("tenant", "E225", attr.Loc, "%s has a @tenant field but auth.tenant is not set", e.name())
		case c.tenant == "": // reported at auth.tenant
		case f.Type.Name.Name != c.tenant || f.Type.List:
			c.Errorf("E223", attr.Loc, "@tenant field %s.%s must be of type %s (auth.tenant), not %s",
				e.name(), f.Name.Name, c.tenant, describeType(f.Type))
		}
	}
	if marked > 1 {
		c.Errorf("E221", e.decl.Name.Loc, "entity %s has more than one @tenant field", e.name())
	}
}

// checkAttrs checks attributes against the type of their field.
func (c *entityChecker) checkAttrs(e *entityInfo, f *syntax.FieldDecl) {
	for _, attr := range f.Attrs {
		switch attr.Name.Name {
		case "unique", "index":
			if !indexable(f) {
				c.Errorf("E217", attr.Loc, "json, bytes, file, list and to-many fields cannot be indexed")
			} else if attr.Ref != nil && c.typeExists(f) && !slices.Contains(textTypes, f.Type.Name.Name) {
				c.Errorf("E217", attr.Loc, "@index(ignoreCase) needs a text field, not %s", describeType(f.Type))
			}
		case "created", "updated":
			if f.Type.Name.Name != "time" || f.Type.List {
				c.Errorf("E212", f.Type.Loc, "@%s needs a field of type time, not %s", attr.Name.Name, describeType(f.Type))
			}
		case "onDelete":
			if c.typeExists(f) && (c.target(f) == nil || f.Type.List) {
				c.Errorf("E212", f.Type.Loc, "@onDelete needs a to-one relation, not %s", describeType(f.Type))
			} else if c.typeExists(f) && attr.Ref != nil {
				c.checkOnDelete(e, f, attr)
			}
		}
	}
}

// checkOnDelete checks @onDelete(restrict | cascade | clear).
func (c *entityChecker) checkOnDelete(e *entityInfo, f *syntax.FieldDecl, attr *syntax.FieldAttr) {
	target := c.target(f)
	switch what := attr.Ref.Name; {
	case what == "clear" && !f.Type.Optional:
		c.Errorf("E245", attr.Loc,
			"%s.%s is required and cannot be cleared: make it optional (%s?), or write restrict or cascade",
			e.name(), f.Name.Name, f.Type.Name.Name)
	case what == "cascade" && e.tenant != nil && f.Attr("tenant") == nil && target.tenant == nil:
		c.Warnf("W246", attr.Loc, "%s has no tenant: deleting one of its rows deletes rows of %s of all tenants",
			target.name(), e.name())
	}
}

// checkInsertable warns of a required field that no handler can set.
func (c *entityChecker) checkInsertable(e *entityInfo, f *syntax.FieldDecl) {
	if mustBeGiven(f) && f.Attr("readonly") != nil {
		c.Warnf("W244", f.Name.Loc,
			"%s.%s is required and read-only: no handler can insert a row (give it a default, or make it optional)",
			e.name(), f.Name.Name)
	}
}

// mustBeGiven reports whether an insert fails without a value of the field.
func mustBeGiven(f *syntax.FieldDecl) bool {
	if f.Type == nil || f.Type.Optional || f.Default != nil || f.Type.Name.Name == "id" {
		return false
	}
	return !slices.ContainsFunc([]string{"created", "updated", "tenant", "inverse"}, func(name string) bool {
		return f.Attr(name) != nil
	})
}

func indexable(f *syntax.FieldDecl) bool {
	return f.Type == nil || !f.Type.List && !slices.Contains([]string{"json", "bytes", "file"}, f.Type.Name.Name)
}

// checkRelation checks a field whose type may be an entity.
func (c *entityChecker) checkRelation(e *entityInfo, f *syntax.FieldDecl) {
	inverse, target := f.Attr("inverse"), c.target(f)
	_, isType := c.named[f.Type.Name.Name].(*syntax.TypeDecl)
	switch {
	case isType:
		c.Errorf("E212", f.Type.Name.Loc,
			"type %s describes a request or a result and cannot be stored: use json, or make it an entity", f.Type.Name.Name)
	case inverse != nil && c.typeExists(f) && (target == nil || !f.Type.List):
		c.Errorf("E219", inverse.Loc, "@inverse needs a to-many relation (%s: Entity[]), not %s",
			f.Name.Name, describeType(f.Type))
	case target == nil:
	case f.Type.List && inverse == nil:
		c.Errorf("E220", f.Name.Loc, "to-many relation %s.%s needs @inverse(field of %s)",
			e.name(), f.Name.Name, target.name())
	case f.Type.List:
		c.checkInverse(e, f, inverse, target)
	case target.tenant != nil && e.tenant == nil && !(f.Type.Optional && f.Attr("readonly") != nil):
		c.Missing("tenant", "E226", f.Name.Loc,
			"%s.%s refers to an entity with tenants, but %s has no tenant: give %s a @tenant field, or make %s optional and read-only",
			e.name(), f.Name.Name, e.name(), e.name(), f.Name.Name)
	}
}

func (c *entityChecker) checkInverse(e *entityInfo, f *syntax.FieldDecl, attr *syntax.FieldAttr, target *entityInfo) {
	if attr.Ref == nil {
		return
	}
	back := target.fields[attr.Ref.Name]
	if back == nil || back.Type == nil || back.Type.List || c.target(back) != e {
		c.Missing(attr.Ref.Name, "E219", attr.Loc, "%s has no relation to %s named %q%s",
			target.name(), e.name(), attr.Ref.Name, c.DidYouMean(attr.Ref.Name, c.relations(target, e)))
		return
	}
	if other := c.inverseOf[back]; other != "" {
		c.Errorf("E219", attr.Loc, "%s.%s is already the inverse of %s", target.name(), attr.Ref.Name, other)
		return
	}
	c.inverseOf[back] = e.name() + "." + f.Name.Name
}

// relations returns the names of the to-one relations from one entity to another.
func (c *entityChecker) relations(from, to *entityInfo) []string {
	var names []string
	for _, f := range from.decl.Fields {
		if c.target(f) == to && !f.Type.List {
			names = append(names, f.Name.Name)
		}
	}
	return names
}

func (c *entityChecker) checkIndex(e *entityInfo, attr *syntax.EntityAttr) {
	taken := seenNames{}
	for _, col := range attr.Columns {
		if col.Name.Name == "" {
			continue
		}
		f := e.fields[col.Name.Name]
		switch _, twice := taken.add(col.Name); {
		case f == nil:
			c.Missing(col.Name.Name, "E216", attr.Loc, "@@%s names the unknown field %q of %s%s",
				attr.Name.Name, col.Name.Name, e.name(), c.DidYouMean(col.Name.Name, e.fieldNames()))
		case !indexable(f):
			c.Missing(col.Name.Name, "E217", attr.Loc,
				"json, bytes, file, list and to-many fields cannot be indexed, and %q is one", col.Name.Name)
		case twice:
			c.Errorf("E217", attr.Loc, "@@%s repeats field %q", attr.Name.Name, col.Name.Name)
		}
	}
	if attr.Name.Name == "unique" && attr.Global != nil && e.tenant != nil {
		c.Warnf("W224", attr.Loc, "`global` on tenant entity %s reveals to one tenant which values another has", e.name())
	}
}
