package admin

import (
	"context"

	"runner.example/internal/caller"
	"runner.example/keystore"
	"runner.example/schema"
	"runner.example/store"
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
			UserID: args.UserID, Tenant: args.Tenant, All: args.All, Limit: args.Limit, Cursor: args.Cursor,
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
