package server

import (
	"context"
	"time"

	"runner.example/keystore"
	"runner.example/node/admin"
	"runner.example/state/store"
)

func (l *Local) createPlatformKey(ctx context.Context, who keystore.Authority, args admin.CreatePlatformKey) (key keystore.PlatformKey, err error) {
	request, err := args.Request()
	if err != nil {
		return key, err
	}
	_, err = l.Store.Update(ctx, func(tx *store.Tx) error {
		key, err = l.Keys.Platform.Create(tx, who, request)
		return err
	})
	return key, err
}

func (l *Local) listPlatformKeys(ctx context.Context, who keystore.Authority, args admin.ListPlatformKeys) (list admin.PlatformKeyList, err error) {
	list.Keys = []keystore.PlatformKey{}
	err = l.Store.View(ctx, func(tx *store.Tx) error {
		keys, err := l.Keys.Platform.List(tx, who, args.All)
		list.Keys = append(list.Keys, keys...)
		return err
	})
	return list, err
}

func (l *Local) rotatePlatformKey(ctx context.Context, who keystore.Authority, args admin.RotateKey) (admin.Changed[keystore.PlatformKey], error) {
	return rotate(ctx, l, args, func(tx *store.Tx, grace time.Duration) (keystore.PlatformKey, error) {
		return l.Keys.Platform.Rotate(tx, who, args.ID, grace)
	})
}

func (l *Local) revokePlatformKey(ctx context.Context, who keystore.Authority, args admin.KeyID) (admin.Changed[keystore.PlatformKey], error) {
	var key keystore.PlatformKey
	seq, err := l.Store.Update(ctx, func(tx *store.Tx) (err error) {
		key, err = l.Keys.Platform.Revoke(tx, who, args.ID)
		return err
	})
	return everywhere(ctx, l, key, seq, err)
}
