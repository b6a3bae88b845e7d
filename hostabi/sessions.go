package hostabi

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"runner.example/internal/fault"
	"runner.example/keystore"
	"runner.example/schema"
)

var errNotAllowed = fault.New(fault.Denied, "sessions can be created and ended only on routes with `mints: session`")

// createSession creates a session for the client of this request. The session that it had
// ends, also one that this run created: the client has one cookie, and the rights of a
// session never change.
func createSession(c *Call, args *arguments) (any, error) {
	req := keystore.CreateSessionRequest{UserID: args.text("userId")}
	req.Tenant, _ = args.optionalText("tenant")
	req.Roles = args.optionalTexts("roles")
	if ttl, ok := args.optionalSeconds("ttl"); ok {
		req.TTL = &ttl
	}
	if err := args.end(); err != nil {
		return nil, err
	}
	if !c.CreatesSession {
		return nil, errNotAllowed
	}
	req.Replaces = cmp.Or(c.opened, c.ClientSession)
	s, err := c.Host.Keystore.CreateSession(c.Tx, c.authority(), req)
	if err != nil {
		return nil, err
	}
	c.opened = s.ID
	c.setCookie = setCookie(c.Host.Schema.Auth.Cookie, s.Cookie.Reveal(), s.ExpiresAt.Sub(s.CreatedAt))
	return struct {
		ID        string `json:"id"`
		ExpiresAt string `json:"expiresAt"`
	}{s.ID, s.ExpiresAt.UTC().Format("2006-01-02T15:04:05.000Z")}, nil
}

// revokeSession revokes a session of the caller: the one with the id, or this one, whose
// cookie is removed too.
func revokeSession(c *Call, args *arguments) (any, error) {
	id, named := args.optionalText("id")
	if err := args.end(); err != nil {
		return nil, err
	}
	if !c.CreatesSession {
		return nil, errNotAllowed
	}
	if !named {
		if id = cmp.Or(c.opened, c.Caller.SessionID); id == "" {
			return nil, fault.New(fault.NotFound, "the caller has no cookie session here: the route must say auth: session")
		}
	}
	if _, err := c.Host.Keystore.RevokeSession(c.Tx, c.authority(), id); err != nil {
		return nil, err
	}
	if cookie := c.Host.Schema.Auth.Cookie; cookie != nil && (id == c.opened || id == c.Caller.SessionID && c.opened == "") {
		c.setCookie = setCookie(cookie, cookie.Name+"=", 0)
	}
	return struct {
		ID string `json:"id"`
	}{id}, nil
}

// setCookie writes the header of that name (RFC 6265, section 4.1). A cookie
// without __Host- in its name is for plain HTTP on loopback.
func setCookie(c *schema.CookieSession, pair string, lasts time.Duration) string {
	secure := ""
	if strings.HasPrefix(c.Name, "__Host-") {
		secure = "; Secure"
	}
	site := "Lax"
	if c.SameSite == "strict" {
		site = "Strict"
	}
	return fmt.Sprintf("%s; Path=/; Max-Age=%d%s; HttpOnly; SameSite=%s", pair, int64(lasts/time.Second), secure, site)
}
