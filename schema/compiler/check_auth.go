package compiler

import (
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"runner.example/schema/model"
	"runner.example/schema/report"
	"runner.example/schema/syntax"
)

// authChecker checks the auth block and fills in authNames.
type authChecker struct {
	*app
	origins originChecker
}

// checkAuth checks the auth block and records roles, user and tenant.
func (c *authChecker) checkAuth() {
	for _, d := range c.decls {
		auth, ok := d.(*syntax.AuthDecl)
		if !ok {
			continue
		}
		c.settingsOnce(auth.Settings)
		for _, s := range auth.Settings {
			switch s.Name.Name {
			case "roles":
				c.declareRoles(s.Value)
			case "user":
				c.user = c.entityName(s)
			case "tenant":
				c.tenantSet = true
				c.tenant = c.entityName(s)
			case "origins":
				for _, origin := range c.StringList(s.Value) {
					c.origins.checkPageOrigin("origins", origin)
				}
			}
		}
		kinds := seenNames{}
		c.sessions = c.sessions || len(auth.Sessions) > 0
		for _, session := range auth.Sessions {
			if first, twice := kinds.add(session.Kind); twice {
				c.Errorf("E120", session.Kind.Loc, "\"session %s\" may be declared only once; the first is at %s",
					session.Kind.Name, report.At(session.Kind.Loc, first))
			}
			c.cookies = c.cookies || session.Kind.Name == "cookie"
			c.checkSession(session)
		}
	}
}

// checkManage checks the rules of session blocks, which may name roles and scopes.
func (c *app) checkManage(rules ruleChecker) {
	for _, d := range c.decls {
		if auth, ok := d.(*syntax.AuthDecl); ok {
			for _, session := range auth.Sessions {
				rules.checkCallerRules(session.Manages)
			}
		}
	}
}

func (c *authChecker) declareRoles(v syntax.SettingValue) {
	taken := seenNames{}
	for _, role := range c.RoleList(v) {
		if first, twice := taken.add(role); twice {
			c.Errorf("E211", role.Loc, "role %q is already declared at %s", role.Name, report.At(role.Loc, first))
			continue
		}
		c.roleNames = append(c.roleNames, role.Name)
	}
}

// entityName returns the entity that a setting of auth names. In untyped mode the name is
// not checked.
func (c *authChecker) entityName(s *syntax.Setting) string {
	name, ok := c.BareName(s.Value, "an entity")
	if !ok || !c.schema.Typed {
		return ""
	}
	if _, ok := c.named[name.Name].(*syntax.EntityDecl); !ok {
		c.Missing(name.Name, "E212", name.Loc, "auth.%s names the unknown entity %q%s",
			s.Name.Name, name.Name, c.DidYouMean(name.Name, c.entityNames()))
		return ""
	}
	return name.Name
}

func (c *authChecker) checkSession(d *syntax.SessionDecl) {
	c.settingsOnce(d.Settings)
	switch d.Kind.Name {
	case "cookie":
		c.checkCookie(d)
	case "jwt":
		c.checkJWT(d)
	}
}

func (c *authChecker) checkCookie(d *syntax.SessionDecl) {
	if d.Cookie != nil {
		c.checkCookieName(d.Cookie)
	}
	idle, absolute, lasts := (*syntax.Literal)(nil), 12*time.Hour, "12h"
	for _, s := range d.Settings {
		switch s.Name.Name {
		case "idle":
			if _, ok := c.Duration(s.Value, "m"); ok {
				idle = s.Value.(*syntax.Literal)
			}
		case "absolute":
			if d, ok := c.Duration(s.Value, "h"); ok {
				absolute, lasts = d, s.Value.(*syntax.Literal).Raw
			}
		case "sameSite":
			if word, ok := c.BareName(s.Value, "lax or strict"); ok && word.Name != "lax" && word.Name != "strict" {
				c.Errorf("E100", word.Loc, "expected lax or strict, found %q%s",
					word.Name, c.DidYouMean(word.Name, []string{"lax", "strict"}))
			}
		}
	}
	if idle != nil && idle.Duration > absolute {
		c.Missing("absolute", "E532", idle.Loc, "idle %s is longer than absolute, %s, after which every session ends",
			idle.Raw, lasts)
	}
}

// hostPrefix makes browsers accept a cookie only over HTTPS and from the host itself.
const hostPrefix = "__Host-"

// checkCookieName requires a token (RFC 6265, section 4.1.1) that browsers accept.
func (c *authChecker) checkCookieName(name *syntax.Literal) {
	rest, prefixed := strings.CutPrefix(name.Text, hostPrefix)
	isOther := func(r rune) bool {
		return r <= ' ' || r > '~' || strings.ContainsRune(`()<>@,;:\"/[]?={}`, r)
	}
	switch {
	case !prefixed && !c.opt.InsecureCookies:
		c.Errorf("E531", name.Loc,
			"the cookie name must begin with __Host- (`insecure_cookies = true` under [auth] in runner.toml permits others, on loopback only)")
	case rest == "" || len(name.Text) > 64 || strings.ContainsFunc(rest, isOther):
		c.Errorf("E531", name.Loc,
			"%q is not a valid cookie name: use at most 64 letters, digits, - and _, at least one of them after __Host-",
			name.Text)
	case !prefixed && strings.HasPrefix(rest, "__"):
		c.Errorf("E531", name.Loc,
			"browsers reserve cookie names that begin with __ and would reject %q: choose another name", name.Text)
	}
}

// jwtAlgorithms are the algorithms whose keys a JWKS can contain.
var jwtAlgorithms = []string{"EdDSA", "ES256", "RS256", "PS256"}

func (c *authChecker) checkJWT(d *syntax.SessionDecl) {
	given := map[string]bool{}
	for _, s := range d.Settings {
		given[s.Name.Name] = true
		switch s.Name.Name {
		case "issuer", "audience":
			c.nonBlank(s.Name.Name, s.Value)
		case "jwks":
			if location, ok := c.nonBlank("jwks", s.Value); ok {
				c.checkKeySet(location)
			}
		case "algorithms":
			for _, alg := range c.NameList(s.Value) {
				c.checkAlgorithm(alg)
			}
		case "roles", "tenant":
			for _, name := range c.Claim(s.Value) {
				c.nonBlank("the claim of "+s.Name.Name, name)
			}
		}
	}
	for _, need := range []string{"issuer", "audience", "jwks"} {
		if !given[need] {
			c.Missing(need, "E530", d.Span(), "jwt needs issuer, audience and jwks: %s is missing", need)
		}
	}
}

// nonBlank requires a string that is not blank.
func (c *authChecker) nonBlank(what string, v syntax.SettingValue) (*syntax.Literal, bool) {
	lit, ok := c.String(v)
	if ok && strings.TrimSpace(lit.Text) == "" {
		c.Errorf("E530", lit.Loc, "jwt: %s is empty, so it would not be checked: write the expected value", what)
		return nil, false
	}
	return lit, ok
}

// checkKeySet checks the location of a provider's keys. Their sender controls who can sign
// in, so it must be authenticated.
func (c *authChecker) checkKeySet(location *syntax.Literal) {
	u, err := url.Parse(location.Text)
	switch {
	case model.IsFileName(location.Text):
	case err == nil && u.Host != "" && !hasValidPort(u):
		c.errorIfNew("E530", location.Loc, "jwks: %s needs a port from 1 to 65535 after the colon", location.Shown())
	case err == nil && u.Host != "" && u.User == nil &&
		(u.Scheme == "https" || u.Scheme == "http" && isLoopback(u.Hostname())):
	default:
		c.Errorf("E530", location.Loc,
			"jwks: %s is neither an https URL nor a file name: write \"https://login.example.com/keys\" or \"keys.json\" (http is allowed only for loopback; a file name has no colon)",
			location.Shown())
	}
}

// isLoopback reports whether host is a loopback address or localhost.
func isLoopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.IsLoopback()
}

func (c *authChecker) checkAlgorithm(alg syntax.Ident) {
	switch {
	case slices.Contains(jwtAlgorithms, alg.Name):
	case strings.EqualFold(alg.Name, "none"):
		c.Errorf("E530", alg.Loc, "algorithm \"none\" is never allowed: use %s", strings.Join(jwtAlgorithms, ", "))
	default:
		c.Errorf("E530", alg.Loc, "algorithm %q is not allowed with jwks: use %s",
			alg.Name, strings.Join(jwtAlgorithms, ", "))
	}
}
