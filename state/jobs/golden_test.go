package jobs_test

import (
	"testing"
	"testing/cryptotest"
	"time"

	"runner.example/internal/caller"
	"runner.example/state/jobs"
	"runner.example/state/store"
	"runner.example/state/store/storetest"
)

// Each state of a job, and each kind of record, is in the store.
func TestRecordsOfJobsHaveTheFormOfTheLevel(t *testing.T) {
	cryptotest.SetGlobalRandom(t, 1)
	w := newWorld(t)
	done, failing := w.enqueue(0, ada, mail("done")), w.enqueue(0, ada, jobs.Request{Name: "night", RequestID: "r"})
	for _, c := range w.claim(0) {
		switch c.ID {
		case done.ID:
			if err := w.complete(0, c); err != nil {
				t.Fatal(err)
			}
		case failing.ID:
			w.fail(0, c, "it went wrong")
		}
	}
	running := mail("running")
	running.Key = "once"
	w.enqueue(0, caller.Caller{Kind: caller.APIKey, KeyID: "key_1", Tenant: "acme", Scope: "nightly", Capability: "nightly"}, running)
	w.enqueue(0, ada, jobs.Request{Name: "limited", Params: []byte(`{"of":"x"}`)})
	if len(w.claim(0)) != 2 {
		t.Fatal("the jobs are not claimed")
	}
	waiting := jobs.Request{Name: "tenants", Delay: time.Hour, Key: "k", RequestID: "r"}
	w.enqueue(0, ada, waiting)
	cancelled := w.enqueue(0, ada, mail("cancelled"))
	w.update(0, func(tx *store.Tx) error {
		_, err := jobs.Cancel(tx, &ada, cancelled.ID, w.clock.Now(), keep)
		return err
	})
	// The pause stays until the last call with the cursor.
	w.enqueue(0, tenant("blue"), mail("cancelled with others"))
	all, err := jobs.CancelSome(t.Context(), w.stores[0], jobs.Selection{Name: "mail", Tenant: "blue"}, "", w.clock.Now, keep,
		func(*store.Tx, int) error { return nil })
	if err != nil || all.Count != 1 || all.Cursor == "" {
		t.Fatalf("%+v, %v", all, err)
	}
	storetest.Golden(t, w.stores[0], "jobs", "jobs/")
}
