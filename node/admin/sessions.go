package admin

import (
	"context"

	"runner.example/internal/caller"
	"runner.example/keystore"
	"runner.example/schema"
)

// CreateSession describes a new session.
type CreateSession struct {
	UserID string   `json:"userId"`
	Tenant string   `json:"tenant,omitempty"`
	Roles  []string `json:"roles,omitempty"`
	// TTL is its lifetime in seconds; nil means the schema's.
	TTL *int64 `json:"ttl,omitempty"`
}

// SessionID identifies a session.
type SessionID struct {
	ID string `json:"id"`
}

// RevokeSessions selects the sessions to revoke.
type RevokeSessions struct {
	UserID string `json:"userId"`
	// Tenant limits the revocation to the user's sessions in this tenant; empty: in every tenant.
	Tenant string `json:"tenant,omitempty"`
	// Except is the id of a session that is not revoked; empty: none.
	Except string `json:"except,omitempty"`
}

// RevokedSessions says what was revoked.
type RevokedSessions struct {
	// Count is the number of sessions.
	Count int `json:"count"`
}

// ListSessions selects sessions; the zero value selects the first 100 active ones.
type ListSessions struct {
	UserID string `json:"userId,omitempty"`
	Tenant string `json:"tenant,omitempty"`
	// All includes expired and revoked sessions that are still stored.
	All    bool   `json:"all,omitempty"`
	Limit  int    `json:"limit,omitempty"`
	Cursor string `json:"cursor,omitempty"`
}

// Check returns the error with which every node with that schema would refuse the request,
// or nil.
func (r CreateSession) Check(s *schema.Schema) error {
	request, err := r.Request()
	if err != nil {
		return err
	}
	return keystore.Authority{Schema: s, Caller: caller.Caller{Kind: caller.System}}.CheckSession(request)
}

// Request returns the request to the keystore.
func (r CreateSession) Request() (keystore.CreateSessionRequest, error) {
	request := keystore.CreateSessionRequest{UserID: r.UserID, Tenant: r.Tenant, Roles: r.Roles}
	if r.TTL != nil {
		lifetime, err := DurationOf("ttl", *r.TTL)
		if err != nil {
			return request, err
		}
		request.TTL = &lifetime
	}
	return request, nil
}

// CreateSession creates a session; only this answer has its cookie.
func (c *Client) CreateSession(ctx context.Context, request CreateSession) (keystore.Session, error) {
	return ask(ctx, c, OpCreateSession, request)
}

// ListSessions returns one page of sessions.
func (c *Client) ListSessions(ctx context.Context, request ListSessions) (keystore.SessionPage, error) {
	return ask(ctx, c, OpListSessions, request)
}

// RevokeSession revokes a session permanently; revoking a revoked one changes nothing.
func (c *Client) RevokeSession(ctx context.Context, id string) (Changed[keystore.Session], error) {
	return ask(ctx, c, OpRevokeSession, SessionID{ID: id})
}

// RevokeSessions revokes all sessions of a user permanently, in several transactions if there are
// many. After an error some may be revoked; the same request revokes the others.
func (c *Client) RevokeSessions(ctx context.Context, request RevokeSessions) (Changed[RevokedSessions], error) {
	return ask(ctx, c, OpRevokeSessions, request)
}
