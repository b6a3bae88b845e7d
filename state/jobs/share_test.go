package jobs_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"runner.example/internal/caller"
	"runner.example/internal/fault"
	"runner.example/state/jobs"
	"runner.example/state/store"
)

// manyNames declares the jobs n0 to n7, and one with a schedule.
const manyNames = `
auth { session jwt { issuer: "https://id.example.com", audience: "a", jwks: "https://id.example.com/jwks" } }
apiKeys { scopes: { nightly: @system("nightly") { @grant read on Order } } }
entity Order { id: id  name: string }
jobs(timeout: 60s) {
  n0() n1() n2() n3() n4() n5() n6() n7()
  night() (as: nightly, schedule: "* * * * *" in "UTC", retries: 0)
}
routes("/", auth: session) { GET / -> x }
`

// shared is a world with these jobs and so many slots on each node.
func shared(t *testing.T, slots int, nodes ...string) *world {
	t.Helper()
	w := newWorld(t, nodes...)
	w.schema = compiled(t, manyNames)
	opt := w.clock.options()
	opt.Slots = slots
	for i, st := range w.stores {
		w.queues[i].Close()
		q, err := jobs.Open(t.Context(), st, opt)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(q.Close)
		q.SetSchema(w.schema)
		w.queues[i] = q
	}
	return w
}

// flood enqueues so many jobs of each of eight names.
func (w *world) flood(node int, by caller.Caller, jobsOfName int) {
	w.t.Helper()
	w.update(node, func(tx *store.Tx) error {
		for i := range 8 * jobsOfName {
			if _, err := jobs.Enqueue(tx, w.schema, &by, jobs.Request{Name: fmt.Sprint("n", i%8)}, w.clock.Now(), nil); err != nil {
				return err
			}
		}
		return nil
	})
}

func tenant(name string) caller.Caller {
	return caller.Caller{Kind: caller.Session, UserID: "u", Tenant: name}
}

func user(id string) caller.Caller { return caller.Caller{Kind: caller.Session, UserID: id} }

func key(id string) caller.Caller { return caller.Caller{Kind: caller.APIKey, KeyID: id} }

// claimAll claims until there is nothing to claim. In a cluster a claim may be empty because another node was
// first.
func (w *world) claimAll(node int) (all []*jobs.Claimed) {
	w.t.Helper()
	for range 5 {
		all = append(all, w.claim(node)...)
	}
	return all
}

// claimedBy returns how many jobs of a caller are among all.
func claimedBy(all []*jobs.Claimed, by caller.Caller) (n int) {
	for _, c := range all {
		if c.Caller.Tenant == by.Tenant && c.Caller.UserID == by.UserID && c.Caller.KeyID == by.KeyID {
			n++
		}
	}
	return n
}

func TestJobsOfManyNamesLeaveSlotsToOtherCallers(t *testing.T) {
	for name, row := range map[string]struct{ attacker, other caller.Caller }{
		"tenants":            {tenant("large"), tenant("small")},
		"users":              {user("ada"), user("bob")},
		"keys":               {key("k1"), key("k2")},
		"a tenant and a key": {tenant("large"), key("k2")},
		"user and anonymous": {user("ada"), caller.Caller{}},
	} {
		t.Run(name, func(t *testing.T) {
			w := shared(t, 16)
			w.flood(0, row.attacker, 30)
			if got := len(w.claim(0)); got != 14 {
				t.Errorf("alone it holds %d of 16 slots, want 14", got)
			}
			w.enqueue(0, row.other, jobs.Request{Name: "n0"})
			if got := claimedBy(w.claim(0), row.other); got != 1 {
				t.Error("the job of another caller waits")
			}
		})
	}
}

func TestEachNodeOfAClusterLeavesSlotsToOtherTenants(t *testing.T) {
	w := shared(t, 16, "a", "b")
	w.flood(0, tenant("large"), 30)
	w.flood(1, tenant("large"), 30)
	w.clock.pass(time.Second) // any node may claim them
	for node := range w.queues {
		if got := len(w.claimAll(node)); got != 14 {
			t.Errorf("node %d claims %d, want 14", node, got)
		}
	}
	for node := range w.queues {
		w.enqueue(node, tenant("small"), jobs.Request{Name: "n0"})
		w.clock.pass(time.Second)
		if got := claimedBy(w.claimAll(node), tenant("small")); got != 1 {
			t.Errorf("node %d: the job of another tenant waits", node)
		}
	}
}

// Users without a tenant whose jobs of one name hang do not hold the slots of other names.
func TestOneNameOfManyCallersLeavesASlotToOtherNames(t *testing.T) {
	w := shared(t, 16)
	for i := range 100 {
		w.enqueue(0, user(fmt.Sprint("user", i)), jobs.Request{Name: "n0"})
	}
	if got := len(w.claim(0)); got != 15 {
		t.Errorf("%d of 16 slots are held, want 15", got)
	}
	w.enqueue(0, user("another"), jobs.Request{Name: "n1"})
	if got := w.claim(0); len(got) != 1 || got[0].Name != "n1" {
		t.Errorf("then it claims %d", len(got))
	}
}

func TestAScheduleDoesNotWaitForJobsWithoutATenant(t *testing.T) {
	for name, by := range map[string]caller.Caller{
		"user": user("ada"), "anonymous": {}, "anonymous with grants": {As: "nightly"}, "operator": {Kind: caller.System},
	} {
		t.Run(name, func(t *testing.T) {
			w := shared(t, 16)
			w.claim(0) // writes when the schedule fires
			w.flood(0, by, 30)
			w.claim(0)
			w.clock.pass(time.Minute)
			if all := w.claim(0); len(all) != 1 || !all[0].Scheduled {
				t.Errorf("%d jobs are claimed, want that of the schedule", len(all))
			}
		})
	}
}

func TestOneCallerWithoutATenantLeavesOthersWaitingJobs(t *testing.T) {
	w := newWorld(t)
	opt := w.clock.options()
	opt.MaxWaiting = 80
	q, err := jobs.Open(t.Context(), w.stores[0], opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(q.Close)
	if err := q.Count(t.Context()); err != nil {
		t.Fatal(err)
	}
	fill := func(by caller.Caller) (n int) {
		for ; ; n++ {
			request := mail("a")
			request.Full = q.Full(&by, "mail")
			_, err := w.stores[0].Update(t.Context(), func(tx *store.Tx) error {
				_, err := jobs.Enqueue(tx, w.schema, &by, request, w.clock.Now(), nil)
				return err
			})
			if fault.CodeOf(err) == fault.Overloaded {
				return n
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	if got := []int{fill(user("ada")), fill(user("bob")), fill(key("k1")), fill(tenant("acme"))}; !slices.Equal(got, []int{70, 8, 1, 80}) {
		t.Errorf("of 80 waiting jobs the callers get %v", got)
	}
}

// Jobs without a tenant that waited before their callers were part of the key run, and give their slots back.
func TestJobsThatWaitInAGroupOfAllCallersRun(t *testing.T) {
	w := shared(t, 16)
	for i := range 20 {
		e := w.enqueue(0, user("ada"), jobs.Request{Name: fmt.Sprint("n", i%8)})
		w.update(0, func(tx *store.Tx) error {
			const record, waiting = "jobs/j/", "jobs/w/"
			value, err := tx.Get([]byte(record + e.ID))
			if err != nil {
				return err
			}
			var stored map[string]json.RawMessage
			var group []byte
			if err := json.Unmarshal(value, &stored); err != nil {
				return err
			}
			if err := json.Unmarshal(stored["g"], &group); err != nil {
				return err
			}
			for item, err := range tx.Scan([]byte(waiting+string(group)), nil, false) {
				if err != nil {
					return err
				}
				old, text := slices.Clone(item.Key), slices.Clone(item.Value)
				group[6] ^= 0xff // the byte of the callers
				moved := append([]byte(waiting+string(group)), old[len(waiting)+len(group):]...)
				stored["g"], _ = json.Marshal(group)
				if value, err = json.Marshal(stored); err != nil {
					return err
				}
				for _, err := range []error{tx.Delete(old), tx.Set(moved, text), tx.Set([]byte(record+e.ID), value)} {
					if err != nil {
						return err
					}
				}
				break
			}
			return nil
		})
	}
	for done := 0; done < 20; {
		all := w.claim(0)
		if len(all) == 0 {
			t.Fatalf("nothing runs after %d jobs", done)
		}
		for _, c := range all {
			if err := w.complete(0, c); err != nil {
				t.Fatal(err)
			}
			done++
		}
	}
	w.flood(0, user("ada"), 30)
	if got := len(w.claim(0)); got != 14 {
		t.Errorf("then it holds %d of 16 slots, want 14", got)
	}
}

// Random callers, names and durations are compared with what is promised of them.
func TestSharesAreFairInRandomOrders(t *testing.T) {
	for range 6 {
		seed := rand.Uint64()
		t.Run(fmt.Sprint(seed), func(t *testing.T) { randomShares(t, rand.New(rand.NewPCG(seed, 1))) })
	}
}

func randomShares(t *testing.T, r *rand.Rand) {
	slots := []int{1, 2, 3, 4, 8, 16, 40}[r.IntN(7)]
	tenants := r.IntN(2) == 0
	var callers []caller.Caller
	for i := range 2 + r.IntN(4) {
		if name := fmt.Sprint("c", i); tenants {
			callers = append(callers, tenant(name))
		} else {
			callers = append(callers, user(name))
		}
	}
	nameOf := func(c jobs.Caller) string {
		if tenants {
			return c.Tenant
		}
		return c.UserID
	}
	w := shared(t, slots)
	type waiting struct{ by, name string }
	live := map[string]waiting{}
	var running []*jobs.Claimed
	passed := map[string]map[string]int{} // by caller that waits and holds nothing: the claims of others since
	for step := 0; step < 120 || len(live) > 0; step++ {
		if step > 5000 {
			t.Fatalf("%d jobs never run", len(live))
		}
		if step < 120 {
			i, n := r.IntN(len(callers)), 1
			if r.IntN(10) == 0 {
				n = 60
			}
			for range n {
				name := fmt.Sprint("n", r.IntN(8))
				live[w.enqueue(0, callers[i], jobs.Request{Name: name}).ID] = waiting{fmt.Sprint("c", i), name}
			}
		}
		for range r.IntN(4) {
			if len(running) > 0 {
				i := r.IntN(len(running))
				if err := w.complete(0, running[i]); err != nil {
					t.Fatal(err)
				}
				running = slices.Delete(running, i, i+1)
			}
		}
		for all := w.claim(0); len(all) > 0; all = w.claim(0) {
			for _, c := range all {
				if _, ok := live[c.ID]; !ok {
					t.Fatalf("%s is claimed twice", c.ID)
				}
				delete(live, c.ID)
				delete(passed, nameOf(c.Caller))
				for _, others := range passed {
					others[nameOf(c.Caller)]++
				}
				running = append(running, c)
			}
		}
		held := map[string]int{} // by caller, and by name
		for _, c := range running {
			held[nameOf(c.Caller)]++
			held[c.Name]++
		}
		free := slots - len(running)
		for id, job := range live {
			kept := 0 // slots that are free for others
			switch {
			case held[job.by] > 0:
				kept = (slots + 3) / 4
			case !tenants && held[job.name] > 0:
				kept = slots / 16
			}
			if free > kept {
				t.Fatalf("%s (%s of %s) waits while %d of %d slots are free, and its caller holds %d", id, job.name, job.by, free, slots, held[job.by])
			}
			if held[job.by] == 0 && passed[job.by] == nil {
				passed[job.by] = map[string]int{}
			}
		}
		for by, others := range passed {
			for other, n := range others {
				if tenants && n > 1 {
					t.Fatalf("%s waits and holds nothing, and %s got %d slots meanwhile", by, other, n)
				}
			}
		}
		for i := range callers {
			if by := fmt.Sprint("c", i); slots > 1 && held[by] == slots {
				t.Fatalf("%s holds all of %d slots", by, slots)
			}
		}
	}
}

// One name of a tenant leaves waiting jobs to the others, and each tenant has numbers of its own. Callers
// without a tenant share them.
func TestOneNameLeavesWaitingJobsToOthers(t *testing.T) {
	w := newWorld(t)
	opt := w.clock.options()
	opt.MaxWaiting, opt.MaxWaitingPerJob = 100, 24
	q, err := jobs.Open(t.Context(), w.stores[0], opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(q.Close)
	w.enqueue(0, tenant("acme"), mail("before it is counted"))
	if err := q.Count(t.Context()); err != nil {
		t.Fatal(err)
	}
	fill := func(by caller.Caller, r jobs.Request) (n int, limit string) {
		t.Helper()
		for ; ; n++ {
			r.Full = q.Full(&by, r.Name)
			_, err := w.stores[0].Update(t.Context(), func(tx *store.Tx) error {
				_, err := jobs.Enqueue(tx, w.schema, &by, r, w.clock.Now(), nil)
				return err
			})
			if fault.CodeOf(err) == fault.Overloaded {
				return n, err.Error()
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	n, limit := fill(tenant("acme"), mail("a"))
	if n != 23 || !strings.Contains(limit, "of the name mail ([jobs] max_waiting_per_job, 24)") {
		t.Errorf("of one name: %d, %s", n, limit)
	}
	if n, _ := fill(tenant("acme"), jobs.Request{Name: "other"}); n != 24 {
		t.Errorf("of another name: %d", n)
	}
	if n, _ := fill(tenant("blue"), mail("a")); n != 24 {
		t.Errorf("of another tenant: %d", n)
	}
	for i := range 5 { // groups of their own, counted together
		if _, err := w.stores[0].Update(t.Context(), func(tx *store.Tx) error {
			by := tenant("acme")
			for range 4 {
				if _, err := jobs.Enqueue(tx, w.schema, &by, jobs.Request{Name: "limited", Params: fmt.Appendf(nil, `{"of":"%d"}`, i)}, w.clock.Now(), nil); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	if n, _ := fill(tenant("acme"), jobs.Request{Name: "limited", Params: []byte(`{"of":"x"}`)}); n != 4 {
		t.Errorf("of a name with many groups: %d", n)
	}
	for i, want := range []int{21, 2} { // 7/8 of 24, and 7/8 of the rest
		if n, limit := fill(user(fmt.Sprint("u", i)), mail("a")); n != want || !strings.Contains(limit, "max_waiting_per_job") {
			t.Errorf("user %d without a tenant: %d, %s", i, n, limit)
		}
	}
	// A job that has ended makes room for another.
	w.queues[0].Close()
	q.SetSchema(w.schema)
	w.queues[0] = q
	claimed := w.claim(0)
	freed := 0
	for _, c := range claimed {
		if c.Name == "mail" && c.Caller.Tenant == "acme" {
			freed++
		}
	}
	if n, _ := fill(tenant("acme"), mail("a")); freed == 0 || n != freed {
		t.Errorf("%d of its jobs were claimed, and %d more may wait", freed, n)
	}
}
