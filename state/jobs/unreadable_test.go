package jobs_test

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"runner.example/state/jobs"
	"runner.example/state/store"
)

// damage makes the record of a job unreadable.
func (w *world) damage(id string) {
	w.t.Helper()
	w.update(0, func(tx *store.Tx) error { return tx.Set([]byte("jobs/j/"+id), []byte(`{"n":7}`)) })
}

func TestARecordThatCannotBeReadCostsOnlyItsOwnJob(t *testing.T) {
	w := newWorld(t)
	bad := w.enqueue(0, ada, mail("bad"))
	w.damage(bad.ID)
	good := w.enqueue(0, ada, mail("good"))
	all := w.claim(0)
	if len(all) != 1 || all[0].ID != good.ID {
		t.Fatalf("claimed %+v, want %s", all, good.ID)
	}
	if err := w.complete(0, all[0]); err != nil {
		t.Fatal(err)
	}
	if again := w.claim(0); len(again) != 0 {
		t.Errorf("claimed again: %+v", again)
	}
	if ids := w.list(jobs.Filter{}); len(ids) != 2 || !slices.Contains(ids, bad.ID) {
		t.Errorf("the list has %s", ids)
	}
	if ids := w.list(jobs.Filter{State: jobs.Done}); len(ids) != 1 {
		t.Errorf("done: %s", ids)
	}
}

func TestARunningRecordThatCannotBeReadFreesItsSlot(t *testing.T) {
	w := newWorld(t)
	one := jobs.Request{Name: "tenants"}
	bad := w.enqueue(0, ada, one)
	all := w.claim(0)
	if len(all) != 1 {
		t.Fatalf("claimed %+v", all)
	}
	good := w.enqueue(0, ada, one)
	w.damage(bad.ID)
	if err := w.complete(0, all[0]); err == nil {
		t.Fatal("the run of the damaged record is committed")
	}
	w.clock.pass(time.Minute)
	if all = w.claim(0); len(all) != 1 || all[0].ID != good.ID {
		t.Errorf("after the lease claimed %+v, want %s", all, good.ID)
	}
}

func TestAKeyIsFreeWhenItsRecordCannotBeRead(t *testing.T) {
	w := newWorld(t)
	request := mail("a")
	request.Key = "k"
	bad := w.enqueue(0, ada, request)
	w.damage(bad.ID)
	if all := w.claim(0); len(all) != 0 {
		t.Errorf("claimed %+v", all)
	}
	if next := w.enqueue(0, ada, request); !next.Created {
		t.Errorf("the answer is the damaged job: %+v", next)
	}
}

func TestExpiredJobsAreDeletedBesideOneThatCannotBeRead(t *testing.T) {
	w := newWorld(t)
	bad, good := w.enqueue(0, ada, mail("bad")), w.enqueue(0, ada, mail("good"))
	for _, c := range w.claim(0) {
		if err := w.complete(0, c); err != nil {
			t.Fatal(err)
		}
	}
	w.damage(bad.ID)
	w.clock.pass(keep.Done + time.Minute)
	if err := jobs.Sweep(t.Context(), w.stores[0], w.clock.Now()); err != nil {
		t.Fatal(err)
	}
	if ids := w.list(jobs.Filter{}); len(ids) != 0 {
		t.Errorf("%s and %s are kept: %s", bad.ID, good.ID, ids)
	}
}

// A waiting key has a group, a time and an id.
func TestAWaitingKeyThatCannotBeReadCostsOnlyItsOwnJob(t *testing.T) {
	w := newWorld(t)
	bad := w.enqueue(0, ada, mail("bad"))
	w.update(0, func(tx *store.Tx) error {
		for item, err := range tx.Scan([]byte("jobs/w/"), nil, false) {
			if err != nil {
				return err
			}
			if bytes.HasSuffix(item.Key, []byte(bad.ID)) {
				return tx.Set(bytes.Clone(item.Key), []byte("not one"))
			}
		}
		t.Error("no waiting key")
		return nil
	})
	w.clock.pass(time.Millisecond)
	good := w.enqueue(0, ada, mail("good"))
	w.queues[0].Close()
	w.queues[0] = w.open(w.stores[0]) // it reads the keys
	if all := w.claim(0); len(all) != 1 || all[0].ID != good.ID {
		t.Errorf("claimed %+v, want %s", all, good.ID)
	}
}

func TestAScheduleThatCannotBeReadIsWrittenAgain(t *testing.T) {
	w := newWorld(t)
	w.update(0, func(tx *store.Tx) error { return tx.Set([]byte("jobs/s/night"), []byte("[]")) })
	w.enqueue(0, ada, mail("a"))
	if all := w.claim(0); len(all) != 1 {
		t.Fatalf("claimed %+v", all)
	}
	w.clock.pass(24 * time.Hour)
	if all := w.claim(0); len(all) != 1 || all[0].Name != "night" {
		t.Errorf("a day later claimed %+v", all)
	}
}
