package entities

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"runner.example/internal/caller"
	"runner.example/internal/diag"
	"runner.example/schema/compiler"
	"runner.example/state/entity"
	"runner.example/state/entity/catalog"
	"runner.example/state/store"
	"runner.example/tests/bench/arms"
)

const sales = `
auth {
  session cookie { idle: 30m, absolute: 12h }
  user: User,
  tenant: Org
}

entity Org { id: id @@allow read to session }
entity User { id: id name: string(1..80) @@allow read to session }

entity Partner {
  id: id
  org: Org @tenant
  name: string(1..80)
  city: string(1..80)
  @@allow all to session
}

entity Order {
  id: id
  org: Org @tenant
  number: int
  status: string(1..20)
  note: string(0..200)
  total: decimal(12,2)
  partner: Partner
  owner: User
  lines: Line[] @inverse(order)
  createdAt: time @created
  @@index(status, number desc)
  @@allow all to session
}

entity Line {
  id: id
  org: Org @tenant
  order: Order @onDelete(cascade)
  item: string(1..80)
  qty: int
  batch: int
  @@index(batch)
  @@allow all to session
}
`

// newSales is a store with orders, of which each has some lines. Partners and owners of an order
// are those of few others. Of 40 orders each, the lines of the open ones are a batch.
func newSales(b *testing.B, orders, lines int) *world {
	b.Helper()
	st, err := store.Open(store.Options{Dir: b.TempDir()})
	check(b, err)
	b.Cleanup(func() { check(b, st.Close()) })
	sources := []diag.Source{{Name: "sales.schema", Text: []byte(sales)}}
	s, found := compiler.Compile(sources, compiler.Options{})
	if s == nil {
		b.Fatal(found)
	}
	m, err := entity.Activate(context.Background(), st, s, sources, entity.Options{})
	check(b, err)
	check(b, m.BuildIndexes(context.Background(), func(catalog.Progress) {}))
	w := &world{store: st, model: m, who: caller.Caller{Kind: caller.Session, UserID: "u1", Tenant: "t0"}}
	operator := caller.Caller{Kind: caller.System}
	w.put(b, &operator, "Org", 1, func(int) any { return map[string]any{"id": "t0"} })
	w.put(b, &operator, "User", 20, func(i int) any { return map[string]any{"id": fmt.Sprintf("u%d", i), "name": fmt.Sprintf("User %d", i)} })
	partners := w.put(b, &w.who, "Partner", 500, func(i int) any {
		return map[string]any{"name": fmt.Sprintf("Partner %d", i), "city": "Berlin"}
	})
	ids := w.put(b, &w.who, "Order", orders, func(i int) any {
		return map[string]any{
			"number": i, "status": []string{"open", "paid"}[i%2], "note": "as it was agreed on the telephone", "total": "12.50",
			"partner": partners[i*7%len(partners)], "owner": fmt.Sprintf("u%d", i%20),
		}
	})
	w.put(b, &w.who, "Line", lines*orders, func(i int) any {
		order := i / lines
		return map[string]any{"order": ids[order], "item": fmt.Sprintf("item %d", i), "qty": i % 7, "batch": order/40*2 + order%2}
	})
	return w
}

// put inserts rows and returns their ids.
func (w *world) put(b *testing.B, who *caller.Caller, name string, rows int, row func(i int) any) (ids []string) {
	b.Helper()
	const batch = 500
	for from := 0; from < rows; from += batch {
		var list []any
		for i := from; i < min(rows, from+batch); i++ {
			list = append(list, row(i))
		}
		args, err := json.Marshal(map[string]any{"into": name, "values": list})
		check(b, err)
		var out entity.Result
		_, err = w.store.Update(context.Background(), func(tx *store.Tx) error {
			var a entity.Access
			a.Reset(w.model, tx, who, 100_000)
			return a.Do("insert", args, &out)
		})
		check(b, err)
		var answer struct{ Rows []struct{ ID string } }
		check(b, json.Unmarshal(out.JSON, &answer))
		for _, row := range answer.Rows {
			ids = append(ids, row.ID)
		}
	}
	return ids
}

// query reads rows, so many of which have the member.
func (w *world) query(b *testing.B, args, member string, members int) func() {
	var a entity.Access
	var out entity.Result
	return func() {
		w.do(b, &a, "query", []byte(args), &out)
		if bytes.Count(out.JSON, []byte(member)) != members {
			b.Fatalf("%s", out.JSON)
		}
	}
}

// orders reads a page of 20 orders with what it includes.
func (w *world) orders(b *testing.B, include, member string, members int) func() {
	return w.query(b, `{"from":"Order","where":[["status","=","open"]],"orderBy":[["number","desc"]],"limit":20`+include+`}`, member, members)
}

// BenchmarkInclude compares a page of 20 rows that includes others in each row with the page
// alone, and with queries that return as many rows.
func BenchmarkInclude(b *testing.B) {
	names := [2]string{"page", "included"}
	w := newSales(b, 10_000, 2)
	alone := w.orders(b, "", `"number"`, 20)
	b.Run("one", func(b *testing.B) {
		two := w.orders(b, `,"include":{"partner":{"select":["name"]},"owner":{"select":["name"]}}`, `"name"`, 40)
		arms.Alternate(b, 4, names, [2]func(){alone, two})
	})
	b.Run("many", func(b *testing.B) {
		two := w.orders(b, `,"include":{"partner":{"select":["name"]},"lines":{"limit":20,"select":["item","qty"]}}`, `"item"`, 40)
		arms.Alternate(b, 4, names, [2]func(){alone, two})
	})
	for _, lines := range []int{2, 20} {
		b.Run(fmt.Sprintf("rows/%d", lines), func(b *testing.B) {
			const orders = 2000
			w := newSales(b, orders, lines)
			page := w.orders(b, "", `"number"`, 20)
			rows := w.query(b, fmt.Sprintf(`{"from":"Line","where":[["batch","=",%d]],"limit":1000,"select":["item","qty"]}`, orders/40*2-2), `"item"`, 20*lines)
			included := w.orders(b, `,"include":{"lines":{"limit":20,"select":["item","qty"]}}`, `"item"`, 20*lines)
			arms.Alternate(b, 4, [2]string{"queries", "included"}, [2]func(){func() { page(); rows() }, included})
		})
	}
}
