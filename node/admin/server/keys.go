package server

import (
	"context"
	"time"

	"runner.example/keystore"
	"runner.example/node/admin"
	"runner.example/state/store"
)

func (l *Local) createKey(ctx context.Context, who keystore.Authority, args admin.CreateKey) (key keystore.Key, err error) {
	request, err := args.Request()
	if err != nil {
		return key, err
	}
	_, err = l.Store.Update(ctx, func(tx *store.Tx) error {
		key, err = l.Keys.Create(tx, who, request)
		return err
	})
	return key, err
}

// rotateKey returns when the connected nodes know the new token and the end of the old ones.
func (l *Local) rotateKey(ctx context.Context, who keystore.Authority, args admin.RotateKey) (admin.Changed[keystore.Key], error) {
	return rotate(ctx, l, args, func(tx *store.Tx, grace time.Duration) (keystore.Key, error) {
		return l.Keys.Rotate(tx, who, args.ID, grace)
	})
}

// rotate gives a key of one kind a new token, on all nodes.
func rotate[K any](ctx context.Context, l *Local, args admin.RotateKey, do func(*store.Tx, time.Duration) (K, error)) (admin.Changed[K], error) {
	grace, err := admin.DurationOf("gracePeriod", args.GracePeriod)
	if err != nil {
		return admin.Changed[K]{}, err
	}
	var key K
	seq, err := l.Store.Update(ctx, func(tx *store.Tx) (err error) {
		key, err = do(tx, grace)
		return err
	})
	return everywhere(ctx, l, key, seq, err)
}

func (l *Local) getKey(ctx context.Context, who keystore.Authority, args admin.KeyID) (key keystore.Key, err error) {
	err = l.Store.View(ctx, func(tx *store.Tx) error {
		key, err = l.Keys.Get(tx, who, args.ID)
		return err
	})
	return key, err
}

func (l *Local) listKeys(ctx context.Context, who keystore.Authority, args admin.ListKeys) (page keystore.Page, err error) {
	err = l.Store.View(ctx, func(tx *store.Tx) error {
		page, err = l.Keys.List(tx, who, keystore.Filter{
			Scope: args.Scope, Owner: args.Owner, All: args.All, Limit: args.Limit, Cursor: args.Cursor,
		})
		return err
	})
	return page, err
}

// restrictKey returns an operation that revokes or disables one key, on all nodes.
func restrictKey(do func(*keystore.Keystore, *store.Tx, keystore.Authority, string) (keystore.Key, error)) func(*Local, context.Context, keystore.Authority, admin.KeyID) (admin.Changed[keystore.Key], error) {
	return func(l *Local, ctx context.Context, who keystore.Authority, args admin.KeyID) (admin.Changed[keystore.Key], error) {
		var key keystore.Key
		seq, err := l.Store.Update(ctx, func(tx *store.Tx) (err error) {
			key, err = do(l.Keys, tx, who, args.ID)
			return err
		})
		return everywhere(ctx, l, key, seq, err)
	}
}

func (l *Local) enableKey(ctx context.Context, who keystore.Authority, args admin.KeyID) (key keystore.Key, err error) {
	_, err = l.Store.Update(ctx, func(tx *store.Tx) error {
		key, err = l.Keys.Enable(tx, who, args.ID)
		return err
	})
	return key, err
}
