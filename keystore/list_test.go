package keystore_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"runner.example/internal/fault"
	"runner.example/keystore"
	"runner.example/state/store"
)

func ids(page keystore.Page) (out []string) {
	for _, key := range page.Keys {
		out = append(out, key.ID)
	}
	return out
}

func TestAListShowsLiveKeysOldestFirst(t *testing.T) {
	w := inMemory(t)
	s := compile(t, typed)
	op := operator(s)
	var all, live []string
	for i := range 12 {
		req := keystore.CreateRequest{Scope: "orders_read", Name: fmt.Sprint(i), Tenant: []string{"a", "b"}[i%2]}
		if i%4 == 1 {
			req.ExpiresIn = lasting(time.Hour)
		}
		key := w.must(w.create(op, req))
		all = append(all, key.ID)
		switch i % 4 {
		case 0:
			live = append(live, key.ID)
			w.must(w.disable(op, key.ID))
		case 2:
			w.must(w.revoke(op, key.ID))
		case 3:
			live = append(live, key.ID)
			w.must(w.rotate(op, key.ID, 7*day))
		}
		w.clock.advance(time.Second)
	}
	w.clock.advance(2 * time.Hour)
	for name, c := range map[string]struct {
		filter keystore.Filter
		want   []string
	}{"live": {keystore.Filter{}, live}, "all": {keystore.Filter{All: true}, all}} {
		page, err := w.list(op, c.filter)
		if err != nil || fmt.Sprint(ids(page)) != fmt.Sprint(c.want) || page.NextCursor != "" {
			t.Errorf("%s: %v, %v; want %v", name, ids(page), err, c.want)
		}
		// The same page by page, for an operator and for one of each tenant.
		for limit := 1; limit <= len(c.want); limit++ {
			f := c.filter
			f.Limit = limit
			var got []string
			for pages := 1; ; pages++ {
				page, err := w.list(op, f)
				if err != nil || len(page.Keys) > limit || len(page.Keys) == 0 {
					t.Fatalf("%s by %d: %d keys, %v", name, limit, len(page.Keys), err)
				}
				got = append(got, ids(page)...)
				if f.Cursor = page.NextCursor; f.Cursor == "" {
					if want := (len(c.want) + limit - 1) / limit; pages != want {
						t.Errorf("%s by %d: %d pages, want %d", name, limit, pages, want)
					}
					break
				}
			}
			if fmt.Sprint(got) != fmt.Sprint(c.want) {
				t.Errorf("%s by %d: %v, want %v", name, limit, got, c.want)
			}
		}
		var both []string
		for _, tenant := range []string{"a", "b"} {
			f := c.filter
			f.Limit = 2
			for {
				of := operator(s)
				of.Caller.Tenant = tenant
				page, err := w.list(of, f)
				if err != nil {
					t.Fatal(err)
				}
				for _, key := range page.Keys {
					if key.Tenant != tenant {
						t.Errorf("tenant %s is shown a key of %s", tenant, key.Tenant)
					}
				}
				both = append(both, ids(page)...)
				if f.Cursor = page.NextCursor; f.Cursor == "" {
					break
				}
			}
		}
		if len(both) != len(c.want) {
			t.Errorf("%s: the tenants see %d keys, want %d", name, len(both), len(c.want))
		}
	}
}

// Reading a key allocates its record; skipping one that is dead by the tenant's list does
// not.
func TestDeadKeysOfATenantAreNotReadForAList(t *testing.T) {
	w := inMemory(t)
	s := compile(t, typed)
	boss := session(s, "acme", "u1", "admin")
	_, err := w.store.Update(t.Context(), func(tx *store.Tx) error {
		for range 500 {
			key, err := w.keys.Create(tx, boss, keystore.CreateRequest{Scope: "orders_read"})
			if err == nil {
				_, err = w.keys.Revoke(tx, boss, key.ID)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	allocations := func(f keystore.Filter, want int) float64 {
		return testing.AllocsPerRun(1, func() {
			if page, err := w.list(boss, f); err != nil || len(page.Keys) != want {
				t.Errorf("%+v: %d keys, %v; want %d", f, len(page.Keys), err, want)
			}
		})
	}
	if skipped, read := allocations(keystore.Filter{}, 0), allocations(keystore.Filter{All: true, Limit: 1000}, 500); skipped*3 > read {
		t.Errorf("%g allocations to skip 500 keys, %g to read them", skipped, read)
	}
}

func TestAListCanBeRestrictedToOneScope(t *testing.T) {
	w := inMemory(t)
	op := operator(compile(t, typed))
	for _, scope := range []string{"orders_read", "orders_write", "orders_read", "minted"} {
		w.must(w.create(op, keystore.CreateRequest{Scope: scope}))
	}
	for scope, want := range map[string]int{"": 4, "orders_read": 2, "minted": 1, "minter": 0} {
		if page, err := w.list(op, keystore.Filter{Scope: scope}); err != nil || len(page.Keys) != want {
			t.Errorf("%q: %d keys, %v; want %d", scope, len(page.Keys), err, want)
		}
	}
	_, err := w.list(op, keystore.Filter{Scope: "order_read"})
	w.refuses(fault.Invalid, err)
	if err == nil || !strings.Contains(err.Error(), `did you mean "orders_read"?`) {
		t.Errorf("%v", err)
	}
}

func TestAListIsNeverLongerThanItsLimit(t *testing.T) {
	w := inMemory(t)
	op := operator(compile(t, typed))
	_, err := w.store.Update(t.Context(), func(tx *store.Tx) error {
		for range 1001 {
			if _, err := w.keys.Create(tx, op, keystore.CreateRequest{Scope: "orders_read"}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for limit, want := range map[int]int{0: 100, 1: 1, 1000: 1000} {
		page, err := w.list(op, keystore.Filter{Limit: limit})
		if err != nil || len(page.Keys) != want || page.NextCursor == "" {
			t.Errorf("limit %d: %d keys, next %q, %v", limit, len(page.Keys), page.NextCursor, err)
		}
	}
	for _, f := range []keystore.Filter{{Limit: -1}, {Limit: 1001}, {Cursor: "x"}, {Cursor: "key_"}, {Cursor: strings.Repeat("k", 1000)}} {
		_, err := w.list(op, f)
		w.refuses(fault.Invalid, err)
	}
}

func TestAPageInJSONHasAListAndACursorOrNull(t *testing.T) {
	w := inMemory(t)
	op := operator(compile(t, typed))
	page, err := w.list(op, keystore.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	if text, err := json.Marshal(page); err != nil || string(text) != `{"keys":[],"nextCursor":null}` {
		t.Errorf("%s, %v", text, err)
	}
	first := w.must(w.create(op, keystore.CreateRequest{Scope: "orders_read"}))
	w.clock.advance(time.Second)
	w.must(w.create(op, keystore.CreateRequest{Scope: "orders_read"}))
	if page, err = w.list(op, keystore.Filter{Limit: 1}); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(page)
	if err != nil || !strings.HasSuffix(string(text), `],"nextCursor":"`+first.ID+`"}`) {
		t.Errorf("%s, %v", text, err)
	}
	var back keystore.Page
	if err := json.Unmarshal(text, &back); err != nil || fmt.Sprint(back) != fmt.Sprint(page) {
		t.Errorf("%v\n%+v\n%+v", err, back, page)
	}
}
