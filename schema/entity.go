package schema

import (
	"regexp"
	"slices"
	"time"

	"runner.example/internal/caller"
	"runner.example/internal/diag"
)

// AuthSettings has the settings of the auth block, defaults included.
type AuthSettings struct {
	// Roles are the declared roles; other roles in a token are ignored. Nil if the schema
	// declares none.
	Roles []string
	// User and Tenant name the entities that auth.userId and auth.tenant are ids of; empty
	// if not declared.
	User, Tenant string
	// Origins are trusted by the CSRF rule.
	Origins []string
	// Cookie and JWT are nil if the schema does not declare such a session.
	Cookie *CookieSession
	JWT    *JWTSession
}

// CookieSession is `session cookie`.
type CookieSession struct {
	// Name of the cookie: "__Host-session" unless declared.
	Name string
	// Idle and Absolute limit a session's life: 30 minutes and 12 hours unless declared.
	Idle, Absolute time.Duration
	// SameSite is "lax" (the default) or "strict".
	SameSite string
	// Manage is nil if the block has no @manage.
	Manage *Rule
}

// JWTSession is `session jwt`.
type JWTSession struct {
	Issuer, Audience, JWKS string
	// Algorithms are the declared ones; nil if the schema names none.
	Algorithms []string
	// Tenant and Roles are the paths of the claims with these values; nil if not declared.
	// One name is that of a claim, or has dots between the names of nested claims. Several
	// are the names of nested claims, from outside to inside.
	Tenant, Roles []string
}

// Enum is a closed list of names.
type Enum struct {
	Name, Doc string
	// Values are in order of declaration.
	Values []string
	// Was has the earlier names of values with @was, by their names.
	Was  map[string]string
	Span diag.Span
}

// Has reports whether the enum has a value of that name.
func (e *Enum) Has(name string) bool { return slices.Contains(e.Values, name) }

// ObjectType is the shape of a request's body or a function's result.
type ObjectType struct {
	Name, Doc string
	// Fields are in order of declaration.
	Fields []*Field
	Span   diag.Span
}

// Entity is a kind of row.
type Entity struct {
	Name, Doc string
	// Fields are in order of declaration, to-many ones included.
	Fields []*Field
	// ID is the field of the row's own id.
	ID *Field
	// Tenant is the @tenant field, or nil.
	Tenant *Field
	// Indexes are declared by @unique, @index, @@unique and @@index.
	Indexes []*Index
	// Policies are in order of declaration.
	Policies []*Policy
	// Was is the earlier name in @was; empty without one.
	Was string
	// Removed are the fields with @removed. They are not in Fields: nothing but the stored rows
	// has them.
	Removed []Removed
	Span    diag.Span

	byName map[string]*Field
}

// SetFields sets Fields. It is for the compiler.
func (e *Entity) SetFields(fields []*Field) {
	e.Fields, e.byName = fields, make(map[string]*Field, len(fields))
	for _, f := range fields {
		e.byName[f.Name] = f
	}
}

// Field returns the field of that name, or nil.
func (e *Entity) Field(name string) *Field { return e.byName[name] }

// FieldNames are the names of all fields, in order of declaration.
func (e *Entity) FieldNames() []string {
	names := make([]string, len(e.Fields))
	for i, f := range e.Fields {
		names[i] = f.Name
	}
	return names
}

// Removed is an entity or a field with @removed.
type Removed struct {
	Name string
	Span diag.Span
}

// Index is one declared index of an entity.
type Index struct {
	Columns []IndexColumn
	Unique  bool
	// IgnoreCase reports that texts which differ only in case are equal in the index.
	IgnoreCase bool
	// Global reports that the index is unique over all tenants.
	Global bool
	Span   diag.Span
}

// IndexColumn is one column of an index.
type IndexColumn struct {
	Field *Field
	Desc  bool
}

// Field is a field of an entity or an object type, or a function's parameter.
type Field struct {
	Name, Doc string
	// Pos is the field's index in its owner's fields.
	Pos  int
	Type Type
	// Default is the value of an omitted field, if HasDefault. With DefaultNow it is the
	// time or the date of the request.
	Default                Value
	HasDefault, DefaultNow bool
	// Omits: an input may omit the field even if its type is not optional.
	Omits bool

	Hidden, ReadOnly, Created, Updated bool
	// OnDelete is what happens to a row when the row that its relation refers to is deleted.
	OnDelete OnDelete
	// Inverse is, for a to-many field, the relation in the other entity.
	Inverse *Field
	// Was is the earlier name in @was; empty without one.
	Was  string
	Span diag.Span
}

// MayOmit reports whether an input or a new row may omit the field.
func (f *Field) MayOmit() bool { return f.Omits || f.Type.Optional || f.HasDefault || f.DefaultNow }

// OnDelete is what happens to a row when the row that its relation refers to is deleted. The
// zero value is Restrict.
type OnDelete uint8

// The values of @onDelete.
const (
	Restrict OnDelete = iota // the deletion is refused
	Cascade                  // the row is deleted too
	Clear                    // its relation becomes null
)

// TypeKind is a built-in type or a kind of declared type. The zero value is not valid.
type TypeKind uint8

// The kinds of types.
const (
	ID TypeKind = iota + 1
	UUID
	String
	Text
	Email
	URL
	Int
	Float
	Decimal
	Bool
	Time
	Date
	Duration
	JSON
	Bytes
	FileKind // a File
	EnumKind
	Relation // to one row of Type.Entity
	ToMany   // rows of Type.Entity; not stored
	Object   // Type.Object
)

// BuiltinTypes are the names of the built-in types, in the order of their kinds.
var BuiltinTypes = []string{
	"id", "uuid", "string", "text", "email", "url", "int", "float", "decimal",
	"bool", "time", "date", "duration", "json", "bytes", "file",
}

// BuiltinKind is the kind of the built-in type of that name.
func BuiltinKind(name string) TypeKind { return ID + TypeKind(slices.Index(BuiltinTypes, name)) }

// MaxDigits is the most digits that a decimal may have.
const MaxDigits = 38

// MaxSafeInteger is the largest whole number that every JSON reader keeps exactly.
const MaxSafeInteger = 1<<53 - 1

// String returns the name of a built-in type; for declared types it returns "enum",
// "relation", "to-many relation" or "type".
func (k TypeKind) String() string {
	if k >= ID && k <= FileKind {
		return BuiltinTypes[k-ID]
	}
	return [...]string{"enum", "relation", "to-many relation", "type"}[k-EnumKind]
}

// Type is the type of a field with its bounds.
type Type struct {
	Kind           TypeKind
	List, Optional bool
	// MinLen and MaxLen limit a string or a text, in code points, if HasMaxLen.
	MinLen, MaxLen int
	HasMaxLen      bool
	// Min and Max are set by int(1..100), @min and @max; null if not declared.
	Min, Max Value
	// Digits and Places are the parameters of a decimal.
	Digits, Places int
	// MaxBytes and MediaTypes limit a file. A media type is in lower case and may be image/*; none: all are allowed.
	MaxBytes   int64
	MediaTypes []string
	// Pattern is nil if not declared.
	Pattern *regexp.Regexp
	program int         // instructions of Pattern
	Enum    *Enum       // EnumKind
	Entity  *Entity     // Relation, ToMany
	Object  *ObjectType // Object
	// ExternalIDs: an identity provider creates the ids, because the entity is auth.user
	// or auth.tenant. It is set on the ID field of the entity and on relations to it.
	ExternalIDs bool
}

// String returns the type in schema syntax without its bounds: "string[]?", "Order".
func (t *Type) String() string {
	name := t.Kind.String()
	switch {
	case t.Enum != nil:
		name = t.Enum.Name
	case t.Entity != nil:
		name = t.Entity.Name
	case t.Object != nil:
		name = t.Object.Name
	}
	if t.List || t.Kind == ToMany {
		name += "[]"
	}
	if t.Optional {
		name += "?"
	}
	return name
}

// ActionSet is a set of actions on rows.
type ActionSet uint8

// The actions. `write` is ActInsert and ActUpdate; `all` is all four.
const (
	ActRead ActionSet = 1 << iota
	ActInsert
	ActUpdate
	ActDelete
)

// Has reports whether the set contains all of actions.
func (a ActionSet) Has(actions ActionSet) bool { return a&actions == actions }

// Policy is an @@allow or @@deny.
type Policy struct {
	Deny    bool
	Actions ActionSet
	// To are the callers that the policy applies to; empty means all.
	To []Audience
	// When is nil if the policy has no condition.
	When *Rule
	Span diag.Span
}

// Audience is a kind of callers. Scope restricts caller.APIKey to the keys of one scope.
type Audience struct {
	Kind  caller.Kind
	Scope string
}

// Concerns reports whether the policy applies to this caller.
func (p *Policy) Concerns(by *caller.Caller) bool {
	return len(p.To) == 0 || slices.ContainsFunc(p.To, func(to Audience) bool {
		return to.Kind == by.Kind && (to.Scope == "" || to.Scope == by.Scope)
	})
}

// AddEntity adds e to Entities. It is for the compiler.
func (s *Schema) AddEntity(e *Entity) {
	if s.byName == nil {
		s.byName = map[string]*Entity{}
	}
	s.byName[e.Name] = e
	s.Entities = append(s.Entities, e)
}

// Entity returns the declared entity of that name, or nil. In untyped mode no entity is
// declared.
func (s *Schema) Entity(name string) *Entity { return s.byName[name] }

// EntityNames returns the names of the declared entities in order of declaration. In untyped
// mode it returns the sorted names of the entities that grants name.
func (s *Schema) EntityNames() []string {
	var names []string
	for _, e := range s.Entities {
		names = append(names, e.Name)
	}
	if s.Typed {
		return names
	}
	for _, scope := range s.APIKeys.Scopes {
		for _, grant := range scope.Grants {
			names = append(names, grant.Entities...)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
