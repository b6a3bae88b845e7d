package compiler

import (
	"math"
	"slices"
	"strings"
	"time"

	"runner.example/internal/diag"
	"runner.example/internal/settings"
	"runner.example/schema"
	"runner.example/schema/changes"
	"runner.example/schema/model"
	"runner.example/schema/report"
	"runner.example/schema/syntax"
)

// Options are the limits that a server sets for its schemas.
type Options struct {
	// MaxBody limits `body:` of a route.
	MaxBody int64 `toml:"front.max_body" unit:"size" default:"64mb" min:"1b" max:"1gb"`
	// MaxTimeout limits `timeout:` of a route.
	MaxTimeout time.Duration `toml:"runtime.max_timeout" default:"60s" min:"1ms" max:"1h"`
	// MaxStream limits `stream:` and `live:` of a route.
	MaxStream time.Duration `toml:"runtime.max_stream" default:"1h" min:"1ms" max:"24h"`
	// AllowPrivate permits outbound origins with private addresses, and plain HTTP to them.
	AllowPrivate bool `toml:"outbound.allow_private"`
	// InsecureCookies permits session cookies without the __Host- prefix, on loopback only.
	InsecureCookies bool `toml:"auth.insecure_cookies"`
	// BodyMemory is the server's memory for bodies: a larger one can never be read. 0: unknown.
	BodyMemory int64
	// Vars are the values of variables that the schema declares, by name. Others are ignored.
	Vars map[string]settings.Given
	// Unset says what a variable without a value is.
	Unset Unset
	// Accepted: the schema is that of a release that was activated before, perhaps by an older version. What only newer
	// versions refuse is a warning with the code of the error.
	Accepted bool
	// Dir is the directory of relative file names in the schema; empty is the working
	// directory.
	Dir string
}

// Checked returns the options for a schema that was checked before, under limits that are not known
// here: nothing is refused because of a limit, and where a variable is used its name is the value.
func Checked() Options {
	return Options{
		MaxBody: math.MaxInt64, MaxTimeout: time.Duration(math.MaxInt64), MaxStream: time.Duration(math.MaxInt64), AllowPrivate: true, InsecureCookies: true,
		Unset: Ignored, Accepted: true,
	}
}

// Compile parses and checks the files of an app, in name order. The files share a namespace.
// It returns all diagnostics, sorted. The schema is nil if and only if one of them is an
// error.
func Compile(sources []diag.Source, opt Options) (*schema.Schema, diag.List) {
	settings.FillZero(&opt)
	sources = slices.SortedFunc(slices.Values(sources), func(a, b diag.Source) int {
		return strings.Compare(a.Name, b.Name)
	})

	a := newApp(opt)
	for _, src := range sources {
		file, found := syntax.Parse(src)
		a.Found.Append(found)
		a.NoteUnread(file)
		a.decls = append(a.decls, a.gone.Take(file.Decls)...)
		a.varUses = append(a.varUses, file.VarUses...)
	}
	a.Removed = a.gone.Names
	a.schema.Typed = len(a.gone.Entities) > 0
	a.collect()
	a.fillVars()
	origins, fields, rules := originChecker{a}, fieldChecker{a}, ruleChecker{a}
	(&authChecker{a, origins}).checkAuth()
	origins.checkOutbound()
	a.checkModules()
	a.checkPython()
	entities := entityChecker{a, fields, map[*syntax.FieldDecl]string{}}
	entities.checkEnums()
	entities.checkTypes()
	entities.checkEntities()
	changes.Check(a.decls, &a.gone, a.Errorf)
	(&scopeChecker{a, rules}).checkAPIKeys()
	a.checkManage(rules)
	(&policyChecker{a, rules}).checkPolicies()
	routes := newRouteChecker(a)
	routes.checkRoutes()
	routes.checkFunctions()
	(&jobChecker{a, routes}).checkJobs()
	a.checkUnused()
	if len(sources) > 0 && len(a.decls) == 0 && !a.Broken() {
		a.Warnf("", diag.Span{File: sources[0].Name}, "the schema is empty, so every request gets 404: declare routes")
	}

	found := a.Found.Sorted()
	if found.HasErrors() {
		return nil, found
	}
	a.schema.Auth.Roles, a.schema.Auth.User, a.schema.Auth.Tenant = a.roleNames, a.user, a.tenant
	model.Build(a.schema, a.decls, opt.Dir)
	a.gone.AddTo(a.schema)
	return a.schema, found
}

// app is the state that all checkers share: the declarations of an app, the diagnostics so
// far, and the model as far as it is built.
type app struct {
	*report.Report
	names
	authNames
	gone   changes.Removed
	opt    Options
	schema *schema.Schema
	// usedScopes are the scopes that a route, function or job accepts or acts under.
	usedScopes map[string]bool
}

func newApp(opt Options) *app {
	return &app{
		Report:     report.New(),
		names:      newNames(),
		opt:        opt,
		schema:     &schema.Schema{},
		usedScopes: map[string]bool{},
	}
}

// authNames are the parts of the auth block that other parts of the schema refer to.
type authNames struct {
	// roleNames are in order of declaration.
	roleNames []string
	// user and tenant are the entities named in auth; empty if not set.
	user, tenant string
	// tenantSet: auth has `tenant:`, valid or not. sessions: it declares a session.
	// cookies: it declares a cookie session.
	tenantSet, sessions, cookies bool
}

// errorIfTyped reports an error in typed mode, and in untyped mode a warning. code has no
// letter: it becomes E or W.
func (a *app) errorIfTyped(code string, span diag.Span, format string, args ...any) {
	if a.schema.Typed {
		a.Errorf("E"+code, span, format, args...)
		return
	}
	a.Warnf("W"+code, span, format, args...)
}

// errorIfNew reports what an older version accepted: an error, but only a warning in the schema of a release that was
// activated before, which must still start after an upgrade.
func (a *app) errorIfNew(code string, span diag.Span, format string, args ...any) {
	if a.opt.Accepted {
		a.Warnf(code, span, format, args...)
		return
	}
	a.Errorf(code, span, format, args...)
}

// checkUnused warns of scopes that no route uses and of entities that no caller can access.
func (a *app) checkUnused() {
	for _, name := range a.scopeNames {
		if !a.usedScopes[name] && !a.MayDeclare(name) {
			a.Warnf("W312", a.scopes[name].Name.Loc, "no route and no job uses scope %q (auth: or as:)", name)
		}
	}
	for _, e := range a.entities {
		if e.name() != "" && !e.allowed && !a.granted[e.name()] && !a.MayDeclare("allow") && !a.MayDeclare(e.name()) {
			a.Warnf("W227", e.decl.Name.Loc, "entity %s has no @@allow and no @grant: no caller can access it", e.name())
		}
	}
}
