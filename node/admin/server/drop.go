package server

import (
	"context"
	"encoding/hex"

	"runner.example/internal/fault"
	"runner.example/keystore"
	"runner.example/node/admin"
	"runner.example/state/audit"
	"runner.example/state/entity/catalog"
	"runner.example/state/store"
)

func (l *Local) dropKept(ctx context.Context, who keystore.Authority, args admin.DropKept) (done admin.Dropped, err error) {
	if args.Count {
		done.Rows, err = catalog.CountKept(ctx, l.Store, args.Name)
		return done, err
	}
	from, err := hex.DecodeString(args.Cursor)
	if err != nil {
		return done, fault.New(fault.Invalid, "cursor is not one of this operation")
	}
	step, err := catalog.Drop(ctx, l.Store, args.Name, from, func(tx *store.Tx, step catalog.DropStep) error {
		record := who.Record("data.drop", args.Name)
		record.Count = step.Changed
		return audit.Append(tx, record)
	})
	if err == nil && step.Next == nil {
		err = catalog.DeleteDropped(ctx, l.Store)
	}
	return admin.Dropped{Rows: step.Looked, Count: step.Changed, NextCursor: hex.EncodeToString(step.Next)}, err
}
