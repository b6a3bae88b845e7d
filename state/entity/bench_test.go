package entity_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"runner.example/internal/cost"
	"runner.example/state/entity"
	"runner.example/state/store"
)

// filled returns a shop with a number of orders that are stored on disk.
func filled(b *testing.B, orders int) (h *fixture, id, partner string) {
	h = newFixture(b, shop)
	partner = h.insert(clerk, "Partner", `{"code":"a"}`)
	other := h.insert(clerk, "Partner", `{"code":"b"}`)
	for from := 0; from < orders; from += 1000 {
		var values []string
		for i := from; i < min(from+1000, orders); i++ {
			p := partner
			if i%2 == 0 {
				p = other
			}
			values = append(values, fmt.Sprintf(`{"number":"%d","partner":%q,"total":"%d.50","rank":%d}`, i, p, i, i))
		}
		h.must(clerk, "insert", `{"into":"Order","values":[`+strings.Join(values, ",")+`]}`)
	}
	id = h.rows(clerk, `{"from":"Order","where":[["number","=","77"]]}`)[0]["id"].(string)
	return h, id, partner
}

// BenchmarkOperations measures operations inside an open transaction, with the row in the
// store's memory.
func BenchmarkOperations(b *testing.B) {
	h, id, partner := filled(b, 10_000)
	for _, c := range []struct{ name, op, args string }{
		{"get", "get", fmt.Sprintf(`{"from":"Order","id":%q}`, id)},
		{"unique", "query", `{"from":"Order","where":[["number","=","77"]]}`},
		{"page", "query", fmt.Sprintf(`{"from":"Order","where":[["partner","=",%q],["status","=","open"]],"orderBy":[["createdAt","desc"]],"limit":20}`, partner)},
		{"scan", "query", `{"from":"Order","limit":20}`},
	} {
		b.Run(c.name, func(b *testing.B) {
			err := h.store.View(context.Background(), func(tx *store.Tx) error {
				var a entity.Access
				a.Reset(h.model, tx, clerk, 1<<60)
				started := time.Now()
				var work cost.Meter
				work.Reset(func() error { // like the sandbox, which reads the clock
					if time.Since(started) > time.Hour {
						return context.DeadlineExceeded
					}
					return nil
				})
				a.Work = &work
				var out entity.Result
				args := []byte(c.args)
				b.ReportAllocs()
				for b.Loop() {
					if err := a.Do(c.op, args, &out); err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil {
				b.Fatal(err)
			}
		})
	}
	b.Run("insert", func(b *testing.B) {
		b.ReportAllocs()
		n := 0
		for b.Loop() {
			n++
			h.must(clerk, "insert", fmt.Sprintf(`{"into":"Order","values":{"number":"x%d","partner":%q}}`, n, partner))
		}
	})
	b.Run("store get", func(b *testing.B) {
		err := h.store.View(context.Background(), func(tx *store.Tx) error {
			var key []byte
			for item, err := range tx.Scan([]byte("entity/r"), nil, false) {
				if err != nil {
					return err
				}
				key = append(key, item.Key...)
				break
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := tx.Get(key); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			b.Fatal(err)
		}
	})
}
