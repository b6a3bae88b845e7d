package syntax

import (
	"strings"
	"time"

	"runner.example/internal/diag"
)

// The tree that Parse makes of one file.
//
// The parser reports what is wrong with letters and grammar (E001 to E110) and
// goes on. What it could not read stands in the tree as a nil part or a
// *BadExpr, and has been reported: whoever checks the tree passes over it in
// silence. Names that come from a closed list but are told apart by a code of
// their own (actions, rate units) stand in the tree as written.

// Node is the part that all nodes share.
type Node struct {
	Loc diag.Span
}

// Span is the place from the node's first token to its last; for a declaration
// with a body that is from its keyword (its doc comment is not part of it) to
// the closing bracket.
func (n Node) Span() diag.Span { return n.Loc }

// File is one parsed file.
type File struct {
	Name  string
	Decls []Decl
	// Comments are all comments of the file in order, doc comments included.
	Comments []Comment
	// Broken reports that a part which may declare names was skipped: a name
	// that seems to be missing may stand there.
	Broken bool
	// Size is the length of the source in bytes.
	Size int
}

// Comment is one comment as written, with its slashes.
type Comment struct {
	Node
	Text string
	// OwnLine: no token (but a comma) stands before it on its line.
	OwnLine bool
}

// Ident is a name as written. An empty Name stands for one that is missing and
// has been reported.
type Ident struct {
	Node
	Name string
}

// Decl is a top-level declaration: *AppDecl, *AuthDecl, *SecretDecl,
// *OutboundDecl, *EnumDecl, *TypeDecl, *EntityDecl, *APIKeysDecl,
// *FunctionsDecl or *RoutesDecl.
type Decl interface {
	Span() diag.Span
	decl()
}

// AppDecl is `app name`.
type AppDecl struct {
	Node
	Doc string
	// Keyword is the word `app`; so in the other declarations.
	Keyword diag.Span
	Name    Ident
}

// SecretDecl is `secret NAME`.
type SecretDecl struct {
	Node
	Doc     string
	Keyword diag.Span
	Name    Ident
}

// OutboundDecl is `outbound { allow: [...] }`.
type OutboundDecl struct {
	Node
	Doc     string
	Keyword diag.Span
	// Settings has one `allow` whose value is a *ListSetting of string literals,
	// unless the source was wrong (reported).
	Settings []*Setting
}

// AuthDecl is the `auth { … }` block.
type AuthDecl struct {
	Node
	Doc      string
	Keyword  diag.Span
	Sessions []*SessionDecl
	Settings []*Setting
}

// SessionDecl is `session cookie("…") { … }` or `session jwt { … }`.
type SessionDecl struct {
	Node
	Doc string
	// Kind is "cookie" or "jwt"; empty when it was wrong (reported).
	Kind Ident
	// Cookie is the name of the cookie, nil when left out.
	Cookie   *Literal
	Settings []*Setting
}

// Setting is `name: value` in a block.
type Setting struct {
	Node
	Name Ident
	// Value is nil when it could not be read (reported).
	Value SettingValue
}

// SettingValue is a *Literal, a *ListSetting or a *NameSetting.
type SettingValue interface {
	Span() diag.Span
	value()
}

// ListSetting is `[a, b]`.
type ListSetting struct {
	Node
	Elems []SettingValue
}

// NameSetting is a bare name, or a name with arguments: claim("roles").
type NameSetting struct {
	Node
	Name Ident
	// Call reports that parentheses follow the name.
	Call bool
	Args []SettingValue
}

// EnumDecl is `enum Name { a, b }`.
type EnumDecl struct {
	Node
	Doc     string
	Keyword diag.Span
	Name    Ident
	Values  []Ident
}

// TypeDecl is `type Name { fields }`.
type TypeDecl struct {
	Node
	Doc     string
	Keyword diag.Span
	Name    Ident
	Fields  []*FieldDecl
}

// EntityDecl is `entity Name { … }`.
type EntityDecl struct {
	Node
	Doc      string
	Keyword  diag.Span
	Name     Ident
	Fields   []*FieldDecl
	Attrs    []*EntityAttr
	Policies []*PolicyDecl
}

// FieldDecl is a field of an entity or a type, or a parameter of a function.
type FieldDecl struct {
	Node
	Doc  string
	Name Ident
	// Type is nil when it could not be read (reported).
	Type *TypeRef
	// Default is nil, a *Literal, or a *NameSetting without arguments: a value of
	// the field's enum, or `now`.
	Default SettingValue
	Attrs   []*FieldAttr
}

// TypeRef is a use of a scalar, an enum, a type or an entity.
type TypeRef struct {
	Node
	Name Ident
	// Args is nil without parentheses.
	Args     *TypeArgs
	List     bool // []
	Optional bool // ?
}

// TypeArgs is what stands in the parentheses of string(1..32) or decimal(12,2).
type TypeArgs struct {
	Node // with the parentheses
	// First and Second are integer literals; Second is nil when there is one.
	First, Second *Literal
	// Range: the two are joined by "..", not by a comma.
	Range bool
}

// FieldAttr is one of @unique @index @tenant @hidden @readonly @created
// @updated @min @max @pattern @inverse @onDelete. Unknown ones are reported and
// not kept.
type FieldAttr struct {
	Node
	// Name stands without the @; its span is the name's.
	Name Ident
	// Arg is set for min, max and pattern (a string there), unless it was wrong
	// (reported).
	Arg *Literal
	// Ref is set for inverse (a field) and onDelete ("restrict", "cascade" or
	// "clear"), unless it was wrong (reported).
	Ref *Ident
}

// Attr returns the field's first attribute of that name, nil without one.
func (f *FieldDecl) Attr(name string) *FieldAttr {
	for _, a := range f.Attrs {
		if a.Name.Name == name {
			return a
		}
	}
	return nil
}

// EntityAttr is @@unique(…) or @@index(…).
type EntityAttr struct {
	Node
	// Name is "unique" or "index".
	Name    Ident
	Columns []Column
	// Global is the word `global`, nil when left out.
	Global *Ident
}

// Column is one field of an @@index or @@unique.
type Column struct {
	Node
	Name Ident
	// Order is "asc" or "desc", nil when left out.
	Order *Ident
}

// PolicyDecl is @@allow or @@deny.
type PolicyDecl struct {
	Node
	// Effect is "allow" or "deny".
	Effect Ident
	// Actions are as written; no list of known ones has been applied.
	Actions []Ident
	// To is empty without `to`.
	To []Kind
	// When is nil without `when`.
	When Expr
}

// Kind is session, apiKey, apiKey(scope) or anonymous.
type Kind struct {
	Node
	// Name is one of the three words; empty when it was wrong (reported).
	Name Ident
	// Scope is set for apiKey(scope).
	Scope *Ident
}

// APIKeysDecl is the `apiKeys { … }` block.
type APIKeysDecl struct {
	Node
	Doc      string
	Keyword  diag.Span
	Settings []*Setting
	// Blocks are the `scopes: { … }` in it, usually one.
	Blocks []*ScopesBlock
}

// ScopesBlock is `scopes: { … }`.
type ScopesBlock struct {
	Node
	Name   Ident
	Scopes []*ScopeDecl
}

// ScopeDecl is `name: @system("id") { … }`.
type ScopeDecl struct {
	Node
	Doc  string
	Name Ident
	// System is nil when it could not be read (reported).
	System *Literal
	Grants []*GrantDecl
	Issues []*IssueDecl
	// AllTenants are the places of @allTenants.
	AllTenants []diag.Span
}

// GrantDecl is `@grant actions on Entities [fields (…)] [where expr]`.
type GrantDecl struct {
	Node
	// Actions are as written; no list of known ones has been applied.
	Actions  []Ident
	Entities []Ident
	// HasFields reports that `fields (…)` is written.
	HasFields bool
	Fields    []Ident
	// Where is nil when left out.
	Where Expr
}

// IssueDecl is `@issue when expr`.
type IssueDecl struct {
	Node
	When Expr
}

// FunctionsDecl is the `functions(settings) { … }` block.
type FunctionsDecl struct {
	Node
	Doc     string
	Keyword diag.Span
	// Settings is nil without parentheses; so in the nodes below.
	Settings  *RouteSettings
	Functions []*FunctionDecl
}

// FunctionDecl is `[@expose] name(params) [-> type] [(settings)]`.
type FunctionDecl struct {
	Node
	Doc    string
	Expose bool
	Name   Ident
	Params []*FieldDecl
	// Result is nil when left out.
	Result   *TypeRef
	Settings *RouteSettings
}

// RoutesDecl is a `routes("/prefix", settings) { … }` group.
type RoutesDecl struct {
	Node
	Doc     string
	Keyword diag.Span
	// Prefix is nil when it could not be read (reported).
	Prefix *Literal
	// Settings is never nil.
	Settings *RouteSettings
	Items    []RouteItem
}

// RouteItem is a *RouteDecl or a *RoutesDecl.
type RouteItem interface {
	Span() diag.Span
	routeItem()
}

// RouteDecl is `METHOD path -> handler [(settings)]`.
type RouteDecl struct {
	Node
	Doc string
	// Method is one of the seven method words.
	Method  Ident
	Path    Path
	Handler Ident
	// Settings is nil without parentheses.
	Settings *RouteSettings
}

// Path is a route's own path as written. Nothing about it has been checked: it
// may lack its slash.
type Path struct {
	Node
	Raw string
}

// RouteSettings is a list of settings in parentheses.
type RouteSettings struct {
	Node
	// List is in the order written, repetitions included.
	List []*RouteSetting
}

// RouteSetting is one setting of a route, a group or a function. The part that
// belongs to Name is set; it is nil when it could not be read (reported).
type RouteSetting struct {
	Node
	// Name is one of auth, rateLimit, as, body, timeout, input, verify, csrf,
	// mints, cors.
	Name Ident
	// Auth: auth.
	Auth *AuthMode
	// Rate: rateLimit.
	Rate *RateValue
	// Ref: as (a scope), input (a type).
	Ref *Ident
	// Amount: body (a size), timeout (a duration).
	Amount *Literal
	// Verify: verify.
	Verify *VerifyValue
	// Word: csrf ("on", "off"), mints ("session"), cors ("none").
	Word *Ident
	// Origins: cors (strings).
	Origins *ListSetting
}

// AuthMode is none, session, session(roles), apiKey(scopes) or anyOf(modes).
type AuthMode struct {
	Node
	// Kind is one of the four words.
	Kind Ident
	// Names are roles of session, scopes of apiKey.
	Names []Ident
	// Modes are those of anyOf. A mode that could not be read is left out and
	// sets Broken.
	Modes []*AuthMode
	// Broken: part of the mode could not be read (reported).
	Broken bool
}

// RateValue is what rateLimit says.
type RateValue struct {
	Node
	// None is `none`: lifts an inherited limit.
	None bool
	// InList: the rates stand in brackets.
	InList bool
	Rates  []*Rate
}

// Rate is `600/minute by key`.
type Rate struct {
	Node
	Count *Literal
	// Unit is as written; no list of known ones has been applied.
	Unit Ident
	// By is as written, nil when left out.
	By *Ident
}

// VerifyValue is webhook(scheme, SECRET, tolerance: 5m).
type VerifyValue struct {
	Node
	Scheme, Secret Ident
	// Tolerance is a duration, nil when left out.
	Tolerance *Literal
}

// Expr is a rule: *Literal, *NullExpr, *NowExpr, *NameExpr, *ListExpr,
// *ParenExpr, *ExistsExpr, *NotExpr, *BinaryExpr or *BadExpr.
type Expr interface {
	Span() diag.Span
	expr()
}

// LiteralKind says which of a Literal's values is set.
type LiteralKind int

const (
	StringLit LiteralKind = iota
	IntLit
	DecimalLit
	DurationLit
	SizeLit
	BoolLit
)

// Literal is a constant. It is both an Expr and a SettingValue.
type Literal struct {
	Node
	Kind LiteralKind
	// Raw is the text as written, with quotes and sign.
	Raw string
	// Text is the decoded StringLit, or the digits of a DecimalLit with its
	// sign and without underscores.
	Text string
	// Int is an IntLit, or the bytes of a SizeLit.
	Int int64
	// Duration is a DurationLit.
	Duration time.Duration
	// Bool is a BoolLit.
	Bool bool
}

// NullExpr is `null`.
type NullExpr struct{ Node }

// NowExpr is `now`.
type NowExpr struct{ Node }

// NameExpr is `a` or `a.b.c`.
type NameExpr struct {
	Node
	// Parts has at least one name.
	Parts []Ident
}

// String is the name as written.
func (e *NameExpr) String() string {
	var names []string
	for _, p := range e.Parts {
		names = append(names, p.Name)
	}
	return strings.Join(names, ".")
}

// ListExpr is `[a, b]`.
type ListExpr struct {
	Node
	Elems []Expr
}

// ParenExpr is `(x)`.
type ParenExpr struct {
	Node
	X Expr
}

// ExistsExpr is `exists(Entity where x)`.
type ExistsExpr struct {
	Node
	Entity Ident
	Where  Expr
}

// NotExpr is `not x`.
type NotExpr struct {
	Node
	X Expr
}

// Op is an operator between two expressions.
type Op string

const (
	OpOr         Op = "or"
	OpAnd        Op = "and"
	OpEqual      Op = "=="
	OpNotEqual   Op = "!="
	OpLess       Op = "<"
	OpLessEq     Op = "<="
	OpGreater    Op = ">"
	OpGreaterEq  Op = ">="
	OpIn         Op = "in"
	OpNotIn      Op = "not in"
	OpStartsWith Op = "startsWith"
	OpContains   Op = "contains"
)

// BinaryExpr is `X op Y`. Chains of `and` and of `or` lean left.
type BinaryExpr struct {
	Node
	Op     Op
	OpSpan diag.Span
	X, Y   Expr
}

// BadExpr stands for an expression that could not be read (reported).
type BadExpr struct{ Node }

func (*AppDecl) decl()       {}
func (*SecretDecl) decl()    {}
func (*OutboundDecl) decl()  {}
func (*AuthDecl) decl()      {}
func (*EnumDecl) decl()      {}
func (*TypeDecl) decl()      {}
func (*EntityDecl) decl()    {}
func (*APIKeysDecl) decl()   {}
func (*FunctionsDecl) decl() {}
func (*RoutesDecl) decl()    {}

func (*RouteDecl) routeItem()  {}
func (*RoutesDecl) routeItem() {}

func (*Literal) value()     {}
func (*ListSetting) value() {}
func (*NameSetting) value() {}

func (*Literal) expr()    {}
func (*NullExpr) expr()   {}
func (*NowExpr) expr()    {}
func (*NameExpr) expr()   {}
func (*ListExpr) expr()   {}
func (*ParenExpr) expr()  {}
func (*ExistsExpr) expr() {}
func (*NotExpr) expr()    {}
func (*BinaryExpr) expr() {}
func (*BadExpr) expr()    {}
