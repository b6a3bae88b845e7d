package entity_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"runner.example/internal/caller"
	"runner.example/internal/diag"
	"runner.example/internal/fault"
	"runner.example/schema/compiler"
	"runner.example/state/entity/catalog"
)

// tradeWith is a schema with an entity of this declaration, one that refers to it, and the enum of its
// states.
func tradeWith(name, fields, states string) string {
	entity, _, _ := strings.Cut(name, " ")
	return `
auth { session cookie { idle: 30m } tenant: Org }
enum State { ` + states + ` }
entity Org { id: id
  @@allow read to session }
entity ` + name + ` {
  id: id
  org: Org @tenant
  ` + fields + `
  @@allow all to session
}
entity Line {
  id: id
  org: Org @tenant
  of: ` + entity + `? @onDelete(cascade)
  @@allow all to session
}`
}

func (h *fixture) buildIndexes() {
	h.t.Helper()
	if err := h.model.BuildIndexes(context.Background(), nil); err != nil {
		h.t.Fatal(err)
	}
	h.verify()
}

// texts returns one member of a query's rows, in their order.
func (h *fixture) texts(member, args string) (list []string) {
	h.t.Helper()
	for _, row := range h.rows(alice, args) {
		list = append(list, fmt.Sprint(row[member]))
	}
	return list
}

func TestARenamedFieldHasItsValuesWithoutAWrite(t *testing.T) {
	old := tradeWith("Order", `note: string(1..20) @unique
  size: int = 3 @index`, "open")
	h := newFixture(t, old)
	h.insert(alice, "Order", `{"note":"a"}`)
	h.insert(alice, "Order", `{"note":"b","size":4}`)
	h.buildIndexes()
	rows := h.stored()

	renamed := tradeWith("Order", `remark: string(1..20) @unique @was("note")
  amount: int = 3 @index @was("size")`, "open")
	h.mustActivate(renamed)
	check := func() {
		t.Helper()
		if now := h.stored(); !maps.Equal(rows, now) {
			t.Errorf("the stored rows were %q and are %q", rows, now)
		}
		if got := h.texts("amount", `{"from":"Order","orderBy":[["remark","asc"]]}`); !slices.Equal(got, []string{"3", "4"}) {
			t.Errorf("got %v", got)
		}
		h.fails(alice, fault.Conflict, "insert", `{"into":"Order","values":{"remark":"a"}}`, "remark")
		h.fails(alice, fault.Invalid, "query", `{"from":"Order","select":["note"]}`, "note")
	}
	check()
	h.mustActivate(renamed) // a restart
	check()
	h.mustRollback(old)
	if got := h.texts("size", `{"from":"Order","where":[["note","=","b"]]}`); !slices.Equal(got, []string{"4"}) {
		t.Errorf("after the rollback: %v", got)
	}
	h.insert(alice, "Order", `{"note":"c","size":5}`)
	h.must(alice, "delete", `{"from":"Order","where":[["note","=","c"]]}`)
	h.mustActivate(renamed)
	check()
	// All releases that are kept know the new names.
	h.mustActivate(tradeWith("Order", `remark: string(1..20) @unique
  amount: int = 3 @index`, "open"))
	check()
	// The release that was deployed directly before the first knows the names, too.
	h.mustRollback(old)
	h.mustActivate(tradeWith("Order", `remark: string(1..20) @unique
  amount: int = 3 @index`, "open"))
	check()
}

func TestARenamedFieldMayChangeAsAnyOther(t *testing.T) {
	h := newFixture(t, with("note: string(1..20)?"))
	id := h.insert(alice, "Item", `{"note":"too long"}`)
	h.wantRefused(with(`remark: string(1..5)? @was("note")`), "E606", "Item.remark", id)
	h.wantRefused(with(`remark: int? @was("note")`), "E601", "Item.remark", "text")
	if list := h.refusals(with(`remark: string(1..20)? @was("nots")`)); len(list) != 2 || list[0].Code != "E608" || list[1].Code != "E601" {
		t.Errorf("a typing error: %v", list)
	}
	h.mustActivate(with(`remark: string(1..20) @was("note")`))
	h.mustRollback(with("note: string(1..20)?"))
	h.mustActivate(with(`remark: text @was("note") @unique`))
	if got := h.texts("id", `{"from":"Item","where":[["remark","=","too long"]]}`); !slices.Equal(got, []string{id}) {
		t.Errorf("got %s", got)
	}
}

func TestAnEarlierNameOfNothingOrOfTwoIsRefused(t *testing.T) {
	h := newFixture(t, tradeWith("Order", "note: text?\n remark: text?\n size: int?", "open, shut"))
	fresh := tradeWith("Order", "note: text?\n remark: text?\n amount: int? @was(\"sise\")\n size: int?", "open, shut")
	h.mustActivate(fresh) // without rows there is nothing to lose
	h.mustActivate(tradeWith("Order", "note: text?\n remark: text?\n size: int?\n state: State = open", "open, shut"))
	h.insert(alice, "Order", `{"note":"a","remark":"b"}`)
	rest := "\n state: State = open"
	for _, c := range []struct {
		schema string
		words  []string
	}{
		{tradeWith("Order", "note: text?\n remark: text?\n size: int?\n amount: int? @was(\"sise\")"+rest, "open, shut"), []string{"Order.amount", `"sise"`, `did you mean "size"?`, "remove @was"}},
		{tradeWith("Order", "remark: text? @was(\"note\")\n size: int?"+rest, "open, shut"), []string{"Order.remark", "both", "@removed"}},
		{tradeWith("Order", "note: text?\n remark: text?\n size: int?"+rest, `open, shut, closed @was("shat")`), []string{"closed", `"shat"`, `did you mean "shut"?`}},
		{tradeWith("Order", "note: text?\n remark: text?\n size: int?"+rest, `open @was("shut")`), []string{"open", "both", "runner data update Order"}},
		{strings.Replace(tradeWith("Order", "note: text?\n remark: text?\n size: int?"+rest, "open, shut"), "entity Line", `entity Extra @was("Nothing") { id: id
 @@allow all to session }
entity Line`, 1), []string{"entity Extra", `"Nothing"`, "remove @was"}},
	} {
		h.wantRefused(c.schema, "E608", c.words...)
	}
	// Two entities: the rows of Line cannot become those of Order.
	h.insert(alice, "Line", `{}`)
	both := strings.Replace(tradeWith(`Order @was("Line")`, "note: text?\n remark: text?\n size: int?"+rest, "open, shut"), "entity Line", "entity Other", 1)
	h.wantRefused(both, "E608", "entity Order", "both", "@removed")
}

func TestARenamedEntityHasItsRows(t *testing.T) {
	old := tradeWith("Order", "name: text @unique\n of: Order?", "open")
	h := newFixture(t, old)
	id := h.insert(alice, "Order", `{"name":"a"}`)
	h.insert(alice, "Order", fmt.Sprintf(`{"name":"b","of":%q}`, id))
	h.insert(alice, "Line", fmt.Sprintf(`{"of":%q}`, id))
	h.buildIndexes()
	rows := h.stored()
	renamed := tradeWith(`Purchase @was("Order")`, "name: text @unique\n of: Purchase?", "open")
	for range 3 {
		h.mustActivate(renamed)
		if now := h.stored(); !maps.Equal(rows, now) {
			t.Errorf("the stored rows were %q and are %q", rows, now)
		}
		if got := h.texts("of", `{"from":"Purchase","where":[["name","=","b"]]}`); !slices.Equal(got, []string{id}) {
			t.Errorf("got %v", got)
		}
		h.fails(alice, fault.Invalid, "query", `{"from":"Order"}`, "Order")
		h.fails(alice, fault.NotFound, "insert", `{"into":"Line","values":{"of":"01k4x9m2v7q8r5s6t7h8v9w0x1"}}`, "Purchase")
		h.fails(alice, fault.Conflict, "delete", fmt.Sprintf(`{"from":"Purchase","where":[["id","=",%q]]}`, id), "of")
		h.mustRollback(old)
		if got := h.texts("name", `{"from":"Order","orderBy":[["name","asc"]]}`); !slices.Equal(got, []string{"a", "b"}) {
			t.Errorf("after the rollback: %v", got)
		}
	}
	h.mustActivate(renamed)
	h.mustActivate(tradeWith("Purchase", "name: text @unique\n of: Purchase?", "open"))
	h.must(alice, "delete", `{"from":"Purchase","where":[["name","=","b"]]}`)
	h.must(alice, "delete", `{"from":"Purchase","where":[["name","=","a"]]}`)
	if got := h.rows(alice, `{"from":"Line"}`); len(got) != 0 {
		t.Errorf("got %v, want the lines to be deleted with their order", got)
	}
}

func TestARenamedEnumValueHasItsNewNameInRowsAndIndexes(t *testing.T) {
	fields := "name: text\n state: State = open\n past: State[] = [open]\n @@index(state)\n @@unique(state, name)"
	old := tradeWith("Order", fields, "open, sent, paid")
	h := newFixture(t, old)
	for i, state := range []string{"open", "sent", "paid", "sent"} {
		h.insert(alice, "Order", fmt.Sprintf(`{"name":"%d","state":%q,"past":["open","sent"]}`, i, state))
	}
	h.buildIndexes()
	rows := h.stored()
	// "shipped" is after "paid", and "sent" is too; "agreed" comes before all.
	renamed := tradeWith("Order", strings.ReplaceAll(fields, "open", "agreed"), `shipped @was("sent"), paid, agreed @was("open")`)
	check := func() {
		t.Helper()
		if now := h.stored(); !maps.Equal(rows, now) {
			t.Errorf("the stored rows were %q and are %q", rows, now)
		}
		for _, built := range []bool{false, true} {
			if built {
				h.buildIndexes()
			}
			if got := h.texts("state", `{"from":"Order","orderBy":[["state","desc"]]}`); !slices.Equal(got, []string{"shipped", "shipped", "paid", "agreed"}) {
				t.Errorf("got %v", got)
			}
			if got := h.texts("name", `{"from":"Order","where":[["state","=","agreed"]]}`); !slices.Equal(got, []string{"0"}) {
				t.Errorf("got %v", got)
			}
			if got := h.texts("past", `{"from":"Order","where":[["name","=","2"]]}`); !slices.Equal(got, []string{"[agreed shipped]"}) {
				t.Errorf("got %v", got)
			}
		}
		h.fails(alice, fault.Conflict, "insert", `{"into":"Order","values":{"name":"1","state":"shipped"}}`, "state")
		h.fails(alice, fault.Invalid, "insert", `{"into":"Order","values":{"name":"9","state":"sent"}}`, "state")
	}
	h.mustActivate(renamed)
	check()
	h.must(alice, "update", `{"in":"Order","set":{"state":"paid"},"where":[["name","=","0"]]}`)
	h.must(alice, "update", `{"in":"Order","set":{"state":"agreed"},"where":[["name","=","0"]]}`)
	check()
	h.mustRollback(old)
	h.buildIndexes()
	if got := h.texts("name", `{"from":"Order","where":[["state","=","sent"]],"orderBy":[["name","asc"]]}`); !slices.Equal(got, []string{"1", "3"}) {
		t.Errorf("after the rollback: %v", got)
	}
	h.mustActivate(renamed)
	check()
	// The name "sent" gets another meaning, while rows have it as the text of "shipped".
	again := strings.Replace(renamed, `shipped @was("sent")`, "shipped, sent", 1)
	h.mustActivate(again)
	h.insert(alice, "Order", `{"name":"new","state":"sent"}`)
	h.buildIndexes()
	if got := h.texts("name", `{"from":"Order","where":[["state","=","sent"]]}`); !slices.Equal(got, []string{"new"}) {
		t.Errorf("got %v", got)
	}
	h.wantRefused(strings.Replace(again, "shipped, sent", "shipped", 1), "E605", `"sent"`)
	h.must(alice, "delete", `{"from":"Order","where":[["state","=","sent"]]}`)
	h.mustActivate(strings.Replace(again, "shipped, sent", "shipped", 1))
	check()
}

func TestRemovedFieldsAndEntitiesAreKeptAndInvisible(t *testing.T) {
	old := tradeWith("Order", "name: text\n note: text @unique", "open")
	h := newFixture(t, old)
	id := h.insert(alice, "Order", `{"name":"a","note":"n"}`)
	h.insert(alice, "Line", fmt.Sprintf(`{"of":%q}`, id))
	h.wantRefused(tradeWith("Order", "name: text", "open"), "E601", "@removed", `@was("note")`)
	gone := strings.Replace(tradeWith("Order", "name: text\n note: text @unique @removed", "open"), "entity Line", "entity Line @removed", 1)
	h.mustActivate(gone)
	h.fails(alice, fault.Invalid, "query", `{"from":"Line"}`, "Line")
	h.fails(alice, fault.Invalid, "query", `{"from":"Order","select":["note"]}`, "note")
	if got := h.rows(alice, `{"from":"Order"}`); len(got) != 1 || got[0]["note"] != nil || len(got[0]) != 3 {
		t.Errorf("got %v", got)
	}
	rows := h.stored()
	h.must(alice, "update", `{"in":"Order","set":{"name":"b"},"where":[]}`)
	h.must(alice, "update", `{"in":"Order","set":{"name":"a"},"where":[]}`)
	if now := h.stored(); !maps.Equal(rows, now) {
		t.Errorf("the stored rows were %q and are %q", rows, now)
	}
	// The line with @removed may go once it was activated, and what is kept may return.
	plain, _, _ := strings.Cut(tradeWith("Order", "name: text", "open"), "entity Line")
	h.mustActivate(plain)
	h.mustActivate(old)
	if got := h.texts("note", `{"from":"Order"}`); !slices.Equal(got, []string{"n"}) || len(h.rows(alice, `{"from":"Line"}`)) != 1 {
		t.Errorf("got %v", got)
	}
}

func TestAPlanNamesEveryChange(t *testing.T) {
	h := newFixture(t, tradeWith("Order", "name: string(1..20)\n note: text? @index\n size: int?\n state: State = open @index", "open, sent"))
	h.insert(alice, "Order", `{"name":"a"}`)
	h.insert(alice, "Order", `{"name":"b"}`)
	next := tradeWith(`Purchase @was("Order")`, "name: string(1..10) @unique\n note: text? @removed\n amount: int @was(\"size\")\n more: int = 3 @index\n state: State = open @index", `open, shipped @was("sent")`)
	sources := []diag.Source{{Name: "app.schema", Text: []byte(strings.Replace(next, "entity Line", "entity Extra { id: id\n @@allow all to session }\nentity Line @removed", 1))}}
	s, list := compiler.Compile(sources, compiler.Options{})
	if s == nil {
		t.Fatal(list)
	}
	steps, list, err := catalog.Plan(context.Background(), h.store, s)
	if err != nil || len(list) != 2 || list[0].Code != "E602" || !strings.Contains(list[0].Message, "runner data update") {
		t.Errorf("%v, %v", list, err)
	}
	var got []string
	for _, step := range steps {
		got = append(got, fmt.Sprintf("%s %s %d", step.Change, step.What, step.Rows))
		if step.How == "" {
			t.Errorf("%v says nothing", step)
		}
	}
	want := []string{
		"add Extra 0", "rename Purchase 2", "remove Purchase.note 2", "rename Purchase.amount 2", "rename Purchase.state shipped 2", "add Purchase.more 2",
		"check Purchase.amount 2", "check Purchase.name 2",
		"build Purchase(name) 2", "build Purchase(more) 2", "build Purchase(state) 2", "drop Order(note) 2", "drop Order(state) 2",
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if steps, _, err := catalog.Plan(context.Background(), h.store, h.model.Schema()); len(steps) != 0 || err != nil {
		t.Errorf("the same schema: %v, %v", steps, err)
	}
}

// An email may become a text, and the plan says that this has no way back.
func TestAPlanNamesATypeThatIsWidened(t *testing.T) {
	old, next := tradeWith("Order", "mail: email\n links: url[]", "open"), tradeWith("Order", "mail: text\n links: text[]", "open")
	h := newFixture(t, old)
	s, _ := compiler.Compile([]diag.Source{{Name: "app.schema", Text: []byte(next)}}, compiler.Options{})
	for _, want := range []string{"", "widen Order.mail 1 email, widen Order.links 1 url[]"} {
		steps, list, err := catalog.Plan(context.Background(), h.store, s)
		var got []string
		for _, step := range steps {
			was, _, _ := strings.Cut(strings.TrimPrefix(step.How, "was "), ";")
			got = append(got, fmt.Sprintf("%s %s %d %s", step.Change, step.What, step.Rows, was))
		}
		if strings.Join(got, ", ") != want || len(list) > 0 || err != nil {
			t.Errorf("got %q, want %q; %v, %v", got, want, list, err)
		}
		h.insert(alice, "Order", `{"mail":"a@example.com","links":["https://example.com/"]}`)
	}
	h.mustActivate(next)
	if err := h.rollback(old); err == nil {
		t.Error("a text became an email")
	}
}

func TestTenantsMayBeRenamed(t *testing.T) {
	old := tradeWith("Order", "name: text", "open")
	h := newFixture(t, old)
	h.insert(alice, "Order", `{"name":"a"}`)
	withState := tradeWith("Order", "name: text\n state: State = open", "open, sent")
	h.mustActivate(withState) // the row has the value because it lacks the field
	renamed := strings.NewReplacer(
		"tenant: Org", "tenant: Company", "entity Org", `entity Company @was("Org")`,
		"org: Org @tenant", `company: Company @tenant @was("org")`, "enum State { open", `enum State { agreed @was("open")`, "= open", "= agreed",
	).Replace(withState)
	for range 2 {
		h.mustActivate(renamed)
		if got := h.texts("state", `{"from":"Order","where":[["company","=","t1"]]}`); !slices.Equal(got, []string{"agreed"}) {
			t.Errorf("got %v", got)
		}
		other := &caller.Caller{Kind: caller.Session, UserID: "u1", Tenant: "t2"}
		if got := h.rows(other, `{"from":"Order"}`); len(got) != 0 {
			t.Errorf("another tenant sees %v", got)
		}
		h.mustRollback(withState)
		if got := h.texts("state", `{"from":"Order","where":[["org","=","t1"]]}`); !slices.Equal(got, []string{"open"}) {
			t.Errorf("got %v", got)
		}
	}
}
