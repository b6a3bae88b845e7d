package schema

import (
	"path/filepath"
	"regexp"
	"time"

	"runner.example/internal/caller"
)

// builder makes the model's entities, types and rules of declarations in which
// no mistake was found.
type builder struct {
	*checker
	enums map[string]*Enum
	types map[string]*ObjectType
}

// build completes the schema.
func (c *checker) build() {
	b := builder{c, map[string]*Enum{}, map[string]*ObjectType{}}
	c.schema.byName = map[string]*Entity{}
	b.declare()
	for _, d := range c.decls {
		switch d := d.(type) {
		case *TypeDecl:
			b.types[d.Name.Name].Fields = b.fields(d.Fields)
		case *EntityDecl:
			b.entityFields(c.schema.byName[d.Name.Name], d)
		case *AuthDecl:
			b.auth(d)
		}
	}
	for _, d := range c.decls {
		switch d := d.(type) {
		case *EntityDecl:
			b.entityRest(c.schema.byName[d.Name.Name], d)
		case *APIKeysDecl:
			b.rulesOfScopes(d)
		case *FunctionsDecl:
			b.functions(d)
		}
	}
}

// declare makes what types may name, as yet empty.
func (b *builder) declare() {
	for _, d := range b.decls {
		switch d := d.(type) {
		case *EnumDecl:
			enum := &Enum{Name: d.Name.Name, Doc: d.Doc, Values: d.names(), Span: d.Loc}
			b.enums[enum.Name] = enum
			b.schema.Enums = append(b.schema.Enums, enum)
		case *TypeDecl:
			typ := &ObjectType{Name: d.Name.Name, Doc: d.Doc, Span: d.Loc}
			b.types[typ.Name] = typ
			b.schema.Types = append(b.schema.Types, typ)
		case *EntityDecl:
			e := &Entity{Name: d.Name.Name, Doc: d.Doc, Span: d.Loc, byName: map[string]*Field{}}
			b.schema.byName[e.Name] = e
			b.schema.Entities = append(b.schema.Entities, e)
		}
	}
}

func (b *builder) fields(decls []*FieldDecl) []*Field {
	fields := make([]*Field, len(decls))
	for i, d := range decls {
		fields[i] = b.field(d, i)
	}
	return fields
}

func (b *builder) field(d *FieldDecl, pos int) *Field {
	f := &Field{Name: d.Name.Name, Doc: d.Doc, Pos: pos, Type: b.typeOf(d.Type), Span: d.Loc}
	for _, attr := range d.Attrs {
		switch attr.Name.Name {
		case "hidden":
			f.Hidden = true
		case "readonly":
			f.ReadOnly = true
		case "created":
			f.Created = true
		case "updated":
			f.Updated = true
		case "min":
			f.Type.atLeast(b.bound(&f.Type, attr.Arg))
		case "max":
			f.Type.atMost(b.bound(&f.Type, attr.Arg))
		case "pattern":
			f.Type.Pattern, f.Type.program = regexp.MustCompile(attr.Arg.Text), programOf(attr.Arg.Text)
		case "onDelete":
			f.OnDelete = map[string]OnDelete{"cascade": Cascade, "clear": Clear}[attr.Ref.Name]
		}
	}
	b.setDefault(f, d.Default)
	return f
}

func (b *builder) typeOf(ref *TypeRef) Type {
	name := ref.Name.Name
	t := Type{List: ref.List, Optional: ref.Optional}
	switch {
	case b.enums[name] != nil:
		t.Kind, t.Enum = EnumKind, b.enums[name]
	case b.types[name] != nil:
		t.Kind, t.Object = Object, b.types[name]
	case b.schema.byName[name] != nil:
		t.Kind, t.Entity = Relation, b.schema.byName[name]
		t.named = b.isNamed(name)
	default:
		t.Kind = scalarKind(name)
		t.named = t.Kind == ID // of whatever entity
		t.bound(ref.Args)
	}
	return t
}

// isNamed reports that an identity provider makes the entity's ids.
func (b *builder) isNamed(entity string) bool { return entity == b.user || entity == b.tenant }

// bound notes what stands in a type's parentheses.
func (t *Type) bound(args *TypeArgs) {
	if args == nil {
		return
	}
	first := args.First.Int
	switch t.Kind {
	case Decimal:
		t.Digits, t.Places = int(first), int(args.Second.Int)
	case Int, Float:
		t.Min, t.Max = IntValue(first), IntValue(args.Second.Int)
	default:
		t.HasMaxLen, t.MaxLen = true, int(first)
		if args.Second != nil {
			t.MinLen, t.MaxLen = int(first), int(args.Second.Int)
		}
	}
}

// bound is the value of @min or @max.
func (b *builder) bound(t *Type, lit *Literal) Value {
	v := lit.constant()
	if v.kind != KindText {
		return v
	}
	v, err := t.fromText(lit.Text)
	if err != nil {
		panic("BUG: a bound that was checked is no value of its type: " + err.Error())
	}
	return v
}

func (t *Type) atLeast(v Value) {
	if order, ok := v.Compare(t.Min); !ok || order > 0 {
		t.Min = v
	}
}

func (t *Type) atMost(v Value) {
	if order, ok := v.Compare(t.Max); !ok || order < 0 {
		t.Max = v
	}
}

func (b *builder) setDefault(f *Field, v SettingValue) {
	switch v := v.(type) {
	case *NameSetting:
		if f.Type.Kind == EnumKind {
			f.Default, f.HasDefault = TextValue(v.Name.Name), true
		} else {
			f.DefaultNow = true
		}
	case *Literal:
		f.Default, f.HasDefault = f.Type.fromLiteral(v), true
	}
}

// fromLiteral is a checked literal as a value of the type.
func (t *Type) fromLiteral(lit *Literal) Value {
	v := lit.constant()
	var err error
	switch {
	case t.Kind == JSON:
		v = JSONValue(string(lit.json()))
	case v.kind == KindText:
		v, err = t.fromText(lit.Text)
	case v.isNumber():
		v, err = t.Parse(v.appendPlain(nil))
	}
	if err != nil {
		panic("BUG: a default that was checked is no value of its type: " + err.Error())
	}
	return v
}

// json is the literal as a JSON value: a duration in seconds.
func (l *Literal) json() []byte {
	if l.Kind == DurationLit {
		return IntValue(int64(l.Duration / time.Second)).appendJSON(nil)
	}
	return l.constant().appendPlain(nil)
}

// appendPlain appends v as JSON, a decimal as a number.
func (v Value) appendPlain(dst []byte) []byte {
	if v.kind == KindDecimal {
		return append(dst, v.text...)
	}
	return v.appendJSON(dst)
}

func (b *builder) entityFields(e *Entity, d *EntityDecl) {
	e.Fields = b.fields(d.Fields)
	for i, f := range e.Fields {
		e.byName[f.Name] = f
		decl := d.Fields[i]
		switch {
		case f.Type.Kind == ID:
			e.ID, f.Type.named = f, b.isNamed(e.Name)
		case f.Type.Kind == Relation && f.Type.List:
			f.Type.Kind, f.Type.List = ToMany, false
		}
		if decl.attr("tenant") != nil {
			e.Tenant = f
		}
		for _, attr := range decl.Attrs {
			if name := attr.Name.Name; name == "unique" || name == "index" {
				e.Indexes = append(e.Indexes, &Index{Columns: []IndexColumn{{Field: f}}, Unique: name == "unique", Span: attr.Loc})
			}
		}
	}
}

// entityRest makes what needs the fields of all entities.
func (b *builder) entityRest(e *Entity, d *EntityDecl) {
	for i, f := range e.Fields {
		if attr := d.Fields[i].attr("inverse"); attr != nil {
			f.Inverse = f.Type.Entity.Field(attr.Ref.Name)
		}
	}
	for _, attr := range d.Attrs {
		index := &Index{Unique: attr.Name.Name == "unique", Global: attr.Global != nil, Span: attr.Loc}
		for _, col := range attr.Columns {
			index.Columns = append(index.Columns, IndexColumn{e.Field(col.Name.Name), col.Order != nil && col.Order.Name == "desc"})
		}
		e.Indexes = append(e.Indexes, index)
	}
	for _, p := range d.Policies {
		e.Policies = append(e.Policies, b.policy(e, p))
	}
}

var kinds = map[string]caller.Kind{"session": caller.Session, "apiKey": caller.APIKey, "anonymous": caller.Anonymous}

func (b *builder) policy(e *Entity, d *PolicyDecl) *Policy {
	p := &Policy{Deny: d.Effect.Name == "deny", Actions: actionSet(namesOf(d.Actions)), Span: d.Loc}
	for _, kind := range d.To {
		to := Audience{Kind: kinds[kind.Name.Name]}
		if kind.Scope != nil {
			to.Scope = kind.Scope.Name
		}
		p.To = append(p.To, to)
	}
	if d.When != nil {
		p.When = compileRule(d.When, rulePlace{entity: e, model: b.schema})
	}
	return p
}

func actionSet(words []string) ActionSet {
	var set ActionSet
	for _, word := range words {
		for _, part := range actionParts(word) {
			set |= map[string]ActionSet{"read": ActRead, "insert": ActInsert, "update": ActUpdate, "delete": ActDelete}[part]
		}
	}
	return set
}

func (b *builder) rulesOfScopes(d *APIKeysDecl) {
	for _, block := range d.Blocks {
		for _, decl := range block.Scopes {
			scope := b.schema.Scope(decl.Name.Name)
			for i, grant := range decl.Grants {
				if grant.Where != nil {
					scope.Grants[i].rules = b.grantRules(grant)
				}
			}
			if len(decl.Issues) > 0 {
				scope.Issue = compileRule(decl.Issues[0].When, rulePlace{})
			}
		}
	}
}

func (b *builder) grantRules(d *GrantDecl) []*Rule {
	if !b.schema.Typed {
		return []*Rule{compileRule(d.Where, rulePlace{})}
	}
	var rules []*Rule
	for _, name := range d.Entities {
		rules = append(rules, compileRule(d.Where, rulePlace{entity: b.schema.Entity(name.Name), model: b.schema}))
	}
	return rules
}

func (b *builder) functions(d *FunctionsDecl) {
	for _, decl := range d.Functions {
		for i := range b.schema.Functions {
			f := &b.schema.Functions[i]
			if f.Name != decl.Name.Name {
				continue
			}
			f.Params = b.fields(decl.Params)
			if decl.Result != nil {
				result := b.typeOf(decl.Result)
				f.Result = &result
			}
		}
	}
}

// auth fills in the auth block's settings.
func (b *builder) auth(d *AuthDecl) {
	auth := &b.schema.Auth
	auth.Roles, auth.User, auth.Tenant = b.roleNames, b.user, b.tenant
	for _, s := range d.Settings {
		if s.Name.Name == "origins" {
			auth.Origins = textsOf(s.Value)
		}
	}
	for _, session := range d.Sessions {
		if session.Kind.Name == "cookie" {
			auth.Cookie = cookieSession(session)
		} else {
			auth.JWT = jwtSession(session)
			if isFileName(auth.JWT.JWKS) && !filepath.IsAbs(auth.JWT.JWKS) {
				auth.JWT.JWKS = filepath.Join(b.opt.Dir, auth.JWT.JWKS)
			}
		}
	}
}

func cookieSession(d *SessionDecl) *CookieSession {
	s := &CookieSession{Name: "__Host-session", Idle: 30 * time.Minute, Absolute: 12 * time.Hour, SameSite: "lax"}
	if d.Cookie != nil {
		s.Name = d.Cookie.Text
	}
	for _, set := range d.Settings {
		switch set.Name.Name {
		case "idle":
			s.Idle = set.Value.(*Literal).Duration
		case "absolute":
			s.Absolute = set.Value.(*Literal).Duration
		case "sameSite":
			s.SameSite = set.Value.(*NameSetting).Name.Name
		}
	}
	return s
}

func jwtSession(d *SessionDecl) *JWTSession {
	s := &JWTSession{}
	for _, set := range d.Settings {
		switch set.Name.Name {
		case "issuer":
			s.Issuer = set.Value.(*Literal).Text
		case "audience":
			s.Audience = set.Value.(*Literal).Text
		case "jwks":
			s.JWKS = set.Value.(*Literal).Text
		case "algorithms":
			s.Algorithms = textsOf(set.Value)
		case "tenant":
			s.Tenant = claimOf(set.Value)
		case "roles":
			s.Roles = claimOf(set.Value)
		}
	}
	return s
}

// textsOf gives the strings, or the names, of a list.
func textsOf(v SettingValue) []string {
	var texts []string
	for _, elem := range v.(*ListSetting).Elems {
		switch elem := elem.(type) {
		case *Literal:
			texts = append(texts, elem.Text)
		case *NameSetting:
			texts = append(texts, elem.Name.Name)
		}
	}
	return texts
}

// claimOf gives the name in claim("name").
func claimOf(v SettingValue) string { return v.(*NameSetting).Args[0].(*Literal).Text }
