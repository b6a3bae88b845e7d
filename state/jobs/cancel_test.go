package jobs_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"runner.example/internal/caller"
	"runner.example/internal/fault"
	"runner.example/state/jobs"
	"runner.example/state/store"
	"runner.example/state/store/storetest"
)

// cancelSome does one step of a cancellation.
func (w *world) cancelSome(node int, s jobs.Selection, cursor string, record func(*store.Tx, int) error) jobs.CancelledSome {
	w.t.Helper()
	if record == nil {
		record = func(*store.Tx, int) error { return nil }
	}
	done, err := jobs.CancelSome(w.t.Context(), w.stores[node], s, cursor, w.clock.Now, keep, record)
	if err != nil {
		w.t.Fatal(err)
	}
	storetest.CatchUp(w.t, w.stores...)
	return done
}

// cancelAll cancels the selected jobs, and calls between after each step that is not the last.
func (w *world) cancelAll(node int, s jobs.Selection, between func()) (count int, left bool) {
	w.t.Helper()
	for cursor, steps := "", 1; ; steps++ {
		done := w.cancelSome(node, s, cursor, nil)
		count += done.Count
		if cursor = done.Cursor; cursor == "" {
			return count, done.Left
		}
		if steps > 1000 {
			w.t.Fatal("the cancellation does not end")
		}
		if between != nil {
			between()
		}
	}
}

// claims reports whether the node claims a job. It first meets those that it has read before they were cancelled.
func (w *world) claims(node int) bool {
	w.t.Helper()
	for range 30 {
		if len(w.claim(node)) > 0 {
			return true
		}
	}
	return false
}

// enqueueMany enqueues n jobs in one transaction.
func (w *world) enqueueMany(node int, by caller.Caller, n int, r jobs.Request) {
	w.t.Helper()
	w.update(node, func(tx *store.Tx) error {
		for range n {
			if _, err := jobs.Enqueue(tx, w.schema, &by, r, w.clock.Now(), nil); err != nil {
				return err
			}
		}
		return nil
	})
}

func TestAllSelectedJobsAreCancelled(t *testing.T) {
	for name, row := range map[string]struct {
		selection jobs.Selection
		want      int
	}{
		"all":             {jobs.Selection{}, 1205 + 3 + 2 + 1},
		"a name":          {jobs.Selection{Name: "mail"}, 1205 + 2},
		"a tenant":        {jobs.Selection{Tenant: "acme"}, 1205 + 3},
		"both":            {jobs.Selection{Name: "other", Tenant: "acme"}, 3},
		"an unknown name": {jobs.Selection{Name: "x"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.enqueueMany(0, ada, 5, mail("runs"))
			if got := len(w.claim(0)); got != 5 {
				t.Fatalf("%d run", got)
			}
			w.enqueueMany(0, ada, 1200, mail("waits"))
			w.enqueueMany(0, ada, 3, jobs.Request{Name: "other", Delay: time.Hour})
			w.enqueueMany(0, tenant("blue"), 2, mail("waits"))
			w.enqueueMany(0, user("bob"), 1, jobs.Request{Name: "other"})
			all := w.keys("jobs/j/")
			if count, left := w.cancelAll(0, row.selection, nil); count != row.want || left {
				t.Errorf("%d jobs are cancelled, want %d; left %v", count, row.want, left)
			}
			if n := w.keys("jobs/w/") + w.keys("jobs/r/"); n != all-row.want {
				t.Errorf("%d jobs wait or run, want %d", n, all-row.want)
			}
			if n := w.keys("jobs/p/"); n != 0 {
				t.Errorf("%d pauses are left", n)
			}
			if count, _ := w.cancelAll(0, row.selection, nil); count != 0 {
				t.Errorf("the second time %d are cancelled", count)
			}
		})
	}
}

// Each transaction tells how many jobs it has cancelled, and a job with large parameters takes more of it.
func TestACancellationIsDoneInBoundedTransactions(t *testing.T) {
	w := newWorld(t)
	w.enqueueMany(0, ada, 1100, mail("a"))
	for range 3 {
		w.enqueueMany(0, ada, 30, jobs.Request{Name: "other", Params: fmt.Appendf(nil, `{"to":%q}`, strings.Repeat("x", 200<<10))})
	}
	var batches []int
	total := 0
	for cursor, first := "", true; first || cursor != ""; first = false {
		done := w.cancelSome(0, jobs.Selection{}, cursor, func(_ *store.Tx, n int) error { batches = append(batches, n); return nil })
		total, cursor = total+done.Count, done.Cursor
	}
	sum := 0
	for _, n := range batches {
		if sum += n; n > 500 {
			t.Errorf("a transaction has cancelled %d jobs", n)
		}
	}
	if total != 1190 || sum < total || len(batches) < 5 {
		t.Errorf("cancelled %d, in transactions of %v", total, batches)
	}
}

// A job that enqueues two others each time that it runs ends: no node claims any more of them, and each run
// that was in progress is cancelled.
func TestJobsThatEnqueueOthersAreCancelled(t *testing.T) {
	w := newWorld(t, "a", "b")
	bomb := jobs.Request{Name: "other"}
	w.enqueueMany(0, ada, 300, bomb)
	innocent := w.enqueue(0, tenant("blue"), mail("a"))
	runs := [][]*jobs.Claimed{nil, nil}
	spread := func() {
		for node := range w.queues {
			w.clock.pass(time.Second)
			runs[node] = append(runs[node], w.claim(node)...)
		}
		for node, all := range runs {
			for _, c := range all {
				if err := w.run(node, c, func(tx *store.Tx) error {
					for range 2 {
						if _, err := jobs.Enqueue(tx, w.schema, &ada, bomb, w.clock.Now(), nil); err != nil {
							return err
						}
					}
					return c.Complete(tx, w.clock.Now(), keep)
				}); err != nil && err != jobs.ErrLost {
					t.Fatal(err)
				}
			}
			runs[node] = nil
		}
	}
	spread()
	if got := w.get(innocent.ID).State; got != jobs.Done {
		t.Fatalf("before: %s", got)
	}
	for node := range w.queues {
		w.clock.pass(time.Second)
		runs[node] = w.claim(node)
	}
	if len(runs[0]) == 0 || len(runs[1]) == 0 {
		t.Fatal("nothing runs")
	}
	later := w.enqueue(1, tenant("blue"), mail("a"))
	count, left := w.cancelAll(1, jobs.Selection{Name: "other"}, spread)
	if left || count < 300 {
		t.Errorf("%d jobs are cancelled, left %v", count, left)
	}
	if n := w.keys("jobs/r/"); n != 0 {
		t.Errorf("%d jobs run", n)
	}
	if got := w.get(later.ID).State; got != jobs.Done {
		t.Errorf("the job of another name, enqueued meanwhile, is %s", got)
	}
	// They are claimed again afterwards.
	w.enqueue(0, ada, bomb)
	if !w.claims(0) {
		t.Error("a new job is not claimed")
	}
}

// Requests that enqueue all the time do not keep the command from its end.
func TestACancellationEndsBesideRequestsThatEnqueue(t *testing.T) {
	w := newWorld(t)
	w.enqueueMany(0, ada, 10, mail("a"))
	count, left := w.cancelAll(0, jobs.Selection{}, func() { w.enqueueMany(0, ada, 3, mail("a")) })
	if !left || count != 10+9*3 {
		t.Errorf("%d jobs are cancelled, left %v", count, left)
	}
	w.enqueueMany(0, ada, 1, mail("a"))
	if !w.claims(0) {
		t.Error("jobs are not claimed after its end")
	}
}

// A command that was interrupted leaves a pause, which ends by itself, also on a node that starts meanwhile.
func TestAPauseEndsWithoutTheCommand(t *testing.T) {
	w := newWorld(t, "a", "b")
	w.enqueueMany(0, ada, 700, mail("a"))
	w.enqueueMany(0, tenant("blue"), 1, mail("b"))
	first := w.cancelSome(0, jobs.Selection{Tenant: "acme"}, "", nil)
	if first.Cursor == "" {
		t.Fatal("it has ended at once")
	}
	w.enqueueMany(0, ada, 5, mail("c"))
	w.queues = append(w.queues, w.open(w.stores[1]))
	w.clock.pass(10 * time.Second)
	for node, q := range w.queues {
		all, err := q.Claim(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range all {
			if c.Caller.Tenant != "blue" {
				t.Errorf("queue %d claims a job of %s", node, c.Caller.Tenant)
			}
		}
	}
	w.clock.pass(6 * time.Second)
	if !w.claims(0) || !w.claims(2) {
		t.Error("no job is claimed after the pause")
	}
	if n := w.keys("jobs/p/"); n != 1 {
		t.Fatalf("%d pauses", n)
	}
	if err := jobs.Sweep(t.Context(), w.stores[0], w.clock.Now()); err != nil {
		t.Fatal(err)
	}
	if n := w.keys("jobs/p/"); n != 0 {
		t.Errorf("after the sweep %d pauses", n)
	}
}

func TestAnInvalidCursorOfACancellationIsRefused(t *testing.T) {
	w := newWorld(t)
	for _, cursor := range []string{"x", `{"pass":"x"}`, `{"key":"eA=="}`} {
		_, err := jobs.CancelSome(t.Context(), w.stores[0], jobs.Selection{}, cursor, w.clock.Now, keep, nil)
		if fault.CodeOf(err) != fault.Invalid {
			t.Errorf("%s: %v", cursor, err)
		}
	}
}

// A damaged record neither stops the others nor keeps the work from its end.
func TestADamagedJobIsPassedOver(t *testing.T) {
	w := newWorld(t)
	bad := w.enqueue(0, ada, mail("bad"))
	w.damage(bad.ID)
	w.enqueueMany(0, ada, 3, mail("good"))
	if count, left := w.cancelAll(0, jobs.Selection{}, nil); count != 3 || left {
		t.Errorf("%d jobs are cancelled, left %v", count, left)
	}
}
