package cluster_test

import (
	"testing"
	"time"

	"runner.example/node/cluster"
	"runner.example/state/store"
	"runner.example/state/store/storetest"
)

func TestRecordsOfNodesHaveTheFormOfTheLevel(t *testing.T) {
	st, err := store.Open(store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	if _, err := st.Update(t.Context(), func(tx *store.Tx) error {
		return cluster.PutSamples(tx, time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC))
	}); err != nil {
		t.Fatal(err)
	}
	storetest.Golden(t, st, "nodes", "cluster/")
}
