package compiler

import (
	"slices"
	"strings"
	"unicode"

	"runner.example/schema"
	"runner.example/schema/syntax"
)

// entityInfo is an entity declaration and what was found out about it.
type entityInfo struct {
	decl *syntax.EntityDecl
	// fields are known by their first declaration.
	fields map[string]*syntax.FieldDecl
	// tenant is the @tenant field, nil without one.
	tenant *syntax.FieldDecl
	// allowed: some @@allow exists.
	allowed bool
}

func newEntityInfo(d *syntax.EntityDecl) *entityInfo {
	e := &entityInfo{decl: d, fields: map[string]*syntax.FieldDecl{}}
	for _, f := range d.Fields {
		if f.Name.Name != "" && e.fields[f.Name.Name] == nil {
			e.fields[f.Name.Name] = f
		}
		if e.tenant == nil && f.Attr("tenant") != nil {
			e.tenant = f
		}
	}
	for _, p := range d.Policies {
		e.allowed = e.allowed || p.Effect.Name == "allow"
	}
	return e
}

func (e *entityInfo) name() string { return e.decl.Name.Name }

// fieldNames are the names of the fields in order of declaration.
func (e *entityInfo) fieldNames() []string {
	var names []string
	for _, f := range e.decl.Fields {
		names = append(names, f.Name.Name)
	}
	return names
}

// entity returns the entity of that name, nil when there is none.
func (c *checker) entity(name string) *entityInfo {
	return c.byName[name]
}

func (c *checker) entityNames() []string {
	var names []string
	for _, e := range c.entities {
		names = append(names, e.name())
	}
	return names
}

// target returns the entity that a field leads to, nil when it is no relation.
func (c *checker) target(f *syntax.FieldDecl) *entityInfo {
	if f.Type == nil {
		return nil
	}
	return c.entity(f.Type.Name.Name)
}

func (c *checker) checkEnums() {
	for _, d := range c.decls {
		enum, ok := d.(*syntax.EnumDecl)
		if !ok {
			continue
		}
		c.typeName("enum", enum.Name)
		taken := namesTaken{}
		for _, v := range enum.Values {
			if first, twice := taken.take(v); twice {
				c.errorf("E211", v.Loc, "value %q is already declared in %s at %s", v.Name, enum.Name.Name, at(v.Loc, first))
			}
		}
	}
}

func (c *checker) checkTypes() {
	for _, d := range c.decls {
		if typ, ok := d.(*syntax.TypeDecl); ok {
			c.typeName("type", typ.Name)
			c.checkFields(typ.Name.Name, typ.Fields)
		}
	}
}

// typeName checks the name of an entity, an enum or a type.
func (c *checker) typeName(word string, name syntax.Ident) {
	switch first, _ := firstRune(name.Name); {
	case name.Name == "":
	case slices.Contains(schema.BuiltinTypes, name.Name):
		c.errorf("E201", name.Loc, "%q is a reserved name", name.Name)
	case !unicode.IsUpper(first):
		c.soften("202", name.Loc, "%s names begin with a capital letter: %q", word, name.Name)
	}
}

func firstRune(s string) (rune, bool) {
	for _, r := range s {
		return r, true
	}
	return 0, false
}

// reservedFields mean something of their own at the start of a name in a rule.
var reservedFields = []string{"auth", "old", "new", "outer", "now", "null", "true", "false", "not", "exists"}

// checkFields checks the fields of an entity or a type, or the parameters of a
// function.
func (c *checker) checkFields(owner string, fields []*syntax.FieldDecl) {
	taken := namesTaken{}
	for _, f := range fields {
		if first, twice := taken.take(f.Name); twice {
			c.errorf("E211", f.Name.Loc, "field %q is already declared in %s at %s", f.Name.Name, owner, at(f.Name.Loc, first))
		}
		switch first, named := firstRune(f.Name.Name); {
		case !named:
		case slices.Contains(reservedFields, f.Name.Name):
			c.errorf("E201", f.Name.Loc, "%q is a reserved name", f.Name.Name)
		case !unicode.IsLower(first):
			c.soften("202", f.Name.Loc, "field names begin with a small letter: %q", f.Name.Name)
		}
		if f.Type == nil {
			continue
		}
		c.checkType(f.Type)
		c.checkBounds(f)
		c.checkDefault(f)
	}
}

// checkType checks that a used type exists and its arguments make sense.
func (c *checker) checkType(t *syntax.TypeRef) {
	name := t.Name.Name
	switch {
	case name == "":
	case slices.Contains(schema.BuiltinTypes, name):
		c.checkTypeArgs(t)
	case c.named[name] == nil:
		c.missing("E212", t.Name.Loc, "unknown type %q%s", name, c.didYouMean(name, schema.BuiltinTypes, c.typeNames()))
	case t.Args != nil:
		c.errorf("E213", t.Args.Loc, "%s takes no arguments", name)
	}
}

func (c *checker) typeNames() []string {
	var names []string
	for _, d := range c.decls {
		switch d := d.(type) {
		case *syntax.EnumDecl:
			names = append(names, d.Name.Name)
		case *syntax.TypeDecl:
			names = append(names, d.Name.Name)
		case *syntax.EntityDecl:
			names = append(names, d.Name.Name)
		}
	}
	return names
}

// checkEntities checks fields, attributes and relations of all entities.
func (c *checker) checkEntities() {
	inverseOf := map[*syntax.FieldDecl]string{}
	for _, e := range c.entities {
		c.typeName("entity", e.decl.Name)
		c.checkFields(e.name(), e.decl.Fields)
		c.checkID(e)
		c.checkTenant(e)
		for _, f := range e.decl.Fields {
			if f.Type != nil && f.Name.Name != "" {
				c.checkAttrs(e, f)
				c.checkRelation(e, f, inverseOf)
				c.checkGiven(e, f)
			}
		}
		for _, attr := range e.decl.Attrs {
			c.checkIndex(e, attr)
		}
	}
}

func (c *checker) checkID(e *entityInfo) {
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
		c.errorf("E210", e.decl.Name.Loc, "entity %s has more than one id field", e.name())
	case c.broken && id == nil:
	case id == nil || id.Type != nil && (id.Type.Name.Name != "id" || id.Type.List || id.Type.Optional):
		c.errorf("E210", e.decl.Name.Loc, "entity %s has no id field: add `id: id`", e.name())
	}
}

func (c *checker) checkTenant(e *entityInfo) {
	marked := 0
	for _, f := range e.decl.Fields {
		attr := f.Attr("tenant")
		if attr == nil || f.Type == nil {
			continue
		}
		marked++
		if f.Type.Optional {
			c.errorf("E222", attr.Loc, "@tenant field %s.%s cannot be optional: a row without a tenant would belong to nobody", e.name(), f.Name.Name)
		}
		switch {
		case !c.tenantSet:
			c.missing("E225", attr.Loc, "%s has a @tenant field but auth.tenant is not set", e.name())
		case c.tenant == "": // reported where it is set
		case f.Type.Name.Name != c.tenant || f.Type.List:
			c.errorf("E223", attr.Loc, "@tenant field %s.%s must be of type %s (auth.tenant), not %s", e.name(), f.Name.Name, c.tenant, describeType(f.Type))
		}
	}
	if marked > 1 {
		c.errorf("E221", e.decl.Name.Loc, "entity %s has more than one @tenant field", e.name())
	}
}

// checkAttrs checks attributes against the type of their field.
func (c *checker) checkAttrs(e *entityInfo, f *syntax.FieldDecl) {
	for _, attr := range f.Attrs {
		switch attr.Name.Name {
		case "unique", "index":
			if !indexable(c, f) {
				c.errorf("E217", attr.Loc, "json, bytes, list and to-many fields cannot be indexed")
			}
		case "created", "updated":
			if f.Type.Name.Name != "time" || f.Type.List {
				c.errorf("E212", f.Type.Loc, "@%s needs a field of type time, not %s", attr.Name.Name, describeType(f.Type))
			}
		case "onDelete":
			if c.known(f) && (c.target(f) == nil || f.Type.List) {
				c.errorf("E212", f.Type.Loc, "@onDelete needs a to-one relation, not %s", describeType(f.Type))
			} else if c.known(f) && attr.Ref != nil {
				c.checkOnDelete(e, f, attr)
			}
		}
	}
}

// checkOnDelete checks what becomes of rows whose relation's target is deleted.
func (c *checker) checkOnDelete(e *entityInfo, f *syntax.FieldDecl, attr *syntax.FieldAttr) {
	target := c.target(f)
	switch what := attr.Ref.Name; {
	case what == "clear" && !f.Type.Optional:
		c.errorf("E245", attr.Loc, "%s.%s is required and cannot be cleared: make it optional (%s?), or write restrict or cascade", e.name(), f.Name.Name, f.Type.Name.Name)
	case what == "cascade" && e.tenant != nil && f.Attr("tenant") == nil && target.tenant == nil:
		c.warnf("W246", attr.Loc, "%s belongs to no tenant: deleting a row of it deletes rows of %s of every tenant", target.name(), e.name())
	}
}

// checkGiven warns of a field that every row needs and nobody can give.
func (c *checker) checkGiven(e *entityInfo, f *syntax.FieldDecl) {
	if f.Type == nil || f.Type.Optional || f.Default != nil || f.Attr("readonly") == nil {
		return
	}
	if f.Attr("created") == nil && f.Attr("updated") == nil && f.Attr("tenant") == nil && f.Attr("inverse") == nil && f.Type.Name.Name != "id" {
		c.warnf("W244", f.Name.Loc, "%s.%s is required and read-only: no handler can insert a row (give it a default, or make it optional)", e.name(), f.Name.Name)
	}
}

// known reports that the field's type exists, so that more can be said of it.
func (c *checker) known(f *syntax.FieldDecl) bool {
	return slices.Contains(schema.BuiltinTypes, f.Type.Name.Name) || c.named[f.Type.Name.Name] != nil
}

func indexable(c *checker, f *syntax.FieldDecl) bool {
	return f.Type == nil || !f.Type.List && f.Type.Name.Name != "json" && f.Type.Name.Name != "bytes"
}

// checkRelation checks the field as a relation. inverseOf holds which to-one
// fields have an inverse so far.
func (c *checker) checkRelation(e *entityInfo, f *syntax.FieldDecl, inverseOf map[*syntax.FieldDecl]string) {
	inverse, target := f.Attr("inverse"), c.target(f)
	_, isType := c.named[f.Type.Name.Name].(*syntax.TypeDecl)
	switch {
	case isType:
		c.errorf("E212", f.Type.Name.Loc, "type %s describes a request or a result and cannot be stored: use json, or make it an entity", f.Type.Name.Name)
	case inverse != nil && c.known(f) && (target == nil || !f.Type.List):
		c.errorf("E219", inverse.Loc, "@inverse belongs to a to-many relation (%s: Entity[]), and this is %s", f.Name.Name, describeType(f.Type))
	case target == nil:
	case f.Type.List && inverse == nil:
		c.errorf("E220", f.Name.Loc, "to-many relation %s.%s needs @inverse(field of %s)", e.name(), f.Name.Name, target.name())
	case f.Type.List:
		c.checkInverse(e, f, inverse, target, inverseOf)
	case target.tenant != nil && e.tenant == nil && !(f.Type.Optional && f.Attr("readonly") != nil):
		c.errorf("E226", f.Name.Loc, "%s.%s leads to a tenant entity while %s has no tenant: mark %s with @tenant or make %s optional and read-only", e.name(), f.Name.Name, e.name(), e.name(), f.Name.Name)
	}
}

func (c *checker) checkInverse(e *entityInfo, f *syntax.FieldDecl, attr *syntax.FieldAttr, target *entityInfo, inverseOf map[*syntax.FieldDecl]string) {
	if attr.Ref == nil {
		return
	}
	back := target.fields[attr.Ref.Name]
	if back == nil || back.Type == nil || back.Type.List || c.target(back) != e {
		c.missing("E219", attr.Loc, "%s has no relation to %s named %q%s", target.name(), e.name(), attr.Ref.Name, c.didYouMean(attr.Ref.Name, c.relations(target, e)))
		return
	}
	if other := inverseOf[back]; other != "" {
		c.errorf("E219", attr.Loc, "%s.%s is already the inverse of %s", target.name(), attr.Ref.Name, other)
		return
	}
	inverseOf[back] = e.name() + "." + f.Name.Name
}

// relations names the to-one relations from one entity to another.
func (c *checker) relations(from, to *entityInfo) []string {
	var names []string
	for _, f := range from.decl.Fields {
		if c.target(f) == to && !f.Type.List {
			names = append(names, f.Name.Name)
		}
	}
	return names
}

func (c *checker) checkIndex(e *entityInfo, attr *syntax.EntityAttr) {
	taken := namesTaken{}
	for _, col := range attr.Columns {
		if col.Name.Name == "" {
			continue
		}
		f := e.fields[col.Name.Name]
		switch _, twice := taken.take(col.Name); {
		case f == nil:
			c.missing("E216", attr.Loc, "@@%s names the unknown field %q of %s%s", attr.Name.Name, col.Name.Name, e.name(), c.didYouMean(col.Name.Name, e.fieldNames()))
		case !indexable(c, f):
			c.errorf("E217", attr.Loc, "json, bytes, list and to-many fields cannot be indexed, and %q is one", col.Name.Name)
		case twice:
			c.errorf("E217", attr.Loc, "@@%s repeats field %q", attr.Name.Name, col.Name.Name)
		}
	}
	if attr.Name.Name == "unique" && attr.Global != nil && e.tenant != nil {
		c.warnf("W224", attr.Loc, "`global` on tenant entity %s lets one tenant tell what another holds", e.name())
	}
}

// describeType gives a type as messages call it: "string", "B[]".
func describeType(t *syntax.TypeRef) string {
	if t.List {
		return t.Name.Name + "[]"
	}
	return t.Name.Name
}

// checkPolicies checks the @@allow and @@deny of all entities.
func (c *checker) checkPolicies() {
	for _, e := range c.entities {
		for _, p := range e.decl.Policies {
			c.checkPolicy(e, p)
		}
	}
}

func (c *checker) checkPolicy(e *entityInfo, p *syntax.PolicyDecl) {
	head := p.Loc.To(p.Effect.Loc)
	c.checkActions(p.Actions, policyActions)
	for _, kind := range p.To {
		if kind.Scope != nil && c.scopes[kind.Scope.Name] == nil {
			c.missing("E242", kind.Loc, "`to apiKey(%s)`: no scope of that name%s", kind.Scope.Name, c.didYouMean(kind.Scope.Name, c.scopeNames))
		}
		if kind.Name.Name == "apiKey" && p.Effect.Name == "allow" {
			c.errorf("E316", head, "@@allow to apiKey: keys get their rights from @grant alone; `to apiKey` belongs to @@deny")
		}
	}
	if p.Effect.Name == "allow" && len(p.To) == 0 && p.When == nil {
		c.errorf("E228", head, "@@allow with neither `to` nor `when` also opens %s to anonymous callers: write `to session`, or `to anonymous` if that is meant", e.name())
	}
	if p.When == nil {
		return
	}
	c.checkRule(p.When, ruleScope{entity: e, old: onlyUpdates(p.Actions)})
	if p.Effect.Name != "deny" {
		return
	}
	if truth, _ := compileRule(p.When, rulePlace{}).Eval(&schema.Scene{}); truth == schema.True {
		c.warnf("W229", head, "the `when` of this @@deny is always true (leave it out if that is meant)")
	}
}

var (
	grantActions  = []string{"read", "write", "delete", "insert", "update"}
	policyActions = append(slices.Clone(grantActions), "all")
)

// checkActions reports unknown actions and those given twice.
func (c *checker) checkActions(actions []syntax.Ident, known []string) {
	given := map[string]bool{}
	for _, a := range actions {
		if a.Name == "" {
			continue
		}
		if !slices.Contains(known, a.Name) {
			c.errorf("E305", a.Loc, "unknown action %q: use %s%s", a.Name, strings.Join(known, ", "), c.didYouMean(a.Name, known))
			continue
		}
		twice := false
		for _, part := range actionParts(a.Name) {
			twice = twice || given[part]
			given[part] = true
		}
		if twice {
			c.warnf("W305", a.Loc, "action %q is given twice", a.Name)
		}
	}
}

// actionParts are the single actions that one word stands for.
func actionParts(action string) []string {
	switch action {
	case "write":
		return []string{"insert", "update"}
	case "all":
		return []string{"read", "insert", "update", "delete"}
	}
	return []string{action}
}

// onlyUpdates reports that each of the actions has an old and a new row.
func onlyUpdates(actions []syntax.Ident) bool {
	for _, a := range actions {
		if a.Name != "update" && a.Name != "write" && a.Name != "all" {
			return false
		}
	}
	return true
}
