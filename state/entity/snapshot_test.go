package entity_test

import (
	"context"
	"testing"

	"runner.example/state/entity"
)

// An index is of no use to a transaction that sees less of the store than the
// commit that finished it: it would find nothing there.
func TestATransactionOlderThanAnIndexDoesNotUseIt(t *testing.T) {
	h := newFixture(t, with("size: int"))
	h.insert(clerk, "Item", `{"size":7}`)
	if err := h.activate(with("size: int @index")); err != nil {
		t.Fatal(err)
	}
	const count = `{"from":"Item","where":[["size","=",7]]}`
	err := h.in(clerk, func(a *entity.Access) error {
		for _, when := range []string{"before", "after"} {
			var out entity.Result
			if err := a.Do("count", []byte(count), &out); err != nil {
				return err
			}
			if string(out.JSON) != `{"count":1}` {
				t.Errorf("%s the index was built: %s", when, out.JSON)
			}
			if err := h.model.BuildIndexes(context.Background(), nil); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := h.must(clerk, "count", count); got != `{"count":1}` {
		t.Errorf("with the index: %s", got)
	}
}
