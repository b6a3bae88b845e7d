package admin

import (
	"context"
	"encoding/hex"

	"runner.example/internal/fault"
	"runner.example/keystore"
	"runner.example/state/audit"
	"runner.example/state/entity/catalog"
	"runner.example/state/store"
)

// DropKept names a field or an entity that rows have, and that the active release does not declare.
type DropKept struct {
	// Name is "Order" or "Order.note".
	Name   string `json:"name"`
	Cursor string `json:"cursor,omitempty"`
	// Count asks only for the number of rows.
	Count bool `json:"count,omitempty"`
}

// Dropped is the result of one batch.
type Dropped struct {
	// Rows is the number of rows that were read, Count that of those that were changed or deleted.
	Rows  int `json:"rows"`
	Count int `json:"count"`
	// NextCursor is empty after the last batch.
	NextCursor string `json:"nextCursor"`
}

// DropKept deletes a batch of values or rows for good.
func (c *Client) DropKept(ctx context.Context, request DropKept) (Dropped, error) {
	return ask[Dropped](ctx, c, "data.drop", request)
}

func (l *Local) dropKept(ctx context.Context, who keystore.Authority, args DropKept) (done Dropped, err error) {
	if args.Count {
		done.Rows, err = catalog.CountKept(ctx, l.Store, args.Name)
		return done, err
	}
	from, err := hex.DecodeString(args.Cursor)
	if err != nil {
		return done, fault.New(fault.Invalid, "cursor is not one of this operation")
	}
	step, err := catalog.Drop(ctx, l.Store, args.Name, from, func(tx *store.Tx, step catalog.DropStep) error {
		return audit.Append(tx, audit.Record{
			RequestID: who.RequestID, Actor: audit.ActorOf(who.Caller), Action: "data.drop",
			Target: args.Name, Result: audit.OK, Count: step.Changed,
		})
	})
	if err == nil && step.Next == nil {
		err = catalog.DeleteDropped(ctx, l.Store)
	}
	return Dropped{Rows: step.Looked, Count: step.Changed, NextCursor: hex.EncodeToString(step.Next)}, err
}
