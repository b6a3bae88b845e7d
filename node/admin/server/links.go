package server

import (
	"context"

	"runner.example/keystore"
	"runner.example/keystore/filelink"
	"runner.example/node/admin"
	"runner.example/state/store"
)

func (l *Local) revokeLinks(ctx context.Context, who keystore.Authority, _ struct{}) (admin.Changed[admin.RevokedLinks], error) {
	var revoked admin.RevokedLinks
	seq, err := l.Store.Update(ctx, func(tx *store.Tx) (err error) {
		revoked.Generation, err = filelink.Revoke(tx, who)
		return err
	})
	return everywhere(ctx, l, revoked, seq, err)
}
