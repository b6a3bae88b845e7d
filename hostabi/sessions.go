package hostabi

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"runner.example/internal/fault"
	"runner.example/keystore"
	"runner.example/schema"
)

var errCannotCreate = fault.New(fault.Denied, "sessions can be created only on routes with `mints: session`")

var errCookieTooLate = fault.New(fault.Denied,
	"a session cannot be created after the answer has begun, whose headers have its cookie: create it before")

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
	switch {
	case !c.CreatesSession:
		return nil, errCannotCreate
	case c.streaming:
		return nil, errCookieTooLate
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
	}{s.ID, sessionTime(s.ExpiresAt)}, nil
}

// currentSession returns the id of the session that this run created, otherwise of the caller's
// session. It is empty if there is none.
func (c *Call) currentSession() string { return cmp.Or(c.opened, c.Caller.SessionID) }

// listedSession is what handlers see of a live session.
type listedSession struct {
	ID         string   `json:"id"`
	UserID     string   `json:"userId"`
	Tenant     *string  `json:"tenant"`
	Roles      []string `json:"roles"`
	CreatedAt  string   `json:"createdAt"`
	LastSeenAt string   `json:"lastSeenAt"`
	ExpiresAt  string   `json:"expiresAt"`
	Current    bool     `json:"current"`
}

// listSessions lists the live sessions of a user, without an argument those of the caller.
func listSessions(c *Call, args *arguments) (any, error) {
	filter := sessionFilter(args)
	filter.Cursor, _ = args.optionalText("cursor")
	filter.Limit = args.pageLimit()
	if err := args.end(); err != nil {
		return nil, err
	}
	page, err := c.Host.Keystore.ListSessions(c.Tx, c.authority(), filter)
	if err != nil {
		return nil, err
	}
	sessions := make([]listedSession, len(page.Sessions))
	for i, s := range page.Sessions {
		sessions[i] = listedSession{
			ID: s.ID, UserID: s.UserID, Roles: append([]string{}, s.Roles...), Current: s.ID == c.currentSession(),
			CreatedAt: sessionTime(s.CreatedAt), LastSeenAt: sessionTime(s.LastSeenAt), ExpiresAt: sessionTime(s.ExpiresAt),
		}
		if s.Tenant != "" {
			sessions[i].Tenant = &s.Tenant
		}
	}
	var next *string
	if page.NextCursor != "" {
		next = &page.NextCursor
	}
	return struct {
		Sessions   []listedSession `json:"sessions"`
		NextCursor *string         `json:"nextCursor"`
	}{sessions, next}, nil
}

// sessionFilter reads the members that select sessions. A missing value must not select the
// caller's sessions: a user or tenant that is null, and an empty user, is an error.
func sessionFilter(args *arguments) (f keystore.SessionFilter) {
	if user, ok := args.presentText("user"); ok {
		if user == "" {
			args.wrong("member %q must not be empty: leave it out for the caller's own sessions", "user")
		}
		f.UserID = user
	}
	if tenant, ok := args.presentText("tenant"); ok {
		f.Tenant = &tenant
	}
	args.notNull("allTenants")
	f.AllTenants = args.optionalBool("allTenants")
	return f
}

// revokeSession revokes a session that the caller reaches: the one with the id, or this one,
// whose cookie is removed too.
func revokeSession(c *Call, args *arguments) (any, error) {
	id, named := args.presentText("id")
	if named && id == "" {
		args.wrong("member %q must not be empty: leave it out for the session of this request", "id")
	}
	if err := args.end(); err != nil {
		return nil, err
	}
	if !named {
		if id = c.currentSession(); id == "" {
			return nil, fault.New(fault.NotFound, "the caller has no cookie session here: the route must say auth: session")
		}
	}
	if _, err := c.Host.Keystore.RevokeSession(c.Tx, c.authority(), id); err != nil {
		return nil, err
	}
	c.clearCookie(id)
	return struct {
		ID string `json:"id"`
	}{id}, nil
}

// revokeSessions revokes all sessions of a user, without an argument those of the caller.
func revokeSessions(c *Call, args *arguments) (any, error) {
	filter := sessionFilter(args)
	except, named := args.presentText("except")
	if named && except == "" {
		args.wrong("member %q must be the id of a session, or %q", "except", currentWord)
	}
	if err := args.end(); err != nil {
		return nil, err
	}
	if except == currentWord {
		except = c.currentSession()
	}
	ended, _, err := c.Host.Keystore.RevokeSessions(c.Tx, c.authority(), filter, except)
	if err != nil {
		return nil, err
	}
	c.clearCookie(ended...)
	return struct {
		Count int `json:"count"`
	}{len(ended)}, nil
}

// currentWord stands for the id of the current session.
const currentWord = "current"

// clearCookie removes the client's cookie if one of the revoked sessions is its own.
func (c *Call) clearCookie(revoked ...string) {
	current := c.currentSession()
	if cookie := c.Host.Schema.Auth.Cookie; cookie != nil && current != "" && slices.Contains(revoked, current) {
		c.setCookie = ClearedCookie(cookie)
	}
}

// ClearedCookie returns the value of the header Set-Cookie that makes a client delete the session cookie.
func ClearedCookie(c *schema.CookieSession) string { return setCookie(c, c.Name+"=", 0) }

// sessionTime writes a time of a session, RFC 3339 with milliseconds.
func sessionTime(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

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
