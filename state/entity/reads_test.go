package entity_test

import (
	"context"
	"fmt"
	"testing"

	"runner.example/state/entity"
	"runner.example/state/store"
)

// viewReads returns what operations read, given as op and args alternately.
func (h *fixture) viewReads(ops ...string) *store.Reads {
	h.t.Helper()
	r, err := h.store.ViewReads(context.Background(), func(tx *store.Tx) error {
		var a entity.Access
		a.Reset(h.model, tx, clerk, 100_000)
		var out entity.Result
		for i := 0; i < len(ops); i += 2 {
			if err := a.Do(ops[i], []byte(ops[i+1]), &out); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		h.t.Fatal(err)
	}
	return r
}

// changes reports whether a write changes what r has.
func (h *fixture) changes(r *store.Reads, write func()) bool {
	h.t.Helper()
	w, fresh, err := h.store.Watch(context.Background(), r, func(store.Seq) {})
	if err != nil || !fresh {
		h.t.Fatalf("fresh %v, %v", fresh, err)
	}
	w.Stop()
	write()
	w, fresh, err = h.store.Watch(context.Background(), r, func(store.Seq) {})
	if err != nil {
		h.t.Fatal(err)
	}
	if fresh {
		w.Stop()
	}
	return !fresh
}

func TestWidenedReadsAreWholeEntities(t *testing.T) {
	h := newFixture(t, shop)
	partner := h.insert(clerk, "Partner", `{"code":"a"}`)
	var orders []string
	for i := range 100 {
		orders = append(orders, h.insert(clerk, "Order", fmt.Sprintf(`{"number":"%d","partner":%q}`, i, partner)))
	}
	var ops []string
	for i, id := range orders[:50] {
		ops = append(ops, "get", fmt.Sprintf(`{"from":"Order","id":%q}`, id),
			"query", fmt.Sprintf(`{"from":"Order","where":[["number","=","%d"]]}`, 2*i))
	}
	ops = append(ops, "query", fmt.Sprintf(`{"from":"Order","where":[["partner","=",%q],["status","=","open"]],"orderBy":[["createdAt","desc"]],"limit":20}`, partner))
	narrow, wide := h.viewReads(ops...), h.viewReads(ops...)
	entity.WidenReads(wide)
	t.Logf("%d keys and ranges, widened %d", narrow.Len(), wide.Len())
	if narrow.Len() < 50 || wide.Len() > 5 { // rows, two indexes, and a key of the catalog
		t.Errorf("%d keys and ranges become %d", narrow.Len(), wide.Len())
	}
	update := func(order int) func() {
		return func() {
			h.must(clerk, "update", fmt.Sprintf(`{"in":"Order","where":[["id","=",%q]],"set":{"rank":%d}}`, orders[order], order))
		}
	}
	insert := func() { h.insert(clerk, "Partner", `{"code":"b"}`) }
	if h.changes(narrow, insert) {
		t.Error("a partner changes what was read of orders")
	}
	wide = h.viewReads(ops...)
	entity.WidenReads(wide)
	if h.changes(wide, func() { h.insert(clerk, "Partner", `{"code":"c"}`) }) {
		t.Error("a partner changes all orders")
	}
	if !h.changes(wide, update(97)) {
		t.Error("an order does not change all orders, after many reads")
	}
	if h.changes(h.viewReads("get", fmt.Sprintf(`{"from":"Order","id":%q}`, orders[1])), update(99)) {
		t.Error("another order changes the one that was read")
	}
	one := h.viewReads("get", fmt.Sprintf(`{"from":"Order","id":%q}`, orders[1]))
	entity.WidenReads(one)
	if !h.changes(one, update(98)) {
		t.Error("an order does not change all orders")
	}
}

func TestWidenedReadsKeepKindsOfOtherKeysApart(t *testing.T) {
	h := newFixture(t, shop)
	read := func() *store.Reads {
		r, err := h.store.ViewReads(context.Background(), func(tx *store.Tx) error {
			for _, key := range []string{"jobs/j/1", "jobs/j/2", "jobs/j/3", "entity/catalog", "single"} {
				if _, err := tx.Get([]byte(key)); err != nil && err != store.ErrNotFound {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	for key, want := range map[string]bool{"jobs/j/4": true, "jobs/w/1": false, "single": true, "single/1": false} {
		r := read()
		entity.WidenReads(r)
		if r.Len() != 3 {
			t.Errorf("%d keys and ranges", r.Len())
		}
		if got := h.changes(r, func() {
			if _, err := h.store.Update(context.Background(), func(tx *store.Tx) error { return tx.Set([]byte(key), nil) }); err != nil {
				t.Fatal(err)
			}
		}); got != want {
			t.Errorf("%s changes it: %v, want %v", key, got, want)
		}
	}
}
