package jobs_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"runner.example/internal/caller"
	"runner.example/internal/diag"
	"runner.example/internal/fault"
	"runner.example/schema"
	"runner.example/schema/compiler"
	"runner.example/state/jobs"
	"runner.example/state/store"
	"runner.example/state/store/storetest"
)

const app = `
auth { session jwt { issuer: "https://id.example.com", audience: "a", jwks: "https://id.example.com/jwks" } }
apiKeys { scopes: { nightly: @system("nightly") { @grant read on Order  @allTenants } } }
entity Order { id: id  name: string }
jobs(retries: 2, backoff: 10s, timeout: 30s) {
  mail(to: string, n: int = 1)
  other(to: string?)
  limited(of: string) (concurrency: 2 by of)
  tenants() (concurrency: 1 by tenant)
  night(n: int = 3) (as: nightly, schedule: "0 3 * * *" in "Europe/Berlin", retries: 0)
}
routes("/", auth: session) { GET / -> x }
`

func compiled(t testing.TB, text string) *schema.Schema {
	t.Helper()
	s, found := compiler.Compile([]diag.Source{{Name: "app.schema", Text: []byte(text)}}, compiler.Options{})
	if s == nil {
		t.Fatal(found.Sorted()[0])
	}
	return s
}

// clock is the time of a test.
type clock struct{ now time.Time }

func (c *clock) Now() time.Time       { return c.now }
func (c *clock) pass(d time.Duration) { c.now = c.now.Add(d) }
func newClock() *clock                { return &clock{time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)} }
func (c *clock) options() jobs.Options {
	return jobs.Options{Slots: 16, Now: c.Now, Timeout: 10 * time.Second, Keep: keep}
}

var keep = jobs.Keep{Done: 7 * 24 * time.Hour, Failed: 30 * 24 * time.Hour}

type world struct {
	t      testing.TB
	schema *schema.Schema
	clock  *clock
	stores []*store.Store
	queues []*jobs.Queue
}

// newWorld opens a queue on each of the nodes; no names: on a store that is alone.
func newWorld(t testing.TB, names ...string) *world {
	t.Helper()
	w := &world{t: t, schema: compiled(t, app), clock: newClock()}
	if len(names) == 0 {
		st, err := store.Open(store.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := st.Close(); err != nil {
				t.Error(err)
			}
		})
		w.stores = []*store.Store{st}
	} else {
		w.stores = storetest.NewLog().Nodes(t, names...)
	}
	for _, st := range w.stores {
		w.queues = append(w.queues, w.open(st))
	}
	return w
}

func (w *world) open(st *store.Store) *jobs.Queue {
	w.t.Helper()
	q, err := jobs.Open(w.t.Context(), st, w.clock.options())
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(q.Close)
	q.SetSchema(w.schema)
	return q
}

func (w *world) update(node int, fn func(tx *store.Tx) error) {
	w.t.Helper()
	if _, err := w.stores[node].Update(w.t.Context(), fn); err != nil && err != errDiscarded {
		w.t.Fatal(err)
	}
	storetest.CatchUp(w.t, w.stores...)
}

func (w *world) enqueue(node int, by caller.Caller, r jobs.Request) (e jobs.Enqueued) {
	w.t.Helper()
	w.update(node, func(tx *store.Tx) (err error) {
		e, err = jobs.Enqueue(tx, w.schema, &by, r, w.clock.Now(), nil)
		return err
	})
	return e
}

func (w *world) claim(node int) []*jobs.Claimed {
	w.t.Helper()
	all, err := w.queues[node].Claim(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	storetest.CatchUp(w.t, w.stores...)
	return all
}

// run begins the run of a job and ends it by end.
func (w *world) run(node int, c *jobs.Claimed, end func(tx *store.Tx) error) error {
	_, err := w.stores[node].Update(w.t.Context(), func(tx *store.Tx) error {
		if err := c.Begin(tx); err != nil {
			return err
		}
		return end(tx)
	})
	storetest.CatchUp(w.t, w.stores...)
	w.queues[node].Ended(c)
	return err
}

func (w *world) complete(node int, c *jobs.Claimed) error {
	return w.run(node, c, func(tx *store.Tx) error { return c.Complete(tx, w.clock.Now(), keep) })
}

func (w *world) fail(node int, c *jobs.Claimed, why string) {
	w.t.Helper()
	if err := w.run(node, c, func(tx *store.Tx) error {
		_, err := c.Fail(tx, w.schema.Job(c.Name), why, w.clock.Now(), keep)
		return err
	}); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) get(id string) (j *jobs.Job) {
	w.t.Helper()
	if err := w.stores[0].View(w.t.Context(), func(tx *store.Tx) (err error) { j, err = jobs.Get(tx, id); return err }); err != nil {
		w.t.Fatal(err)
	}
	return j
}

func (w *world) list(f jobs.Filter) (ids []string) {
	w.t.Helper()
	for {
		var page jobs.Page
		if err := w.stores[0].View(w.t.Context(), func(tx *store.Tx) (err error) { page, err = jobs.List(tx, f); return err }); err != nil {
			w.t.Fatal(err)
		}
		for _, j := range page.Jobs {
			ids = append(ids, j.ID)
		}
		if f.Cursor = page.NextCursor; f.Cursor == "" {
			return ids
		}
	}
}

var ada = caller.Caller{Kind: caller.Session, UserID: "ada", Tenant: "acme", Roles: []string{"admin"}, Claims: []byte(`{"plan":"gold"}`)}

func mail(to string) jobs.Request {
	return jobs.Request{Name: "mail", Params: fmt.Appendf(nil, `{"to":%q}`, to)}
}

func TestAJobExistsIfItsTransactionIsCommitted(t *testing.T) {
	w := newWorld(t)
	failed := errors.New("the request failed")
	_, err := w.stores[0].Update(t.Context(), func(tx *store.Tx) error {
		if _, err := jobs.Enqueue(tx, w.schema, &ada, mail("a"), w.clock.Now(), nil); err != nil {
			return err
		}
		return failed
	})
	if err != failed || len(w.list(jobs.Filter{})) != 0 || len(w.claim(0)) != 0 {
		t.Fatalf("after a request that failed: %v, %v", err, w.list(jobs.Filter{}))
	}
	e := w.enqueue(0, ada, mail("a"))
	all := w.claim(0)
	if !e.Created || len(all) != 1 || all[0].ID != e.ID || all[0].Attempt != 1 || string(all[0].Params) != `{"to":"a","n":1}` {
		t.Fatalf("%+v: claimed %+v", e, all)
	}
	actor, err := all[0].Actor(all[0].Declared, w.schema)
	if err != nil || actor.Kind != ada.Kind || actor.UserID != "ada" || actor.Tenant != "acme" || !slices.Equal(actor.Roles, ada.Roles) || fmt.Sprint(actor.Claimed["plan"]) == "" {
		t.Errorf("it acts as %+v, %v", actor, err)
	}
	if err := w.complete(0, all[0]); err != nil {
		t.Fatal(err)
	}
	if j := w.get(e.ID); j.State != jobs.Done || j.Expires.Time() != w.clock.Now().Add(keep.Done) {
		t.Errorf("afterwards: %+v", j)
	}
	if len(w.claim(0)) != 0 {
		t.Error("it is claimed again")
	}
}

func TestWhatCannotBeEnqueuedNamesTheMember(t *testing.T) {
	w := newWorld(t)
	for _, row := range []struct {
		request jobs.Request
		want    string
	}{
		{jobs.Request{Name: "mial"}, `name: the schema declares no job "mial" (did you mean "mail"?)`},
		{jobs.Request{Name: "mail"}, "params.to is required"},
		{jobs.Request{Name: "mail", Params: []byte(`{"to":1}`)}, "params.to must be a string"},
		{jobs.Request{Name: "mail", Params: []byte(`[]`)}, "params must be"},
		{jobs.Request{Name: "mail", Params: []byte(`{"to":"a","x":1}`)}, "params.x is not a field of mail"},
		{jobs.Request{Name: "mail", Params: []byte(`{"to":"a"}`), Delay: -1}, "delay must not be negative"},
		{jobs.Request{Name: "mail", Params: []byte(`{"to":"a"}`), Delay: 1, At: w.clock.Now()}, "delay and at cannot both"},
		{jobs.Request{Name: "mail", Params: []byte(`{"to":"a"}`), Delay: jobs.MaxDelay + 1}, "at most 366 days"},
		{jobs.Request{Name: "mail", Params: []byte(`{"to":"a"}`), Key: strings.Repeat("k", 201)}, "key must be text"},
		{jobs.Request{Name: "mail", Params: fmt.Appendf(nil, `{"to":%q}`, strings.Repeat("a", 300<<10))}, "the limit is 256 KiB"},
	} {
		_, err := w.stores[0].Update(t.Context(), func(tx *store.Tx) error {
			_, err := jobs.Enqueue(tx, w.schema, &ada, row.request, w.clock.Now(), nil)
			return err
		})
		if err == nil || !strings.Contains(err.Error(), row.want) || fault.CodeOf(err) == fault.Internal {
			t.Errorf("%+v: %v, want %q", row.request.Name, err, row.want)
		}
	}
	if all := w.list(jobs.Filter{}); len(all) != 0 {
		t.Errorf("enqueued: %v", all)
	}
}

func TestAKeyHasOneLiveJobOfATenant(t *testing.T) {
	w := newWorld(t)
	request := mail("a")
	request.Key = "k"
	first := w.enqueue(0, ada, request)
	if again := w.enqueue(0, ada, request); again.ID != first.ID || again.Created {
		t.Errorf("again: %+v, first %+v", again, first)
	}
	if other := w.enqueue(0, caller.Caller{Kind: caller.Session, Tenant: "other"}, request); !other.Created {
		t.Errorf("of another tenant: %+v", other)
	}
	running := w.claim(0)
	if again := w.enqueue(0, ada, request); again.Created || len(running) != 2 {
		t.Errorf("while %d jobs run: %+v", len(running), again)
	}
	for _, c := range running {
		if err := w.complete(0, c); err != nil {
			t.Fatal(err)
		}
	}
	if again := w.enqueue(0, ada, request); again.ID == first.ID || !again.Created {
		t.Errorf("after it was done: %+v", again)
	}
}

func TestJobsRunWhenTheyAreDue(t *testing.T) {
	w := newWorld(t)
	delayed, at := mail("delayed"), mail("at")
	delayed.Delay, at.At = time.Hour, w.clock.Now().Add(30*time.Minute)
	w.enqueue(0, ada, delayed)
	w.enqueue(0, ada, at)
	w.enqueue(0, ada, mail("now"))
	past := mail("past")
	past.At = w.clock.Now().Add(-time.Hour)
	w.enqueue(0, ada, past)
	var order []string
	for range 61 {
		for _, c := range w.claim(0) {
			order = append(order, fmt.Sprintf("%s %d", c.Params, int(w.clock.Now().Sub(newClock().Now()).Minutes())))
			if c.ScheduledFor != c.Due {
				t.Errorf("%s: scheduled for %s, due %s", c.Params, c.ScheduledFor, c.Due)
			}
			if err := w.complete(0, c); err != nil {
				t.Fatal(err)
			}
		}
		w.clock.pass(time.Minute)
	}
	slices.Sort(order[:2])
	want := []string{`{"to":"now","n":1} 0`, `{"to":"past","n":1} 0`, `{"to":"at","n":1} 30`, `{"to":"delayed","n":1} 60`}
	if !slices.Equal(order, want) {
		t.Errorf("ran as %q", order)
	}
}

func TestAFailedJobRunsAgainAfterAPauseThatDoubles(t *testing.T) {
	w := newWorld(t)
	e := w.enqueue(0, ada, mail("a"))
	for attempt := 1; attempt <= 3; attempt++ {
		all := w.claim(0)
		if len(all) != 1 || all[0].Attempt != attempt {
			t.Fatalf("attempt %d: %+v", attempt, all)
		}
		w.fail(0, all[0], "boom")
		j := w.get(e.ID)
		if attempt == 3 {
			if j.State != jobs.Failed || j.Error != "boom" || j.Expires.Time() != w.clock.Now().Add(keep.Failed) {
				t.Errorf("after the last attempt: %+v", j)
			}
			break
		}
		pause, longest := j.Due.Time().Sub(w.clock.Now()), 10*time.Second<<(attempt-1)
		if j.State != jobs.Waiting || pause < longest/2 || pause > longest {
			t.Errorf("after attempt %d it waits %s: %+v", attempt, pause, j)
		}
		w.clock.pass(pause - time.Millisecond)
		if early := w.claim(0); len(early) != 0 {
			t.Errorf("it is claimed before it is due")
		}
		w.clock.pass(time.Millisecond)
	}
	if got := w.list(jobs.Filter{State: jobs.Failed}); !slices.Equal(got, []string{e.ID}) {
		t.Errorf("failed jobs: %v", got)
	}
	w.update(0, func(tx *store.Tx) error {
		_, err := jobs.Retry(tx, w.schema, &caller.Caller{Kind: caller.System}, e.ID, w.clock.Now())
		return err
	})
	all := w.claim(0)
	if len(all) != 1 || all[0].Attempt != 1 || len(w.list(jobs.Filter{State: jobs.Failed})) != 0 {
		t.Fatalf("after a retry: %+v", all)
	}
	w.fail(0, all[0], "boom")
}

func TestBackoffIsAtMostAnHour(t *testing.T) {
	for _, row := range []struct {
		attempt int
		random  float64
		want    time.Duration
	}{{1, 0, 5 * time.Second}, {1, 1, 10 * time.Second}, {2, 1, 20 * time.Second}, {9, 1, 2560 * time.Second}, {10, 1, time.Hour}, {1000, 0, 30 * time.Minute}} {
		if got := jobs.Backoff(10*time.Second, row.attempt, row.random); got != row.want {
			t.Errorf("after attempt %d: %s, want %s", row.attempt, got, row.want)
		}
	}
}

func TestACancelledJobCommitsNothing(t *testing.T) {
	w := newWorld(t)
	waiting, running := w.enqueue(0, ada, mail("a")), jobs.Enqueued{}
	cancel := func(id string, by caller.Caller) (was bool, err error) {
		_, err = w.stores[0].Update(t.Context(), func(tx *store.Tx) (err error) {
			was, err = jobs.Cancel(tx, &by, id, w.clock.Now(), keep)
			return err
		})
		return was, err
	}
	if _, err := cancel(waiting.ID, caller.Caller{Kind: caller.Session, Tenant: "other"}); err != jobs.ErrNotFound {
		t.Errorf("by another tenant: %v", err)
	}
	if was, err := cancel(waiting.ID, ada); !was || err != nil || len(w.claim(0)) != 0 {
		t.Errorf("waiting: %t, %v", was, err)
	}
	if was, err := cancel(waiting.ID, ada); was || err != nil {
		t.Errorf("again: %t, %v", was, err)
	}
	running = w.enqueue(0, ada, mail("b"))
	all := w.claim(0)
	if was, err := cancel(running.ID, ada); !was || err != nil {
		t.Errorf("running: %t, %v", was, err)
	}
	if err := w.complete(0, all[0]); err != jobs.ErrLost {
		t.Errorf("its run: %v", err)
	}
	if j := w.get(running.ID); j.State != jobs.Cancelled {
		t.Errorf("afterwards: %+v", j)
	}
	if _, err := cancel("job_x", ada); err != jobs.ErrNotFound {
		t.Errorf("an id that no job has: %v", err)
	}
}

func TestAJobIsTakenOverAfterItsLeaseAndTheOldNodeCannotCommit(t *testing.T) {
	w := newWorld(t, "a", "b")
	e := w.enqueue(0, ada, mail("a"))
	lost := w.claim(0)
	if len(lost) != 1 {
		t.Fatalf("claimed %d", len(lost))
	}
	w.clock.pass(35 * time.Second) // the timeout and the margin
	if all := w.claim(1); len(all) != 0 {
		t.Error("it is claimed while the lease is held")
	}
	w.clock.pass(3 * time.Second)
	w.claim(1)
	if j := w.get(e.ID); j.State != jobs.Waiting || j.Error == "" {
		t.Errorf("after its lease: %+v", j)
	}
	w.clock.pass(time.Minute)
	again := w.claim(1)
	if len(again) != 1 || again[0].Attempt != 2 || again[0].Node != "b" {
		t.Fatalf("claimed again: %+v", again)
	}
	if err := w.complete(0, lost[0]); err != jobs.ErrLost {
		t.Errorf("the node that lost it commits: %v", err)
	}
	if err := w.complete(1, again[0]); err != nil {
		t.Error(err)
	}
}

func TestANodeThatStartsAgainTakesOverItsOwnJobsAtOnce(t *testing.T) {
	w := newWorld(t)
	e := w.enqueue(0, ada, mail("a"))
	w.claim(0)
	w.queues[0].Close()
	w.queues[0] = w.open(w.stores[0])
	w.claim(0)
	if j := w.get(e.ID); j.State != jobs.Waiting || j.Attempt != 1 {
		t.Fatalf("after a start: %+v", j)
	}
	w.clock.pass(time.Minute)
	if all := w.claim(0); len(all) != 1 || all[0].Attempt != 2 {
		t.Errorf("claimed: %+v", all)
	}
}

func TestConcurrencyIsLimitedOverAllNodes(t *testing.T) {
	w := newWorld(t, "a", "b")
	for i := range 20 {
		w.enqueue(i%2, ada, jobs.Request{Name: "limited", Params: fmt.Appendf(nil, `{"of":"%d"}`, i%2)})
	}
	running, done := map[string]int{}, 0
	var held [2][]*jobs.Claimed
	for done < 20 {
		w.clock.pass(time.Second)
		for node := range held {
			for _, c := range w.claim(node) {
				held[node] = append(held[node], c)
				if running[string(c.Params)]++; running[string(c.Params)] > 2 {
					t.Fatalf("%d run with %s", running[string(c.Params)], c.Params)
				}
			}
		}
		if len(held[0])+len(held[1]) == 0 {
			t.Fatalf("nothing runs after %d jobs", done)
		}
		for node := range held {
			if len(held[node]) > 0 {
				c := held[node][0]
				held[node] = held[node][1:]
				if err := w.complete(node, c); err != nil {
					t.Fatal(err)
				}
				running[string(c.Params)]--
				done++
			}
		}
	}
}

func TestSlotsAreSharedBetweenTenantsAndJobs(t *testing.T) {
	w := newWorld(t)
	of := func(tenant string) caller.Caller { return caller.Caller{Kind: caller.Session, Tenant: tenant} }
	for range 200 {
		w.enqueue(0, of("large"), mail("a"))
	}
	first := w.claim(0)
	if len(first) != 12 {
		t.Errorf("one job of one tenant holds %d of 16 slots, want 12", len(first))
	}
	w.enqueue(0, of("small"), mail("b"))
	w.enqueue(0, of("large"), jobs.Request{Name: "other"})
	got := map[string]int{}
	for _, c := range w.claim(0) {
		got[c.Caller.Tenant+" "+c.Name]++
	}
	if got["small mail"] != 1 || got["large other"] != 1 {
		t.Errorf("then it claims %v", got)
	}
}

func TestAScheduleFiresOnceInTheClusterAndOnceForAllMissedTimes(t *testing.T) {
	w := newWorld(t, "a", "b", "c")
	runs := 0
	round := func() (at []string) {
		for node := range w.queues {
			for _, c := range w.claim(node) {
				at = append(at, c.ScheduledFor.String())
				actor, err := c.Actor(c.Declared, w.schema)
				if err != nil || actor.As != "nightly" || actor.Kind != caller.Anonymous || string(c.Params) != `{"n":3}` {
					t.Errorf("it acts as %+v with %s, %v", actor, c.Params, err)
				}
				if err := w.complete(node, c); err != nil {
					t.Fatal(err)
				}
				runs++
			}
		}
		return at
	}
	if at := round(); at != nil {
		t.Errorf("it fires at once: %v", at)
	}
	w.clock.now = time.Date(2026, 11, 2, 1, 59, 59, 0, time.UTC)
	if at := round(); at != nil {
		t.Errorf("before its time: %v", at)
	}
	w.clock.pass(time.Second)
	if at := append(round(), append(round(), round()...)...); !slices.Equal(at, []string{"2026-11-02T02:00:00.000Z"}) {
		t.Errorf("at its time: %v", at)
	}
	w.clock.pass(5 * 24 * time.Hour)
	if at := append(round(), round()...); !slices.Equal(at, []string{"2026-11-03T02:00:00.000Z"}) {
		t.Errorf("after five days: %v", at)
	}
	w.clock.now = time.Date(2026, 11, 8, 2, 0, 0, 0, time.UTC)
	if at := append(round(), round()...); !slices.Equal(at, []string{"2026-11-08T02:00:00.000Z"}) {
		t.Errorf("the next day: %v", at)
	}
	if runs != 3 {
		t.Errorf("it ran %d times", runs)
	}
}

func TestAScheduleWaitsForTheJobBefore(t *testing.T) {
	w := newWorld(t)
	w.claim(0)
	w.clock.pass(24 * time.Hour)
	first := w.claim(0)
	if len(first) != 1 {
		t.Fatalf("%d jobs", len(first))
	}
	w.clock.pass(30 * time.Second)
	w.update(0, func(tx *store.Tx) error {
		e, err := jobs.Fire(tx, w.schema, "night", w.clock.Now())
		if e.Created || e.ID != first[0].ID {
			t.Errorf("while it runs: %+v", e)
		}
		return err
	})
	if err := w.complete(0, first[0]); err != nil {
		t.Fatal(err)
	}
	w.update(0, func(tx *store.Tx) error {
		e, err := jobs.Fire(tx, w.schema, "night", w.clock.Now())
		if !e.Created {
			t.Errorf("afterwards: %+v", e)
		}
		return err
	})
}

func TestANewScheduleReplacesTheOneBefore(t *testing.T) {
	w := newWorld(t)
	w.claim(0)
	next := func() (at time.Time) {
		if err := w.stores[0].View(t.Context(), func(tx *store.Tx) (err error) { at, err = jobs.NextOf(tx, "night"); return err }); err != nil {
			t.Fatal(err)
		}
		return at
	}
	if want := time.Date(2026, 11, 2, 2, 0, 0, 0, time.UTC); next() != want {
		t.Errorf("next: %s", next())
	}
	w.queues[0].SetSchema(compiled(t, strings.Replace(app, "0 3 * * *", "30 4 * * *", 1)))
	w.claim(0)
	if want := time.Date(2026, 11, 2, 3, 30, 0, 0, time.UTC); next() != want {
		t.Errorf("next: %s", next())
	}
	w.queues[0].SetSchema(compiled(t, strings.Replace(app, ` in "Europe/Berlin", retries: 0`, "", 1)))
	w.claim(0)
	w.queues[0].SetSchema(compiled(t, `routes("/", auth: none, rateLimit: none) { GET / -> x }`))
	w.claim(0)
	if !next().IsZero() {
		t.Errorf("a removed schedule: %s", next())
	}
}

func TestJobsThatTheSchemaDoesNotDeclareGoOnWaiting(t *testing.T) {
	w := newWorld(t)
	e := w.enqueue(0, ada, mail("a"))
	w.queues[0].SetSchema(compiled(t, `routes("/", auth: none, rateLimit: none) { GET / -> x }`))
	if all := w.claim(0); len(all) != 0 {
		t.Errorf("claimed %v", all)
	}
	w.queues[0].SetSchema(w.schema)
	if all := w.claim(0); len(all) != 1 || all[0].ID != e.ID {
		t.Errorf("claimed %v", all)
	}
}

func TestJobsThatEndedAreDeletedWhenTheyExpire(t *testing.T) {
	w := newWorld(t)
	done, failed := w.enqueue(0, ada, mail("a")), jobs.Enqueued{}
	if err := w.complete(0, w.claim(0)[0]); err != nil {
		t.Fatal(err)
	}
	failed = w.enqueue(0, ada, mail("b"))
	for range 3 {
		w.fail(0, w.claim(0)[0], "boom")
		w.clock.pass(time.Minute)
	}
	sweep := func() []string {
		if err := jobs.Sweep(t.Context(), w.stores[0], w.clock.Now()); err != nil {
			t.Fatal(err)
		}
		return w.list(jobs.Filter{})
	}
	if all := sweep(); len(all) != 2 {
		t.Errorf("at once: %v", all)
	}
	w.clock.pass(8 * 24 * time.Hour)
	if all := sweep(); !slices.Equal(all, []string{failed.ID}) {
		t.Errorf("after 8 days: %v, without %s", all, done.ID)
	}
	w.clock.pass(23 * 24 * time.Hour)
	if all := sweep(); len(all) != 0 || len(w.list(jobs.Filter{State: jobs.Failed})) != 0 {
		t.Errorf("after 31 days: %v", all)
	}
}

// Nodes that enqueue, claim, complete, fail, lose their leases, and start again, are compared with a
// plain model: each job is done, or failed, or cancelled, once.
func TestRandomStepsAgreeWithTheModel(t *testing.T) {
	for range 4 {
		seed := rand.Uint64()
		t.Run(fmt.Sprint(seed), func(t *testing.T) { randomSteps(t, rand.New(rand.NewPCG(seed, 1)), 400) })
	}
}

func randomSteps(t *testing.T, r *rand.Rand, steps int) {
	w := newWorld(t, "a", "b", "c")
	type run struct {
		node int
		c    *jobs.Claimed
	}
	var running []run
	live, ended := map[string]bool{}, map[string]jobs.State{}
	end := func(id string, state jobs.State) {
		if was, twice := ended[id]; twice {
			t.Fatalf("%s is %s, and was %s", id, state, was)
		}
		ended[id] = state
		delete(live, id)
	}
	claim := func(node int) {
		for _, c := range w.claim(node) {
			if !live[c.ID] && c.Name != "night" {
				t.Fatalf("%s is claimed, and has ended: %s", c.ID, ended[c.ID])
			}
			running = append(running, run{node, c})
		}
		for id := range live { // runs whose lease was over may have been the last
			if j := w.get(id); j.State == jobs.Failed && strings.Contains(j.Error, "the lease ended") && j.Attempt == 3 {
				end(id, jobs.Failed)
			}
		}
	}
	finish := func(i int) {
		one := running[i]
		running = slices.Delete(running, i, i+1)
		state := jobs.Done
		err := w.run(one.node, one.c, func(tx *store.Tx) error {
			if r.IntN(4) == 0 {
				j, err := one.c.Fail(tx, one.c.Declared, "boom", w.clock.Now(), keep)
				state = j.State
				return err
			}
			state = jobs.Done
			return one.c.Complete(tx, w.clock.Now(), keep)
		})
		switch {
		case err == jobs.ErrLost:
		case err != nil:
			t.Fatal(err)
		case state != jobs.Waiting:
			end(one.c.ID, state)
		}
	}
	names := []string{"mail", "other", "limited", "tenants"}
	for range steps {
		node := r.IntN(3)
		switch r.IntN(10) {
		case 0, 1, 2:
			request := jobs.Request{Name: names[r.IntN(4)], Params: []byte(`{}`), Delay: time.Duration(r.IntN(3)) * 10 * time.Second}
			switch request.Name {
			case "mail":
				request.Params = []byte(`{"to":"a"}`)
			case "limited":
				request.Params = fmt.Appendf(nil, `{"of":"%d"}`, r.IntN(2))
			}
			by := caller.Caller{Kind: caller.Session, Tenant: fmt.Sprint(r.IntN(3))}
			live[w.enqueue(node, by, request).ID] = true
		case 3, 4:
			claim(node)
		case 5, 6:
			if len(running) > 0 {
				finish(r.IntN(len(running)))
			}
		case 7:
			w.clock.pass(time.Duration(r.IntN(20)) * time.Second)
		case 8: // the node is killed and starts again
			running = slices.DeleteFunc(running, func(one run) bool { return one.node == node })
			w.queues[node].Close()
			w.queues[node] = w.open(w.stores[node])
		case 9:
			for id := range live {
				var was bool
				w.update(node, func(tx *store.Tx) (err error) {
					was, err = jobs.Cancel(tx, &caller.Caller{Kind: caller.System}, id, w.clock.Now(), keep)
					return err
				})
				if !was {
					t.Fatalf("the live job %s cannot be cancelled", id)
				}
				end(id, jobs.Cancelled)
				break
			}
		}
	}
	for round := 0; len(live) > 0; round++ {
		if round > 400 {
			t.Fatalf("these jobs never end: %v: %+v", live, w.queues)
		}
		for node := range w.queues {
			claim(node)
		}
		for len(running) > 0 {
			finish(0)
		}
		w.clock.pass(20 * time.Second)
	}
	for id, state := range ended {
		if j := w.get(id); j.State != state {
			t.Errorf("%s is %s, want %s", id, j.State, state)
		}
	}
	for node, q := range w.queues {
		if err := q.Count(t.Context()); err != nil {
			t.Fatal(err)
		}
		if waiting, running := q.Counts(); waiting != 0 || running != 0 {
			t.Errorf("node %d: %d jobs wait and %d run", node, waiting, running)
		}
	}
}

func TestRunStartsJobsWhenTheyAreEnqueued(t *testing.T) {
	w := newWorld(t)
	opt := w.clock.options()
	opt.Now = time.Now
	q, err := jobs.Open(t.Context(), w.stores[0], opt)
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	q.SetSchema(w.schema)
	ctx, stop := context.WithCancel(t.Context())
	ran, ended := make(chan string), make(chan struct{})
	go func() {
		defer close(ended)
		q.Run(ctx, func(c *jobs.Claimed) {
			if _, err := w.stores[0].Update(t.Context(), func(tx *store.Tx) error {
				return errors.Join(c.Begin(tx), c.Complete(tx, time.Now(), keep))
			}); err != nil {
				t.Error(err)
			}
			ran <- string(c.Params)
		})
	}()
	for i := range 50 {
		request := mail(fmt.Sprint(i))
		request.Delay = time.Duration(i%3) * time.Millisecond
		if _, err := w.stores[0].Update(t.Context(), func(tx *store.Tx) error {
			_, err := jobs.Enqueue(tx, w.schema, &ada, request, time.Now(), nil)
			return err
		}); err != nil {
			t.Fatal(err)
		}
		if got, want := <-ran, fmt.Sprintf(`{"to":"%d","n":1}`, i); got != want {
			t.Errorf("ran %s, want %s", got, want)
		}
	}
	stop()
	<-ended
}

func TestJobsThatNoReleaseDeclaresAreLoggedOnce(t *testing.T) {
	w := newWorld(t)
	var log bytes.Buffer
	opt := w.clock.options()
	opt.Logger = slog.New(slog.NewTextHandler(&log, nil))
	q, err := jobs.Open(t.Context(), w.stores[0], opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(q.Close)
	q.SetSchema(compiled(t, `routes("/", auth: none, rateLimit: none) { GET / -> x }`))
	w.queues[0] = q
	for _, tenant := range []string{"acme", "blue"} {
		w.enqueue(0, caller.Caller{Kind: caller.Session, Tenant: tenant}, mail("a"))
	}
	if all := w.claim(0); len(all) != 0 {
		t.Fatalf("claimed %+v", all)
	}
	if text := log.String(); strings.Count(text, "not declared") != 1 || !strings.Contains(text, "job=mail") {
		t.Errorf("the log:\n%s", text)
	}
	q.SetSchema(w.schema)
	if all := w.claim(0); len(all) != 2 {
		t.Errorf("when they are declared again: %+v", all)
	}
}

func TestTooManyWaitingJobsOfATenantAreRefused(t *testing.T) {
	w := newWorld(t)
	opt := w.clock.options()
	opt.MaxWaiting = 3
	try := func(q *jobs.Queue, tenant, key string) (e jobs.Enqueued, err error) {
		request := mail("a")
		request.Key, request.Full = key, q.Full(&caller.Caller{Kind: caller.Session, Tenant: tenant}, "mail")
		_, err = w.stores[0].Update(t.Context(), func(tx *store.Tx) (err error) {
			e, err = jobs.Enqueue(tx, w.schema, &caller.Caller{Kind: caller.Session, Tenant: tenant}, request, w.clock.Now(), nil)
			return err
		})
		return e, err
	}
	first, err := try(w.queues[0], "acme", "k")
	if err != nil {
		t.Fatal(err)
	}
	q, err := jobs.Open(t.Context(), w.stores[0], opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(q.Close)
	q.SetSchema(w.schema)
	if _, err := try(q, "acme", ""); err != nil { // before they are counted
		t.Fatal(err)
	}
	if err := q.Count(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := try(q, "acme", ""); err != nil {
		t.Fatal(err)
	}
	if _, err := try(q, "acme", "new"); fault.CodeOf(err) != fault.Overloaded || !strings.Contains(err.Error(), "[jobs] max_waiting") {
		t.Errorf("one too many: %v", err)
	}
	if again, err := try(q, "acme", "k"); err != nil || again.ID != first.ID {
		t.Errorf("with the key of a live job: %+v, %v", again, err)
	}
	if _, err := try(q, "blue", ""); err != nil {
		t.Errorf("of another tenant: %v", err)
	}
	w.queues[0] = q
	if all := w.claim(0); len(all) != 4 {
		t.Fatalf("claimed %d", len(all))
	}
	if e, err := try(q, "acme", "new"); err != nil || !e.Created {
		t.Errorf("when no job waits: %+v %v", e, err)
	}
	if waiting, _ := q.Counts(); waiting != 1 {
		t.Errorf("%d wait, want 1", waiting)
	}
}

func TestAJobIsWrittenWholeOrNotAtAll(t *testing.T) {
	w := newWorld(t)
	waits := w.enqueue(0, ada, mail("waits"))
	filler := []byte(strings.Repeat("x", 1<<20))
	for room := 0; room < 3000; room += 60 { // of the 8 MiB of a transaction
		w.update(0, func(tx *store.Tx) error {
			left := 8<<20 - room
			for i := 0; left > 0; i++ {
				key := fmt.Appendf(nil, "fill%d", i)
				n := min(left-len(key), len(filler))
				if n < 0 {
					break
				}
				if err := tx.Set(key, filler[:n]); err != nil {
					return err
				}
				left -= len(key) + n
			}
			request := mail("a")
			request.Key = fmt.Sprint(room)
			e, err := jobs.Enqueue(tx, w.schema, &ada, request, w.clock.Now(), nil)
			if e.Created != (err == nil) || err != nil && fault.CodeOf(err) != fault.TooLarge {
				t.Errorf("room for %d bytes: %+v, %v", room, e, err)
			}
			if err == nil { // it is not what is tested next
				return errDiscarded
			}
			if was, err := jobs.Cancel(tx, &ada, waits.ID, w.clock.Now(), keep); was && err == nil {
				return errDiscarded
			}
			return nil
		})
	}
	if ids := w.list(jobs.Filter{}); len(ids) != 1 {
		t.Errorf("jobs that were refused: %s", ids)
	}
	if all := w.claim(0); len(all) != 1 || all[0].ID != waits.ID {
		t.Errorf("claimed %+v, want %s", all, waits.ID)
	}
}

var errDiscarded = errors.New("discarded by the test")
