package server

import (
	"context"
	"errors"

	"runner.example/internal/fault"
	"runner.example/keystore"
	"runner.example/node/admin"
	"runner.example/state/entity/catalog"
	"runner.example/state/store"
)

// verifyBatch is the number of rows and entries that one request verifies. It takes about a second.
const verifyBatch = 200_000

func (l *Local) verifyStore(ctx context.Context, _ keystore.Authority, args admin.VerifyStore) (catalog.VerifiedPart, error) {
	if args.From == nil {
		args.From = &catalog.VerifyPlace{}
	}
	part, err := catalog.VerifyPart(ctx, l.Store, *args.From, verifyBatch)
	if errors.Is(err, store.ErrDamaged) {
		err = fault.New(fault.Invalid, "%v", err) // so that the client gets the text
	}
	return part, err
}
