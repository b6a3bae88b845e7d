package jobs_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"runner.example/internal/caller"
	"runner.example/state/jobs"
	"runner.example/state/store"
)

// keys returns how many keys of the store have a prefix of those in the package documentation.
func (w *world) keys(prefix string) (n int) {
	w.t.Helper()
	w.update(0, func(tx *store.Tx) error {
		n = 0
		for _, err := range tx.Scan([]byte(prefix), nil, false) {
			if err != nil {
				return err
			}
			n++
		}
		return nil
	})
	return n
}

// The largest request that is accepted; TestWhatCannotBeEnqueuedNamesTheMember has larger ones.
func TestALimitOfARequestIsPartOfIt(t *testing.T) {
	w := newWorld(t)
	params := fmt.Sprintf(`{"to":"%s"}`, strings.Repeat("a", 256<<10-len(`{"to":""}`)))
	for name, r := range map[string]jobs.Request{
		"delay":  {Name: "mail", Params: []byte(`{"to":"a"}`), Delay: jobs.MaxDelay},
		"at":     {Name: "mail", Params: []byte(`{"to":"a"}`), At: w.clock.Now().Add(jobs.MaxDelay)},
		"key":    {Name: "mail", Params: []byte(`{"to":"a"}`), Key: strings.Repeat("k", 200)},
		"params": {Name: "mail", Params: []byte(params)},
	} {
		if e := w.enqueue(0, ada, r); !e.Created {
			t.Errorf("%s: %+v", name, e)
		}
	}
	w.clock.pass(jobs.MaxDelay - time.Millisecond)
	if all := w.claim(0); len(all) != 2 {
		t.Errorf("%d jobs are due before the longest delay has passed, want 2", len(all))
	}
	w.clock.pass(time.Millisecond)
	if all := w.claim(0); len(all) != 2 {
		t.Errorf("%d jobs are due after the longest delay, want 2", len(all))
	}
}

// An operator that is bound to a tenant reaches its jobs, and one that is not bound reaches all.
func TestAnOperatorReachesTheJobsOfItsTenant(t *testing.T) {
	for name, row := range map[string]struct {
		by      caller.Caller
		reaches bool
	}{
		"bound to the tenant":           {caller.Caller{Kind: caller.System, Tenant: "north"}, true},
		"bound to another":              {caller.Caller{Kind: caller.System, Tenant: "south"}, false},
		"not bound":                     {caller.Caller{Kind: caller.System}, true},
		"a user of the tenant":          {caller.Caller{Kind: caller.Session, Tenant: "north"}, true},
		"a user of another":             {caller.Caller{Kind: caller.Session, Tenant: "south"}, false},
		"a user without a tenant":       {caller.Caller{Kind: caller.Session}, false},
		"an anonymous caller elsewhere": {caller.Caller{}, false},
	} {
		w := newWorld(t)
		e := w.enqueue(0, tenant("north"), mail("a"))
		want := error(nil)
		if !row.reaches {
			want = jobs.ErrNotFound
		}
		_, err := w.stores[0].Update(t.Context(), func(tx *store.Tx) error {
			_, err := jobs.Retry(tx, w.schema, &row.by, e.ID, w.clock.Now())
			return err
		})
		if err != want {
			t.Errorf("%s: retried: %v, want %v", name, err, want)
		}
		_, err = w.stores[0].Update(t.Context(), func(tx *store.Tx) error {
			_, err := jobs.Cancel(tx, &row.by, e.ID, w.clock.Now(), keep)
			return err
		})
		if err != want {
			t.Errorf("%s: cancelled: %v, want %v", name, err, want)
		}
		if state := w.get(e.ID).State; (state == jobs.Cancelled) != row.reaches {
			t.Errorf("%s: the job is %s", name, state)
		}
	}
}

// A job that is retried is not one that failed any more: it is not listed as such, and not deleted.
func TestARetriedJobLeavesNothingOfItsEnd(t *testing.T) {
	for _, end := range []jobs.State{jobs.Failed, jobs.Cancelled} {
		w := newWorld(t)
		e := w.enqueue(0, ada, jobs.Request{Name: "mail", Params: []byte(`{"to":"a"}`), Key: "k"})
		switch end {
		case jobs.Cancelled:
			w.update(0, func(tx *store.Tx) error {
				_, err := jobs.Cancel(tx, &ada, e.ID, w.clock.Now(), keep)
				return err
			})
		case jobs.Failed:
			for w.get(e.ID).State != jobs.Failed {
				w.clock.pass(time.Minute)
				w.fail(0, w.claim(0)[0], "boom")
			}
		}
		if n := w.keys("jobs/e/"); n != 1 {
			t.Fatalf("%s: %d jobs expire", end, n)
		}
		w.update(0, func(tx *store.Tx) error {
			_, err := jobs.Retry(tx, w.schema, &ada, e.ID, w.clock.Now())
			return err
		})
		for prefix, want := range map[string]int{"jobs/e/": 0, "jobs/f/": 0, "jobs/w/": 1, "jobs/k/": 1, "jobs/r/": 0, "jobs/c/": 0} {
			if n := w.keys(prefix); n != want {
				t.Errorf("%s: %d keys begin with %s, want %d", end, n, prefix, want)
			}
		}
		if j := w.get(e.ID); j.State != jobs.Waiting || j.Attempt != 0 || j.Error != "" || j.Ended != 0 || j.Expires != 0 {
			t.Errorf("%s: retried: %+v", end, j)
		}
		if err := w.complete(0, w.claim(0)[0]); err != nil {
			t.Fatal(err)
		}
		for prefix, want := range map[string]int{"jobs/e/": 1, "jobs/f/": 0, "jobs/w/": 0, "jobs/k/": 0, "jobs/r/": 0} {
			if n := w.keys(prefix); n != want {
				t.Errorf("%s: done: %d keys begin with %s, want %d", end, n, prefix, want)
			}
		}
	}
}
