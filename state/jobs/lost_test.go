package jobs_test

import (
	"testing"
	"testing/synctest"
	"time"

	"runner.example/state/jobs"
	"runner.example/state/store"
	"runner.example/state/store/storetest"
)

func TestARunLearnsThatItsJobIsLost(t *testing.T) {
	for name, lose := range map[string]func(*world, *jobs.Claimed){
		"cancelled by another node": func(w *world, c *jobs.Claimed) {
			w.update(1, func(tx *store.Tx) error {
				_, err := jobs.Cancel(tx, &ada, c.ID, w.clock.Now(), keep)
				return err
			})
		},
		"cancelled, and enqueued again": func(w *world, c *jobs.Claimed) {
			w.update(0, func(tx *store.Tx) error {
				_, err := jobs.Cancel(tx, &ada, c.ID, w.clock.Now(), keep)
				return err
			})
			w.update(0, func(tx *store.Tx) error {
				_, err := jobs.Retry(tx, w.schema, &ada, c.ID, w.clock.Now())
				return err
			})
		},
		"taken over": func(w *world, _ *jobs.Claimed) {
			w.clock.pass(time.Minute)
			w.claim(1)
		},
	} {
		w := newWorld(t, "a", "b")
		w.enqueue(0, ada, mail("a"))
		all := w.claim(0)
		if len(all) != 1 || all[0].Lost().Err() != nil {
			t.Fatalf("%s: claimed %+v", name, all)
		}
		lose(w, all[0])
		if all[0].Lost().Err() == nil {
			t.Errorf("%s: the run goes on", name)
		}
		if err := w.complete(0, all[0]); err != jobs.ErrLost {
			t.Errorf("%s: completed: %v", name, err)
		}
	}
}

func TestARunThatEndsIsNotLost(t *testing.T) {
	w := newWorld(t)
	w.enqueue(0, ada, mail("a"))
	w.enqueue(0, ada, mail("b"))
	all := w.claim(0)
	if len(all) != 2 {
		t.Fatalf("claimed %+v", all)
	}
	if err := w.complete(0, all[0]); err != nil {
		t.Fatal(err)
	}
	w.fail(0, all[1], "boom")
	for _, c := range all {
		if c.Lost().Err() != nil {
			t.Errorf("the run of %s is lost", c.Params)
		}
	}
}

// The claim takes too long, so that the node gives up, and is committed nevertheless.
func TestAJobThatWasClaimedAndNeverBeganRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := storetest.NewLog()
		w := &world{t: t, schema: compiled(t, app), clock: newClock(), stores: log.Nodes(t, "a")}
		w.queues = append(w.queues, w.open(w.stores[0]))
		w.claim(0) // which writes the schedules
		e := w.enqueue(0, ada, jobs.Request{Name: "night"})
		release := log.Hold("a")
		if all, err := w.queues[0].Claim(t.Context()); err == nil || len(all) != 0 {
			t.Fatalf("claimed %+v, %v", all, err)
		}
		release()
		storetest.CatchUp(t, w.stores...)
		if j := w.get(e.ID); j.State != jobs.Running {
			t.Fatalf("the claim is not committed: %+v", j)
		}
		if all := w.claim(0); len(all) != 1 || all[0].ID != e.ID || all[0].Attempt != 1 {
			t.Errorf("claimed %+v, want the first attempt", all)
		}
	})
}
