package schema

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"runner.example/internal/caller"
	"runner.example/internal/diag"
	"runner.example/internal/fault"
)

// Schema is the checked schema of an app. It is immutable and safe for concurrent use.
type Schema struct {
	// App is the name of the `app` declaration; empty if there is none.
	App string
	// Typed reports that at least one entity is declared.
	Typed   bool
	Auth    AuthSettings
	APIKeys APIKeys
	// Secrets are the declared secret names, in order of declaration.
	Secrets []string
	// Vars are the declared variables with their values, in order of declaration.
	Vars []*Var
	// Outbound are the declared origins that handlers may call, as written and without
	// duplicates: "https://api.example.com", possibly with a port.
	Outbound []string
	// OutboundPublic permits requests to all public hosts, in addition to Outbound.
	OutboundPublic bool
	// Routes are all routes with their effective settings, in order of declaration.
	Routes []Route
	// Assets are the directories whose files are served, in order of declaration. No two have the same path.
	Assets []Assets
	// Functions are all functions with their effective settings, in order of declaration.
	Functions []Function
	// Jobs are all jobs with their effective settings, in order of declaration.
	Jobs []Job
	// Modules are the modules that have a block, in order of declaration.
	Modules []Module
	// Python is the python block; nil: there is none.
	Python *Python
	// Enums, Types and Entities are in order of declaration. In untyped mode there are no
	// Entities.
	Enums    []*Enum
	Types    []*ObjectType
	Entities []*Entity
	// Removed are the entities with @removed, which are not in Entities.
	Removed []Removed

	byName map[string]*Entity
}

// Var is a variable: a value that may be another one on each node.
type Var struct {
	Name, Doc string
	// Type is string, int, decimal, bool, url, duration or rate.
	Type string
	// JSON is the value as handlers read it: a duration in seconds, a decimal or a rate as
	// text. It is null if the schema was compiled without a value.
	JSON json.RawMessage
	// From is where the value is set, for operators; empty without a value.
	From string
}

// Var returns the declared variable of that name, or nil.
func (s *Schema) Var(name string) *Var {
	for _, v := range s.Vars {
		if v.Name == name {
			return v
		}
	}
	return nil
}

// ReadVar returns the value of a declared variable as handlers read it, as {"value":…}. For another
// name it returns Denied.
func (s *Schema) ReadVar(name string) (any, error) {
	v := s.Var(name)
	if v == nil {
		return nil, fault.New(fault.Denied, "variable %q is not declared (add `var %s: string` to the schema)", name, name)
	}
	return map[string]json.RawMessage{"value": v.JSON}, nil
}

// VarNames returns the names of the variables in order of declaration.
func (s *Schema) VarNames() []string {
	names := make([]string, len(s.Vars))
	for i, v := range s.Vars {
		names[i] = v.Name
	}
	return names
}

// Type returns the declared object type of that name, or nil.
func (s *Schema) Type(name string) *ObjectType {
	for _, t := range s.Types {
		if t.Name == name {
			return t
		}
	}
	return nil
}

// APIKeys has the settings of the apiKeys block, defaults included.
type APIKeys struct {
	// Prefix is the prefix of every token: "rnk" unless declared.
	Prefix string
	// DefaultLifetime and MaxLifetime are zero if not declared.
	DefaultLifetime, MaxLifetime time.Duration
	// MaxGrace limits the grace period of a rotation: 30 days unless declared.
	MaxGrace time.Duration
	// MaxPerTenant is zero if not declared.
	MaxPerTenant int
	// Scopes are in order of declaration.
	Scopes []*Scope
}

// Scope is a scope of the apiKeys block.
type Scope struct {
	Name string
	// System is the id in @system: it identifies the capability after a rename.
	System     string
	AllTenants bool
	Grants     []Grant
	// Issue and Manage are nil if the scope has no @issue or no @manage.
	Issue, Manage *Rule
	Doc           string
}

// NeedsTenant reports whether a key of the scope needs a tenant to read or change rows: all
// of its grants are on entities whose rows have a tenant.
func (s *Schema) NeedsTenant(scope *Scope) bool {
	if scope.AllTenants || len(scope.Grants) == 0 {
		return false
	}
	for i := range scope.Grants {
		for _, name := range scope.Grants[i].Entities {
			if e := s.Entity(name); e == nil || e.Tenant == nil {
				return false
			}
		}
	}
	return true
}

// Grant is a @grant: all of its actions on all of its entities.
type Grant struct {
	// Actions are as written: "write" means "insert" and "update".
	Actions []string
	// Allows has the same actions as a set.
	Allows   ActionSet
	Entities []string
	// Fields are the fields that may be read and written; nil means all except hidden ones.
	Fields []string

	// Where has the condition compiled for each of Entities; in untyped mode it has one
	// rule for all. It is nil if the grant has no condition.
	Where []*Rule
}

// Rule is the grant's condition for the entity e, which the grant must name. In untyped mode
// e is nil. Nil means that the grant applies to every row.
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
// untyped and declares no roles.
func (s *Schema) HasRole(role string) bool {
	return slices.Contains(s.Auth.Roles, role) || s.Auth.Roles == nil && !s.Typed
}

// Route is an HTTP route with its effective settings.
type Route struct {
	Method string
	// Path is the whole template with its prefixes: "/v1/orders/:id".
	Path string
	// Prefix is the part of Path that the outermost group gives, up to the first parameter: "/v1". It is empty if the
	// group adds nothing, and for a function.
	Prefix string
	// Params are the names of the path's parameters in order, the rest parameter
	// included.
	Params []string
	// Handler is empty if the route has File.
	Handler string
	// File is the field whose file the route sends, of the row with the id that its only parameter has; nil: a handler
	// answers. Only GET routes have it.
	File *FileField
	Auth Auth
	// Limits all apply.
	Limits []RateLimit
	// BodyBytes and Timeout are zero if the schema does not set them.
	BodyBytes int64
	Timeout   time.Duration
	// Upload (upload: on) stores the body, a form or a file, before the handler runs. Only routes of POST, PUT and PATCH
	// have it, without Input, Verify, Stream and Live.
	Upload bool
	// Stream (stream: 5m) is the longest time of an answer that is sent while its handler runs; zero: that
	// of the handler.
	Stream time.Duration
	// Live (live: 30m) is the longest time of one watch of the route, whose handler runs again when something that it has
	// read changes. Zero: the route cannot be watched. Only GET routes have it, without Stream, Verify and CreatesSession.
	Live time.Duration
	// As is the scope whose grants an anonymous caller has; empty without one.
	As string
	// Input is the type that the body must match; empty without one.
	Input string
	// Query is the type that the query must match; empty without one. The handler reads it
	// as its body.
	Query string
	// Result is nil if the schema does not declare what the handler answers.
	Result *Type
	// Verify is nil if requests need no signature.
	Verify *Verify
	// CSRFOff (csrf: off) accepts session cookies in requests from pages of any origin.
	CSRFOff bool
	// CreatesSession (mints: session) lets the handler create sessions, and list and revoke the
	// sessions of users that it names.
	CreatesSession bool
	// CORS are the origins whose pages may read the responses; "*" is any.
	CORS []string
	Doc  string
	// Span is the span of the route's declaration.
	Span diag.Span
}

// FileField names a field of type file.
type FileField struct{ Entity, Field string }

// Target is what answers, as the schema has it: the name of the handler, or "file(Post.photo)".
func (r *Route) Target() string {
	if r.File != nil {
		return "file(" + r.File.Entity + "." + r.File.Field + ")"
	}
	return r.Handler
}

// LiveSegment is the last segment of the paths of shared connections, which the runner itself serves. No declared path ends
// with it.
const LiveSegment = "_live"

// FilesPath is the path under which the runner itself serves signed links to files.
const FilesPath = "/_files"

// LivePath returns the path where a client watches live routes of the same prefix over one connection: "/v1/_live".
func (r *Route) LivePath() string { return r.Prefix + "/" + LiveSegment }

// Function is a function with its effective settings.
type Function struct {
	// Name is also the name of the handler.
	Name string
	// Exposed functions have a URL and an auth mode; other functions have neither.
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
	// Params are in order of declaration; Result is nil if none is declared.
	Params []*Field
	Result *Type
	Doc    string
	Span   diag.Span
}

// Verify is the signature that a webhook's request must have.
type Verify struct {
	// Scheme is "standard", "stripe", "github" or "slack".
	Scheme string
	// Secret is the name of a declared secret.
	Secret string
	// Tolerance is the maximum age of a signature; zero if the schema does not set it.
	Tolerance time.Duration
}

// String returns the signature in schema syntax: "webhook(stripe, STRIPE_SECRET)".
func (v *Verify) String() string { return "webhook(" + v.Scheme + ", " + v.Secret + ")" }

// Auth is a route's auth mode. The fields of the declared modes are set; anyOf sets several.
type Auth struct {
	// None accepts callers without a credential. Beside other modes, a credential is checked if there is one.
	None bool
	// Session accepts sessions; if Roles is not empty, only with one of these roles.
	Session bool
	Roles   []string
	// Scopes are the scopes whose API keys are accepted.
	Scopes []string
}

// ChecksCredentials reports whether a mode other than none is declared.
func (a Auth) ChecksCredentials() bool { return a.Session || len(a.Scopes) > 0 }

// String returns the mode in schema syntax: "anyOf(session(admin), apiKey(orders_read))".
func (a Auth) String() string {
	var modes []string
	switch {
	case a.Session && len(a.Roles) > 0:
		modes = append(modes, "session("+strings.Join(a.Roles, ", ")+")")
	case a.Session:
		modes = append(modes, "session")
	}
	if len(a.Scopes) > 0 {
		modes = append(modes, "apiKey("+strings.Join(a.Scopes, ", ")+")")
	}
	if a.None {
		modes = append(modes, "none")
	}
	if len(modes) == 1 {
		return modes[0]
	}
	return "anyOf(" + strings.Join(modes, ", ") + ")"
}

// RateLimit is a declared limit. Routes under the same declaration share its counters.
type RateLimit struct {
	// ID identifies the declaration by its position: "orders.schema:83:42".
	ID    string
	Count int
	Per   time.Duration
	// Var is the variable that Count and Per come from; empty if they are written.
	Var string
	// By is "", "key", "user", "tenant", "ip" or "global". Empty counts by key id,
	// otherwise by user id, otherwise by client address.
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

// String returns the limit in schema syntax: "100/second by ip".
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

// Scope returns the scope of that name, or nil.
func (s *Schema) Scope(name string) *Scope {
	for _, scope := range s.APIKeys.Scopes {
		if scope.Name == name {
			return scope
		}
	}
	return nil
}

// ScopeOf returns the scope of a key with the stored name and capability: the scope of that
// name or, if there is none, the only scope with that capability. Otherwise it returns nil.
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

// MayIssue reports whether the caller may create keys of the scope and rotate them. Operators
// may, and anonymous callers may not. Others may if the scope's @issue is true for them. If the
// scope has no @issue, sessions may in two cases: in untyped mode, and if no scope has @issue
// and this one has no @grant. Only operators issue keys of a scope with @allTenants.
func (s *Schema) MayIssue(scope *Scope, by caller.Caller) bool {
	switch {
	case by.Kind == caller.System:
		return true
	case by.Kind == caller.Anonymous || scope.AllTenants:
		return false
	case scope.Issue == nil:
		return by.Kind == caller.Session && (!s.Typed || len(scope.Grants) == 0 && !s.HasIssue())
	}
	return scope.Issue.holdsFor(by)
}

// HasIssue reports whether a scope has @issue.
func (s *Schema) HasIssue() bool {
	return slices.ContainsFunc(s.APIKeys.Scopes, func(scope *Scope) bool { return scope.Issue != nil })
}

// MayManage reports whether the caller reaches all keys of the scope in its tenant: it is an
// operator, or the scope's @manage is true for it.
func (s *Schema) MayManage(scope *Scope, by caller.Caller) bool {
	switch {
	case by.Kind == caller.System:
		return true
	case by.Kind == caller.Anonymous || scope.AllTenants || scope.Manage == nil:
		return false
	}
	return scope.Manage.holdsFor(by)
}

// MayManageSessions reports whether the caller may list and revoke sessions of others in its
// tenant: the @manage of the cookie session is true for it. Anonymous callers may not.
func (s *Schema) MayManageSessions(by caller.Caller) bool {
	cookie := s.Auth.Cookie
	return cookie != nil && cookie.Manage != nil && by.Kind != caller.Anonymous && cookie.Manage.holdsFor(by)
}

// holdsFor reports whether a rule about the caller alone is true.
func (r *Rule) holdsFor(by caller.Caller) bool {
	truth, err := r.Eval(&RuleInput{Caller: &by})
	return err == nil && truth == True
}

// namesHandler reports whether a route, a function or a job has this handler.
func (s *Schema) namesHandler(name string) bool {
	return slices.ContainsFunc(s.Routes, func(r Route) bool { return r.Handler == name }) ||
		slices.ContainsFunc(s.Functions, func(f Function) bool { return f.Name == name }) ||
		slices.ContainsFunc(s.Jobs, func(j Job) bool { return j.Name == name })
}

// Module is a module block of the schema.
type Module struct {
	// Name is the name of the module's file in build/, without .wasm.
	Name, Doc string
	// Fresh says that the module is initialized in each request, instead of once.
	Fresh bool
	// Args are the arguments of a program after its name.
	Args []string
	// Env are the environment variables that a program has besides those of the request, in the order of the
	// schema. None has the name of one of those.
	Env []EnvVar
	// Files is the directory whose files a program can read, a path with slashes relative to the app directory;
	// empty: it has none. FilesSpan is its place.
	Files     string
	FilesSpan diag.Span
	// StartTimeout limits the start of a program; 0: the default.
	StartTimeout time.Duration
	// Stub are the names of modules that a program imports and does not need: a call of one of their functions fails.
	Stub []string
	Span diag.Span
}

// EnvVar is an environment variable of a program.
type EnvVar struct{ Name, Value string }

// Module returns the module block for the module of that name; nil: there is none.
func (s *Schema) Module(name string) *Module {
	for i := range s.Modules {
		if s.Modules[i].Name == name {
			return &s.Modules[i]
		}
	}
	return nil
}

// IsFresh reports whether the module of that name is initialized in each request.
func (s *Schema) IsFresh(module string) bool {
	return slices.ContainsFunc(s.Modules, func(m Module) bool { return m.Name == module && m.Fresh })
}

// CheckModules reports the module blocks without a module. names are the names of all modules.
func (s *Schema) CheckModules(names []string) (found diag.List) {
	for _, m := range s.Modules {
		if !slices.Contains(names, m.Name) {
			found.Errorf("E552", m.Span,
				"build/ has no module %s.wasm%s: name one of build/*.wasm, or remove the block",
				m.Name, diag.DidYouMean(m.Name, names))
		}
	}
	return found
}

// CheckFiles reports that the directory of the module's files cannot be used. problems are sentences that name what
// is wrong, and what to do.
func (m *Module) CheckFiles(problems []string) (found diag.List) {
	for _, problem := range problems {
		found.Errorf("E559", m.FilesSpan, "files of module %s: %s", m.Name, problem)
	}
	return found
}

// CheckFresh reports `fresh: true` for a module. It is called for modules that run no code before
// a request.
func (s *Schema) CheckFresh(module string) (found diag.List) {
	for _, m := range s.Modules {
		if m.Name == module && m.Fresh {
			found.Errorf("E553", m.Span,
				"module %s runs no code before a request, so fresh changes nothing: remove it (code outside of functions in TypeScript runs once, in runner build: call it inside of a handler)",
				m.Name)
		}
	}
	return found
}

// HasHandlers reports whether a route, a function or a job needs a module.
func (s *Schema) HasHandlers() bool {
	return len(s.Functions)+len(s.Jobs) > 0 || slices.ContainsFunc(s.Routes, func(r Route) bool { return r.File == nil })
}

// HandlersOfRoutes returns the names of the handlers that the routes name, in order of declaration, with repetitions.
func (s *Schema) HandlersOfRoutes() (names []string) {
	for i := range s.Routes {
		if s.Routes[i].File == nil {
			names = append(names, s.Routes[i].Handler)
		}
	}
	return names
}

// CheckHandlers reports the routes and functions whose handler is not in exports, the names
// that the loaded modules export. programs are those of exports that are whole programs, named after their files.
func (s *Schema) CheckHandlers(exports []string, programs ...string) diag.List {
	var found diag.List
	exports = slices.Sorted(slices.Values(exports))
	unused := slices.DeleteFunc(programs, s.namesHandler)
	var program string
	if len(unused) > 0 {
		program = fmt.Sprintf("; build/%s.wasm is a program, which is itself the handler %s", unused[0], unused[0])
	}
	check := func(span diag.Span, what, name string) {
		if _, ok := slices.BinarySearch(exports, name); ok {
			return
		}
		found.Errorf("E419", span, "no %s named %q: export a function of that name from handlers/%s%s",
			what, name, diag.DidYouMean(name, exports), program)
	}
	for _, r := range s.Routes {
		if r.File == nil {
			check(r.Span, "handler", r.Handler)
		}
	}
	for _, f := range s.Functions {
		check(f.Span, "function", f.Name)
	}
	for _, j := range s.Jobs {
		check(j.Span, "job", j.Name)
	}
	return found
}
