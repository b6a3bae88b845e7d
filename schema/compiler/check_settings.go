package compiler

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"runner.example/schema"
	"runner.example/schema/model"
	"runner.example/schema/syntax"
)

// settingsChecker checks the settings of routes, groups and functions.
type settingsChecker struct {
	*app
	origins originChecker
}

// routeSettings are the effective settings of a route, a group or a function, inherited ones
// included.
type routeSettings struct {
	auth, rate, as, body, upload, timeout, stream, live, input, query, verify, csrf, mints, cors *syntax.RouteSetting
	retries, backoff, concurrency, schedule                                                      *syntax.RouteSetting // of jobs
	dir, spa, headers                                                                            *syntax.RouteSetting // of assets
}

// with returns the settings of an inner route, group or function with the given list. Some
// settings are not inherited.
func (s routeSettings) with(list *syntax.RouteSettings) routeSettings {
	s.as, s.mints, s.query, s.stream, s.live, s.upload, s.concurrency, s.schedule = nil, nil, nil, nil, nil, nil, nil, nil
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
		case "upload":
			s.upload = set
		case "timeout":
			s.timeout = set
		case "stream":
			s.stream = set
		case "live":
			s.live = set
		case "input":
			s.input = set
		case "query":
			s.query = set
		case "verify":
			s.verify = set
		case "csrf":
			s.csrf = set
		case "mints":
			s.mints = set
		case "cors":
			s.cors = set
		case "retries":
			s.retries = set
		case "backoff":
			s.backoff = set
		case "concurrency":
			s.concurrency = set
		case "schedule":
			s.schedule = set
		case "dir":
			s.dir = set
		case "spa":
			s.spa = set
		case "headers":
			s.headers = set
		}
	}
	return s
}

// origins are the origins of cors:, nil if it is not set.
func (s routeSettings) origins() []string {
	if s.cors == nil || s.cors.Origins == nil {
		return nil
	}
	return model.Texts(s.cors.Origins)
}

// isWord reports whether a setting has that word as its value.
func isWord(s *syntax.RouteSetting, word string) bool {
	return s != nil && s.Word != nil && s.Word.Name == word
}

// settingsOwner is what a list of settings belongs to.
type settingsOwner int

const (
	onGroup settingsOwner = iota
	onRoute
	onFunctions
	onFunction
	onJobs
	onJob
	onAssets
)

// checkSettings checks a list of settings.
func (c *settingsChecker) checkSettings(list *syntax.RouteSettings, on settingsOwner) {
	if list == nil {
		return
	}
	streamed := on == onRoute && slices.ContainsFunc(list.List, func(s *syntax.RouteSetting) bool {
		return s.Name.Name == "stream" || s.Name.Name == "upload" && isWord(s, "on")
	})
	taken := seenNames{}
	for _, s := range list.List {
		if _, twice := taken.add(s.Name); twice {
			c.Errorf("E402", s.Name.Loc, "setting %q is given twice", s.Name.Name)
		}
		c.checkSetting(s, on)
		if s.Name.Name == "body" {
			c.checkBody(s.Amount, streamed)
		}
	}
}

func (c *settingsChecker) checkSetting(s *syntax.RouteSetting, on settingsOwner) {
	group := on == onGroup || on == onFunctions || on == onJobs
	switch s.Name.Name {
	case "auth":
		if s.Auth != nil {
			c.checkMode(s.Auth)
			if anonymous := noneOf(s.Auth); anonymous != nil && s.Auth.Kind.Name == "anyOf" {
				c.checkOptional(s.Auth, anonymous)
			}
		}
	case "rateLimit":
		if s.Rate != nil {
			c.checkRates(s.Rate)
		}
	case "as":
		switch {
		case s.Ref == nil || s.Ref.Name == "":
		case group:
			c.Errorf("E415", s.Name.Loc, "as: is not inherited: write it on each %s that needs it", kindOf(on))
		case c.scopes[s.Ref.Name] == nil:
			c.Missing(s.Ref.Name, "E413", s.Ref.Loc, "as: no scope named %q in the apiKeys block%s",
				s.Ref.Name, c.DidYouMean(s.Ref.Name, c.scopeNames))
		}
	case "mints":
		if group {
			c.Errorf("E103", s.Name.Loc, "setting \"mints\" is not inherited: write it on the route that creates sessions")
		}
	case "timeout":
		c.checkTimeout(s.Amount)
	case "upload":
		switch {
		case on == onGroup:
			c.Errorf("E103", s.Name.Loc, "setting \"upload\" is not inherited: write it on each route that takes files")
		case on == onFunction || on == onFunctions:
			c.Errorf("E433", s.Name.Loc, "upload: not allowed on functions: their parameters are the input")
		}
	case "stream":
		c.checkStream(s, on)
	case "live":
		c.checkLive(s, on)
	case "input", "query":
		if s.Name.Name == "query" && group {
			c.Errorf("E103", s.Name.Loc, "setting \"query\" is not inherited: write it on the route that reads the query")
			return
		}
		c.checkInput(s, on)
	case "verify":
		c.checkVerify(s.Verify)
	case "cors":
		c.checkOrigins(s.Origins)
	case "retries":
		if n := s.Amount; n != nil && (n.Int < 0 || n.Int > maxRetries) {
			c.Errorf("E511", n.Loc, "retries %s is not between 0 and %d", n.Raw, maxRetries)
		}
	case "backoff":
		if d := s.Amount; d != nil && (d.Duration < time.Second || d.Duration > schema.MaxBackoff) {
			c.Errorf("E511", d.Loc, "backoff %s is not between 1s and 1h", d.Raw)
		}
	case "concurrency", "schedule":
		if group {
			c.Errorf("E103", s.Name.Loc, "setting %q is not inherited: write it on each job that needs it", s.Name.Name)
		}
	}
}

// kindOf names what a setting on a group is for.
func kindOf(on settingsOwner) string {
	switch on {
	case onFunctions:
		return "function"
	case onJobs:
		return "job"
	}
	return "route"
}

// checkOrigins checks the origins of cors:.
func (c *settingsChecker) checkOrigins(list *syntax.ListSetting) {
	if list == nil {
		return
	}
	origins := c.StringList(list)
	for _, origin := range origins {
		if origin.Text != anyOrigin {
			c.origins.checkPageOrigin("cors", origin)
		} else if len(origins) > 1 {
			c.Errorf("E427", origin.Loc, "cors: \"*\" allows any origin: remove it or the others")
		}
	}
}

// checkMode checks the names in an auth mode.
func (c *settingsChecker) checkMode(m *syntax.AuthMode) {
	switch m.Kind.Name {
	case "session":
		for _, role := range m.Names {
			if role.Name != "" && !slices.Contains(c.roleNames, role.Name) {
				c.Missing(role.Name, "E411", role.Loc, "session(%s): no such role in auth.roles%s",
					role.Name, c.DidYouMean(role.Name, c.roleNames))
			}
		}
	case "apiKey":
		for _, scope := range m.Names {
			if scope.Name != "" && c.scopes[scope.Name] == nil {
				c.Missing(scope.Name, "E410", scope.Loc, "apiKey(%s): no scope of that name in the apiKeys block%s",
					scope.Name, c.DidYouMean(scope.Name, c.scopeNames))
			}
		}
	case "anyOf":
		for _, mode := range m.Modes {
			c.checkMode(mode)
		}
	}
}

// noneOf returns the mode none that m is or contains, or nil.
func noneOf(m *syntax.AuthMode) *syntax.AuthMode {
	if m.Kind.Name == "none" {
		return m
	}
	for _, mode := range m.Modes {
		if found := noneOf(mode); found != nil {
			return found
		}
	}
	return nil
}

// checkOptional checks an anyOf that contains the mode none at anonymous.
func (c *settingsChecker) checkOptional(m, anonymous *syntax.AuthMode) {
	var auth schema.Auth
	anySession := false
	switch readable := addMode(&auth, m, &anySession); {
	case !readable:
	case !auth.ChecksCredentials():
		c.Errorf("E412", anonymous.Loc, "none is the only mode of this anyOf: write auth: none")
	case len(auth.Roles) > 0 && !anySession:
		c.Errorf("E412", anonymous.Loc,
			"anyOf cannot contain none and session(%s): a signed-in user without the role would see less than an anonymous caller (write session without roles, and check the role in rules or in the handler)",
			strings.Join(auth.Roles, ", "))
	}
}

var partitions = []string{"key", "user", "tenant", "ip", "global"}

func (c *settingsChecker) checkRates(v *syntax.RateValue) {
	var units []string
	for _, u := range schema.RateUnits {
		units = append(units, u.Name)
	}
	for _, rate := range v.Rates {
		if rate.Count != nil && rate.Count.Int < 1 {
			c.Errorf("E421", rate.Count.Loc, "the rate must be at least 1; to remove an inherited limit write rateLimit: none")
		}
		if unit := rate.Unit; unit.Name != "" && !slices.Contains(units, unit.Name) {
			c.Errorf("E420", unit.Loc, "unknown rate unit %q: use second, minute, hour or day%s",
				unit.Name, c.DidYouMean(unit.Name, units))
		}
		if by := rate.By; by != nil && by.Name != "" && !slices.Contains(partitions, by.Name) {
			c.Errorf("E422", by.Loc, "unknown rate partition %q: use key, user, tenant, ip or global%s",
				by.Name, c.DidYouMean(by.Name, partitions))
		}
	}
}

// checkBody checks the limit of a body, which is streamed or uploaded, or in memory as a whole.
func (c *settingsChecker) checkBody(size *syntax.Literal, streamed bool) {
	switch {
	case size == nil:
	case size.Int < 1:
		c.Errorf("E424", size.Loc, "body %s is below 1b", size.Raw)
	case streamed:
	case size.Int > c.opt.MaxBody:
		c.Errorf("E424", size.Loc, "body %s is above the server's limit of %s", size.Raw, sizeText(c.opt.MaxBody))
	case c.opt.BodyMemory > 0 && size.Int > c.opt.BodyMemory:
		c.Errorf("E424", size.Loc,
			"body %s is above [front] body_memory, which is %s: raise it, and give this process more memory if it has too little",
			size.Raw, sizeText(c.opt.BodyMemory))
	}
}

func (c *settingsChecker) checkTimeout(t *syntax.Literal) {
	switch {
	case t == nil:
	case t.Duration > c.opt.MaxTimeout:
		c.Errorf("E424", t.Loc, "timeout %s is above %s", t.Raw, durationText(c.opt.MaxTimeout))
	case t.Duration < time.Millisecond:
		c.Errorf("E424", t.Loc, "timeout %s is below 1ms", t.Raw)
	}
}

func (c *settingsChecker) checkStream(s *syntax.RouteSetting, on settingsOwner) {
	switch {
	case on == onGroup:
		c.Errorf("E103", s.Name.Loc, "setting \"stream\" is not inherited: write it on each route that streams its answer")
	case on == onFunction || on == onFunctions:
		c.Errorf("E431", s.Name.Loc, "stream: not allowed on functions: their answers have a type, so they are checked as a whole")
	default:
		c.checkOpenTime(s)
	}
}

func (c *settingsChecker) checkLive(s *syntax.RouteSetting, on settingsOwner) {
	switch {
	case on == onGroup:
		c.Errorf("E103", s.Name.Loc, "setting \"live\" is not inherited: write it on each route that clients may watch")
	case on == onFunction || on == onFunctions:
		c.Errorf("E432", s.Name.Loc, "live: not allowed on functions: only GET routes can be watched")
	default:
		c.checkOpenTime(s)
	}
}

// checkOpenTime checks how long stream: or live: keeps a connection open.
func (c *settingsChecker) checkOpenTime(s *syntax.RouteSetting) {
	switch t := s.Amount; {
	case t == nil:
	case t.Duration > c.opt.MaxStream:
		c.Errorf("E424", t.Loc, "%s %s is above %s", s.Name.Name, t.Raw, durationText(c.opt.MaxStream))
	case t.Duration < time.Millisecond:
		c.Errorf("E424", t.Loc, "%s %s is below 1ms", s.Name.Name, t.Raw)
	}
}

func (c *settingsChecker) checkInput(s *syntax.RouteSetting, on settingsOwner) {
	word := s.Name.Name
	if on == onFunction || on == onFunctions {
		c.Errorf("E503", s.Name.Loc, "%s: not allowed on functions: their parameters are the input", word)
		return
	}
	if s.Ref == nil || s.Ref.Name == "" {
		return
	}
	if t, ok := c.named[s.Ref.Name].(*syntax.TypeDecl); ok {
		if word == "query" {
			c.checkQuery(s, t)
		}
		return
	}
	if _, ok := c.named[s.Ref.Name].(*syntax.EntityDecl); ok {
		c.Errorf("E503", s.Ref.Loc, "%s: %s is an entity: declare a type with the fields that callers send", word, s.Ref.Name)
		return
	}
	var types []string
	for _, d := range c.decls {
		if t, ok := d.(*syntax.TypeDecl); ok {
			types = append(types, t.Name.Name)
		}
	}
	c.Missing(s.Ref.Name, "E503", s.Ref.Loc, "%s: no type named %q%s", word, s.Ref.Name, c.DidYouMean(s.Ref.Name, types))
}

// checkQuery refuses a type with fields that query parameters cannot express.
func (c *settingsChecker) checkQuery(s *syntax.RouteSetting, t *syntax.TypeDecl) {
	for _, f := range t.Fields {
		if f.Type == nil {
			continue // a syntax error, reported where it is
		}
		_, object := c.named[f.Type.Name.Name].(*syntax.TypeDecl)
		if object || f.Type.Name.Name == "json" {
			c.Errorf("E503", s.Ref.Loc,
				"query: field %q of %s is %s, which query parameters cannot express: use values and lists of values",
				f.Name.Name, t.Name.Name, f.Type.Name.Name)
		}
	}
}

// maxTolerance is the maximum difference between a signature's time and the server's.
const maxTolerance = 24 * time.Hour

var webhookSchemes = []string{"standard", "stripe", "github", "slack"}

func (c *settingsChecker) checkVerify(v *syntax.VerifyValue) {
	if v == nil {
		return
	}
	if scheme := v.Scheme; scheme.Name != "" && !slices.Contains(webhookSchemes, scheme.Name) {
		c.Errorf("E414", scheme.Loc, "verify: unknown signature scheme %q: use %s%s",
			scheme.Name, strings.Join(webhookSchemes, ", "), c.DidYouMean(scheme.Name, webhookSchemes))
	}
	switch t := v.Tolerance; {
	case t == nil:
	case t.Duration <= 0:
		c.Errorf("E414", t.Loc, "verify: the tolerance must be above zero")
	case t.Duration > maxTolerance:
		c.Errorf("E414", t.Loc,
			"verify: the tolerance %s is above the limit of 1d: an old delivery could be sent again for as long", t.Raw)
	}
	if secret := v.Secret; secret.Name != "" {
		if _, ok := c.secrets[secret.Name]; !ok {
			c.Missing(secret.Name, "E414", secret.Loc, "verify: secret %q is not declared (add `secret %s`)%s",
				secret.Name, secret.Name, c.DidYouMean(secret.Name, c.schema.Secrets))
		}
	}
}

// refOf is the name that a setting refers to, empty if it is not set.
func refOf(s *syntax.RouteSetting) string {
	if s == nil || s.Ref == nil {
		return ""
	}
	return s.Ref.Name
}

func limitsOf(set routeSettings) []schema.RateLimit {
	if set.rate == nil || set.rate.Rate == nil {
		return nil
	}
	var limits []schema.RateLimit
	for _, rate := range set.rate.Rate.Rates {
		limit := schema.RateLimit{ID: rate.Loc.String()}
		if rate.Var != nil {
			limit.Var = rate.Var.Name
		}
		if rate.Count != nil {
			limit.Count = int(rate.Count.Int)
		}
		for _, u := range schema.RateUnits {
			if u.Name == rate.Unit.Name {
				limit.Per = u.Per
			}
		}
		if rate.By != nil {
			limit.By = rate.By.Name
		}
		limits = append(limits, limit)
	}
	return limits
}

func boundsOf(set routeSettings) (bodyBytes int64, timeout time.Duration) {
	if set.body != nil && set.body.Amount != nil {
		bodyBytes = set.body.Amount.Int
	}
	if set.timeout != nil && set.timeout.Amount != nil {
		timeout = set.timeout.Amount.Duration
	}
	return bodyBytes, timeout
}

func verifyOf(set routeSettings) *schema.Verify {
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

// sizeText is a size in schema syntax: "64mb".
func sizeText(n int64) string {
	switch {
	case n%(1<<30) == 0:
		return fmt.Sprintf("%dgb", n>>30)
	case n%(1<<20) == 0:
		return fmt.Sprintf("%dmb", n>>20)
	case n%(1<<10) == 0:
		return fmt.Sprintf("%dkb", n>>10)
	}
	return fmt.Sprintf("%db", n)
}

// durationText is a duration in schema syntax: "60s".
func durationText(d time.Duration) string {
	if d%time.Second == 0 {
		return fmt.Sprintf("%ds", d/time.Second)
	}
	return fmt.Sprintf("%dms", d.Milliseconds())
}
