package runner

import (
	"time"

	"runner.example/sdk/go/internal/host"
)

// Sessions opens and ends sessions of the app's users, on routes that say
// `mints: session`; elsewhere it is denied.
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

// Create signs a user in: the answer sets the cookie of a new session, when it
// commits. The session that the caller had ends.
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

// Revoke ends a session of the caller's. An empty id is the session that calls, whose
// cookie the answer takes back.
func (s Sessions) Revoke(id string) error {
	args := map[string]string{}
	if id != "" {
		args["id"] = id
	}
	return callHost(s.host, "sessions.revoke", args, nil)
}
