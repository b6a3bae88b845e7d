package compiler

import (
	"slices"
	"strings"

	"runner.example/internal/diag"
	"runner.example/schema"
	"runner.example/schema/report"
	"runner.example/schema/syntax"
)

// routeChecker checks routes and functions and builds their part of the model.
type routeChecker struct {
	*app
	settings settingsChecker
	paths    pathChecker
	fields   fieldChecker
	// shapes are the routes so far, by method and path without parameter names.
	shapes map[string]diag.Span
	// sessionMissing and unguarded are set once the problem was reported.
	sessionMissing, unguarded bool
}

func newRouteChecker(a *app) *routeChecker {
	return &routeChecker{
		app:      a,
		settings: settingsChecker{app: a, origins: originChecker{a}},
		paths:    pathChecker{a.Report},
		fields:   fieldChecker{a},
		shapes:   map[string]diag.Span{},
	}
}

const maxRoutes = 2000

// group is the context of a route: its groups' settings and prefixes.
type group struct {
	settings routeSettings
	// prefix has the segments of all enclosing prefixes. broken reports that one of them is
	// not valid.
	prefix []segment
	broken bool
	// inner reports that there is an outer group, and outermost is the Prefix of all routes in it.
	inner     bool
	outermost string
}

// checkRoutes checks all groups and routes and builds the model's routes.
func (c *routeChecker) checkRoutes() {
	for _, d := range c.decls {
		switch d := d.(type) {
		case *syntax.RoutesDecl:
			c.checkGroup(d, group{})
		case *syntax.AssetsDecl:
			c.checkAssets(d, group{})
		}
	}
}

// checkGroup checks a group inside another.
func (c *routeChecker) checkGroup(d *syntax.RoutesDecl, in group) {
	c.settings.checkSettings(d.Settings, onGroup)
	in.settings = in.settings.with(d.Settings)
	if d.Prefix == nil {
		in.broken = true
	} else {
		segments, ok := c.paths.checkPrefix(d.Prefix, in.prefix)
		in.prefix = append(slices.Clip(in.prefix), segments...)
		in.broken = in.broken || !ok
	}
	if !in.inner {
		in.inner, in.outermost = true, staticPrefix(in.prefix)
	}
	for _, item := range d.Items {
		switch item := item.(type) {
		case *syntax.RoutesDecl:
			c.checkGroup(item, in)
		case *syntax.RouteDecl:
			c.checkRoute(item, in)
		case *syntax.AssetsDecl:
			c.checkAssets(item, in)
		}
	}
}

func (c *routeChecker) checkRoute(d *syntax.RouteDecl, in group) {
	c.settings.checkSettings(d.Settings, onRoute)
	c.checkBodyless(d)
	if d.File == nil {
		c.checkHandlerName(d.Handler)
	}
	if d.Result != nil {
		c.fields.checkType(d.Result)
		c.fields.refuseFile(d.Result)
	}
	set := in.settings.with(d.Settings)
	route := buildRoute(d, set)
	c.checkStreamed(d, set)
	c.checkWatched(d, set)
	c.checkUpload(d, set)
	own, ok := c.paths.checkPath(d.Path, in.prefix)
	route.Path, route.Params = joinPath(in.prefix, own)
	route.Prefix = in.outermost
	if d.File != nil {
		c.checkFileTarget(d, set, route.Params)
	}
	if ok && !in.broken {
		c.checkFullPath(d, route)
	}

	span, label := head(d), route.Method+" "+route.Path
	if set.verify != nil && len(route.Params) > 0 {
		c.Warnf("W429", d.Path.Loc,
			"verify: on a path with parameters: no scheme signs the path, so a delivery can be sent with another :%s (give each a route and a secret of its own, or put it in the body)",
			route.Params[0])
	}
	auth, ok := c.effectiveAuth(set, span, "E400", label)
	if ok {
		route.Auth = auth
		c.checkAccess(set, auth, span, label)
		c.warnUnguarded(set, auth, span, label)
		if auth.None && set.verify == nil && set.rate == nil {
			c.Warnf("W416", span,
				"%s has auth none, no verify: and no rateLimit: any client can run it without limit (write `rateLimit: none` if that is meant)",
				label)
		}
	}
	c.schema.Routes = append(c.schema.Routes, route)
}

// head is the span of a route's method and path.
func head(d *syntax.RouteDecl) diag.Span { return d.Method.Loc.To(d.Path.Loc) }

// checkFullPath checks the whole path, and that no other route matches the same requests.
func (c *routeChecker) checkFullPath(d *syntax.RouteDecl, route schema.Route) {
	switch {
	case len(c.schema.Routes) == maxRoutes:
		c.Errorf("E425", d.Path.Loc, "more than 2,000 routes")
	case strings.Count(route.Path, "/") > maxSegments:
		c.Errorf("E425", d.Path.Loc, "the path %s has more than %d segments", shorten(route.Path), maxSegments)
	case len(route.Path) > maxPathBytes:
		c.Errorf("E425", d.Path.Loc, "the path %s is longer than 1,024 bytes", shorten(route.Path))
	}
	for _, reserved := range []string{"/_call", "/_health"} {
		if route.Path == reserved || strings.HasPrefix(route.Path, reserved+"/") {
			c.Errorf("E426", d.Path.Loc, "the path is under the reserved prefix %q", reserved)
		}
	}
	if underFiles(route.Path) {
		c.errorIfNew("E426", d.Path.Loc, "the path is under the reserved prefix %q: the runner itself serves signed links there", schema.FilesPath)
	}
	if strings.HasSuffix(route.Path, "/"+schema.LiveSegment) {
		c.errorIfNew("E426", d.Path.Loc, "the last segment %q is reserved: the runner itself serves the watches of live routes there", schema.LiveSegment)
	}
	shape := route.Method + " " + shapeOf(route.Path)
	if first, taken := c.shapes[shape]; taken {
		c.Errorf("E406", head(d), "%s %s has the same shape as the route at %s: a request could match both",
			route.Method, route.Path, report.At(d.Loc, first))
		return
	}
	c.shapes[shape] = d.Loc
}

// underFiles reports whether a path is under that of signed links.
func underFiles(path string) bool {
	return path == schema.FilesPath || strings.HasPrefix(path, schema.FilesPath+"/")
}

// checkHandlerName refuses names that a module cannot export as a handler.
func (c *routeChecker) checkHandlerName(name syntax.Ident) {
	if name.Name == "memory" || strings.HasPrefix(name.Name, "_") || strings.HasPrefix(name.Name, "runner_") {
		c.Errorf("E201", name.Loc, "%q is a reserved name: give the handler another name", name.Name)
	}
}

// checkBodyless checks what depends on whether requests and responses of the method have a body.
func (c *routeChecker) checkBodyless(d *syntax.RouteDecl) {
	if d.Result != nil && d.Method.Name == "HEAD" {
		c.Errorf("E503", d.Result.Loc, "the response of a HEAD request has no body to check")
	}
	if d.Result != nil && d.Method.Name == anyMethod {
		c.Errorf("E503", d.Result.Loc, "the responses to requests of any method have no common type: write a route for a method")
	}
	if d.Settings == nil {
		return
	}
	body := hasBody(d.Method.Name)
	for _, s := range d.Settings.List {
		switch {
		case s.Name.Name == "input" && d.Method.Name == anyMethod:
			c.Errorf("E503", s.Name.Loc, "input: requests of any method have no common body: write a route for a method")
		case s.Name.Name == "input" && !body:
			c.Errorf("E503", s.Name.Loc, "input: a %s request has no body to check", d.Method.Name)
		case s.Name.Name == "query" && body:
			c.Errorf("E503", s.Name.Loc,
				"query: only for GET, HEAD and OPTIONS, whose handlers read the query as their body; a %s request has a body: use input",
				d.Method.Name)
		}
	}
}

// anyMethod stands for the methods GET, HEAD, POST, PUT, PATCH and DELETE.
const anyMethod = "ANY"

func hasBody(method string) bool {
	return method != "GET" && method != "HEAD" && method != "OPTIONS"
}

// effectiveAuth returns the effective auth mode, or false if there is none that could be read.
func (c *routeChecker) effectiveAuth(set routeSettings, span diag.Span, code, label string) (schema.Auth, bool) {
	switch {
	case set.auth == nil && code == "E400":
		c.Missing("auth", code, span,
			"%s has no auth mode: set auth on the group or on the route (none, session or apiKey(<scope>))", label)
		return schema.Auth{}, false
	case set.auth == nil:
		c.Missing("auth", code, span,
			"@expose %s has no auth mode: set auth on the functions block or on the function", label)
		return schema.Auth{}, false
	case set.auth.Auth == nil:
		return schema.Auth{}, false
	}
	var auth schema.Auth
	anySession := false
	readable := addMode(&auth, set.auth.Auth, &anySession)
	if anySession {
		auth.Roles = nil
	}
	for _, name := range auth.Scopes {
		c.usedScopes[name] = true
	}
	return auth, readable
}

// addMode adds a declared mode to a. It sets anySession if the mode has a session without
// roles, and reports whether the whole mode could be read.
func addMode(a *schema.Auth, m *syntax.AuthMode, anySession *bool) bool {
	readable := !m.Broken
	switch m.Kind.Name {
	case "none":
		a.None = true
	case "session":
		a.Session = true
		*anySession = *anySession || len(m.Names) == 0
		a.Roles = appendNew(a.Roles, m.Names)
	case "apiKey":
		a.Scopes = appendNew(a.Scopes, m.Names)
	case "anyOf":
		for _, mode := range m.Modes {
			readable = addMode(a, mode, anySession) && readable
		}
	default:
		readable = false
	}
	return readable
}

func appendNew(names []string, ids []syntax.Ident) []string {
	for _, id := range ids {
		if id.Name != "" && !slices.Contains(names, id.Name) {
			names = append(names, id.Name)
		}
	}
	return names
}

// checkAccess checks settings that depend on the auth mode.
func (c *routeChecker) checkAccess(set routeSettings, auth schema.Auth, span diag.Span, label string) {
	if set.as != nil && set.as.Ref != nil {
		c.usedScopes[set.as.Ref.Name] = true
		if !auth.None {
			c.Errorf("E415", span, "as: is only for routes whose auth is or contains none; this route has auth %s", auth)
		}
	}
	if auth.Session && !c.sessions && !c.sessionMissing && !c.MayDeclare("session") {
		c.sessionMissing = true
		c.errorIfTyped("418", span, "auth session is used but no `session` is declared in auth: %s", c.sessionBlock())
	}
	if isWord(set.mints, "session") && !c.cookies {
		c.Missing("cookie", "E430", set.mints.Name.Loc,
			"mints: %s creates cookie sessions, but auth does not declare `session cookie`: add it", label)
	}
	if auth.Session && slices.Contains(set.origins(), anyOrigin) {
		c.Errorf("E428", span,
			"cors: \"*\" on %s, which accepts sessions: list the origins whose pages may read the responses", label)
	}
	if set.rate == nil || set.rate.Rate == nil || c.haveTenant(auth) {
		return
	}
	for _, rate := range set.rate.Rate.Rates {
		if rate.By != nil && rate.By.Name == "tenant" {
			c.Missing("tenant", "E423", rate.Loc, "`by tenant` on %s, whose callers have no tenant", label)
		}
	}
}

// warnUnguarded warns once, if a handler reaches rows that no rule guards.
func (c *routeChecker) warnUnguarded(set routeSettings, auth schema.Auth, span diag.Span, label string) {
	if !c.schema.Typed && !c.unguarded && !c.MayDeclare("entity") && len(c.granted) > 0 &&
		(auth.Session || auth.None && set.as == nil) {
		c.unguarded = true
		c.Warnf("W203", span,
			"%s reaches every row of its caller's tenant: no entity is declared, so only API keys are restricted, by their grants (declare entities to deny by default)",
			label)
	}
}

// sessionBlock is what declares cookie sessions.
func (c *routeChecker) sessionBlock() string {
	const session = "session cookie { idle: 30m, absolute: 12h }"
	for _, d := range c.decls {
		if _, ok := d.(*syntax.AuthDecl); ok {
			return "add `" + session + "` to the auth block"
		}
	}
	return "add `auth { " + session + " }`"
}

// haveTenant reports whether callers of this mode can have a tenant.
func (c *routeChecker) haveTenant(auth schema.Auth) bool {
	if auth.None || c.schema.Typed && !c.tenantSet {
		return false
	}
	return auth.Session || slices.ContainsFunc(auth.Scopes, func(name string) bool {
		scope := c.scopes[name]
		return scope == nil || len(scope.AllTenants) == 0
	})
}

func (c *routeChecker) checkFunctions() {
	taken := seenNames{}
	for _, d := range c.decls {
		block, ok := d.(*syntax.FunctionsDecl)
		if !ok {
			continue
		}
		c.settings.checkSettings(block.Settings, onFunctions)
		for _, f := range block.Functions {
			if first, twice := taken.add(f.Name); twice {
				c.Errorf("E501", f.Name.Loc, "function %q is already declared at %s", f.Name.Name, report.At(f.Name.Loc, first))
			}
			c.checkFunction(f, routeSettings{}.with(block.Settings))
		}
	}
}

func (c *routeChecker) checkFunction(d *syntax.FunctionDecl, in routeSettings) {
	c.settings.checkSettings(d.Settings, onFunction)
	c.fields.checkFields(d.Name.Name, d.Params)
	c.fields.refuseFiles(d.Params)
	if d.Result != nil {
		c.fields.checkType(d.Result)
		c.fields.refuseFile(d.Result)
	}
	c.checkHandlerName(d.Name)
	set := in.with(d.Settings)
	f := schema.Function{
		Name: d.Name.Name, Exposed: d.Expose, As: refOf(set.as), Limits: limitsOf(set), Doc: d.Doc, Span: d.Loc,
	}
	f.BodyBytes, f.Timeout = boundsOf(set)
	f.Verify = verifyOf(set)
	f.CSRFOff, f.CreatesSession, f.CORS = isWord(set.csrf, "off"), isWord(set.mints, "session"), set.origins()
	if d.Expose {
		var ok bool
		if f.Auth, ok = c.effectiveAuth(set, d.Name.Loc, "E500", d.Name.Name); ok {
			c.checkAccess(set, f.Auth, d.Name.Loc, d.Name.Name)
			c.warnUnguarded(set, f.Auth, d.Name.Loc, d.Name.Name)
			if f.Auth.None && set.verify == nil {
				c.Warnf("W502", d.Name.Loc, "@expose %s has auth none: any client can call it", d.Name.Name)
			}
		}
	}
	c.schema.Functions = append(c.schema.Functions, f)
}

// checkStreamed refuses what needs a whole answer on a route with stream:.
func (c *routeChecker) checkStreamed(d *syntax.RouteDecl, set routeSettings) {
	switch {
	case set.stream == nil:
	case set.verify != nil:
		c.Errorf("E431", set.verify.Name.Loc,
			"verify: not allowed with stream: a delivery is recorded together with the whole answer of its handler")
	case d.Result != nil:
		c.Errorf("E431", d.Handler.Loc,
			"%s has a result type and stream: the type is checked in the whole answer (omit the type, or stream:)", d.Handler.Name)
	case set.input != nil && set.body != nil && set.body.Amount != nil && set.body.Amount.Int > c.mostWhole():
		c.Errorf("E431", set.body.Amount.Loc,
			"body %s is above %s, and input: is checked in the whole body (omit input:, and the handler can read the body as it comes)",
			set.body.Amount.Raw, sizeText(c.mostWhole()))
	}
}

// mostWhole is the server's limit of a body that is in memory as a whole.
func (c *routeChecker) mostWhole() int64 {
	if c.opt.BodyMemory > 0 {
		return min(c.opt.MaxBody, c.opt.BodyMemory)
	}
	return c.opt.MaxBody
}

// checkWatched refuses what a route with live: cannot have: its handler runs again at any time, and only reads.
func (c *routeChecker) checkWatched(d *syntax.RouteDecl, set routeSettings) {
	if set.live == nil {
		return
	}
	if d.Method.Name != "GET" {
		c.Errorf("E432", set.live.Name.Loc,
			"live: only on GET routes: a watch runs the handler again when rows change, and the handler may only read (write live: on a GET route, and change rows on this one)")
	}
	if set.verify != nil {
		c.Errorf("E432", set.verify.Name.Loc,
			"verify: not allowed with live: a delivery is handled once, and a watch runs the handler again (remove one of them)")
	}
	if set.stream != nil {
		c.Errorf("E432", set.stream.Name.Loc,
			"stream: not allowed with live: each value of a watch is a whole answer, which is not streamed (remove one of them)")
	}
	if set.mints != nil {
		c.Errorf("E432", set.mints.Name.Loc,
			"mints: not allowed with live: a watch only reads, and cannot open sessions (write it on another route)")
	}
}

// checkUpload refuses settings that need the body in memory, or a request without one.
func (c *routeChecker) checkUpload(d *syntax.RouteDecl, set routeSettings) {
	if !isWord(set.upload, "on") {
		return
	}
	switch d.Method.Name {
	case "POST", "PUT", "PATCH":
	default:
		c.Errorf("E433", set.upload.Name.Loc, "upload: only on POST, PUT and PATCH routes, whose requests have a body")
	}
	if set.input != nil {
		c.Errorf("E433", set.upload.Name.Loc,
			"upload: not allowed with input: the body is a form or a file, which has no type (the handler checks the fields of the form; write `input: …` on other routes)")
	}
	if set.verify != nil {
		c.Errorf("E433", set.upload.Name.Loc, "upload: not allowed with verify: the signature covers the body, which is not in memory")
	}
	if set.stream != nil {
		c.Errorf("E433", set.upload.Name.Loc,
			"upload: not allowed with stream: the body has arrived as a whole before the handler begins (remove one of them)")
	}
	if set.live != nil {
		c.Errorf("E433", set.upload.Name.Loc, "upload: not allowed with live: a watch has no body")
	}
}

// fileSettings are the settings of routes that send a file: who may get it, and how often.
var fileSettings = []string{"auth", "rateLimit", "as", "csrf", "cors"}

// checkFileTarget checks a route with `file(Entity.field)`, which runs no handler.
func (c *routeChecker) checkFileTarget(d *syntax.RouteDecl, set routeSettings, params []string) {
	if d.Method.Name != "GET" {
		c.Errorf("E434", d.Method.Loc, "file(…): only on GET routes, which answer HEAD too (write a handler for %s)", d.Method.Name)
	}
	if len(params) != 1 || params[0] != "id" || strings.HasSuffix(d.Path.Raw, "*id") {
		c.Errorf("E434", d.Path.Loc, "file(…) needs the path of one row: its only parameter must be :id, the row's id")
	}
	if d.Result != nil {
		c.Errorf("E434", d.Result.Loc, "file(…) has no result type: the answer is the file")
	}
	if d.Settings != nil {
		for _, s := range d.Settings.List {
			if !slices.Contains(fileSettings, s.Name.Name) {
				c.Errorf("E434", s.Name.Loc, "%s: not allowed with file(…), which runs no handler (it can have %s)",
					s.Name.Name, strings.Join(fileSettings, ", "))
			}
		}
	}
	if set.verify != nil {
		c.Errorf("E434", d.File.Loc, "verify: not allowed with file(…): the request has no body that is signed (declare the route in another group)")
	}
	c.checkFileField(d.File)
}

// checkFileField checks that the field exists and is a file.
func (c *routeChecker) checkFileField(f *syntax.FileTarget) {
	e := c.entity(f.Entity.Name)
	if e == nil {
		c.Missing(f.Entity.Name, "E434", f.Entity.Loc, "file(…) names the unknown entity %q%s",
			f.Entity.Name, c.DidYouMean(f.Entity.Name, c.entityNames()))
		return
	}
	field := e.fields[f.Field.Name]
	switch {
	case field == nil:
		c.Missing(f.Field.Name, "E434", f.Field.Loc, "%s has no field %q%s",
			f.Entity.Name, f.Field.Name, c.DidYouMean(f.Field.Name, e.fieldNames()))
	case field.Type == nil: // reported
	case field.Type.Name.Name != "file":
		c.Errorf("E434", f.Field.Loc, "%s.%s is of type %s: only a field of type file has a file to send",
			f.Entity.Name, f.Field.Name, field.Type.Name.Name)
	}
}

// buildRoute builds a route without its path and auth mode.
func buildRoute(d *syntax.RouteDecl, set routeSettings) schema.Route {
	route := schema.Route{
		Method: d.Method.Name, Handler: d.Handler.Name, As: refOf(set.as), Limits: limitsOf(set), Doc: d.Doc, Span: d.Loc,
	}
	if d.File != nil {
		route.File = &schema.FileField{Entity: d.File.Entity.Name, Field: d.File.Field.Name}
		return withAccess(route, set)
	}
	route.BodyBytes, route.Timeout = boundsOf(set)
	if set.stream != nil && set.stream.Amount != nil {
		route.Stream = set.stream.Amount.Duration
	}
	route.Upload = isWord(set.upload, "on")
	if set.live != nil && set.live.Amount != nil {
		route.Live = set.live.Amount.Duration
	}
	if hasBody(d.Method.Name) && d.Method.Name != anyMethod {
		route.Input = refOf(set.input)
	}
	route.Query = refOf(set.query)
	route.Verify = verifyOf(set)
	route.CreatesSession = isWord(set.mints, "session")
	return withAccess(route, set)
}

// withAccess returns a route with the settings of its access from pages.
func withAccess(route schema.Route, set routeSettings) schema.Route {
	route.CSRFOff, route.CORS = isWord(set.csrf, "off"), set.origins()
	return route
}
