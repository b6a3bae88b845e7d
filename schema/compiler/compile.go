package compiler

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"runner.example/internal/diag"
	"runner.example/schema"
	"runner.example/schema/syntax"
)

// Options are the bounds that a server sets for its schemas.
type Options struct {
	// MaxBody is the most that a route may accept, in bytes; zero is 64 MiB.
	MaxBody int64
	// MaxTimeout is the most time that a route may take; zero is 60 s.
	MaxTimeout time.Duration
	// AllowPrivate permits outbound origins with private addresses and plain
	// http to them.
	AllowPrivate bool
	// InsecureCookies permits session cookies without the __Host- prefix.
	InsecureCookies bool
	// Dir is where relative names of files in the schema begin; empty: where the
	// process is.
	Dir string
}

// Compile parses and checks the files of one app, which share one namespace
// and are taken in name order. It reports everything it finds, sorted; the
// schema is nil if and only if one of the findings is an error.
func Compile(sources []diag.Source, opt Options) (*schema.Schema, diag.List) {
	opt.MaxBody = cmp.Or(opt.MaxBody, 64<<20)
	opt.MaxTimeout = cmp.Or(opt.MaxTimeout, time.Minute)
	sources = slices.SortedFunc(slices.Values(sources), func(a, b diag.Source) int {
		return strings.Compare(a.Name, b.Name)
	})

	a := newApp(opt)
	for _, src := range sources {
		file, found := syntax.Parse(src)
		a.found.Append(found)
		a.misread(found)
		a.broken = a.broken || file.Broken
		a.decls = append(a.decls, file.Decls...)
	}
	a.collect()
	origins, fields, rules := originChecker{a}, fieldChecker{a}, ruleChecker{a}
	(&authChecker{a, origins}).checkAuth()
	origins.checkOutbound()
	entities := entityChecker{a, fields, map[*syntax.FieldDecl]string{}}
	entities.checkEnums()
	entities.checkTypes()
	entities.checkEntities()
	(&scopeChecker{a, rules}).checkAPIKeys()
	(&policyChecker{a, rules}).checkPolicies()
	routes := newRouteChecker(a)
	routes.checkRoutes()
	routes.checkFunctions()
	a.checkReach()
	if len(sources) > 0 && len(a.decls) == 0 && !a.broken {
		a.warnf("", diag.Span{File: sources[0].Name}, "the schema is empty, so every request gets 404: declare routes")
	}

	found := a.found.Sorted()
	if found.HasErrors() {
		return nil, found
	}
	build(a)
	return a.schema, found
}

// app is what all checkers share: the declarations of an app, the diagnostics so far and
// the model as far as it is built.
type app struct {
	report
	names
	authNames
	opt    Options
	schema *schema.Schema
	// usedScopes are the scopes that a route or function accepts or acts under.
	usedScopes map[string]bool
}

func newApp(opt Options) *app {
	return &app{
		report:     report{unread: map[diag.Span]bool{}},
		names:      newNames(),
		opt:        opt,
		schema:     &schema.Schema{},
		usedScopes: map[string]bool{},
	}
}

// authNames is what other parts of the schema need to know of the auth block.
type authNames struct {
	// roleNames are in order of declaration.
	roleNames []string
	// user and tenant are the entities named in auth; empty if not set.
	user, tenant string
	// tenantSet: auth has `tenant:`, valid or not. sessions: it declares a session.
	// cookies: it declares a cookie session.
	tenantSet, sessions, cookies bool
}

// soften reports an error that is a warning in untyped mode, where its code
// begins with W.
func (a *app) soften(code string, span diag.Span, format string, args ...any) {
	if a.schema.Typed {
		a.errorf("E"+code, span, format, args...)
		return
	}
	a.warnf("W"+code, span, format, args...)
}

// checkReach warns of what nobody can reach or uses.
func (a *app) checkReach() {
	if a.broken {
		return
	}
	for _, name := range a.scopeNames {
		if !a.usedScopes[name] {
			a.warnf("W312", a.scopes[name].Name.Loc, "no route uses scope %q (auth: or as:)", name)
		}
	}
	for _, e := range a.entities {
		if e.name() != "" && !e.allowed && !a.granted[e.name()] {
			a.warnf("W227", e.decl.Name.Loc, "entity %s has no @@allow and no @grant: no caller can access it", e.name())
		}
	}
}
