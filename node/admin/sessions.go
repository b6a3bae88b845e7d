package admin

import (
	"context"

	"runner.example/internal/caller"
	"runner.example/keystore"
	"runner.example/schema"
	"runner.example/state/store"
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

// CreateSession creates a session; only this answer has its cookie.
func (c *Client) CreateSession(ctx context.Context, request CreateSession) (keystore.Session, error) {
	return ask[keystore.Session](ctx, c, "sessions.create", request)
}

// ListSessions returns one page of sessions.
func (c *Client) ListSessions(ctx context.Context, request ListSessions) (keystore.SessionPage, error) {
	return ask[keystore.SessionPage](ctx, c, "sessions.list", request)
}

// RevokeSession revokes a session permanently; revoking a revoked one changes nothing.
func (c *Client) RevokeSession(ctx context.Context, id string) (Changed[keystore.Session], error) {
	return ask[Changed[keystore.Session]](ctx, c, "sessions.revoke", SessionID{ID: id})
}

// RevokeSessions revokes all sessions of a user permanently, in several transactions if there are
// many. After an error some may be revoked; the same request revokes the others.
func (c *Client) RevokeSessions(ctx context.Context, request RevokeSessions) (Changed[RevokedSessions], error) {
	return ask[Changed[RevokedSessions]](ctx, c, "sessions.revokeAll", request)
}

// Check returns the error with which every node with that schema would refuse the request,
// or nil.
func (r CreateSession) Check(s *schema.Schema) error {
	request, err := r.request()
	if err != nil {
		return err
	}
	return keystore.Authority{Schema: s, Caller: caller.Caller{Kind: caller.System}}.CheckSession(request)
}

func (r CreateSession) request() (keystore.CreateSessionRequest, error) {
	request := keystore.CreateSessionRequest{UserID: r.UserID, Tenant: r.Tenant, Roles: r.Roles}
	if r.TTL != nil {
		lifetime, err := seconds("ttl", *r.TTL)
		if err != nil {
			return request, err
		}
		request.TTL = &lifetime
	}
	return request, nil
}

func (l *Local) createSession(ctx context.Context, who keystore.Authority, args CreateSession) (session keystore.Session, err error) {
	request, err := args.request()
	if err != nil {
		return session, err
	}
	_, err = l.Store.Update(ctx, func(tx *store.Tx) error {
		session, err = l.Keys.CreateSession(tx, who, request)
		return err
	})
	return session, err
}

func (l *Local) listSessions(ctx context.Context, who keystore.Authority, args ListSessions) (page keystore.SessionPage, err error) {
	err = l.Store.View(ctx, func(tx *store.Tx) error {
		page, err = l.Keys.ListSessions(tx, who, keystore.SessionFilter{
			UserID: args.UserID, Tenant: tenantOf(args.Tenant), All: args.All, Limit: args.Limit, Cursor: args.Cursor,
		})
		return err
	})
	return page, err
}

func (l *Local) revokeSession(ctx context.Context, who keystore.Authority, args SessionID) (Changed[keystore.Session], error) {
	var session keystore.Session
	seq, err := l.Store.Update(ctx, func(tx *store.Tx) (err error) {
		session, err = l.Keys.RevokeSession(tx, who, args.ID)
		return err
	})
	return everywhere(ctx, l, session, seq, err)
}

// revokedPerWrite is how many sessions of a user one transaction revokes.
const revokedPerWrite = 1000

func (l *Local) revokeSessions(ctx context.Context, who keystore.Authority, args RevokeSessions) (Changed[RevokedSessions], error) {
	filter := keystore.SessionFilter{UserID: args.UserID, Tenant: tenantOf(args.Tenant), Limit: revokedPerWrite}
	var revoked RevokedSessions
	for {
		var ended []string
		var more bool
		seq, err := l.Store.Update(ctx, func(tx *store.Tx) (err error) {
			ended, more, err = l.Keys.RevokeSessions(tx, who, filter, args.Except)
			return err
		})
		revoked.Count += len(ended)
		if err != nil || !more {
			return everywhere(ctx, l, revoked, seq, err)
		}
	}
}

// tenantOf returns the tenant for a filter. An empty name selects every tenant that the operator
// reaches.
func tenantOf(name string) *string {
	if name == "" {
		return nil
	}
	return &name
}
