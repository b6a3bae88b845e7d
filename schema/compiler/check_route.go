package compiler

import (
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"runner.example/internal/diag"
	"runner.example/schema"
	"runner.example/schema/syntax"
)

const maxRoutes = 2000

// settings are those that hold at one place, each as it was written there or
// further out.
type settings struct {
	auth, rate, as, body, timeout, input, verify, csrf, mints, cors *syntax.RouteSetting
}

// with returns the settings inside a place that has a list of its own. What is
// not inherited is dropped first.
func (s settings) with(list *syntax.RouteSettings) settings {
	s.as, s.mints = nil, nil
	if list == nil {
		return s
	}
	for _, set := range list.List {
		switch set.Name.Name {
		case "auth":
			s.auth = set
		case "rateLimit":
			s.rate = set
		case "as":
			s.as = set
		case "body":
			s.body = set
		case "timeout":
			s.timeout = set
		case "input":
			s.input = set
		case "verify":
			s.verify = set
		case "csrf":
			s.csrf = set
		case "mints":
			s.mints = set
		case "cors":
			s.cors = set
		}
	}
	return s
}

// origins are those of cors:; nil without.
func (s settings) origins() []string {
	if s.cors == nil || s.cors.Origins == nil {
		return nil
	}
	return textsOf(s.cors.Origins)
}

// isWord reports that a setting is there and is that word.
func isWord(s *syntax.RouteSetting, word string) bool {
	return s != nil && s.Word != nil && s.Word.Name == word
}

// place says on what a list of settings is written.
type place int

const (
	onGroup place = iota
	onRoute
	onFunctions
	onFunction
)

// checkSettings checks one list of settings where it is written.
func (c *checker) checkSettings(list *syntax.RouteSettings, on place) {
	if list == nil {
		return
	}
	taken := namesTaken{}
	for _, s := range list.List {
		if _, twice := taken.take(s.Name); twice {
			c.errorf("E402", s.Name.Loc, "setting %q is given twice", s.Name.Name)
		}
		c.checkSetting(s, on)
	}
}

func (c *checker) checkSetting(s *syntax.RouteSetting, on place) {
	group := on == onGroup || on == onFunctions
	switch s.Name.Name {
	case "auth":
		if s.Auth != nil {
			c.checkMode(s.Auth, false)
		}
	case "rateLimit":
		if s.Rate != nil {
			c.checkRates(s.Rate)
		}
	case "as":
		switch {
		case s.Ref == nil || s.Ref.Name == "":
		case group:
			c.errorf("E415", s.Name.Loc, "as: is not inherited: write it on each route it is meant for")
		case c.scopes[s.Ref.Name] == nil:
			c.missing("E413", s.Ref.Loc, "as: no scope named %q in the apiKeys block%s", s.Ref.Name, c.didYouMean(s.Ref.Name, c.scopeNames))
		}
	case "mints":
		if group {
			c.errorf("E103", s.Name.Loc, "setting \"mints\" is not inherited: write it on the one route that may open sessions")
		}
	case "body":
		c.checkBody(s.Amount)
	case "timeout":
		c.checkTimeout(s.Amount)
	case "input":
		c.checkInput(s, on)
	case "verify":
		c.checkVerify(s.Verify)
	case "cors":
		c.checkOrigins(s.Origins)
	}
}

// checkOrigins checks the origins of cors:.
func (c *checker) checkOrigins(list *syntax.ListSetting) {
	if list == nil {
		return
	}
	origins := c.stringList(list)
	for _, origin := range origins {
		if origin.Text != anyOrigin {
			c.checkPageOrigin("cors", origin)
		} else if len(origins) > 1 {
			c.errorf("E427", origin.Loc, "cors: \"*\" is any origin: leave the others out, or this")
		}
	}
}

// checkPageOrigin wants an origin of pages as browsers write it (RFC 6454, section 6.1):
// another one would never be met.
func (c *checker) checkPageOrigin(setting string, origin *syntax.Literal) {
	refuse := func(format string, args ...any) {
		c.errorf("E427", origin.Loc, "%s: %q %s", setting, origin.Text, fmt.Sprintf(format, args...))
	}
	noOrigin := `is no origin: write a scheme and a host, such as "https://app.example.com"`
	if setting == "cors" {
		noOrigin += `, or "*" for any`
	}
	u, err := url.Parse(origin.Text)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || !strings.HasPrefix(origin.Text, u.Scheme+"://"+u.Host) {
		refuse("%s", noOrigin)
		return
	}
	port, err := strconv.ParseUint(u.Port(), 10, 16)
	switch {
	case strings.Contains(u.Host, "*"):
		refuse("has a wildcard, which no browser sends: list each origin")
	case strings.ContainsFunc(u.Host, func(r rune) bool { return r > '~' }):
		refuse("has letters that browsers send in ASCII: write the host's name with xn--, as the address bar gives it when it is copied")
	case origin.Text != strings.ToLower(u.Scheme+"://"+u.Host):
		refuse("%s", noOrigin)
	case strings.HasSuffix(u.Host, ":") || u.Port() != "" && (err != nil || port == 0 || u.Port() != strconv.FormatUint(port, 10)):
		refuse("has no port from 1 to 65535 behind the colon")
	case u.Scheme == "https" && port == 443 || u.Scheme == "http" && port == 80:
		refuse("names the scheme's own port, which browsers leave out: write %q", strings.TrimSuffix(origin.Text, ":"+u.Port()))
	case !isOriginHost(u.Hostname()):
		refuse("%s", noOrigin)
	}
}

// isOriginHost reports a host's name or address in small letters.
func isOriginHost(host string) bool {
	_, err := netip.ParseAddr(host)
	return err == nil || isHostName(host)
}

// anyOrigin lets pages of every origin read answers.
const anyOrigin = "*"

// checkMode checks the names in an auth mode.
func (c *checker) checkMode(m *syntax.AuthMode, inAnyOf bool) {
	switch m.Kind.Name {
	case "none":
		if inAnyOf {
			c.errorf("E412", m.Loc, "none cannot be one of anyOf: it would always win")
		}
	case "session":
		for _, role := range m.Names {
			if role.Name != "" && !slices.Contains(c.roleNames, role.Name) {
				c.missing("E411", role.Loc, "session(%s): no such role in auth.roles%s", role.Name, c.didYouMean(role.Name, c.roleNames))
			}
		}
	case "apiKey":
		for _, scope := range m.Names {
			if scope.Name != "" && c.scopes[scope.Name] == nil {
				c.missing("E410", scope.Loc, "apiKey(%s): no scope of that name in the apiKeys block%s", scope.Name, c.didYouMean(scope.Name, c.scopeNames))
			}
		}
	case "anyOf":
		for _, mode := range m.Modes {
			c.checkMode(mode, true)
		}
	}
}

var (
	partitions = []string{"key", "user", "tenant", "ip", "global"}
	unitNames  = []string{"second", "minute", "hour", "day"}
)

func (c *checker) checkRates(v *syntax.RateValue) {
	for _, rate := range v.Rates {
		if rate.Count != nil && rate.Count.Int < 1 {
			c.errorf("E421", rate.Count.Loc, "the rate must be at least 1; to lift an inherited limit write rateLimit: none")
		}
		if unit := rate.Unit; unit.Name != "" && !slices.Contains(unitNames, unit.Name) {
			c.errorf("E420", unit.Loc, "unknown rate unit %q: use second, minute, hour or day%s", unit.Name, c.didYouMean(unit.Name, unitNames))
		}
		if by := rate.By; by != nil && by.Name != "" && !slices.Contains(partitions, by.Name) {
			c.errorf("E422", by.Loc, "unknown rate partition %q: use key, user, tenant, ip or global%s", by.Name, c.didYouMean(by.Name, partitions))
		}
	}
}

func (c *checker) checkBody(size *syntax.Literal) {
	switch {
	case size == nil:
	case size.Int > c.opt.MaxBody:
		c.errorf("E424", size.Loc, "body %s is above the server's limit of %s", size.Raw, sizeText(c.opt.MaxBody))
	case size.Int < 1:
		c.errorf("E424", size.Loc, "body %s is below 1b", size.Raw)
	}
}

func (c *checker) checkTimeout(t *syntax.Literal) {
	switch {
	case t == nil:
	case t.Duration > c.opt.MaxTimeout:
		c.errorf("E424", t.Loc, "timeout %s is above %s", t.Raw, durationText(c.opt.MaxTimeout))
	case t.Duration < time.Millisecond:
		c.errorf("E424", t.Loc, "timeout %s is below 1ms", t.Raw)
	}
}

func (c *checker) checkInput(s *syntax.RouteSetting, on place) {
	if on == onFunction || on == onFunctions {
		c.errorf("E503", s.Name.Loc, "input: the parameters of a function are its input")
		return
	}
	if s.Ref == nil || s.Ref.Name == "" {
		return
	}
	if _, ok := c.named[s.Ref.Name].(*syntax.TypeDecl); ok {
		return
	}
	if _, ok := c.named[s.Ref.Name].(*syntax.EntityDecl); ok {
		c.errorf("E503", s.Ref.Loc, "input: %s is an entity, of which callers do not give every field: declare a type with those that they do", s.Ref.Name)
		return
	}
	var types []string
	for _, d := range c.decls {
		if t, ok := d.(*syntax.TypeDecl); ok {
			types = append(types, t.Name.Name)
		}
	}
	c.missing("E503", s.Ref.Loc, "input: no type named %q%s", s.Ref.Name, c.didYouMean(s.Ref.Name, types))
}

// maxTolerance is how far a signature's time may be from the server's.
const maxTolerance = 24 * time.Hour

var webhookSchemes = []string{"standard", "stripe", "github", "slack"}

func (c *checker) checkVerify(v *syntax.VerifyValue) {
	if v == nil {
		return
	}
	if scheme := v.Scheme; scheme.Name != "" && !slices.Contains(webhookSchemes, scheme.Name) {
		c.errorf("E414", scheme.Loc, "verify: unknown signature scheme %q: use %s%s", scheme.Name, strings.Join(webhookSchemes, ", "), c.didYouMean(scheme.Name, webhookSchemes))
	}
	switch t := v.Tolerance; {
	case t == nil:
	case t.Duration <= 0:
		c.errorf("E414", t.Loc, "verify: the tolerance must be above zero")
	case t.Duration > maxTolerance:
		c.errorf("E414", t.Loc, "verify: the tolerance %s is above 1d: clocks do not differ by that, and a delivery that is held back is taken for as long", t.Raw)
	}
	if secret := v.Secret; secret.Name != "" {
		if _, ok := c.secrets[secret.Name]; !ok {
			c.missing("E414", secret.Loc, "verify: secret %q is not declared (add `secret %s`)%s", secret.Name, secret.Name, c.didYouMean(secret.Name, c.schema.Secrets))
		}
	}
}

// ---- routes ----

// group is where a route stands.
type group struct {
	settings settings
	// prefix holds the segments of all prefixes around, broken tells that one
	// of them was wrong.
	prefix []segment
	broken bool
}

// checkRoutes checks all groups and routes and builds the routing table.
func (c *checker) checkRoutes() {
	shapes := map[string]diag.Span{}
	for _, d := range c.decls {
		if routes, ok := d.(*syntax.RoutesDecl); ok {
			c.checkGroup(routes, group{}, shapes)
		}
	}
}

// checkGroup checks a group inside another. shapes holds the routes so far by
// what they match.
func (c *checker) checkGroup(d *syntax.RoutesDecl, in group, shapes map[string]diag.Span) {
	c.checkSettings(d.Settings, onGroup)
	in.settings = in.settings.with(d.Settings)
	if d.Prefix == nil {
		in.broken = true
	} else {
		segments, ok := c.checkPrefix(d.Prefix, in.prefix)
		in.prefix = append(slices.Clip(in.prefix), segments...)
		in.broken = in.broken || !ok
	}
	for _, item := range d.Items {
		switch item := item.(type) {
		case *syntax.RoutesDecl:
			c.checkGroup(item, in, shapes)
		case *syntax.RouteDecl:
			c.checkRoute(item, in, shapes)
		}
	}
}

func (c *checker) checkRoute(d *syntax.RouteDecl, in group, shapes map[string]diag.Span) {
	c.checkSettings(d.Settings, onRoute)
	c.checkBodyless(d)
	c.handlerName(d.Handler)
	set := in.settings.with(d.Settings)
	route := buildRoute(d, set)
	own, ok := c.checkPath(d.Path, in.prefix)
	route.Path, route.Params = joinPath(in.prefix, own)
	if ok && !in.broken {
		c.checkPlace(d, route, shapes)
	}

	span, label := head(d), route.Method+" "+route.Path
	if set.verify != nil && len(route.Params) > 0 {
		c.warnf("W429", d.Path.Loc, "verify: on a path with parameters: no scheme signs the path, so a delivery can be sent with another :%s (give each one a route and a secret of its own, or let the body say it)", route.Params[0])
	}
	auth, ok := c.effectiveAuth(set, span, "E400", label)
	if ok {
		route.Auth = auth
		c.checkAccess(set, auth, span, label)
		if auth.None && set.verify == nil && set.rate == nil {
			c.warnf("W416", span, "%s has auth none, no verify: and no rateLimit: anybody can run it as often as they like (write `rateLimit: none` if that is meant)", label)
		}
	}
	c.schema.Routes = append(c.schema.Routes, route)
}

// head is the place of a route's method and path.
func head(d *syntax.RouteDecl) diag.Span { return d.Method.Loc.To(d.Path.Loc) }

// checkPlace checks the whole path and that no other route matches the same.
func (c *checker) checkPlace(d *syntax.RouteDecl, route schema.Route, shapes map[string]diag.Span) {
	switch {
	case len(c.schema.Routes) == maxRoutes:
		c.errorf("E425", d.Path.Loc, "more than 2 000 routes")
	case strings.Count(route.Path, "/") > maxSegments:
		c.errorf("E425", d.Path.Loc, "the path %s has more than %d segments", shorten(route.Path), maxSegments)
	case len(route.Path) > maxPathBytes:
		c.errorf("E425", d.Path.Loc, "the path %s is longer than 1 024 bytes", shorten(route.Path))
	}
	for _, reserved := range []string{"/_call", "/_health"} {
		if route.Path == reserved || strings.HasPrefix(route.Path, reserved+"/") {
			c.errorf("E426", d.Path.Loc, "the path lies under the reserved prefix %q", reserved)
		}
	}
	shape := route.Method + " " + shapeOf(route.Path)
	if first, taken := shapes[shape]; taken {
		c.errorf("E406", head(d), "%s %s has the same shape as the route at %s: a request could match both", route.Method, route.Path, at(d.Loc, first))
		return
	}
	shapes[shape] = d.Loc
}

// handlerName refuses names that can be no handler's export.
func (c *checker) handlerName(name syntax.Ident) {
	if name.Name == "memory" || strings.HasPrefix(name.Name, "_") || strings.HasPrefix(name.Name, "runner_") {
		c.errorf("E201", name.Loc, "%q is a reserved name: no handler can be called so", name.Name)
	}
}

func (c *checker) checkBodyless(d *syntax.RouteDecl) {
	if d.Settings == nil || hasBody(d.Method.Name) {
		return
	}
	for _, s := range d.Settings.List {
		if s.Name.Name == "input" {
			c.errorf("E503", s.Name.Loc, "input on %s has no body to check", d.Method.Name)
		}
	}
}

func hasBody(method string) bool {
	return method != "GET" && method != "HEAD" && method != "OPTIONS"
}

// effectiveAuth returns the auth mode that holds, or false when there is none
// that could be read.
func (c *checker) effectiveAuth(set settings, span diag.Span, code, label string) (schema.Auth, bool) {
	switch {
	case set.auth == nil && code == "E400":
		c.errorf(code, span, "%s has no auth mode: set auth on the group or on the route (none, session or apiKey(<scope>))", label)
		return schema.Auth{}, false
	case set.auth == nil:
		c.errorf(code, span, "@expose %s has no auth mode: set auth on the functions block or on the function", label)
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
		c.asked[name] = true
	}
	mixed := auth.None && (auth.Session || len(auth.Scopes) > 0) // reported
	return auth, readable && !mixed
}

// addMode joins one declared mode to a; anySession is set by a session without
// roles. It reports whether all of the mode could be read.
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

// checkAccess checks what other settings mean under an auth mode.
func (c *checker) checkAccess(set settings, auth schema.Auth, span diag.Span, label string) {
	if set.as != nil && set.as.Ref != nil {
		c.asked[set.as.Ref.Name] = true
		if !auth.None {
			c.errorf("E415", span, "as: is only for routes with auth none; this one has auth %s", auth)
		}
	}
	if auth.Session && !c.sessions && !c.sessionMissing && !c.broken {
		c.sessionMissing = true
		c.soften("418", span, "auth session is used but no `session` is declared in auth")
	}
	if isWord(set.mints, "session") && !c.cookies {
		c.missing("E430", set.mints.Name.Loc, "mints: %s would open sessions, which are cookies, and auth declares no `session cookie`: add one", label)
	}
	if !c.schema.Typed && !c.unguarded && !c.broken && len(c.granted) > 0 && (auth.Session || auth.None && set.as == nil) {
		c.unguarded = true
		c.warnf("W203", span, "%s reaches every row of its caller's tenant: no entity is declared, so only API keys are bounded, by their grants (declare entities to deny all that is not allowed)", label)
	}
	if auth.Session && slices.Contains(set.origins(), anyOrigin) {
		c.errorf("E428", span, "cors: \"*\" on %s, which takes sessions: name the origins whose pages may read what a user sees", label)
	}
	if set.rate == nil || set.rate.Rate == nil || c.haveTenant(auth) {
		return
	}
	for _, rate := range set.rate.Rate.Rates {
		if rate.By != nil && rate.By.Name == "tenant" {
			c.missing("E423", rate.Loc, "`by tenant` on %s, whose callers have no tenant", label)
		}
	}
}

// haveTenant reports that callers under this mode can have a tenant.
func (c *checker) haveTenant(auth schema.Auth) bool {
	if auth.None || c.schema.Typed && !c.tenantSet {
		return false
	}
	return auth.Session || slices.ContainsFunc(auth.Scopes, func(name string) bool {
		scope := c.scopes[name]
		return scope == nil || len(scope.AllTenants) == 0
	})
}

// ---- functions ----

func (c *checker) checkFunctions() {
	taken := namesTaken{}
	for _, d := range c.decls {
		block, ok := d.(*syntax.FunctionsDecl)
		if !ok {
			continue
		}
		c.checkSettings(block.Settings, onFunctions)
		for _, f := range block.Functions {
			if first, twice := taken.take(f.Name); twice {
				c.errorf("E501", f.Name.Loc, "function %q is already declared at %s", f.Name.Name, at(f.Name.Loc, first))
			}
			c.checkFunction(f, settings{}.with(block.Settings))
		}
	}
}

func (c *checker) checkFunction(d *syntax.FunctionDecl, in settings) {
	c.checkSettings(d.Settings, onFunction)
	c.checkFields(d.Name.Name, d.Params)
	if d.Result != nil {
		c.checkType(d.Result)
	}
	c.handlerName(d.Name)
	set := in.with(d.Settings)
	f := schema.Function{Name: d.Name.Name, Exposed: d.Expose, As: refOf(set.as), Limits: limitsOf(set), Doc: d.Doc, Span: d.Loc}
	f.BodyBytes, f.Timeout = boundsOf(set)
	f.Verify = verifyOf(set)
	f.CSRFOff, f.Mints, f.CORS = isWord(set.csrf, "off"), isWord(set.mints, "session"), set.origins()
	if d.Expose {
		var ok bool
		if f.Auth, ok = c.effectiveAuth(set, d.Name.Loc, "E500", d.Name.Name); ok {
			c.checkAccess(set, f.Auth, d.Name.Loc, d.Name.Name)
			if f.Auth.None && set.verify == nil {
				c.warnf("W502", d.Name.Loc, "@expose %s has auth none: anybody can call it", d.Name.Name)
			}
		}
	}
	c.schema.Functions = append(c.schema.Functions, f)
}

// ---- the model's parts ----

// buildRoute makes a route of everything but its path and auth.
func buildRoute(d *syntax.RouteDecl, set settings) schema.Route {
	route := schema.Route{Method: d.Method.Name, Handler: d.Handler.Name, As: refOf(set.as), Limits: limitsOf(set), Doc: d.Doc, Span: d.Loc}
	route.BodyBytes, route.Timeout = boundsOf(set)
	if hasBody(d.Method.Name) {
		route.Input = refOf(set.input)
	}
	route.Verify = verifyOf(set)
	route.CSRFOff, route.Mints, route.CORS = isWord(set.csrf, "off"), isWord(set.mints, "session"), set.origins()
	return route
}

// refOf is the name that a setting refers to, empty without one.
func refOf(s *syntax.RouteSetting) string {
	if s == nil || s.Ref == nil {
		return ""
	}
	return s.Ref.Name
}

func limitsOf(set settings) []schema.RateLimit {
	if set.rate == nil || set.rate.Rate == nil {
		return nil
	}
	var limits []schema.RateLimit
	for _, rate := range set.rate.Rate.Rates {
		limit := schema.RateLimit{ID: rate.Loc.String()}
		if rate.Count != nil {
			limit.Count = int(rate.Count.Int)
		}
		if i := slices.Index(unitNames, rate.Unit.Name); i >= 0 {
			limit.Per = schema.RateUnits[i].Per
		}
		if rate.By != nil {
			limit.By = rate.By.Name
		}
		limits = append(limits, limit)
	}
	return limits
}

func boundsOf(set settings) (bodyBytes int64, timeout time.Duration) {
	if set.body != nil && set.body.Amount != nil {
		bodyBytes = set.body.Amount.Int
	}
	if set.timeout != nil && set.timeout.Amount != nil {
		timeout = set.timeout.Amount.Duration
	}
	return bodyBytes, timeout
}

func verifyOf(set settings) *schema.Verify {
	if set.verify == nil || set.verify.Verify == nil {
		return nil
	}
	v := set.verify.Verify
	built := &schema.Verify{Scheme: v.Scheme.Name, Secret: v.Secret.Name}
	if v.Tolerance != nil {
		built.Tolerance = v.Tolerance.Duration
	}
	return built
}
