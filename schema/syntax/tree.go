package syntax

import (
	"strconv"
	"strings"
	"time"

	"runner.example/internal/diag"
)

// The syntax tree of one file.
//
// The parser reports lexical and syntax errors (E001 to E110) and continues. A part that it
// could not read is nil or a *BadExpr; it has been reported, and code that checks the tree
// skips it. Actions and rate units are kept as written: the compiler checks them.

// Node is embedded in all nodes.
type Node struct {
	Loc diag.Span
}

// Span is the range from the node's first token to its last. A declaration begins with its
// keyword, not with its doc comment, and ends with its closing bracket.
func (n Node) Span() diag.Span { return n.Loc }

// File is one parsed file.
type File struct {
	Name  string
	Decls []Decl
	// VarUses are the places where the name of a variable stands for a literal, in order.
	VarUses []VarUse
	// Comments are all comments of the file in order, doc comments included.
	Comments []Comment
	// Tokens are all tokens in order, without commas, which are optional in blocks.
	Tokens []Token
	// Unread are the items with syntax errors, sorted, without overlaps: what the tree has of
	// them may not be what the author meant. A name that seems to be missing may be
	// declared there.
	Unread []diag.Span
	// Lost reports that names may be missing that are in no part of Unread, or that blocks
	// may have ended elsewhere.
	Lost bool
	// Size is the length of the source in bytes.
	Size int
}

// Token is one token as written, with its quotes or its @.
type Token struct {
	Node
	Text string
}

// Comment is one comment as written, with its slashes.
type Comment struct {
	Node
	Text string
	// OwnLine reports that no token except a comma precedes it on its line.
	OwnLine bool
}

// Ident is a name as written. Name is empty if it is missing (reported).
type Ident struct {
	Node
	Name string
}

// Decl is a top-level declaration: *AppDecl, *AuthDecl, *SecretDecl, *VarDecl,
// *OutboundDecl, *ModuleDecl, *PythonDecl, *EnumDecl, *TypeDecl, *EntityDecl, *APIKeysDecl,
// *FunctionsDecl, *JobsDecl, *RoutesDecl or *AssetsDecl.
type Decl interface {
	Span() diag.Span
	decl()
}

// AppDecl is `app name`.
type AppDecl struct {
	Node
	Doc string
	// Keyword is the span of the word `app`, and likewise in the other declarations.
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

// VarDecl is `var NAME: type` or `var NAME: type = value`.
type VarDecl struct {
	Node
	Doc     string
	Keyword diag.Span
	Name    Ident
	// Type is as written; it may be unknown.
	Type Ident
	// Default is the value; nil if it is omitted or a rate.
	Default *Literal
	// Rate is the value if it is a rate, without `by`; else nil.
	Rate *Rate
}

// DefaultSpan is the span of the value; it must have one.
func (d *VarDecl) DefaultSpan() diag.Span {
	if d.Rate != nil {
		return d.Rate.Loc
	}
	return d.Default.Loc
}

// VarUse is the name of a variable where a string or a rate could be written. Exactly one of
// String and Rate is set: the node to fill in.
type VarUse struct {
	Name   Ident
	String *Literal
	Rate   *Rate
}

// OutboundDecl is `outbound { allow: [...], public: true }`.
type OutboundDecl struct {
	Node
	Doc     string
	Keyword diag.Span
	// Settings has `allow` with a *ListSetting of string literals and `public`, each at most once unless the source
	// has an error (reported).
	Settings []*Setting
}

// ModuleDecl is `module name { fresh: true, args: ["-v"] }` or `module "name" { … }`.
type ModuleDecl struct {
	Node
	Doc     string
	Keyword diag.Span
	// Name is the name of the module's file in build/, without .wasm. Quoted is its string
	// literal; nil: the name is written without quotes.
	Name   Ident
	Quoted *Literal
	// Settings are `fresh`, `args`, `env` (a *MapSetting), `files`, `startTimeout` and `stub`. Their values are as
	// written.
	Settings []*Setting
}

// PythonDecl is `python { wasm: "…", env: { NAME: "…" }, startTimeout: 60s }`.
type PythonDecl struct {
	Node
	Doc     string
	Keyword diag.Span
	// Settings are `wasm`, `env` (a *MapSetting) and `startTimeout`. Their values are as written.
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
	// Kind is "cookie" or "jwt"; empty if it is invalid (reported).
	Kind Ident
	// Cookie is the name of the cookie, nil if omitted.
	Cookie   *Literal
	Settings []*Setting
	// Manages has at most one element in a valid file.
	Manages []*CallerRuleDecl
}

// Setting is `name: value` in a block.
type Setting struct {
	Node
	Name Ident
	// Value is nil if it could not be read (reported).
	Value SettingValue
}

// SettingValue is a *Literal, a *ListSetting, a *NameSetting or a *MapSetting.
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
	// Call reports that the name is followed by parentheses.
	Call bool
	Args []SettingValue
}

// MapSetting is `{ NAME: value, … }`.
type MapSetting struct {
	Node
	Entries []*Setting
}

// EnumDecl is `enum Name { a, b }`.
type EnumDecl struct {
	Node
	Doc     string
	Keyword diag.Span
	Name    Ident
	Values  []Ident
	// Attrs has the attributes of each value.
	Attrs [][]*FieldAttr
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
	Doc     string
	Keyword diag.Span
	Name    Ident
	// NameAttrs are the attributes after the name, which are written like those of a field.
	NameAttrs []*FieldAttr
	Fields    []*FieldDecl
	Attrs     []*EntityAttr
	Policies  []*PolicyDecl
}

// FieldDecl is a field of an entity or a type, or a parameter of a function.
type FieldDecl struct {
	Node
	Doc  string
	Name Ident
	// Omits: `name?: type`, which may be absent. Only in types and parameters.
	Omits bool
	// Type is nil if it could not be read (reported).
	Type *TypeRef
	// Default is nil, a *Literal, a *NameSetting without arguments, which is an enum value or
	// `now`, or a *ListSetting of these.
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
	Before   bool // [] is before the name
	Optional bool // ?
}

// TypeArgs are the arguments of string(1..32), decimal(12,2) or file(10mb, "image/png").
type TypeArgs struct {
	Node // with the parentheses
	// First and Second are integer literals; Second is nil if there is only one. Of a file, First is a size,
	// and nil if there is none.
	First, Second *Literal
	// Media are strings: the media types of a file.
	Media []*Literal
	// Range reports that they are separated by "..", not by a comma.
	Range bool
}

// FieldAttr is one of @unique @index @tenant @hidden @readonly @created @updated @removed @min @max
// @pattern @was @inverse @onDelete. Unknown ones are reported and dropped.
type FieldAttr struct {
	Node
	// Name has no @, and neither has its span.
	Name Ident
	// Arg is the argument of min, max, pattern and was (strings). It is nil if it is invalid
	// (reported).
	Arg *Literal
	// Ref is the argument of inverse (a field), onDelete ("restrict", "cascade" or "clear")
	// and index ("ignoreCase"). It is nil if it is omitted, or invalid (reported).
	Ref *Ident
}

// Attr returns the field's first attribute with that name, or nil.
func (f *FieldDecl) Attr(name string) *FieldAttr { return FindAttr(f.Attrs, name) }

// FindAttr returns the first of the attributes with that name, or nil.
func FindAttr(attrs []*FieldAttr, name string) *FieldAttr {
	for _, a := range attrs {
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
	// Global is the word `global`, nil if omitted.
	Global *Ident
}

// Column is one field of an @@index or @@unique.
type Column struct {
	Node
	Name Ident
	// Order is "asc" or "desc", nil if omitted.
	Order *Ident
}

// PolicyDecl is @@allow or @@deny.
type PolicyDecl struct {
	Node
	// Effect is "allow" or "deny".
	Effect Ident
	// Actions are as written, unknown ones included.
	Actions []Ident
	// To is empty if `to` is omitted.
	To []Kind
	// When is nil if `when` is omitted.
	When Expr
}

// Kind is a kind of caller: session, apiKey, apiKey(scope) or anonymous.
type Kind struct {
	Node
	// Name is one of the three words; empty if it is invalid (reported).
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
	// Blocks are its `scopes: { … }` blocks, usually one.
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
	// System is nil if it could not be read (reported).
	System *Literal
	Grants []*GrantDecl
	Issues []*CallerRuleDecl
	// Manages are the @manage lines.
	Manages []*CallerRuleDecl
	// AllTenants are the spans of @allTenants.
	AllTenants []diag.Span
}

// GrantDecl is `@grant actions on Entities [fields (…)] [where expr]`.
type GrantDecl struct {
	Node
	// Actions are as written, unknown ones included.
	Actions  []Ident
	Entities []Ident
	// HasFields reports that the grant has `fields (…)`.
	HasFields bool
	Fields    []Ident
	// Where is nil if omitted.
	Where Expr
}

// CallerRuleDecl is `@issue when expr` or `@manage when expr`, of a scope or of a session block: a
// rule about the caller.
type CallerRuleDecl struct {
	Node
	// Word is "issue" or "manage".
	Word string
	When Expr
}

// FunctionsDecl is the `functions(settings) { … }` block.
type FunctionsDecl struct {
	Node
	Doc     string
	Keyword diag.Span
	// Settings is nil without parentheses.
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
	// Result is nil if omitted.
	Result   *TypeRef
	Settings *RouteSettings
}

// JobsDecl is the `jobs(settings) { … }` block.
type JobsDecl struct {
	Node
	Doc     string
	Keyword diag.Span
	// Settings is nil without parentheses.
	Settings *RouteSettings
	// Jobs are functions without @expose and without a result.
	Jobs []*FunctionDecl
}

// RoutesDecl is a `routes("/prefix", settings) { … }` group.
type RoutesDecl struct {
	Node
	Doc     string
	Keyword diag.Span
	// Prefix is nil if it could not be read (reported).
	Prefix *Literal
	// Settings is never nil.
	Settings *RouteSettings
	Items    []RouteItem
}

// AssetsDecl is `assets("/prefix", dir: "public", settings)`, at the top or in a group of routes.
type AssetsDecl struct {
	Node
	Doc     string
	Keyword diag.Span
	// Prefix is nil if it could not be read (reported).
	Prefix *Literal
	// Settings is never nil.
	Settings *RouteSettings
}

// RouteItem is a *RouteDecl, a *RoutesDecl or an *AssetsDecl.
type RouteItem interface {
	Span() diag.Span
	routeItem()
}

// RouteDecl is `METHOD path -> handler [: type] [(settings)]`, or `METHOD path -> file(Entity.field) [(settings)]`.
type RouteDecl struct {
	Node
	Doc string
	// Method is one of the seven method words.
	Method  Ident
	Path    Path
	Handler Ident
	// File is nil unless the route sends a file. Then Handler has no name.
	File *FileTarget
	// Result is nil if omitted.
	Result *TypeRef
	// Settings is nil without parentheses.
	Settings *RouteSettings
}

// FileTarget is `file(Entity.field)`.
type FileTarget struct {
	Node
	Entity, Field Ident
}

// Path is a route's own path as written. The parser does not check it: it may not begin
// with a slash.
type Path struct {
	Node
	Raw string
}

// RouteSettings is a list of settings in parentheses.
type RouteSettings struct {
	Node
	// List is in source order, repetitions included.
	List []*RouteSetting
}

// RouteSetting is one setting of a route, a group, a function, a job or of assets. Name decides which of
// the other fields is set; it is nil if it could not be read (reported).
type RouteSetting struct {
	Node
	// Name is one of auth, rateLimit, as, body, upload, timeout, stream, live, input, query, verify,
	// csrf, mints, cors; of jobs: as, retries, backoff, timeout, concurrency, schedule; of assets: dir, spa,
	// headers, auth, rateLimit, cors.
	Name Ident
	// Auth: auth.
	Auth *AuthMode
	// Rate: rateLimit.
	Rate *RateValue
	// Ref: as (a scope), input and query (a type).
	Ref *Ident
	// Amount: body (a size), timeout, stream, live and backoff (a duration), retries (a number).
	Amount *Literal
	// Verify: verify.
	Verify *VerifyValue
	// Word: upload and csrf ("on", "off"), mints ("session"), cors ("none").
	Word *Ident
	// Origins: cors (strings).
	Origins *ListSetting
	// Concurrency: concurrency.
	Concurrency *ConcurrencyValue
	// Schedule: schedule.
	Schedule *ScheduleValue
	// Text: dir and spa (strings).
	Text *Literal
	// Headers: headers.
	Headers *HeadersValue
}

// HeadersValue is `{ "Name": "value", … }`.
type HeadersValue struct {
	Node
	// Fields are complete: one that could not be read is not there (reported).
	Fields []*HeaderField
}

// HeaderField is `"Name": "value"`.
type HeaderField struct {
	Node
	// Name and Value are strings as written.
	Name, Value *Literal
}

// ConcurrencyValue is `4 by tenant`.
type ConcurrencyValue struct {
	Node
	Count *Literal
	// By is as written, nil if omitted.
	By *Ident
}

// ScheduleValue is `"0 3 * * *" in "Europe/Berlin"`.
type ScheduleValue struct {
	Node
	Cron *Literal
	// Zone is nil if omitted.
	Zone *Literal
}

// AuthMode is none, session, session(roles), apiKey(scopes) or anyOf(modes).
type AuthMode struct {
	Node
	// Kind is one of the four words.
	Kind Ident
	// Names are roles of session, which may be strings, or scopes of apiKey.
	Names []Ident
	// Modes are those of anyOf, except modes that could not be read.
	Modes []*AuthMode
	// Broken reports that part of the mode could not be read (reported).
	Broken bool
}

// RateValue is the value of rateLimit.
type RateValue struct {
	Node
	// None is `none`, which removes an inherited limit.
	None bool
	// InList reports that the rates are in brackets.
	InList bool
	Rates  []*Rate
}

// Rate is `600/minute by key` or `NAME by key`.
type Rate struct {
	Node
	// Var is the variable whose value the count and the unit are, nil if they are written.
	// The parser leaves both empty then.
	Var   *Ident
	Count *Literal
	// Unit is as written; it may be unknown.
	Unit Ident
	// By is as written, nil if omitted.
	By *Ident
}

// VerifyValue is webhook(scheme, SECRET, tolerance: 5m).
type VerifyValue struct {
	Node
	Scheme, Secret Ident
	// Tolerance is a duration, nil if omitted.
	Tolerance *Literal
}

// Expr is an expression of a rule: *Literal, *NullExpr, *NowExpr, *NameExpr, *ListExpr,
// *ParenExpr, *ExistsExpr, *NotExpr, *BinaryExpr or *BadExpr.
type Expr interface {
	Span() diag.Span
	expr()
}

// LiteralKind is the kind of a Literal; it decides which of its values is set.
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
	// Raw is the text as written, with quotes and sign; the name of a variable.
	Raw string
	// Var is the variable whose value it is, empty if the value is written. The parser makes
	// it a StringLit without a text.
	Var string
	// Text is the decoded text of a StringLit, or the digits of a DecimalLit with its
	// sign and without underscores.
	Text string
	// Int is the value of an IntLit, or the bytes of a SizeLit.
	Int int64
	// Duration is the value of a DurationLit.
	Duration time.Duration
	// Bool is the value of a BoolLit.
	Bool bool
}

// DurationHint says which duration a literal of another kind was probably meant to be, to append
// to a message: 60s by 60, when the usual unit is s, 30m by "30m". It is "" if that is not known.
func (l *Literal) DurationHint(usual string) string {
	text := l.Text
	if l.Kind == IntLit && l.Int > 0 {
		text = l.Raw + usual
	}
	digits := strings.TrimRight(text, "abcdefghijklmnopqrstuvwxyz")
	if digits == "" || strings.Trim(digits, "0123456789_") != "" || durationUnits[text[len(digits):]] == 0 {
		return ""
	}
	return " (did you mean " + text + "?)"
}

// Shown is the text for messages: quoted, or the name of the variable whose value it is, since
// values are not for logs.
func (l *Literal) Shown() string {
	if l.Var != "" {
		return "the value of " + l.Var
	}
	return strconv.Quote(l.Text)
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

// Op is a binary operator.
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

// BinaryExpr is `X op Y`. Chains of `and` and of `or` are left-associative.
type BinaryExpr struct {
	Node
	Op     Op
	OpSpan diag.Span
	X, Y   Expr
}

// BadExpr is an expression that could not be read (reported).
type BadExpr struct{ Node }

func (*AppDecl) decl()       {}
func (*SecretDecl) decl()    {}
func (*VarDecl) decl()       {}
func (*OutboundDecl) decl()  {}
func (*ModuleDecl) decl()    {}
func (*PythonDecl) decl()    {}
func (*AuthDecl) decl()      {}
func (*EnumDecl) decl()      {}
func (*TypeDecl) decl()      {}
func (*EntityDecl) decl()    {}
func (*APIKeysDecl) decl()   {}
func (*FunctionsDecl) decl() {}
func (*JobsDecl) decl()      {}
func (*RoutesDecl) decl()    {}
func (*AssetsDecl) decl()    {}

func (*RouteDecl) routeItem()  {}
func (*RoutesDecl) routeItem() {}
func (*AssetsDecl) routeItem() {}

func (*Literal) value()     {}
func (*ListSetting) value() {}
func (*NameSetting) value() {}
func (*MapSetting) value()  {}

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
