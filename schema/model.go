package schema

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"runner.example/internal/caller"
	"runner.example/internal/diag"
)

// Schema is a checked app description. It is immutable and safe for
// concurrent use.
type Schema struct {
	// App is the name of the `app` declaration, empty without one.
	App string
	// Typed reports that at least one entity is declared.
	Typed   bool
	Auth    AuthSettings
	APIKeys APIKeys
	// Secrets are the declared secret names, in order of declaration.
	Secrets []string
	// Outbound are the declared origins that handlers may call, as written, each
	// once: "https://api.example.com", perhaps with a port.
	Outbound []string
	// Routes are all routes with their effective settings, in order of
	// declaration.
	Routes []Route
	// Functions are all functions with their effective settings, in order of
	// declaration.
	Functions []Function
	// Enums, Types and Entities are in order of declaration. There are no
	// Entities in untyped mode.
	Enums    []*Enum
	Types    []*ObjectType
	Entities []*Entity

	byName map[string]*Entity
}

// Type returns the declared object type of that name, nil when there is none.
func (s *Schema) Type(name string) *ObjectType {
	for _, t := range s.Types {
		if t.Name == name {
			return t
		}
	}
	return nil
}

// APIKeys holds the settings of the apiKeys block with its defaults filled in.
type APIKeys struct {
	// Prefix begins every token: "rnk" unless declared.
	Prefix string
	// DefaultLifetime and MaxLifetime are zero when not declared.
	DefaultLifetime, MaxLifetime time.Duration
	// MaxGrace bounds the grace period of a rotation: 30 days unless declared.
	MaxGrace time.Duration
	// MaxPerTenant is zero when not declared.
	MaxPerTenant int
	// Scopes are in order of declaration.
	Scopes []*Scope
}

// Scope is one access scope of the apiKeys block.
type Scope struct {
	Name string
	// System is the id given to @system: the stable identity of the capability.
	System     string
	AllTenants bool
	Grants     []Grant
	// Issue is nil when the scope has no @issue.
	Issue *Rule
	Doc   string
}

// Grant is one @grant: each of the actions on each of the entities.
type Grant struct {
	// Actions are as written: "write" stands for "insert" and "update".
	Actions []string
	// Allows is the same as a set.
	Allows   ActionSet
	Entities []string
	// Fields bounds what is read and written; nil means all but hidden ones.
	Fields []string

	// Where has the condition compiled for each of Entities; in untyped mode it has one
	// rule for all. It is nil if the grant has no condition.
	Where []*Rule
}

// Rule is the grant's where compiled for the entity, one of those it names; in
// untyped mode, where e is nil, the same one for all. Nil: every row will do.
func (g *Grant) Rule(e *Entity) *Rule {
	switch {
	case g.Where == nil:
		return nil
	case e == nil:
		return g.Where[0]
	}
	i := slices.Index(g.Entities, e.Name)
	if i < 0 {
		panic("BUG: the grant does not name " + e.Name)
	}
	return g.Where[i]
}

// HasRole reports whether a session may have the role: it is declared, or the schema is
// untyped and declares none, so that any will do.
func (s *Schema) HasRole(role string) bool {
	return slices.Contains(s.Auth.Roles, role) || s.Auth.Roles == nil && !s.Typed
}

// Route is one HTTP route with the settings that hold for it.
type Route struct {
	Method string
	// Path is the whole template, prefixes joined: "/v1/orders/:id".
	Path string
	// Params are the names of the path's parameters in order, the rest
	// parameter among them.
	Params  []string
	Handler string
	Auth    Auth
	// Limits all hold; a request must pass every one of them.
	Limits []RateLimit
	// BodyBytes and Timeout are zero where the schema says nothing.
	BodyBytes int64
	Timeout   time.Duration
	// As names the scope whose grants an anonymous caller acts under.
	As string
	// Input names the type that the body must fit; empty without one.
	Input string
	// Verify is nil when the route asks for no signature.
	Verify *Verify
	// CSRFOff lets pages of any origin use the route with their users' session
	// cookies.
	CSRFOff bool
	// CreatesSession (mints: session) lets the handler create and end sessions.
	CreatesSession bool
	// CORS are the origins whose pages may read the answers; "*" is any.
	CORS []string
	Doc  string
	// Span points at the route line.
	Span diag.Span
}

// Function is one function with the settings that hold for it.
type Function struct {
	// Name is also the name of the export that answers.
	Name string
	// Exposed functions have a URL and an auth mode, others have neither.
	Exposed        bool
	Auth           Auth
	Limits         []RateLimit
	BodyBytes      int64
	Timeout        time.Duration
	As             string
	Verify         *Verify
	CSRFOff        bool
	CreatesSession bool
	CORS           []string
	// Params are in order of declaration; Result is nil when none is declared.
	Params []*Field
	Result *Type
	Doc    string
	Span   diag.Span
}

// Verify is the signature that a webhook's body must carry.
type Verify struct {
	// Scheme is "standard", "stripe", "github" or "slack".
	Scheme string
	// Secret is the name of a declared secret.
	Secret string
	// Tolerance is how old a signature may be, zero where the schema says
	// nothing.
	Tolerance time.Duration
}

// Auth is a route's auth mode. Exactly the fields of the declared modes are
// set; anyOf sets several.
type Auth struct {
	None bool
	// Session accepts sessions; Roles (any of them) narrows it when not empty.
	Session bool
	Roles   []string
	// Scopes are those whose keys are accepted; empty: no API keys.
	Scopes []string
}

// String gives the mode as the schema language writes it:
// "anyOf(session(admin), apiKey(orders_read))".
func (a Auth) String() string {
	var modes []string
	if a.None {
		modes = append(modes, "none")
	}
	switch {
	case a.Session && len(a.Roles) > 0:
		modes = append(modes, "session("+strings.Join(a.Roles, ", ")+")")
	case a.Session:
		modes = append(modes, "session")
	}
	if len(a.Scopes) > 0 {
		modes = append(modes, "apiKey("+strings.Join(a.Scopes, ", ")+")")
	}
	if len(modes) == 1 {
		return modes[0]
	}
	return "anyOf(" + strings.Join(modes, ", ") + ")"
}

// RateLimit is one declared limit. Two routes under the same declaration
// share it, and so its counters.
type RateLimit struct {
	// ID is the same for all routes under one declaration: its place,
	// "orders.schema:83:42".
	ID    string
	Count int
	Per   time.Duration
	// By is "", "key", "user", "tenant", "ip" or "global"; empty counts per
	// key id, else per user id, else per client address.
	By string
}

// RateUnit is a unit of a rate limit.
type RateUnit struct {
	Name string
	Per  time.Duration
}

// RateUnits are all units, longest last.
var RateUnits = []RateUnit{
	{"second", time.Second},
	{"minute", time.Minute},
	{"hour", time.Hour},
	{"day", 24 * time.Hour},
}

// String gives the limit as the schema language writes it: "100/second by ip".
func (l RateLimit) String() string {
	unit := l.Per.String()
	for _, u := range RateUnits {
		if u.Per == l.Per {
			unit = u.Name
		}
	}
	text := fmt.Sprintf("%d/%s", l.Count, unit)
	if l.By != "" {
		text += " by " + l.By
	}
	return text
}

// Scope returns the scope of that name, nil when there is none.
func (s *Schema) Scope(name string) *Scope {
	for _, scope := range s.APIKeys.Scopes {
		if scope.Name == name {
			return scope
		}
	}
	return nil
}

// ScopeOf returns the scope that a key is of, given the name and the capability
// stored in it: the scope of that name; if there is none, the only scope with
// that capability; else nil.
func (s *Schema) ScopeOf(name, capability string) *Scope {
	if scope := s.Scope(name); scope != nil {
		return scope
	}
	var only *Scope
	for _, scope := range s.APIKeys.Scopes {
		if scope.System != capability {
			continue
		}
		if only != nil {
			return nil
		}
		only = scope
	}
	return only
}

// MayIssue reports whether the caller may create and manage keys of the scope.
// Operators may; anonymous callers never; others where the scope's @issue is
// true of them. A scope without @issue is issued by operators alone, in untyped
// mode by any session too.
func (s *Schema) MayIssue(scope *Scope, by caller.Caller) bool {
	switch {
	case by.Kind == caller.System:
		return true
	case by.Kind == caller.Anonymous:
		return false
	case scope.Issue == nil:
		return !s.Typed && by.Kind == caller.Session
	}
	truth, err := scope.Issue.Eval(&Scene{Caller: &by})
	return err == nil && truth == True
}

// CheckHandlers reports every route and function whose handler is not among
// exports, the names that the loaded modules export.
func (s *Schema) CheckHandlers(exports []string) diag.List {
	var found diag.List
	exports = slices.Sorted(slices.Values(exports))
	check := func(span diag.Span, what, name string) {
		if _, ok := slices.BinarySearch(exports, name); ok {
			return
		}
		found.Errorf("E419", span, "no %s named %q: export a function of that name from handlers/%s", what, name, diag.DidYouMean(name, exports))
	}
	for _, r := range s.Routes {
		check(r.Span, "handler", r.Handler)
	}
	for _, f := range s.Functions {
		check(f.Span, "function", f.Name)
	}
	return found
}
