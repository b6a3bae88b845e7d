package compiler

import (
	"cmp"
	"fmt"
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

	c := checker{opt: opt, schema: &schema.Schema{}, unread: map[diag.Span]bool{}}
	for _, src := range sources {
		file, found := syntax.Parse(src)
		c.found.Append(found)
		c.misread(found)
		c.broken = c.broken || file.Broken
		c.decls = append(c.decls, file.Decls...)
	}
	c.collect()
	c.checkAuth()
	c.checkOutbound()
	c.checkEnums()
	c.checkTypes()
	c.checkEntities()
	c.checkAPIKeys()
	c.checkPolicies()
	c.checkRoutes()
	c.checkFunctions()
	c.checkReach()
	if len(sources) > 0 && len(c.decls) == 0 && !c.broken {
		c.warnf("", diag.Span{File: sources[0].Name}, "the schema declares nothing, so every request is answered with 404: declare routes")
	}

	found := c.found.Sorted()
	if found.HasErrors() {
		return nil, found
	}
	c.build()
	return c.schema, found
}

// checker holds what is known about an app while it is checked. Everything
// declared twice is known by its first declaration.
type checker struct {
	opt   Options
	found diag.List
	// unread are the starts of strings and numbers that could not be read.
	unread map[diag.Span]bool
	// broken: the parser skipped a part that may declare names. What seems to
	// be missing may stand there, and is not reported.
	broken bool
	decls  []syntax.Decl
	schema *schema.Schema

	// named are the declarations that can stand as a type.
	named    map[string]syntax.Decl
	entities []*entityInfo
	byName   map[string]*entityInfo
	secrets  map[string]diag.Span
	scopes   map[string]*syntax.ScopeDecl
	// scopeNames and roleNames are in order of declaration.
	scopeNames, roleNames []string
	// user and tenant are the entities named in auth, empty without.
	user, tenant string
	// tenantSet: auth says `tenant:`, rightly or wrongly. sessions: it declares
	// how sessions are made; cookies: as cookies among others.
	tenantSet, sessions, cookies bool
	// granted are the entities named in a grant, with the scopes that do.
	granted map[string]bool
	// asked are the scopes that a route or function asks for.
	asked map[string]bool
	// sessionMissing and unguarded are told once.
	sessionMissing, unguarded bool
}

// misread notes the strings and numbers that the parser reported: what they
// hold is not what was meant.
func (c *checker) misread(found diag.List) {
	for _, d := range found {
		if d.Code == "E002" || d.Code == "E004" {
			c.unread[start(d.Span)] = true
		}
	}
}

func start(span diag.Span) diag.Span {
	return diag.Span{File: span.File, Start: span.Start}
}

// errorf reports an error.
func (c *checker) errorf(code string, span diag.Span, format string, args ...any) {
	if !c.unread[start(span)] {
		c.found.Errorf(code, span, format, args...)
	}
}

// warnf reports a warning.
func (c *checker) warnf(code string, span diag.Span, format string, args ...any) {
	c.found.Warnf(code, span, format, args...)
}

// missing reports that something named is not there, unless it may stand in a
// part that could not be read.
func (c *checker) missing(code string, span diag.Span, format string, args ...any) {
	if !c.broken {
		c.errorf(code, span, format, args...)
	}
}

// soften reports an error that is a warning in untyped mode, where its code
// begins with W.
func (c *checker) soften(code string, span diag.Span, format string, args ...any) {
	if c.schema.Typed {
		c.errorf("E"+code, span, format, args...)
		return
	}
	c.warnf("W"+code, span, format, args...)
}

// maxHints bounds how many mistakes are told with a suggestion: finding one
// takes time, and only the first mistakes are read.
const maxHints = 50

// didYouMean is the suggestion to put behind a message, or nothing.
func (c *checker) didYouMean(word string, candidates ...[]string) string {
	if len(c.found) >= maxHints {
		return ""
	}
	return diag.DidYouMean(word, candidates...)
}

// at says where first is, seen from another place.
func at(from, first diag.Span) string {
	if from.File == first.File {
		return fmt.Sprintf("line %d", first.Start.Line)
	}
	return fmt.Sprintf("%s:%d", first.File, first.Start.Line)
}

// namesTaken finds names that are declared twice in one list.
type namesTaken map[string]diag.Span

// take notes the name and returns the place of an earlier one.
func (t namesTaken) take(id syntax.Ident) (first diag.Span, twice bool) {
	if id.Name == "" {
		return first, false
	}
	if first, twice = t[id.Name]; !twice {
		t[id.Name] = id.Loc
	}
	return first, twice
}

// collect notes all declarations by name, before anything is checked that may
// refer to them.
func (c *checker) collect() {
	c.named, c.byName = map[string]syntax.Decl{}, map[string]*entityInfo{}
	c.secrets = map[string]diag.Span{}
	c.scopes = map[string]*syntax.ScopeDecl{}
	c.granted, c.asked = map[string]bool{}, map[string]bool{}
	once := map[string]diag.Span{}
	types, scopes := namesTaken{}, namesTaken{}

	single := func(code, word string, span diag.Span) bool {
		first, twice := once[word]
		if !twice {
			once[word] = span
			return true
		}
		if code == "E300" {
			c.errorf(code, span, "only one apiKeys block is allowed; the first is at %s", at(span, first))
		} else {
			c.errorf(code, span, "%q may be declared only once; the first is at %s", word, at(span, first))
		}
		return false
	}
	declare := func(word string, name syntax.Ident, d syntax.Decl) {
		if name.Name == "" {
			return
		}
		if first, twice := types.take(name); twice {
			c.errorf("E200", name.Loc, "%s %q is already declared at %s", word, name.Name, at(name.Loc, first))
			return
		}
		c.named[name.Name] = d
	}

	for _, d := range c.decls {
		switch d := d.(type) {
		case *syntax.AppDecl:
			if single("E120", "app", d.Keyword) {
				c.schema.App = d.Name.Name
			}
		case *syntax.AuthDecl:
			single("E120", "auth", d.Keyword)
		case *syntax.OutboundDecl:
			single("E120", "outbound", d.Keyword)
		case *syntax.APIKeysDecl:
			single("E300", "apiKeys", d.Keyword)
			c.collectScopes(d, scopes)
		case *syntax.SecretDecl:
			c.declareSecret(d)
		case *syntax.EnumDecl:
			declare("enum", d.Name, d)
		case *syntax.TypeDecl:
			declare("type", d.Name, d)
		case *syntax.EntityDecl:
			c.schema.Typed = true
			declare("entity", d.Name, d)
			info := newEntityInfo(d)
			c.entities = append(c.entities, info)
			if c.named[d.Name.Name] == syntax.Decl(d) {
				c.byName[d.Name.Name] = info
			}
		}
	}
}

func (c *checker) declareSecret(d *syntax.SecretDecl) {
	name := d.Name
	if name.Name == "" {
		return
	}
	if first, twice := c.secrets[name.Name]; twice {
		c.errorf("E200", name.Loc, "secret %q is already declared at %s", name.Name, at(name.Loc, first))
		return
	}
	c.secrets[name.Name] = name.Loc
	c.schema.Secrets = append(c.schema.Secrets, name.Name)
}

// collectScopes notes the scopes, and which entities they grant something on.
func (c *checker) collectScopes(d *syntax.APIKeysDecl, taken namesTaken) {
	for _, block := range d.Blocks {
		for _, scope := range block.Scopes {
			for _, grant := range scope.Grants {
				for _, entity := range grant.Entities {
					c.granted[entity.Name] = true
				}
			}
			if scope.Name.Name == "" {
				continue
			}
			if first, twice := taken.take(scope.Name); twice {
				c.errorf("E301", scope.Name.Loc, "scope %q is already declared at %s", scope.Name.Name, at(scope.Name.Loc, first))
				continue
			}
			c.scopes[scope.Name.Name] = scope
			c.scopeNames = append(c.scopeNames, scope.Name.Name)
		}
	}
}

// checkReach warns of what nobody can reach or uses.
func (c *checker) checkReach() {
	if c.broken {
		return
	}
	for _, name := range c.scopeNames {
		if !c.asked[name] {
			c.warnf("W312", c.scopes[name].Name.Loc, "no route asks for scope %q (auth: or as:)", name)
		}
	}
	for _, e := range c.entities {
		if e.name() != "" && !e.allowed && !c.granted[e.name()] {
			c.warnf("W227", e.decl.Name.Loc, "entity %s has no @@allow and no @grant: nobody can reach it", e.name())
		}
	}
}
