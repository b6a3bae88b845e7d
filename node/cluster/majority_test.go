package cluster_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"runner.example/node/cluster"
	"runner.example/state/store"
)

// Without a majority of the voters a commit ends, and does not wait until there is one.
func TestACommitEndsWithoutAMajority(t *testing.T) {
	first := found(t)
	data := first.joined(cluster.Edge, "edge")
	edge := start(t, data)
	ctx, cancel := edge.WithMajority(t.Context())
	defer cancel()
	write := func(tx *store.Tx) error { return tx.Set([]byte("key"), nil) }
	if _, err := edge.store.Update(ctx, write); err != nil {
		t.Fatal(err)
	}
	first.stop()
	late, stop := context.WithTimeout(ctx, time.Minute)
	defer stop()
	if _, err := edge.store.Update(late, write); err == nil || !errors.Is(context.Cause(ctx), cluster.ErrNoMajority) {
		t.Errorf("the commit ends with %v, its context by %v", err, context.Cause(ctx))
	}
}
