package server

import (
	"context"

	"runner.example/keystore"
	"runner.example/node/admin"
	"runner.example/state/store"
)

func (l *Local) createSession(ctx context.Context, who keystore.Authority, args admin.CreateSession) (session keystore.Session, err error) {
	request, err := args.Request()
	if err != nil {
		return session, err
	}
	_, err = l.Store.Update(ctx, func(tx *store.Tx) error {
		session, err = l.Keys.CreateSession(tx, who, request)
		return err
	})
	return session, err
}

func (l *Local) listSessions(ctx context.Context, who keystore.Authority, args admin.ListSessions) (page keystore.SessionPage, err error) {
	err = l.Store.View(ctx, func(tx *store.Tx) error {
		page, err = l.Keys.ListSessions(tx, who, keystore.SessionFilter{
			UserID: args.UserID, Tenant: tenantOf(args.Tenant), All: args.All, Limit: args.Limit, Cursor: args.Cursor,
		})
		return err
	})
	return page, err
}

func (l *Local) revokeSession(ctx context.Context, who keystore.Authority, args admin.SessionID) (admin.Changed[keystore.Session], error) {
	var session keystore.Session
	seq, err := l.Store.Update(ctx, func(tx *store.Tx) (err error) {
		session, err = l.Keys.RevokeSession(tx, who, args.ID)
		return err
	})
	return everywhere(ctx, l, session, seq, err)
}

// revokedPerWrite is how many sessions of a user one transaction revokes.
const revokedPerWrite = 1000

func (l *Local) revokeSessions(ctx context.Context, who keystore.Authority, args admin.RevokeSessions) (admin.Changed[admin.RevokedSessions], error) {
	filter := keystore.SessionFilter{UserID: args.UserID, Tenant: tenantOf(args.Tenant), Limit: revokedPerWrite}
	var revoked admin.RevokedSessions
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
