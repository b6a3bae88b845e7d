package entity_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"runner.example/internal/caller"
	"runner.example/internal/fault"
	"runner.example/state/entity"
	"runner.example/state/store"
)

const ledger = `
auth {
  session cookie { idle: 30m, absolute: 12h }
  roles: [admin]
  user: User
  tenant: Org
}
entity Org { id: id @@allow read to session }
entity User { id: id @@allow read to session }
entity Account {
  id: id
  name: string @unique
  balance: int @min(0)
  onCall: bool = true
  team: string = "red" @index
  @@allow all to session
}
entity Entry {
  id: id
  account: Account @onDelete(cascade)
  amount: int
  code: string?
  @@index(code)
  @@allow all to session
}
entity Ticket {
  id: id
  code: string @unique
  @@allow all to session
}
`

var alice = &caller.Caller{Kind: caller.Session, UserID: "u1", Tenant: "t1"}

// request is a handler: its operations in one transaction of a caller. An error rolls the
// transaction back.
type request func(a *entity.Access) error

// try runs a handler like a request, and reports whether it committed.
func (r *rig) try(who *caller.Caller, fn request) (bool, error) {
	seq, err := r.store.Update(context.Background(), func(tx *store.Tx) error {
		var a entity.Access
		a.Reset(r.model, tx, who, 100_000)
		return fn(&a)
	})
	if errors.Is(err, store.ErrConflict) {
		return false, nil
	}
	return err == nil && seq != 0, err
}

// result runs one operation and returns its fault as an error.
func result(t testing.TB, a *entity.Access, op string, args map[string]any) (map[string]any, error) {
	t.Helper()
	got := call(t, a, op, args)
	if got.code != "" {
		return nil, fault.New(got.code, "%s", got.detail)
	}
	return got.result, nil
}

func byID(id string) []any { return []any{[]any{"id", "=", id}} }

func balance(t testing.TB, a *entity.Access, id string) (int, error) {
	t.Helper()
	got, err := result(t, a, "get", map[string]any{"from": "Account", "id": id})
	if err != nil {
		return 0, err
	}
	return int(got["row"].(map[string]any)["balance"].(float64)), nil
}

func setBalance(t testing.TB, a *entity.Access, id string, n int) error {
	t.Helper()
	_, err := result(t, a, "update", map[string]any{"in": "Account", "set": map[string]any{"balance": n}, "where": byID(id)})
	return err
}

func accounts(r *rig, n, each int) (ids []string) {
	for i := range n {
		ids = append(ids, r.insert("Account", map[string]any{"name": fmt.Sprintf("a%d", i), "balance": each}))
	}
	return ids
}

func TestConcurrentTransfersKeepTheTotal(t *testing.T) {
	seed := newSeed(t)
	r := newRig(t, ledger)
	defer r.close()
	const each, workers = 100, 6
	ids := accounts(r, 6, each)
	rounds := 25
	if long() {
		rounds = 500
	}
	var moved sync.Map
	var done sync.WaitGroup
	for w := range workers {
		d := newDice(seed, uint64(w))
		done.Go(func() {
			for n := range rounds {
				from, to, amount := pick(d, ids...), pick(d, ids...), 1+d.IntN(60)
				if from == to {
					continue
				}
				committed, err := r.try(alice, func(a *entity.Access) error {
					x, err := balance(t, a, from)
					if err != nil || x < amount {
						return err
					}
					y, err := balance(t, a, to)
					if err != nil {
						return err
					}
					if err := errors.Join(setBalance(t, a, from, x-amount), setBalance(t, a, to, y+amount)); err != nil {
						return err
					}
					_, err = result(t, a, "insert", map[string]any{"into": "Entry", "values": []any{
						map[string]any{"account": from, "amount": -amount},
						map[string]any{"account": to, "amount": amount},
					}})
					return err
				})
				if err != nil {
					t.Error(err)
				}
				if committed {
					moved.Store([2]int{w, n}, amount)
				}
				if sum := total(t, r); sum != each*len(ids) {
					t.Errorf("a reader counts %d", sum)
				}
			}
		})
	}
	done.Wait()
	// The entries agree with the balances: every transfer happened once, however often its
	// handler ran.
	want := map[string]int{}
	transfers := 0
	moved.Range(func(any, any) bool { transfers++; return true })
	entries := 0
	for from := any(nil); ; {
		page := r.must(system, "query", map[string]any{"from": "Entry", "limit": 1000, "cursor": from})
		for _, row := range page["rows"].([]any) {
			e := row.(map[string]any)
			want[e["account"].(string)] += int(e["amount"].(float64))
			entries++
		}
		if from = page["nextCursor"]; from == nil {
			break
		}
	}
	if entries != 2*transfers || transfers == 0 {
		t.Errorf("%d entries of %d transfers", entries, transfers)
	}
	for _, id := range ids {
		row := r.must(system, "get", map[string]any{"from": "Account", "id": id})["row"].(map[string]any)
		if got := int(row["balance"].(float64)); got != each+want[id] {
			t.Errorf("an account holds %d, its entries say %d", got, each+want[id])
		}
	}
}

// total returns the sum of all balances as a reader sees them.
func total(t testing.TB, r *rig) int {
	sum := 0
	err := r.store.View(context.Background(), func(tx *store.Tx) error {
		var a entity.Access
		a.Reset(r.model, tx, alice, 100_000)
		got, err := result(t, &a, "query", map[string]any{"from": "Account", "select": []any{"balance"}})
		if err != nil {
			return err
		}
		for _, row := range got["rows"].([]any) {
			sum += int(row.(map[string]any)["balance"].(float64))
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	return sum
}

func TestNoIncrementOfAHandlerIsLost(t *testing.T) {
	r := newRig(t, ledger)
	defer r.close()
	id := accounts(r, 1, 0)[0]
	const workers, each = 8, 12
	var done sync.WaitGroup
	for range workers {
		done.Go(func() {
			for n := 0; n < each; {
				committed, err := r.try(alice, func(a *entity.Access) error {
					have, err := balance(t, a, id)
					if err != nil {
						return err
					}
					return setBalance(t, a, id, have+1)
				})
				if err != nil {
					t.Error(err)
					return
				}
				if committed {
					n++
				}
			}
		})
	}
	done.Wait()
	row := r.must(system, "get", map[string]any{"from": "Account", "id": id})["row"].(map[string]any)
	if row["balance"] != float64(workers*each) {
		t.Errorf("the counter is %v after %d increments", row["balance"], workers*each)
	}
}

// during runs a handler. Another request commits between the first and the last part of its
// first run. It returns the number of runs.
func (r *rig) during(first, other, last request) (runs int, err error) {
	r.Helper()
	_, err = r.store.Update(context.Background(), func(tx *store.Tx) error {
		runs++
		var a entity.Access
		a.Reset(r.model, tx, alice, 100_000)
		if err := first(&a); err != nil {
			return err
		}
		if runs == 1 {
			if _, err := r.try(alice, other); err != nil {
				return err
			}
		}
		return last(&a)
	})
	return runs, err
}

func TestWriteSkewBetweenHandlersIsPrevented(t *testing.T) {
	r := newRig(t, ledger)
	defer r.close()
	ids := accounts(r, 2, 0)
	query := map[string]any{"from": "Account", "where": []any{[]any{"team", "=", "red"}, []any{"onCall", "=", true}}}
	for _, look := range []string{"query", "count"} {
		for _, id := range ids {
			r.must(system, "update", map[string]any{"in": "Account", "set": map[string]any{"onCall": true}, "where": byID(id)})
		}
		var others int
		see := func(a *entity.Access) error {
			got, err := result(t, a, look, query)
			if err != nil {
				return err
			}
			if rows, ok := got["rows"].([]any); ok {
				others = len(rows) - 1
			} else {
				others = int(got["count"].(float64)) - 1
			}
			return nil
		}
		leave := func(id string) request {
			return func(a *entity.Access) error {
				if others == 0 {
					return nil
				}
				_, err := result(t, a, "update", map[string]any{"in": "Account", "set": map[string]any{"onCall": false}, "where": byID(id)})
				return err
			}
		}
		runs, err := r.during(see, func(a *entity.Access) error { return errors.Join(see(a), leave(ids[1])(a)) }, func(a *entity.Access) error {
			if others != 0 {
				others = 1 // the values that the first run read
			}
			return leave(ids[0])(a)
		})
		if err != nil || runs != 2 {
			t.Errorf("%s: %d runs, %v", look, runs, err)
		}
		if got := r.must(system, "count", query)["count"]; got != 1.0 {
			t.Errorf("%s: %v are on call", look, got)
		}
	}
}

// A handler looks for a row and inserts it if it is missing. No second row can be inserted
// in between, whichever index the lookup uses.
func TestARowThatAHandlerFoundMissingStaysMissing(t *testing.T) {
	looks := map[string]map[string]any{
		"by index":         {"from": "Entry", "where": []any{[]any{"code", "=", "c"}}},
		"by a full scan":   {"from": "Entry", "where": []any{[]any{"amount", "=", 7}}},
		"by a prefix":      {"from": "Entry", "where": []any{[]any{"code", "startsWith", "c"}}},
		"by a range":       {"from": "Entry", "where": []any{[]any{"code", ">=", "b"}, []any{"code", "<", "d"}}},
		"by relation":      {"from": "Entry"}, // its where is set below
		"by order":         {"from": "Entry", "orderBy": []any{[]any{"code", "desc"}}, "limit": 1, "where": []any{[]any{"code", ">", "b"}}},
		"by the first row": {"from": "Entry", "limit": 1, "where": []any{[]any{"code", "in", []any{"a", "c"}}}},
		"by a disjunction": {"from": "Entry", "where": []any{[]any{"or", []any{"code", "=", "c"}, []any{"amount", "=", 9}}}},
	}
	for name, look := range looks {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, ledger)
			defer r.close()
			account := accounts(r, 1, 0)[0]
			if look["where"] == nil {
				look["where"] = []any{[]any{"account", "=", account}}
			}
			insert := map[string]any{"into": "Entry", "values": map[string]any{"account": account, "amount": 7, "code": "c"}}
			var missing bool
			see := func(a *entity.Access) error {
				got, err := result(t, a, "query", look)
				if err == nil {
					missing = len(got["rows"].([]any)) == 0
				}
				return err
			}
			put := func(a *entity.Access) error {
				_, err := result(t, a, "insert", insert)
				return err
			}
			runs, err := r.during(see, put, func(a *entity.Access) error {
				if !missing {
					return nil
				}
				return put(a)
			})
			if err != nil || runs != 2 {
				t.Errorf("%d runs, %v", runs, err)
			}
			if got := r.must(system, "count", map[string]any{"from": "Entry"})["count"]; got != 1.0 {
				t.Errorf("%v rows of one code", got)
			}
		})
	}
}

func TestOneOfTwoInsertsOfAUniqueValueConflicts(t *testing.T) {
	r := newRig(t, ledger)
	defer r.close()
	insert := func(a *entity.Access) error {
		_, err := result(t, a, "insert", map[string]any{"into": "Ticket", "values": map[string]any{"code": "x"}})
		return err
	}
	nothing := func(*entity.Access) error { return nil }
	if runs, err := r.during(insert, insert, nothing); runs != 2 || fault.CodeOf(err) != fault.Conflict {
		t.Errorf("%d runs, %v", runs, err)
	}
	// Many requests at once.
	var done sync.WaitGroup
	for range 8 {
		done.Go(func() {
			for n := range 10 {
				_, err := r.try(alice, func(a *entity.Access) error {
					_, err := result(t, a, "insert", map[string]any{"into": "Ticket", "values": map[string]any{"code": fmt.Sprint(n)}})
					return err
				})
				if code := fault.CodeOf(err); code != "" && code != fault.Conflict {
					t.Error(err)
				}
			}
		})
	}
	done.Wait()
	if got := r.must(system, "count", map[string]any{"from": "Ticket"})["count"]; got != 11.0 {
		t.Errorf("%v tickets of 11 codes", got)
	}
}

// One handler sets a relation and another deletes its target: only one commits.
func TestARelationNeverRefersToADeletedRow(t *testing.T) {
	r := newRig(t, ledger)
	defer r.close()
	id := accounts(r, 1, 0)[0]
	insert := func(a *entity.Access) error {
		_, err := result(t, a, "insert", map[string]any{"into": "Entry", "values": map[string]any{"account": id, "amount": 1}})
		return err
	}
	remove := func(a *entity.Access) error {
		_, err := result(t, a, "delete", map[string]any{"from": "Account", "where": byID(id)})
		return err
	}
	nothing := func(*entity.Access) error { return nil }
	if runs, err := r.during(insert, remove, nothing); runs != 2 || fault.CodeOf(err) != fault.NotFound {
		t.Errorf("insert overtaken by delete: %d runs, %v", runs, err)
	}
	id = accounts(r, 1, 0)[0]
	if runs, err := r.during(remove, insert, nothing); runs != 2 || err != nil {
		t.Errorf("delete overtaken by insert: %d runs, %v", runs, err)
	}
	for _, name := range []string{"Account", "Entry"} {
		if got := r.must(system, "count", map[string]any{"from": name})["count"]; got != 0.0 {
			t.Errorf("%v rows of %s are left", got, name)
		}
	}
}

// A handler that runs again has the effect of one run. Nothing remains of the first run's
// inserts and their ids.
func TestAConflictedRunLeavesNothing(t *testing.T) {
	r := newRig(t, ledger)
	defer r.close()
	ids := accounts(r, 2, 10)
	var inserted []string
	runs, err := r.during(func(a *entity.Access) error {
		if _, err := balance(t, a, ids[0]); err != nil {
			return err
		}
		got, err := result(t, a, "insert", map[string]any{"into": "Entry", "values": map[string]any{"account": ids[1], "amount": 5, "code": "once"}})
		if err != nil {
			return err
		}
		inserted = append(inserted, got["rows"].([]any)[0].(map[string]any)["id"].(string))
		return nil
	}, func(a *entity.Access) error {
		return setBalance(t, a, ids[0], 3)
	}, func(a *entity.Access) error {
		have, err := balance(t, a, ids[1])
		if err != nil {
			return err
		}
		return setBalance(t, a, ids[1], have+5)
	})
	if err != nil || runs != 2 || len(inserted) != 2 {
		t.Fatalf("%d runs, %v", runs, err)
	}
	if got := r.do(system, "get", map[string]any{"from": "Entry", "id": inserted[0]}); got.code != fault.NotFound {
		t.Errorf("the row of the first run: %v", got)
	}
	if got := r.must(system, "count", map[string]any{"from": "Entry", "where": []any{[]any{"code", "=", "once"}}})["count"]; got != 1.0 {
		t.Errorf("%v rows of one insert", got)
	}
	row := r.must(system, "get", map[string]any{"from": "Account", "id": ids[1]})["row"].(map[string]any)
	if row["balance"] != 15.0 {
		t.Errorf("the balance is %v", row["balance"])
	}
}

// ---- histories ----

// recorded is a committed request with its answers.
type recorded struct {
	who     *caller.Caller
	now     time.Time
	program []operationKind
	answers []answer
}

// TestHistoriesAreSerializable runs random programs of random callers concurrently, and
// then in commit order on the reference: the answers must be equal.
func TestHistoriesAreSerializable(t *testing.T) {
	seed := newSeed(t)
	schemas := 8
	if long() {
		schemas = 300
	}
	committed, faults, again := 0, 0, 0
	for i := range schemas {
		n, m, k := runHistory(t, newDice(seed, uint64(i)))
		committed, faults, again = committed+n, faults+m, again+k
		if t.Failed() {
			return
		}
	}
	t.Logf("%d requests, %d of their operations refused, %d runs overtaken", committed, faults, again)
	if committed == 0 || long() && (committed < 50*schemas || faults == 0 || again == 0) {
		t.Errorf("%d requests committed, %d refusals, %d runs overtaken: the programs cover too little", committed, faults, again)
	}
}

func runHistory(t *testing.T, d dice) (committed, faults, again int) {
	app := d.app()
	w := &twin{rig: newRig(t, app.schema()), app: app, db: refDB{}, agreed: map[string]int{}}
	defer w.close()
	w.seed(d)
	if t.Failed() {
		return 0, 0, 0
	}
	var order []string
	stop := w.store.OnApply([]byte("marker/"), func(_ store.Seq, c store.Change) { order = append(order, string(c.Key)) })
	defer stop()

	var mu sync.Mutex
	ids := map[string][]string{}
	for name := range w.db {
		ids[name] = w.ids(name)
	}
	known := func(name string) []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(ids[name])
	}
	history := map[string]*recorded{}
	now := w.now
	var overtaken atomic.Int64
	var done sync.WaitGroup
	for worker := range 8 {
		d := newDice(d.Uint64(), uint64(worker))
		done.Go(func() {
			for n := range 20 {
				marker := fmt.Sprintf("marker/%d/%d", worker, n)
				rec := &recorded{who: (*callerOf)(d.caller()).fit(app), now: now}
				for range 1 + d.IntN(3) {
					o := d.operation(app, rec.who, known)
					delete(o.args, "limit")
					rec.program = append(rec.program, o)
				}
				_, err := w.store.Update(context.Background(), func(tx *store.Tx) error {
					if tx.Attempt() > 1 {
						overtaken.Add(1)
					}
					var a entity.Access
					a.Reset(w.model, tx, rec.who, 100_000)
					rec.answers = nil
					for _, o := range rec.program {
						got := call(t, &a, o.op, o.args)
						runtime.Gosched() // yield to other requests
						delete(got.result, "nextCursor")
						rec.answers = append(rec.answers, got)
					}
					return tx.Set([]byte(marker), nil)
				})
				if errors.Is(err, store.ErrConflict) {
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				history[marker] = rec
				for i, o := range rec.program {
					if name, ok := o.args["into"].(string); ok && rec.answers[i].code == "" {
						ids[name] = append(ids[name], idsIn(rec.answers[i].result)...)
					}
				}
				mu.Unlock()
			}
		})
	}
	done.Wait()
	if len(order) != len(history) {
		t.Errorf("%d requests acknowledged, %d in the log", len(history), len(order))
	}
	for at, marker := range order {
		rec := history[marker]
		ref := &refRun{app: app, who: rec.who, now: rec.now, db: w.db, mine: map[string]bool{}}
		for i, o := range rec.program {
			got := rec.answers[i]
			var made []string
			if o.op == "insert" && got.code == "" {
				for _, id := range idsIn(got.result) {
					if !slices.Contains(users, id) && !slices.Contains(tenants, id) {
						made = append(made, id)
					}
				}
			}
			want := ref.do(o.op, refArguments(t, o.args), made)
			if got.code != "" {
				faults++
			}
			if got.code != "" && !slices.Contains(want.faults, got.code) || got.code == "" && !reflect.DeepEqual(got.result, want.result) {
				t.Errorf("request %d, %s, %s\n%v\nanswered %v\nexpected %v %v", at, marker, describe(rec.who), o, got, answer{result: want.result}, want.faults)
			}
		}
		w.db = ref.db
		if t.Failed() {
			t.Logf("%s\nafter %s", app.schema(), strings.Join(order[:at], " "))
			return 0, 0, 0
		}
	}
	w.compareRows()
	return len(order), faults, int(overtaken.Load())
}

// idsIn returns the ids of the rows in an answer.
func idsIn(result map[string]any) (ids []string) {
	for _, row := range result["rows"].([]any) {
		if id, ok := row.(map[string]any)["id"].(string); ok {
			ids = append(ids, id)
		}
	}
	return ids
}
