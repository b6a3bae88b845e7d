package keystore_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"runner.example/internal/fault"
	"runner.example/keystore"
	"runner.example/schema"
	"runner.example/state/store"
)

// limited is typed with a limit of keys for each tenant.
var limited = strings.Replace(typed, "maxGrace: 7d,", "maxGrace: 7d, maxPerTenant: 20000,", 1)

// createMany makes n keys with metadata, in few transactions, and then changes each.
func (w *fixture) createMany(a keystore.Authority, n int, req keystore.CreateRequest, then func(*store.Tx, keystore.Key) error) (keys []keystore.Key) {
	w.Helper()
	for len(keys) < n {
		_, err := w.store.Update(w.Context(), func(tx *store.Tx) error {
			for range min(500, n-len(keys)) {
				key, err := w.keys.Create(tx, a, req)
				if err == nil && then != nil {
					err = then(tx, key)
				}
				if err != nil {
					return err
				}
				keys = append(keys, key)
			}
			return nil
		})
		if err != nil {
			w.Fatal(err)
		}
	}
	return keys
}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// Half of the dead are revoked, half expired.
func TestDeadKeysDoNotSlowCreationOrKeepMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: left out by -short")
	}
	if raceEnabled {
		t.Skip("memory and time are other ones with the race detector")
	}
	const n = 10_000
	s := compile(t, limited)
	w := inMemoryFor(t, t.TempDir())
	defer w.close()
	metadata := json.RawMessage(`{"note":"` + strings.Repeat("x", 2000) + `"}`)
	crowded, empty := session(s, "crowded", "u1", "admin"), session(s, "empty", "u1", "admin")
	revoke := func(tx *store.Tx, key keystore.Key) error {
		_, err := w.keys.Revoke(tx, crowded, key.ID)
		return err
	}
	unlimited := session(compile(t, typed), "crowded", "u1", "admin") // it need not count them
	dead := w.createMany(unlimited, n/2, keystore.CreateRequest{Scope: "orders_read", Metadata: metadata}, revoke)
	dead = append(dead, w.createMany(unlimited, n/2, keystore.CreateRequest{Scope: "orders_read", Metadata: metadata, ExpiresIn: lasting(time.Hour)}, nil)...)
	taken := func() int64 { // by the keystore
		w.closeKeys()
		before := heap()
		w.openKeys()
		return heap() - before
	}
	w.clock.advance(59 * time.Minute)
	half := taken()
	w.clock.advance(time.Minute)
	none := taken()
	t.Logf("memory: %d B for 5,000 live keys and as many dead, %d B for 10,000 dead, %d B for each of these", half, none, none/n)
	if none*10 > half {
		t.Errorf("10,000 dead keys take %d B, and with 5,000 of them alive it was %d B", none, half)
	}
	if err := w.keys.DropDead(t.Context()); err != nil {
		t.Fatal(err)
	}

	// Creating, alternated, in one run.
	times := map[string][]time.Duration{}
	for range 200 {
		for _, a := range []keystore.Authority{crowded, empty} {
			begin := time.Now()
			w.must(w.create(a, keystore.CreateRequest{Scope: "orders_read"}))
			times[a.Caller.Tenant] = append(times[a.Caller.Tenant], time.Since(begin))
		}
	}
	low := func(tenant string) time.Duration { // the least that other work disturbed
		slices.Sort(times[tenant])
		return times[tenant][len(times[tenant])/10]
	}
	ratio := float64(low("crowded")) / float64(low("empty"))
	t.Logf("create: %v with 10,000 dead keys, %v without, ratio %.2f", low("crowded"), low("empty"), ratio)
	if ratio > 2 {
		t.Errorf("create takes %.2f times as long with 10,000 dead keys of the tenant", ratio)
	}

	// Listing and reading them work as before.
	w.rejects(dead[0], keystore.KeyRevoked)
	w.rejects(dead[n-1], keystore.KeyExpired)
	if got, _ := w.keys.Verify([]byte(dead[n-1].Token.Reveal())); got.ID != dead[n-1].ID {
		t.Errorf("the log would name %q, not %q", got.ID, dead[n-1].ID)
	}
	var listed []string
	for f := (keystore.Filter{All: true, Limit: 1000}); ; {
		page, err := w.list(crowded, f)
		if err != nil {
			t.Fatal(err)
		}
		for _, key := range page.Keys {
			listed = append(listed, key.ID)
		}
		if f.Cursor = page.NextCursor; f.Cursor == "" {
			break
		}
	}
	if len(listed) != n+200 || !slices.IsSorted(listed) {
		t.Errorf("%d keys are listed, in order: %v", len(listed), slices.IsSorted(listed))
	}
}

func TestDeadKeysAreListedAndRefusedByReasonUntilTheSweep(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: left out by -short")
	}
	s := compile(t, limited)
	synctest.Test(t, func(t *testing.T) {
		clock := newClock()
		st, err := store.Open(store.Options{Clock: clock.now})
		if err != nil {
			t.Fatal(err)
		}
		keys, err := keystore.Open(t.Context(), st, keystore.Options{Machine: clock.machine(), KeepDead: 10 * day})
		if err != nil {
			t.Fatal(err)
		}
		w := &fixture{TB: t, clock: clock, store: st, keys: keys}
		pass := func(d time.Duration) { // with the tickers of the background task
			clock.advance(d)
			time.Sleep(time.Hour + time.Minute)
		}
		boss, op := session(s, "acme", "u1", "admin"), operator(s)
		revoked := w.must(w.create(boss, keystore.CreateRequest{Scope: "orders_read"}))
		expired := w.must(w.create(boss, keystore.CreateRequest{Scope: "orders_read", ExpiresIn: lasting(time.Hour)}))
		both := w.must(w.create(boss, keystore.CreateRequest{Scope: "orders_read", ExpiresIn: lasting(time.Hour)}))
		rotated := w.must(w.create(boss, keystore.CreateRequest{Scope: "orders_read", ExpiresIn: lasting(time.Hour)}))
		next := w.must(w.rotate(boss, rotated.ID, 10*time.Minute))
		live := w.must(w.create(boss, keystore.CreateRequest{Scope: "orders_read"}))
		clock.advance(time.Minute)
		w.accepts(revoked)
		w.must(w.revoke(boss, revoked.ID))
		used := w.must(w.get(op, revoked.ID)).LastUsedAt
		if used.IsZero() {
			t.Error("the use of a key is not shown")
		}
		describe := func() (out string) {
			for _, all := range []bool{false, true} {
				for _, a := range []keystore.Authority{boss, op} {
					var got []string
					for f := (keystore.Filter{All: all, Limit: 2}); ; {
						page, err := w.list(a, f)
						if err != nil {
							t.Fatal(err)
						}
						for _, key := range page.Keys {
							got = append(got, fmt.Sprintf("%s %s %v", key.ID, key.Status, key.LastUsedAt))
						}
						if f.Cursor = page.NextCursor; f.Cursor == "" {
							break
						}
					}
					out += strings.Join(got, "\n") + "\n\n"
				}
			}
			return out
		}
		tokens := func(b keystore.Reason) {
			t.Helper()
			w.rejects(revoked, keystore.KeyRevoked)
			w.rejects(expired, keystore.KeyExpired)
			w.rejects(both, b)
			w.rejects(rotated, keystore.KeyExpired)
			w.rejects(next, keystore.KeyExpired)
			w.accepts(live)
		}
		clock.advance(time.Hour)
		tokens(keystore.KeyExpired)
		before := describe()
		pass(0)
		if after := describe(); after != before {
			t.Errorf("out of memory the keys are\n%snot\n%s", after, before)
		}
		tokens(keystore.KeyExpired)
		if got := w.must(w.get(op, revoked.ID)).LastUsedAt; !got.Equal(used) {
			t.Errorf("last used %v, want %v", got, used)
		}
		for _, id := range []string{revoked.ID, expired.ID} {
			_, err := w.rotate(boss, id, 0)
			w.refuses(fault.Conflict, err)
			_, err = w.disable(op, id)
			w.refuses(fault.Conflict, err)
		}
		w.must(w.revoke(boss, both.ID)) // of a key that is dead already
		tokens(keystore.KeyRevoked)
		pass(0)
		tokens(keystore.KeyRevoked)

		// Swept ten days after its end, each, with a record.
		clock.advance(10*day - time.Hour)
		pass(0)
		tokens(keystore.KeyRevoked)
		left := func() (ids []string) {
			page, err := w.list(op, keystore.Filter{All: true})
			if err != nil {
				t.Fatal(err)
			}
			for _, key := range page.Keys {
				ids = append(ids, key.ID)
			}
			return ids
		}
		inOrder := func(ids ...string) []string { return slices.Sorted(slices.Values(ids)) }
		if got := left(); len(got) != 5 {
			t.Errorf("%d keys are left", len(got))
		}
		clock.advance(time.Hour - 30*time.Second)
		pass(0)
		if got := left(); !reflect.DeepEqual(got, inOrder(both.ID, live.ID)) {
			t.Errorf("left are %v, want the one that was revoked last and the live one", got)
		}
		clock.advance(time.Minute)
		pass(0)
		if got := left(); !reflect.DeepEqual(got, []string{live.ID}) {
			t.Errorf("left are %v, want the live one", got)
		}
		for _, key := range []keystore.Key{revoked, expired, both, rotated, next} {
			w.rejects(key, keystore.Unknown)
			_, err := w.get(op, key.ID)
			w.refuses(fault.NotFound, err)
		}
		w.accepts(live)
		var sweeps []string
		for _, e := range w.audit() {
			if e.Action == "apiKeys.sweep" {
				sweeps = append(sweeps, fmt.Sprint(e.Actor.Kind, " ", e.Count))
			}
		}
		if !reflect.DeepEqual(sweeps, []string{"system 3", "system 1"}) {
			t.Errorf("the audit has %q", sweeps)
		}
		n := 0
		if err := st.View(t.Context(), func(tx *store.Tx) error {
			for item, err := range tx.Scan([]byte("keystore/"), nil, false) {
				if err != nil {
					return err
				}
				if strings.Contains(string(item.Key), "key_") && !strings.Contains(string(item.Key), live.ID) {
					t.Errorf("left in the store: %q", item.Key)
				}
				n++
			}
			return nil
		}); err != nil || n < 3 {
			t.Errorf("%d records, %v", n, err)
		}
		if err := errors.Join(keys.Close(), st.Close()); err != nil {
			t.Error(err)
		}
	})
}

// What a clock that was wrong made old is not deleted before an operator can look.
func TestNothingIsSweptSoonAfterAClockJump(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: left out by -short")
	}
	s := compile(t, limited)
	synctest.Test(t, func(t *testing.T) {
		clock := newClock()
		st, err := store.Open(store.Options{Clock: clock.now})
		if err != nil {
			t.Fatal(err)
		}
		keys, err := keystore.Open(t.Context(), st, keystore.Options{Machine: clock.machine(), KeepDead: 10 * day})
		if err != nil {
			t.Fatal(err)
		}
		w := &fixture{TB: t, clock: clock, store: st, keys: keys}
		op := operator(s)
		key := w.must(w.create(op, keystore.CreateRequest{Scope: "orders_read", ExpiresIn: lasting(time.Hour)}))
		clock.step(400 * day)
		keys.Ready()
		clock.advance(time.Hour)
		w.rejects(key, keystore.KeyExpired)
		time.Sleep(2 * time.Hour)
		w.must(w.get(op, key.ID))
		clock.advance(7 * day)
		time.Sleep(2 * time.Hour)
		_, err = w.get(op, key.ID)
		w.refuses(fault.NotFound, err)
		if err := errors.Join(keys.Close(), st.Close()); err != nil {
			t.Error(err)
		}
	})
}

// The stored number of keys equals the number that a scan over all keys finds.
func TestMaxPerTenantIsExactWhenKeysEnd(t *testing.T) {
	const most = 3
	few := compile(t, strings.Replace(typed, "maxGrace: 7d,", "maxGrace: 7d, maxPerTenant: 3,", 1))
	unlimited := compile(t, typed)
	rapid.Check(t, func(rt *rapid.T) {
		w := inMemoryFor(t, t.TempDir())
		defer w.close()
		tenants := []string{"", "acme", "acm"}
		ends := map[string]map[string]time.Time{"": {}, "acme": {}, "acm": {}} // of the keys that count
		var others []string                                                    // keys of operators for no tenant
		create := func(s *schema.Schema, tenant string) {
			req := keystore.CreateRequest{Scope: "orders_read", ExpiresIn: lasting(time.Duration(rapid.IntRange(1, 20).Draw(rt, "minutes")) * time.Minute)}
			live := 0
			for _, end := range ends[tenant] {
				if w.clock.now().Before(end) {
					live++
				}
			}
			key, err := w.create(session(s, tenant, "u1", "admin"), req)
			if full := s == few && live >= most; full != (err != nil) || full && fault.CodeOf(err) != fault.Conflict {
				rt.Fatalf("tenant %q with %d live keys: %v", tenant, live, err)
			}
			if err == nil {
				ends[tenant][key.ID] = key.ExpiresAt
			}
		}
		for range 60 {
			tenant := rapid.SampledFrom(tenants).Draw(rt, "tenant")
			switch rapid.IntRange(0, 11).Draw(rt, "act") {
			case 0:
				create(unlimited, tenant)
			case 1:
				others = append(others, w.must(w.create(operator(few), keystore.CreateRequest{Scope: "orders_read"})).ID)
			case 2:
				if len(others) > 0 {
					w.must(w.revoke(operator(few), rapid.SampledFrom(others).Draw(rt, "other")))
				}
			case 3, 4:
				if ids := slices.Sorted(maps.Keys(ends[tenant])); len(ids) > 0 {
					id := rapid.SampledFrom(ids).Draw(rt, "key")
					w.must(w.revoke(operator(few), id))
					ends[tenant][id] = noon
				}
			case 5, 6:
				w.clock.advance(5 * time.Minute)
			case 7:
				if err := w.keys.DropDead(t.Context()); err != nil {
					rt.Fatal(err)
				}
			case 8:
				if rapid.IntRange(0, 4).Draw(rt, "restart") == 0 {
					w.restart()
				}
			default:
				create(few, tenant)
			}
		}
	})
}
