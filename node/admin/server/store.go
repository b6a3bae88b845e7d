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

// verifiedAtOnce is how many rows and entries one answer is about: they take about a second.
const verifiedAtOnce = 200_000

func (l *Local) verifyStore(ctx context.Context, _ keystore.Authority, args admin.VerifyStore) (catalog.VerifiedPart, error) {
	if args.From == nil {
		args.From = &catalog.VerifyPlace{}
	}
	part, err := catalog.VerifyPart(ctx, l.Store, *args.From, verifiedAtOnce)
	if errors.Is(err, store.ErrDamaged) {
		err = fault.New(fault.Invalid, "%v", err) // the socket passes on the text
	}
	return part, err
}
