package jobs_test

import (
	"testing"
	"time"

	"runner.example/jobs"
	"runner.example/store"
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
