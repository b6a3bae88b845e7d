package entity_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"runner.example/internal/fault"
	"runner.example/state/entity"
	"runner.example/state/entity/catalog"
	"runner.example/state/store"
)

// drop drops a part of what is kept, step by step, and returns the number of rows that changed.
func (h *fixture) drop(name string, each func(step int)) (changed int, err error) {
	var from []byte
	for step := 0; ; step++ {
		done, err := catalog.Drop(context.Background(), h.store, name, from, func(*store.Tx, catalog.DropStep) error { return nil })
		if err != nil {
			return changed, err
		}
		changed += done.Changed
		if each != nil {
			each(step)
		}
		if from = done.Next; from == nil {
			return changed, catalog.DeleteDropped(context.Background(), h.store)
		}
	}
}

func TestADroppedFieldIsGoneForGood(t *testing.T) {
	old := tradeWith("Order", "name: text\n note: text = \"x\" @unique\n size: int?", "open")
	gone := tradeWith("Order", "name: text\n note: text = \"x\" @removed\n size: int?", "open")
	h := newFixture(t, old)
	for i := range 1200 {
		h.insert(alice, "Order", fmt.Sprintf(`{"name":"n%d","note":"secret-%d","size":%d}`, i, i, i))
	}
	if _, err := h.drop("Order.note", nil); fault.CodeOf(err) != fault.Invalid || !strings.Contains(err.Error(), "@removed") {
		t.Errorf("a declared field: %v", err)
	}
	for name, hint := range map[string]string{"Order.nope": "", "Nope": "", "Order.node": "Order.note"} {
		if name == "Order.node" {
			h.mustActivate(gone)
		}
		if _, err := h.drop(name, nil); fault.CodeOf(err) != fault.NotFound || !strings.Contains(err.Error(), hint) {
			t.Errorf("%s: %v", name, err)
		}
	}
	h.mustActivate(gone)
	if n, err := catalog.CountKept(context.Background(), h.store, "Order.note"); n != 1200 || err != nil {
		t.Errorf("count: %d, %v", n, err)
	}
	stop := errors.New("stop")
	_, err := catalog.Drop(context.Background(), h.store, "Order.note", nil, func(*store.Tx, catalog.DropStep) error { return stop })
	if err != stop {
		t.Fatal(err)
	}
	// A step, an interruption, and all again, with writes in between.
	if _, err := catalog.Drop(context.Background(), h.store, "Order.note", nil, func(*store.Tx, catalog.DropStep) error { return nil }); err != nil {
		t.Fatal(err)
	}
	changed, err := h.drop("Order.note", func(step int) {
		h.must(alice, "update", fmt.Sprintf(`{"in":"Order","set":{"size":%d},"where":[["name","=","n%d"]]}`, -step, 1100+step))
		h.insert(alice, "Order", fmt.Sprintf(`{"name":"new%d"}`, step))
	})
	if err != nil || changed != 700 {
		t.Errorf("%d rows, %v; want 700", changed, err)
	}
	h.verify()
	for _, row := range h.stored() {
		if strings.Contains(row, "secret") {
			t.Fatalf("a row has the field still: %q", row)
		}
	}
	h.mustActivate(gone) // a restart
	if got := h.texts("size", `{"from":"Order","where":[["name","=","n1100"]]}`); !slices.Equal(got, []string{"0"}) {
		t.Errorf("got %v", got)
	}
	if got := h.texts("size", `{"from":"Order","where":[["name","=","n7"]]}`); !slices.Equal(got, []string{"7"}) {
		t.Errorf("got %v", got)
	}
	// The older release gets a new field.
	h.mustRollback(tradeWith("Order", "name: text\n note: text = \"x\"\n size: int?", "open"))
	if got := h.texts("note", `{"from":"Order","where":[["name","=","n7"]]}`); !slices.Equal(got, []string{"x"}) {
		t.Errorf("got %v", got)
	}
}

func TestADroppedEntityIsGoneWithItsIndexes(t *testing.T) {
	old := tradeWith("Order", "name: text @unique\n size: int? @index", "open")
	h := newFixture(t, old)
	for i := range 1100 {
		h.insert(alice, "Order", fmt.Sprintf(`{"name":"secret-%d"}`, i))
	}
	h.insert(alice, "Line", `{}`)
	h.buildIndexes()
	gone := strings.Replace(tradeWith("Order @removed", "name: text @unique\n size: int? @index", "open"), "of: Order? @onDelete(cascade)", "of: Order? @removed", 1)
	h.mustActivate(gone)
	steps := 0
	if _, err := h.drop("Order", func(int) { steps++; h.verify() }); err != nil || steps < 3 {
		t.Fatalf("%d steps, %v", steps, err)
	}
	h.verify()
	err := h.store.View(context.Background(), func(tx *store.Tx) error {
		for item, err := range tx.Scan([]byte("entity/"), nil, false) {
			if err != nil {
				return err
			}
			if strings.Contains(string(item.Key)+string(item.Value), "secret") {
				t.Fatalf("the store has %q still", item.Key)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.drop("Order", nil); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("again: %v", err)
	}
	if _, err := h.drop("Line.of", nil); err != nil {
		t.Error(err)
	}
	h.mustActivate(old)
	h.insert(alice, "Order", `{"name":"secret-1"}`)
	if got := h.rows(alice, `{"from":"Order"}`); len(got) != 1 {
		t.Errorf("got %d rows", len(got))
	}
}

// A release that has the field is active between two steps, and writes it to rows that were done.
func TestADropBeginsAgainAfterAnotherSchema(t *testing.T) {
	old := tradeWith("Order", "name: text\n note: text?", "open")
	for what, gone := range map[string]string{
		"Order.note": tradeWith("Order", "name: text\n note: text? @removed", "open"),
		"Order":      strings.Replace(tradeWith("Order @removed", "name: text\n note: text?", "open"), "of: Order? @onDelete(cascade)", "of: Order? @removed", 1),
	} {
		h := newFixture(t, old)
		for i := range 1200 {
			h.insert(alice, "Order", fmt.Sprintf(`{"name":"n%d","note":"secret-%d"}`, i, i))
		}
		h.mustActivate(gone)
		_, err := h.drop(what, func(step int) {
			if step > 0 {
				return
			}
			h.mustActivate(old)
			if what == "Order" { // an id that is less than those of the rows that are left
				err := h.in(system, func(a *entity.Access) error {
					a.Import = true
					return a.Do("insert", []byte(`{"into":"Order","values":{"id":"00000000000000000000000000","org":"acme","name":"again","note":"secret"}}`), &entity.Result{})
				})
				if err != nil {
					t.Fatal(err)
				}
			} else {
				h.must(alice, "update", `{"in":"Order","set":{"note":"secret again"},"where":[["name","=","n0"]]}`)
			}
			h.mustActivate(gone)
		})
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
		for _, row := range h.stored() {
			if strings.Contains(row, "secret") {
				t.Fatalf("%s: a row has the field still: %q", what, row)
			}
		}
		h.verify()
	}
}

// An activation that returns a field while it is dropped gets the field, or finds it gone; the catalog
// and the rows agree in any case.
func TestDropsAndActivationsDoNotDisturbEachOther(t *testing.T) {
	old := tradeWith("Order", "name: text\n note: text?", "open")
	gone := tradeWith("Order", "name: text\n note: text? @removed", "open")
	h := newFixture(t, old)
	for round := range 6 {
		for i := range 600 {
			h.insert(alice, "Order", fmt.Sprintf(`{"name":"%d-%d","note":"n"}`, round, i))
		}
		h.mustActivate(gone)
		var wait sync.WaitGroup
		var dropErr error
		begun := make(chan bool, 1)
		wait.Go(func() {
			defer close(begun)
			_, dropErr = h.drop("Order.note", func(step int) {
				if step == 0 {
					begun <- true
				}
			})
		})
		<-begun
		if err := h.activateWith(old, entity.Options{}); err != nil {
			t.Fatal(err)
		}
		wait.Wait()
		if dropErr != nil && fault.CodeOf(dropErr) != fault.Invalid && fault.CodeOf(dropErr) != fault.NotFound {
			t.Fatal(dropErr)
		}
		h.verify()
		h.insert(alice, "Order", `{"name":"last","note":"n"}`)
		if got := h.texts("note", `{"from":"Order","where":[["name","=","last"]]}`); len(got) != round+1 || got[round] != "n" {
			t.Errorf("got %v", got)
		}
	}
}
