package entity_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"runner.example/internal/caller"
	"runner.example/state/entity"
	"runner.example/state/store"
)

// indexed is an entity with fields of all sorts, and the attributes.
func indexed(tenant bool, attributes string) string {
	org := ""
	if tenant {
		org = "org: Org @tenant"
	}
	return `
auth { session cookie { idle: 30m } tenant: Org }
enum Mood { calm, glad, sour }
entity Org { id: id
  @@allow read to session }
entity Friend { id: id
  @@allow read to session }
entity Item {
  id: id
  ` + org + `
  text: string(0..20)
  size: int?
  rate: float?
  cost: decimal(6,2)?
  mood: Mood?
  good: bool
  at: time?
  day: date?
  lasts: duration?
  friend: Friend?
  ` + attributes + `
  @@allow all to session
}`
}

// attributes are sets of indexes for the same rows.
var attributeSets = []string{
	"@@index(size) @@index(text) @@index(rate, mood)",
	"@@index(size desc) @@index(text, cost desc) @@index(good, at desc)",
	"@@index(mood desc, size) @@index(cost) @@index(day desc, text desc) @@index(lasts)",
	"@@index(friend, size desc, text) @@index(at, good desc) @@index(rate desc)",
	"@@unique(text, size, good) @@unique(cost, mood desc) @@index(friend desc)",
}

type rowGenerator struct {
	*rand.Rand
	orgs, friends, ids []string
}

// orNull sometimes returns null.
func (g rowGenerator) orNull(text string) string {
	if g.IntN(6) == 0 {
		return "null"
	}
	return text
}

// value returns one of a few values of a field, so that many rows are equal.
func (g rowGenerator) value(field string) string {
	n := g.IntN(7) - 3
	switch field {
	case "id":
		return fmt.Sprintf("%q", g.ids[g.IntN(len(g.ids))])
	case "org":
		return fmt.Sprintf("%q", g.orgs[g.IntN(len(g.orgs))])
	case "text":
		return []string{`""`, `"a"`, `"ab"`, `"abc"`, `"b"`, `"a\u0000"`, `"é"`}[n+3]
	case "size":
		return fmt.Sprint(n)
	case "rate":
		return fmt.Sprint(float64(n) / 4)
	case "cost":
		return fmt.Sprintf(`"%d.%d0"`, n, g.IntN(3))
	case "mood":
		return []string{`"calm"`, `"glad"`, `"sour"`}[g.IntN(3)]
	case "good":
		return fmt.Sprint(n > 0)
	case "at":
		return fmt.Sprintf(`"2026-01-0%dT00:00:00.00%dZ"`, n+4, g.IntN(3))
	case "day":
		return fmt.Sprintf(`"2026-01-0%d"`, n+4)
	case "lasts":
		return fmt.Sprint(n * 60)
	}
	return fmt.Sprintf("%q", g.friends[g.IntN(len(g.friends))])
}

var itemFields = []string{"text", "size", "rate", "cost", "mood", "good", "at", "day", "lasts", "friend"}

func (g rowGenerator) row() string {
	var members []string
	for _, f := range itemFields {
		v := g.value(f)
		if f != "text" && f != "good" {
			v = g.orNull(v)
		}
		members = append(members, fmt.Sprintf("%q:%s", f, v))
	}
	return strings.Join(members, ",")
}

func (g rowGenerator) condition(fields []string) string {
	f := fields[g.IntN(len(fields))]
	ops := []string{"=", "=", "=", "!=", "in"}
	switch f {
	case "text":
		ops = append(ops, "<", "<=", ">", ">=", "startsWith", "contains")
	case "size", "rate", "cost", "at", "day", "lasts":
		ops = append(ops, "<", "<=", ">", ">=")
	}
	op := ops[g.IntN(len(ops))]
	switch op {
	case "in":
		list := []string{g.value(f)}
		for range g.IntN(3) {
			list = append(list, g.value(f))
		}
		return fmt.Sprintf(`[%q,"in",[%s]]`, f, strings.Join(list, ","))
	case "=", "!=":
		return fmt.Sprintf(`[%q,%q,%s]`, f, op, g.orNull(g.value(f)))
	}
	return fmt.Sprintf(`[%q,%q,%s]`, f, op, g.value(f))
}

func (g rowGenerator) query(tenant bool) string {
	fields := append([]string{"id"}, itemFields...)
	if tenant {
		fields = append(fields, "org")
	}
	var where, order []string
	for range g.IntN(4) {
		where = append(where, g.condition(fields))
	}
	used := map[string]bool{}
	for range g.IntN(4) {
		f := fields[g.IntN(len(fields))]
		if !used[f] {
			used[f] = true
			order = append(order, fmt.Sprintf(`[%q,%q]`, f, []string{"asc", "desc"}[g.IntN(2)]))
		}
	}
	return fmt.Sprintf(`"where":[%s],"orderBy":[%s],"limit":%d`, strings.Join(where, ","), strings.Join(order, ","), 1+g.IntN(20))
}

// pages returns all pages of a query, and its count.
func (h *fixture) pages(who *caller.Caller, query string) string {
	var all []string
	for cursor := "null"; ; {
		got := h.must(who, "query", fmt.Sprintf(`{"from":"Item",%s,"cursor":%s}`, query, cursor))
		var page struct {
			Rows       json.RawMessage
			NextCursor json.RawMessage
		}
		if err := json.Unmarshal([]byte(got), &page); err != nil {
			h.t.Fatal(err)
		}
		all = append(all, string(page.Rows))
		if cursor = string(page.NextCursor); cursor == "null" {
			break
		}
	}
	where, _, _ := strings.Cut(query, `,"orderBy"`)
	return strings.Join(all, "\n") + "\n" + h.must(who, "count", `{"from":"Item",`+where+`}`)
}

func TestResultsAreTheSameWithAndWithoutAnIndex(t *testing.T) {
	sequential(t)
	seed, queries := rand.Uint64(), 60
	if os.Getenv("RUNNER_SOAK") != "" {
		queries = 5000
	}
	t.Logf("seed %d", seed)
	for _, tenant := range []bool{false, true} {
		g := &rowGenerator{Rand: rand.New(rand.NewPCG(seed, 1)), orgs: []string{"o1", "o2"}}
		fixtures := []*fixture{newFixture(t, indexed(tenant, ""))}
		for _, attributes := range attributeSets {
			fixtures = append(fixtures, newFixture(t, indexed(tenant, attributes)))
		}
		fill(t, g, fixtures, tenant)
		callers := []*caller.Caller{memberOf("o1"), memberOf("o2"), operator}
		for range queries {
			who, query := callers[g.IntN(3)], g.query(tenant)
			want := fixtures[0].pages(who, query)
			for i, h := range fixtures[1:] {
				if got := h.pages(who, query); got != want {
					t.Fatalf("%s %s: under %s\ngot  %s\nwant %s", who.Kind, query, attributeSets[i], got, want)
				}
			}
		}
	}
}

// fill inserts the same rows into all fixtures. A row that violates a unique index in one
// of them is inserted in none.
func fill(t *testing.T, g *rowGenerator, fixtures []*fixture, tenant bool) {
	t.Helper()
	imported := func(h *fixture, name, values string) error {
		_, err := h.store.Update(t.Context(), func(tx *store.Tx) error {
			var a entity.Access
			a.Reset(h.model, tx, operator, 100_000)
			a.Import = true
			return a.Do("insert", []byte(fmt.Sprintf(`{"into":%q,"values":%s}`, name, values)), &entity.Result{})
		})
		return err
	}
	for i := range 3 {
		id := fmt.Sprintf("01j0000000000000000000000%d", i)
		g.friends = append(g.friends, id)
		for _, h := range fixtures {
			if err := imported(h, "Friend", fmt.Sprintf(`{"id":%q}`, id)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for i := range 250 {
		id := fmt.Sprintf("01j0000000000000000000%04d", i)
		values := fmt.Sprintf(`{"id":%q,%s`, id, g.row())
		if tenant {
			values += `,"org":` + g.value("org")
		}
		unique := fixtures[len(fixtures)-1]
		if err := imported(unique, "Item", values+"}"); err != nil {
			continue
		}
		g.ids = append(g.ids, id)
		for _, h := range fixtures[:len(fixtures)-1] {
			if err := imported(h, "Item", values+"}"); err != nil {
				t.Fatal(err)
			}
		}
	}
	if len(g.ids) < 50 {
		t.Fatalf("only %d rows fit the unique indexes", len(g.ids))
	}
}

// touchedBy returns how many rows a query touches.
func (h *fixture) touchedBy(who *caller.Caller, args string) int {
	h.t.Helper()
	n := 0
	err := h.in(who, func(a *entity.Access) error {
		defer func() { n = a.Touched() }()
		return a.Do("query", []byte(args), &entity.Result{})
	})
	if err != nil {
		h.t.Fatal(err)
	}
	return n
}

func TestAPageReadsOnlyTheRangeOfItsIndex(t *testing.T) {
	h := newFixture(t, shop)
	var partners []string
	for i := range 4 {
		partners = append(partners, h.insert(clerk, "Partner", fmt.Sprintf(`{"code":"%d"}`, i)))
	}
	statuses := []string{"open", "paid", "gone"}
	var values []string
	for i := range 600 {
		values = append(values, fmt.Sprintf(`{"number":"%04d","partner":%q,"status":%q,"rank":%d}`, i, partners[i%4], statuses[i%3], i))
	}
	h.must(clerk, "insert", `{"into":"Order","values":[`+strings.Join(values, ",")+`]}`)
	p := partners[0]
	for _, c := range []struct {
		query string
		want  int
	}{
		{`"where":[["number","=","0007"]]`, 1},
		{`"where":[["number","=","0007"]],"orderBy":[["total","desc"]]`, 1},
		{`"limit":20`, 21},
		{`"orderBy":[["number","desc"]],"limit":20`, 21},
		{`"orderBy":[["rank","asc"]],"limit":20`, 21},
		{`"orderBy":[["rank","desc"]],"limit":20`, 21},
		{`"where":[["rank",">=",100],["rank","<",110]]`, 10},
		{`"where":[["rank","in",[5,9,9,1000]]]`, 3},
		{`"where":[["number","startsWith","001"]]`, 10},
		{fmt.Sprintf(`"where":[["partner","=",%q],["status","=","open"]],"orderBy":[["createdAt","desc"]],"limit":20`, p), 21},
		{fmt.Sprintf(`"where":[["partner","=",%q],["status","=","open"]],"orderBy":[["createdAt","asc"]],"limit":20`, p), 21},
		{fmt.Sprintf(`"where":[["partner","=",%q]],"limit":20`, p), 21},
		{fmt.Sprintf(`"where":[["partner","=",%q],["status","in",["paid","gone"]]]`, p), 100},
		{`"orderBy":[["total","asc"]],"limit":20`, 600},
	} {
		if got := h.touchedBy(clerk, `{"from":"Order",`+c.query+`}`); got != c.want {
			t.Errorf("%s: %d rows are touched, want %d", c.query, got, c.want)
		}
	}
}

// A condition on the id narrows the range of the rows, and of the entries of an index with equal values.
// Rows that others insert behind it meanwhile do not conflict.
func TestConditionsOnTheIDNarrowTheScan(t *testing.T) {
	h := newFixture(t, shop)
	partner := h.insert(clerk, "Partner", `{"code":"0"}`)
	var values []string
	for i := range 300 {
		values = append(values, fmt.Sprintf(`{"number":"%04d","partner":%q,"status":%q,"rank":%d}`, i, partner, []string{"open", "paid"}[i%2], i))
	}
	h.must(clerk, "insert", `{"into":"Order","values":[`+strings.Join(values, ",")+`]}`)
	var ids []string
	for _, row := range h.rows(clerk, `{"from":"Order","orderBy":[["id","asc"]],"limit":300}`) {
		ids = append(ids, fmt.Sprint(row["id"]))
	}
	last := ids[299]
	for _, who := range []*caller.Caller{clerk, operator} {
		for _, c := range []struct {
			query      string
			want, rows int
		}{
			{fmt.Sprintf(`"where":[["id",">",%q]]`, ids[289]), 10, 10},
			{fmt.Sprintf(`"where":[["id",">=",%q]],"orderBy":[["id","desc"]]`, ids[290]), 10, 10},
			{fmt.Sprintf(`"where":[["id","<",%q]],"orderBy":[["id","desc"]]`, ids[10]), 10, 10},
			{fmt.Sprintf(`"where":[["id","<=",%q],["id",">",%q]]`, ids[19], ids[9]), 10, 10},
			{fmt.Sprintf(`"where":[["id","<=",%q],["id",">",%q]]`, ids[9], ids[19]), 0, 0},
			{fmt.Sprintf(`"where":[["id",">",%q],["rank",">=",0]],"orderBy":[["id","asc"]],"limit":3`, ids[9]), 4, 3},
		} {
			if got := h.touchedBy(who, `{"from":"Order",`+c.query+`}`); got != c.want {
				t.Errorf("%s: %s: %d rows are touched, want %d", who.Kind, c.query, got, c.want)
			}
			if got := len(h.rows(who, `{"from":"Order",`+c.query+`}`)); got != c.rows {
				t.Errorf("%s: %s: %d rows, want %d", who.Kind, c.query, got, c.rows)
			}
		}
	}
	runs := 0
	_, err := h.store.Update(t.Context(), func(tx *store.Tx) error {
		runs++
		var a entity.Access
		a.Reset(h.model, tx, clerk, 100_000)
		if err := a.Do("count", []byte(fmt.Sprintf(`{"from":"Order","where":[["id","<=",%q]]}`, last)), &entity.Result{}); err != nil {
			return err
		}
		if runs == 1 {
			h.must(clerk, "insert", fmt.Sprintf(`{"into":"Order","values":{"number":"new","partner":%q,"status":"open","rank":1000}}`, partner))
		}
		return a.Do("insert", []byte(fmt.Sprintf(`{"into":"Order","values":{"number":"own","partner":%q,"status":"open","rank":1001}}`, partner)), &entity.Result{})
	})
	if err != nil || runs != 1 {
		t.Errorf("%d runs, %v", runs, err)
	}

	h = newFixture(t, tradeWith("Order", "name: text", "open")) // with a tenant
	for i := range 50 {
		ids[i] = h.insert(alice, "Order", fmt.Sprintf(`{"name":"%d"}`, i))
	}
	slices.Sort(ids[:50])
	for _, who := range []*caller.Caller{alice, operator} {
		args := fmt.Sprintf(`{"from":"Order","where":[["id","<=",%q],["id",">",%q]]}`, ids[19], ids[9])
		if got, rows := h.touchedBy(who, args), len(h.rows(who, args)); got != 10 || rows != 10 {
			t.Errorf("%s: %d of %d rows", who.Kind, rows, got)
		}
	}
}
