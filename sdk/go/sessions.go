package runner

import (
	"time"

	"runner.example/sdk/go/internal/host"
)

// Sessions opens, lists and ends sessions of the app's users. A user reaches its own
// sessions in its tenant. A caller for whom @manage in the schema's `session cookie` is true
// reaches those of its tenant. A route with `mints: session` reaches those of every user that
// it names.
type Sessions struct{ host host.Host }

// SessionOptions describe a session to be opened.
type SessionOptions struct {
	// UserID is required: whom the session is of.
	UserID string
	Tenant string
	Roles  []string
	// TTL is its lifetime, in whole seconds, at most the schema's `absolute`, which
	// zero takes.
	TTL time.Duration
}

// Session is a session that was opened. Its cookie goes to the browser; no handler
// sees it.
type Session struct {
	ID        string    `json:"id"`
	ExpiresAt time.Time `json:"expiresAt"`
}

// LiveSession is a session that has not ended.
type LiveSession struct {
	ID         string    `json:"id"`
	UserID     string    `json:"userId"`
	Tenant     *string   `json:"tenant"`
	Roles      []string  `json:"roles"`
	CreatedAt  time.Time `json:"createdAt"`
	LastSeenAt time.Time `json:"lastSeenAt"`
	ExpiresAt  time.Time `json:"expiresAt"`
	// Current says that it is the session of this request.
	Current bool `json:"current"`
}

// UserSessions lists and ends the sessions of one user: see Sessions.Of.
type UserSessions struct {
	host host.Host
	user string
}

// SessionFilter says which sessions to list. The zero value asks for all.
type SessionFilter struct {
	// Tenant is nil for the caller's tenant.
	Tenant *string `json:"tenant,omitempty"`
	// AllTenants asks for those of the user in every tenant.
	AllTenants bool `json:"allTenants,omitempty"`
	// Limit is the size of one page; zero asks for all sessions.
	Limit  int    `json:"limit,omitempty"`
	Cursor string `json:"cursor,omitempty"`
}

// SessionPage is a list of sessions, oldest first; NextCursor is empty unless a Limit cut it.
type SessionPage struct {
	Sessions   []LiveSession `json:"sessions"`
	NextCursor string        `json:"nextCursor"`
}

// RevokeOptions says which sessions to end. The zero value ends all.
type RevokeOptions struct {
	// Tenant is nil for the caller's tenant.
	Tenant *string `json:"tenant,omitempty"`
	// AllTenants ends those of the user in every tenant.
	AllTenants bool `json:"allTenants,omitempty"`
	// Except is the id of a session that remains, or CurrentSession; empty: none remains.
	Except string `json:"except,omitempty"`
}

// CurrentSession stands for the id of the session of this request.
const CurrentSession = "current"

// sessionsPerPage is how many sessions List asks for at once.
const sessionsPerPage = 1000

// Create signs a user in, on a route that says `mints: session`; elsewhere it is denied. The
// answer sets the cookie of a new session, when it commits. The session that the caller had
// ends.
func (s Sessions) Create(options SessionOptions) (Session, error) {
	args := map[string]any{"userId": options.UserID}
	if options.Tenant != "" {
		args["tenant"] = options.Tenant
	}
	if len(options.Roles) > 0 {
		args["roles"] = options.Roles
	}
	if options.TTL != 0 {
		args["ttl"] = seconds(options.TTL)
	}
	var session Session
	err := callHost(s.host, "sessions.create", args, &session)
	return session, err
}

// Of selects the sessions of a user, of whom List and RevokeAll are then. An empty user is an
// error with the code invalid, and never the caller.
func (s Sessions) Of(user string) UserSessions { return UserSessions{s.host, user} }

// List gives the live sessions of the caller, without cookies.
func (s Sessions) List(filter SessionFilter) (SessionPage, error) {
	return listSessions(s.host, nil, filter)
}

// List gives the live sessions of the user, without cookies.
func (s UserSessions) List(filter SessionFilter) (SessionPage, error) {
	return listSessions(s.host, &s.user, filter)
}

func listSessions(h host.Host, user *string, filter SessionFilter) (SessionPage, error) {
	var all SessionPage
	whole := filter.Limit == 0
	if whole {
		filter.Limit = sessionsPerPage
	}
	for {
		var page SessionPage
		args := struct {
			User *string `json:"user,omitempty"`
			SessionFilter
		}{user, filter}
		if err := callHost(h, "sessions.list", args, &page); err != nil || !whole {
			return page, err
		}
		all.Sessions = append(all.Sessions, page.Sessions...)
		if filter.Cursor = page.NextCursor; filter.Cursor == "" {
			return all, nil
		}
	}
}

// RevokeAll ends all sessions of the caller, and returns their number. If the session that calls
// is one of them, the answer takes its cookie back.
func (s Sessions) RevokeAll(options RevokeOptions) (int, error) {
	return revokeSessions(s.host, nil, options)
}

// RevokeAll ends all sessions of the user, and gives their number. If the session that calls is
// one of them, the answer takes its cookie back.
func (s UserSessions) RevokeAll(options RevokeOptions) (int, error) {
	return revokeSessions(s.host, &s.user, options)
}

func revokeSessions(h host.Host, user *string, options RevokeOptions) (int, error) {
	args := struct {
		User *string `json:"user,omitempty"`
		RevokeOptions
	}{user, options}
	var ended struct {
		Count int `json:"count"`
	}
	err := callHost(h, "sessions.revokeAll", args, &ended)
	return ended.Count, err
}

// Revoke ends a session. CurrentSession is the session of this request, whose cookie the answer takes
// back. An empty id is an error with the code invalid.
func (s Sessions) Revoke(id string) error {
	args := map[string]string{}
	if id != CurrentSession {
		args["id"] = id
	}
	return callHost(s.host, "sessions.revoke", args, nil)
}
