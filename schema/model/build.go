package model

import (
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"runner.example/internal/caller"
	"runner.example/schema"
	"runner.example/schema/syntax"
)

// builder builds the entities, types and rules of the model. The declarations have no errors.
type builder struct {
	schema *schema.Schema
	decls  []syntax.Decl
	// dir is the directory of relative file names.
	dir   string
	enums map[string]*schema.Enum
	types map[string]*schema.ObjectType
}

// Build completes the model s from the declarations of an app, which have no errors. Before,
// s has what checking them found: the routes, functions, jobs, scopes and secrets, and in Auth the
// roles, the user and the tenant. File names in the declarations are relative to dir.
func Build(s *schema.Schema, decls []syntax.Decl, dir string) {
	b := builder{s, decls, dir, map[string]*schema.Enum{}, map[string]*schema.ObjectType{}}
	b.declare()
	for _, d := range decls {
		switch d := d.(type) {
		case *syntax.TypeDecl:
			b.types[d.Name.Name].Fields = b.fields(d.Fields)
		case *syntax.EntityDecl:
			b.entityFields(s.Entity(d.Name.Name), d)
		case *syntax.AuthDecl:
			b.auth(d)
		}
	}
	routes := s.Routes
	for _, d := range decls {
		switch d := d.(type) {
		case *syntax.RoutesDecl:
			routes = b.results(d, routes)
		case *syntax.EntityDecl:
			b.entityReferences(s.Entity(d.Name.Name), d)
		case *syntax.APIKeysDecl:
			b.rulesOfScopes(d)
		case *syntax.FunctionsDecl:
			b.functions(d)
		case *syntax.JobsDecl:
			for _, decl := range d.Jobs {
				s.Job(decl.Name.Name).Params = b.fields(decl.Params)
			}
		}
	}
}

// declare creates enums, types and entities, without fields, so that types can refer to them.
func (b *builder) declare() {
	for _, d := range b.decls {
		switch d := d.(type) {
		case *syntax.EnumDecl:
			enum := &schema.Enum{Name: d.Name.Name, Doc: d.Doc, Values: Names(d.Values), Span: d.Loc}
			for i, value := range enum.Values {
				if before := was(d.Attrs[i]); before != "" {
					if enum.Was == nil {
						enum.Was = map[string]string{}
					}
					enum.Was[value] = before
				}
			}
			b.enums[enum.Name] = enum
			b.schema.Enums = append(b.schema.Enums, enum)
		case *syntax.TypeDecl:
			typ := &schema.ObjectType{Name: d.Name.Name, Doc: d.Doc, Span: d.Loc}
			b.types[typ.Name] = typ
			b.schema.Types = append(b.schema.Types, typ)
		case *syntax.EntityDecl:
			b.schema.AddEntity(&schema.Entity{Name: d.Name.Name, Doc: d.Doc, Was: was(d.NameAttrs), Span: d.Loc})
		}
	}
}

// was returns the earlier name in @was, or "".
func was(attrs []*syntax.FieldAttr) string {
	if attr := syntax.FindAttr(attrs, "was"); attr != nil {
		return attr.Arg.Text
	}
	return ""
}

func (b *builder) fields(decls []*syntax.FieldDecl) []*schema.Field {
	fields := make([]*schema.Field, len(decls))
	for i, d := range decls {
		fields[i] = b.field(d, i)
	}
	return fields
}

func (b *builder) field(d *syntax.FieldDecl, pos int) *schema.Field {
	f := &schema.Field{
		Name: d.Name.Name, Doc: d.Doc, Pos: pos, Type: b.typeOf(d.Type), Omits: d.Omits, Was: was(d.Attrs), Span: d.Loc,
	}
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
			atLeast(&f.Type, b.bound(&f.Type, attr.Arg))
		case "max":
			atMost(&f.Type, b.bound(&f.Type, attr.Arg))
		case "pattern":
			f.Type.SetPattern(regexp.MustCompile(attr.Arg.Text))
		case "onDelete":
			f.OnDelete = map[string]schema.OnDelete{"cascade": schema.Cascade, "clear": schema.Clear}[attr.Ref.Name]
		}
	}
	if d.Default != nil {
		f.Default, f.HasDefault = defaultOf(&f.Type, d.Default)
		f.DefaultNow = !f.HasDefault
	}
	return f
}

func (b *builder) typeOf(ref *syntax.TypeRef) schema.Type {
	name := ref.Name.Name
	t := schema.Type{List: ref.List, Optional: ref.Optional}
	switch {
	case b.enums[name] != nil:
		t.Kind, t.Enum = schema.EnumKind, b.enums[name]
	case b.types[name] != nil:
		t.Kind, t.Object = schema.Object, b.types[name]
	case b.schema.Entity(name) != nil:
		t.Kind, t.Entity = schema.Relation, b.schema.Entity(name)
		t.ExternalIDs = b.hasExternalIDs(name)
	default:
		t.Kind = schema.BuiltinKind(name)
		SetBounds(&t, ref.Args)
	}
	return t
}

// hasExternalIDs reports whether an identity provider creates the entity's ids.
func (b *builder) hasExternalIDs(entity string) bool {
	return entity == b.schema.Auth.User || entity == b.schema.Auth.Tenant
}

// SetBounds sets the bounds of a type from its arguments.
func SetBounds(t *schema.Type, args *syntax.TypeArgs) {
	if t.Kind == schema.FileKind {
		fileBounds(t, args)
		return
	}
	if args == nil {
		return
	}
	first := args.First.Int
	switch t.Kind {
	case schema.Decimal:
		t.Digits, t.Places = int(first), int(args.Second.Int)
	case schema.Int, schema.Float:
		t.Min, t.Max = schema.IntValue(first), schema.IntValue(args.Second.Int)
	default:
		t.HasMaxLen, t.MaxLen = true, int(first)
		if args.Second != nil {
			t.MinLen, t.MaxLen = int(first), int(args.Second.Int)
		}
	}
}

// fileBounds sets the bounds of a file.
func fileBounds(t *schema.Type, args *syntax.TypeArgs) {
	t.MaxBytes = schema.DefaultFileBytes
	if args == nil {
		return
	}
	if args.First != nil {
		t.MaxBytes = args.First.Int
	}
	for _, media := range args.Media {
		t.MediaTypes = append(t.MediaTypes, strings.ToLower(media.Text))
	}
}

// bound is the value of @min or @max.
func (b *builder) bound(t *schema.Type, lit *syntax.Literal) schema.Value {
	v := Value(lit)
	if v.Kind() != schema.KindText {
		return v
	}
	v, err := unbounded(t).ParseText(lit.Text)
	if err != nil {
		panic("BUG: checked bound is not a value of its type: " + err.Error())
	}
	return v
}

func atLeast(t *schema.Type, v schema.Value) {
	if order, ok := v.Compare(t.Min); !ok || order > 0 {
		t.Min = v
	}
}

func atMost(t *schema.Type, v schema.Value) {
	if order, ok := v.Compare(t.Max); !ok || order < 0 {
		t.Max = v
	}
}

// defaultOf converts a checked default to a value of the type. ok is false for `now`.
func defaultOf(t *schema.Type, v syntax.SettingValue) (_ schema.Value, ok bool) {
	switch v := v.(type) {
	case *syntax.Literal:
		return fromLiteral(t, v), true
	case *syntax.ListSetting:
		elem := *t
		elem.List, elem.Optional = false, false
		elems := make([]schema.Value, len(v.Elems))
		for i, e := range v.Elems {
			elems[i], _ = defaultOf(&elem, e)
		}
		return schema.ListValue(elems), true
	case *syntax.NameSetting:
		if t.Kind == schema.EnumKind {
			return schema.TextValue(v.Name.Name), true
		}
	}
	return schema.Value{}, false
}

// fromLiteral converts a checked literal to a value of the type.
func fromLiteral(t *schema.Type, lit *syntax.Literal) schema.Value {
	v := Value(lit)
	var err error
	switch {
	case t.Kind == schema.JSON:
		v = schema.JSONValue(string(jsonOf(lit)))
	case v.Kind() == schema.KindText:
		v, err = unbounded(t).ParseText(lit.Text)
	case v.IsNumber():
		v, err = t.FromNumber(v)
	}
	if err != nil {
		panic("BUG: checked default is not a value of its type: " + err.Error())
	}
	return v
}

// unbounded is the type without its bounds, which were checked for literals.
func unbounded(t *schema.Type) *schema.Type {
	return &schema.Type{Kind: t.Kind, Digits: t.Digits, Places: t.Places}
}

// jsonOf is the JSON form of a literal; a duration is in seconds.
func jsonOf(l *syntax.Literal) []byte {
	if l.Kind == syntax.DurationLit {
		return schema.IntValue(int64(l.Duration / time.Second)).AppendPlain(nil)
	}
	return Value(l).AppendPlain(nil)
}

func (b *builder) entityFields(e *schema.Entity, d *syntax.EntityDecl) {
	e.SetFields(b.fields(d.Fields))
	for i, f := range e.Fields {
		decl := d.Fields[i]
		switch {
		case f.Type.Kind == schema.ID:
			e.ID, f.Type.ExternalIDs = f, b.hasExternalIDs(e.Name)
		case f.Type.Kind == schema.Relation && f.Type.List:
			f.Type.Kind, f.Type.List = schema.ToMany, false
		}
		if decl.Attr("tenant") != nil {
			e.Tenant = f
		}
		for _, attr := range decl.Attrs {
			if name := attr.Name.Name; name == "unique" || name == "index" {
				e.Indexes = append(e.Indexes, &schema.Index{
					Columns: []schema.IndexColumn{{Field: f}}, Unique: name == "unique",
					IgnoreCase: name == "index" && attr.Ref != nil, Span: attr.Loc,
				})
			}
		}
	}
}

// entityReferences builds the parts of an entity that refer to fields of any entity.
func (b *builder) entityReferences(e *schema.Entity, d *syntax.EntityDecl) {
	for i, f := range e.Fields {
		if attr := d.Fields[i].Attr("inverse"); attr != nil {
			f.Inverse = f.Type.Entity.Field(attr.Ref.Name)
		}
	}
	for _, attr := range d.Attrs {
		index := &schema.Index{Unique: attr.Name.Name == "unique", Global: attr.Global != nil, Span: attr.Loc}
		for _, col := range attr.Columns {
			index.Columns = append(index.Columns, schema.IndexColumn{
				Field: e.Field(col.Name.Name), Desc: col.Order != nil && col.Order.Name == "desc",
			})
		}
		e.Indexes = append(e.Indexes, index)
	}
	for _, p := range d.Policies {
		e.Policies = append(e.Policies, b.policy(e, p))
	}
}

var kinds = map[string]caller.Kind{"session": caller.Session, "apiKey": caller.APIKey, "anonymous": caller.Anonymous}

func (b *builder) policy(e *schema.Entity, d *syntax.PolicyDecl) *schema.Policy {
	p := &schema.Policy{Deny: d.Effect.Name == "deny", Actions: Actions(Names(d.Actions)), Span: d.Loc}
	for _, kind := range d.To {
		to := schema.Audience{Kind: kinds[kind.Name.Name]}
		if kind.Scope != nil {
			to.Scope = kind.Scope.Name
		}
		p.To = append(p.To, to)
	}
	if d.When != nil {
		p.When = buildRule(d.When, ruleBuilder{entity: e, model: b.schema})
	}
	return p
}

// Actions is the set of the actions that words mean.
func Actions(words []string) schema.ActionSet {
	var set schema.ActionSet
	for _, word := range words {
		for _, part := range ActionParts(word) {
			set |= map[string]schema.ActionSet{"read": schema.ActRead, "insert": schema.ActInsert,
				"update": schema.ActUpdate, "delete": schema.ActDelete}[part]
		}
	}
	return set
}

func (b *builder) rulesOfScopes(d *syntax.APIKeysDecl) {
	for _, block := range d.Blocks {
		for _, decl := range block.Scopes {
			scope := b.schema.Scope(decl.Name.Name)
			for i, grant := range decl.Grants {
				if grant.Where != nil {
					scope.Grants[i].Where = b.grantRules(grant)
				}
			}
			if len(decl.Issues) > 0 {
				scope.Issue = buildRule(decl.Issues[0].When, ruleBuilder{})
			}
			if len(decl.Manages) > 0 {
				scope.Manage = buildRule(decl.Manages[0].When, ruleBuilder{})
			}
		}
	}
}

func (b *builder) grantRules(d *syntax.GrantDecl) []*schema.Rule {
	if !b.schema.Typed {
		return []*schema.Rule{buildRule(d.Where, ruleBuilder{})}
	}
	var rules []*schema.Rule
	for _, name := range d.Entities {
		rules = append(rules, buildRule(d.Where, ruleBuilder{entity: b.schema.Entity(name.Name), model: b.schema}))
	}
	return rules
}

func (b *builder) functions(d *syntax.FunctionsDecl) {
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

// results sets what the routes of a group answer. routes begins with the first of them; the
// rest is returned.
func (b *builder) results(d *syntax.RoutesDecl, routes []schema.Route) []schema.Route {
	for _, item := range d.Items {
		switch item := item.(type) {
		case *syntax.RoutesDecl:
			routes = b.results(item, routes)
		case *syntax.RouteDecl:
			if item.Result != nil {
				result := b.typeOf(item.Result)
				routes[0].Result = &result
			}
			routes = routes[1:]
		}
	}
	return routes
}

// auth sets the settings of the auth block.
func (b *builder) auth(d *syntax.AuthDecl) {
	auth := &b.schema.Auth
	for _, s := range d.Settings {
		if s.Name.Name == "origins" {
			auth.Origins = Texts(s.Value)
		}
	}
	for _, session := range d.Sessions {
		if session.Kind.Name == "cookie" {
			auth.Cookie = cookieSession(session)
		} else {
			auth.JWT = jwtSession(session)
			if IsFileName(auth.JWT.JWKS) && !filepath.IsAbs(auth.JWT.JWKS) {
				auth.JWT.JWKS = filepath.Join(b.dir, auth.JWT.JWKS)
			}
		}
	}
}

func cookieSession(d *syntax.SessionDecl) *schema.CookieSession {
	s := &schema.CookieSession{Name: "__Host-session", Idle: 30 * time.Minute, Absolute: 12 * time.Hour, SameSite: "lax"}
	if d.Cookie != nil {
		s.Name = d.Cookie.Text
	}
	for _, set := range d.Settings {
		switch set.Name.Name {
		case "idle":
			s.Idle = set.Value.(*syntax.Literal).Duration
		case "absolute":
			s.Absolute = set.Value.(*syntax.Literal).Duration
		case "sameSite":
			s.SameSite = set.Value.(*syntax.NameSetting).Name.Name
		}
	}
	if len(d.Manages) > 0 {
		s.Manage = buildRule(d.Manages[0].When, ruleBuilder{})
	}
	return s
}

func jwtSession(d *syntax.SessionDecl) *schema.JWTSession {
	s := &schema.JWTSession{}
	for _, set := range d.Settings {
		switch set.Name.Name {
		case "issuer":
			s.Issuer = set.Value.(*syntax.Literal).Text
		case "audience":
			s.Audience = set.Value.(*syntax.Literal).Text
		case "jwks":
			s.JWKS = set.Value.(*syntax.Literal).Text
		case "algorithms":
			s.Algorithms = Texts(set.Value)
		case "tenant":
			s.Tenant = claimOf(set.Value)
		case "roles":
			s.Roles = claimOf(set.Value)
		}
	}
	return s
}

// ActionParts are the single actions that a word means.
func ActionParts(action string) []string {
	switch action {
	case "write":
		return []string{"insert", "update"}
	case "all":
		return []string{"read", "insert", "update", "delete"}
	}
	return []string{action}
}

// IsFileName reports whether the location of a key set is a file name: not a URL, and not
// meant to be one.
func IsFileName(location string) bool {
	return !strings.Contains(location, ":") && !strings.HasPrefix(location, "//")
}

// Names returns the names as written.
func Names(ids []syntax.Ident) []string {
	names := make([]string, 0, len(ids))
	for _, id := range ids {
		names = append(names, id.Name)
	}
	return names
}

// Texts returns the strings or the names of a list.
func Texts(v syntax.SettingValue) []string {
	var texts []string
	for _, elem := range v.(*syntax.ListSetting).Elems {
		switch elem := elem.(type) {
		case *syntax.Literal:
			texts = append(texts, elem.Text)
		case *syntax.NameSetting:
			texts = append(texts, elem.Name.Name)
		}
	}
	return texts
}

// claimOf returns the names in claim("name", …).
func claimOf(v syntax.SettingValue) (path []string) {
	for _, arg := range v.(*syntax.NameSetting).Args {
		path = append(path, arg.(*syntax.Literal).Text)
	}
	return path
}
