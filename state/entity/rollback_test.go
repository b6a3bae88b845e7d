package entity_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"runner.example/internal/caller"
	"runner.example/internal/fault"
	"runner.example/state/entity"
	"runner.example/state/store"
)

// tagged is Item with a note, a code and lists, and an entity that refers to it.
const tagged = `name: text
  note: text?
  code: string(1..20)? @unique
  price: decimal(12,2) = 1.50
  extra: json?
  tags: string(1..9)[] = ["a"]`

// mark is an entity of a newer release.
const mark = `
entity Mark { id: id
  item: Item @onDelete(cascade)
  label: string(1..9) @unique
  @@allow all to session }`

// one returns the only row of a query for a name.
func (h *fixture) one(name, selected string) string {
	h.t.Helper()
	return h.must(clerk, "query", fmt.Sprintf(`{"from":"Item","select":[%s],"where":[["name","=",%q]]}`, selected, name))
}

// stored returns the rows as they are stored, by key.
func (h *fixture) stored() map[string]string {
	h.t.Helper()
	rows := map[string]string{}
	err := h.store.View(context.Background(), func(tx *store.Tx) error {
		for item, err := range tx.Scan([]byte("entity/r"), nil, false) {
			if err != nil {
				return err
			}
			rows[string(item.Key)] = string(item.Value)
		}
		return nil
	})
	if err != nil {
		h.t.Fatal(err)
	}
	return rows
}

func (h *fixture) mustRollback(text string) {
	h.t.Helper()
	if err := h.rollback(text); err != nil {
		h.t.Fatal(err)
	}
	h.verify()
}

func (h *fixture) mustActivate(text string) {
	h.t.Helper()
	if err := h.activate(text); err != nil {
		h.t.Fatal(err)
	}
	h.verify()
}

// wantRefused activates a schema that must be refused with the code and all of the words.
func (h *fixture) wantRefused(text, code string, words ...string) {
	h.t.Helper()
	list := h.refusals(text)
	if len(list) == 0 {
		h.t.Fatalf("it was not refused with %s", code)
	}
	for _, d := range list {
		if d.Code != code {
			h.t.Errorf("got %v, want %s", d, code)
		}
	}
	for _, word := range words {
		if !strings.Contains(fmt.Sprint(list), word) {
			h.t.Errorf("%v does not contain %q", list, word)
		}
	}
	h.verify()
}

func TestARollbackKeepsFieldsThatOnlyNewerReleasesDeclare(t *testing.T) {
	h := newFixture(t, with("name: text"))
	h.insert(clerk, "Item", `{"name":"first"}`)
	h.mustActivate(with(tagged))
	h.insert(clerk, "Item", `{"name":"full","note":"n","code":"c","price":"99999999.25","extra":{"b":[1.50,null]},"tags":["x","y"]}`)
	h.insert(clerk, "Item", `{"name":"plain"}`)
	all := func() (rows []string) {
		for _, name := range []string{"first", "full", "plain"} {
			rows = append(rows, h.one(name, `"note","code","price","extra","tags"`))
		}
		return rows
	}
	before := all()

	if list := h.refusals(with("name: text")); len(list) != 5 || list[0].Code != "E601" {
		t.Fatalf("without a rollback: %v", list)
	}
	h.mustRollback(with("name: text"))
	for probe, op := range map[string]string{
		`{"from":"Item","select":["note"]}`:                           "query",
		`{"from":"Item","where":[["note","=","n"]]}`:                  "query",
		`{"from":"Item","orderBy":[["note","asc"]]}`:                  "query",
		`{"in":"Item","set":{"note":"x"},"where":[]}`:                 "update",
		`{"into":"Item","values":{"name":"x","note":"c"}}`:            "insert",
		`{"from":"Item","where":[["note","=","n"],["name","=","a"]]}`: "delete",
	} {
		for _, who := range []*caller.Caller{clerk, operator} {
			_, kept := h.do(who, op, probe)
			_, unknown := h.do(who, op, strings.Replace(probe, "note", "none", 1))
			if fault.CodeOf(kept) != fault.Invalid || strings.Replace(kept.Error(), "note", "none", -1) != unknown.Error() {
				t.Errorf("%s: %v, and for a field that never existed: %v", probe, kept, unknown)
			}
		}
	}
	if got := h.rows(clerk, `{"from":"Item","where":[["name","=","full"]]}`); len(got[0]) != 2 {
		t.Errorf("got %v, want only the id and the name", got)
	}
	stored := h.stored()
	for range 3 {
		h.must(clerk, "update", `{"in":"Item","set":{"name":"renamed"},"where":[["name","=","full"]]}`)
		h.must(clerk, "update", `{"in":"Item","set":{"name":"full"},"where":[["name","=","renamed"]]}`)
		h.must(clerk, "update", `{"in":"Item","set":{"name":"first"},"where":[["name","=","first"]]}`)
	}
	if now := h.stored(); !maps.Equal(stored, now) {
		t.Errorf("the stored rows were %q and are %q", stored, now)
	}
	h.insert(clerk, "Item", `{"name":"meanwhile"}`)
	h.mustActivate(with("name: text")) // a restart
	h.mustActivate(with("name: text\n more: int = 3 @index"))
	h.must(clerk, "update", `{"in":"Item","set":{"more":4},"where":[["name","=","full"]]}`)
	h.mustActivate(with(tagged + "\n more: int = 3"))
	if got := all(); !slices.Equal(got, before) {
		t.Errorf("got %v\nwant %v", got, before)
	}
	if got, want := h.one("meanwhile", `"note","code","price","extra","tags"`), `{"rows":[{"note":null,"code":null,"price":"1.50","extra":null,"tags":["a"]}],"nextCursor":null}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	h.fails(clerk, fault.Conflict, "insert", `{"into":"Item","values":{"name":"x","code":"c"}}`, "code")
}

func TestAKeptUniqueFieldIsCheckedWhenItReturns(t *testing.T) {
	h := newFixture(t, with("name: text"))
	both := with("name: text\n code: string(1..20)? @unique\n @@unique(name, code)")
	h.mustActivate(both)
	h.insert(clerk, "Item", `{"name":"a","code":"1"}`)
	h.insert(clerk, "Item", `{"name":"b","code":"2"}`)
	h.mustRollback(with("name: text"))
	h.must(clerk, "update", `{"in":"Item","set":{"name":"same"},"where":[]}`)
	h.insert(clerk, "Item", `{"name":"same"}`)
	h.mustActivate(both)
	h.fails(clerk, fault.Conflict, "update", `{"in":"Item","set":{"code":"1"},"where":[["code","=","2"]]}`)

	h.mustRollback(with("name: text"))
	h.wantRefused(with("name: text @unique\n code: string(1..20)? @unique"), "E603", "name")
	h.mustActivate(with("name: text\n code: string(1..20)?"))
	h.must(clerk, "update", `{"in":"Item","set":{"code":"1"},"where":[["code","=","2"]]}`)
	h.mustRollback(with("name: text"))
	h.wantRefused(both, "E603", "code")
}

func TestAKeptRequiredFieldIsRefusedForRowsThatLackIt(t *testing.T) {
	h := newFixture(t, with("name: text\n size: int"))
	h.insert(clerk, "Item", `{"name":"a","size":1}`)
	h.mustRollback(with("name: text"))
	h.mustActivate(with("name: text\n size: int"))
	h.mustRollback(with("name: text"))
	id := h.insert(clerk, "Item", `{"name":"b"}`)
	h.wantRefused(with("name: text\n size: int"), "E602", "Item.size", id, "default")
	h.mustActivate(with("name: text\n size: int = 7"))
	for name, size := range map[string]int{"a": 1, "b": 7} {
		if got, want := h.one(name, `"size"`), fmt.Sprintf(`{"rows":[{"size":%d}],"nextCursor":null}`, size); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
	h.mustRollback(with("name: text"))
	h.insert(clerk, "Item", `{"name":"c"}`)
	h.mustActivate(with("name: text\n size: int = 8")) // rows that lack it have the first default
	if got, want := h.one("c", `"size"`), `{"rows":[{"size":7}],"nextCursor":null}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestRowsFromBeforeAKeptFieldStayNull(t *testing.T) {
	h := newFixture(t, with("name: text"))
	h.insert(clerk, "Item", `{"name":"old"}`)
	h.mustActivate(with("name: text\n note: text?"))
	h.mustRollback(with("name: text"))
	h.mustActivate(with("name: text\n note: text? = \"x\""))
	if got, want := h.one("old", `"note"`), `{"rows":[{"note":null}],"nextCursor":null}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	h.mustRollback(with("name: text"))
	h.wantRefused(with("name: text\n note: text = \"x\""), "E602", "Item.note")
}

func TestAKeptFieldIsComparedLikeADeclaredOne(t *testing.T) {
	more := "enum Other { tiny }\n"
	h := newFixture(t, more+with("name: text\n size: int?\n kind: Kind? = large"))
	id := h.insert(clerk, "Item", `{"name":"a","size":20}`)
	h.mustRollback(with("name: text"))
	h.wantRefused(with("name: text\n size: text?"), "E601", "type of Item.size was int")
	h.wantRefused(with("name: text\n size: int(0..10)?"), "E606", "Item.size", id)
	h.wantRefused(strings.Replace(with("name: text\n kind: Kind?"), "small, large", "small", 1), "E605", id, "large")
	h.mustActivate(with("name: text\n size: int?")) // kind stays kept
	h.wantRefused(with("name: text"), "E601", "Item.size was removed")
	h.mustActivate(more + with("name: text\n size: int?\n kind: Kind?"))
	if got, want := h.one("a", `"size","kind"`), `{"rows":[{"size":20,"kind":"large"}],"nextCursor":null}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestARollbackKeepsEntitiesThatOnlyNewerReleasesDeclare(t *testing.T) {
	h := newFixture(t, with("name: text"))
	item, gone := h.insert(clerk, "Item", `{"name":"a"}`), h.insert(clerk, "Item", `{"name":"b"}`)
	h.mustActivate(with("name: text") + mark)
	h.insert(clerk, "Mark", fmt.Sprintf(`{"item":%q,"label":"one"}`, item))
	lost := h.insert(clerk, "Mark", fmt.Sprintf(`{"item":%q,"label":"two"}`, gone))
	h.wantRefused(with("name: text"), "E601", "entity Mark was removed")
	h.mustRollback(with("name: text"))
	h.fails(clerk, fault.Invalid, "query", `{"from":"Mark"}`)
	h.mustActivate(with("name: text"))
	h.must(clerk, "update", `{"in":"Item","set":{"name":"c"},"where":[]}`)
	h.mustActivate(with("name: text") + mark)
	if got := h.rows(clerk, `{"from":"Mark","where":[["label","=","one"]]}`); len(got) != 1 || got[0]["item"] != item {
		t.Errorf("got %v", got)
	}
	h.fails(clerk, fault.Conflict, "insert", fmt.Sprintf(`{"into":"Mark","values":{"item":%q,"label":"one"}}`, item), "label")

	// A row that is referred to is deleted while the entity is kept.
	h.mustRollback(with("name: text"))
	h.must(clerk, "delete", fmt.Sprintf(`{"from":"Item","where":[["id","=",%q]]}`, gone))
	h.wantRefused(with("name: text")+mark, "E607", "Mark.item", lost, gone)
	h.mustActivate(with("name: text") + strings.Replace(mark, "item: Item @onDelete(cascade)", "", 1))
	h.must(clerk, "delete", fmt.Sprintf(`{"from":"Mark","where":[["id","=",%q]]}`, lost))
	h.mustActivate(with("name: text") + mark)
	if got := h.rows(clerk, `{"from":"Mark"}`); len(got) != 1 || got[0]["item"] != item || got[0]["label"] != "one" {
		t.Errorf("got %v", got)
	}
}

func TestAMissingRowCanBeImportedAgain(t *testing.T) {
	h := newFixture(t, with("name: text")+mark)
	item := h.insert(clerk, "Item", `{"name":"a"}`)
	h.insert(clerk, "Mark", fmt.Sprintf(`{"item":%q,"label":"one"}`, item))
	h.mustRollback(with("name: text"))
	h.must(clerk, "delete", `{"from":"Item","where":[]}`)
	h.wantRefused(with("name: text")+mark, "E607", item)
	err := h.in(operator, func(a *entity.Access) error {
		a.Import = true
		return a.Do("insert", fmt.Appendf(nil, `{"into":"Item","values":{"id":%q,"name":"b"}}`, item), nil)
	})
	if err != nil {
		t.Fatal(err)
	}
	h.mustActivate(with("name: text") + mark)
}

// A cleared relation writes rows that the caller does not name.
func TestAClearedRelationCarriesKeptFields(t *testing.T) {
	group := func(fields string) string {
		return with("name: text\n group: Group? @onDelete(clear)\n"+fields) + "\nentity Group { id: id\n @@allow all to session }"
	}
	h := newFixture(t, group("")+mark)
	g := h.insert(clerk, "Group", `{}`)
	h.insert(clerk, "Item", fmt.Sprintf(`{"name":"zero","group":%q}`, g))
	h.mustActivate(group("note: text?\n owner: Item?") + mark)
	h.insert(clerk, "Item", fmt.Sprintf(`{"name":"a","group":%q,"note":"n"}`, g))
	h.mustRollback(group("") + mark)
	h.must(clerk, "delete", `{"from":"Group","where":[]}`)
	h.mustActivate(group("note: text?\n owner: Item?") + mark)
	if got, want := h.one("a", `"group","note","owner"`), `{"rows":[{"group":null,"note":"n","owner":null}],"nextCursor":null}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestKeptFieldsCountForTheLimitOfARow(t *testing.T) {
	h := newFixture(t, with("name: text\n note: text?"))
	long := strings.Repeat("x", 700<<10)
	h.insert(clerk, "Item", fmt.Sprintf(`{"name":"a","note":%q}`, long))
	h.mustRollback(with("name: text"))
	h.fails(clerk, fault.TooLarge, "update", fmt.Sprintf(`{"in":"Item","set":{"name":%q},"where":[]}`, long))
	h.insert(clerk, "Item", fmt.Sprintf(`{"name":%q}`, long))
	h.mustActivate(with("name: text\n note: text?"))
	if got := h.rows(clerk, `{"from":"Item","where":[["name","=","a"]]}`); got[0]["note"] != long {
		t.Error("the note is lost")
	}
}

func TestAKeptSchemaIsTheActiveOneAlsoWithoutRows(t *testing.T) {
	text := with("name: text")
	h := newFixture(t, with("name: text\n note: text?"))
	h.insert(clerk, "Item", `{"name":"a"}`)
	h.mustRollback(text)
	h.must(clerk, "delete", `{"from":"Item","where":[]}`)
	h.verify()
	s, _ := compileText(t, text)
	if m, err := entity.Current(context.Background(), h.store, s, entity.Options{}); err != nil || m == nil {
		t.Errorf("%v, %v", m, err)
	}
	h.mustActivate(with("name: text\n note: int?")) // no row has the other type
	h.insert(clerk, "Item", `{"name":"a","note":1}`)
}

func TestAToManyRelationMayHaveTheNameOfAKeptField(t *testing.T) {
	h := newFixture(t, with("name: text\n marks: text?")+mark)
	item := h.insert(clerk, "Item", `{"name":"a","marks":"m"}`)
	h.insert(clerk, "Mark", fmt.Sprintf(`{"item":%q,"label":"one"}`, item))
	many := with("name: text\n marks: Mark[] @inverse(item)") + mark
	h.mustRollback(many)
	before := h.stored()
	h.must(clerk, "update", `{"in":"Item","set":{"name":"a"},"where":[]}`)
	if after := h.stored(); !maps.Equal(before, after) {
		t.Errorf("an update that changes nothing: the stored rows were %q and are %q", before, after)
	}
	h.must(clerk, "update", `{"in":"Item","set":{"name":"b"},"where":[]}`)
	if got := h.must(clerk, "query", `{"from":"Item"}`); strings.Contains(got, `"marks"`) {
		t.Errorf("got %s", got)
	}
	h.mustActivate(with("name: text\n marks: text?") + mark)
	if got, want := h.one("b", `"marks"`), `{"rows":[{"marks":"m"}],"nextCursor":null}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// The activation checks relations, then builds an index. A row that a relation refers to is deleted
// meanwhile, or the delete is refused because the new schema is about to be active.
func TestNoRowIsDeletedBetweenTheCheckOfRelationsAndTheChange(t *testing.T) {
	for _, deleted := range []bool{true, false} { // a row that is referred to, or another one
		t.Run(fmt.Sprint("referred ", deleted), func(t *testing.T) {
			h := newFixture(t, with("name: text\n size: int")+mark)
			item, other := h.insert(clerk, "Item", `{"name":"a","size":-1}`), h.insert(clerk, "Item", `{"name":"a","size":-2}`)
			h.insert(clerk, "Mark", fmt.Sprintf(`{"item":%q,"label":"one"}`, item))
			for from := 0; from < 4000; from += 500 {
				var values []string
				for i := range 500 {
					values = append(values, fmt.Sprintf(`{"name":"n","size":%d}`, from+i))
				}
				h.must(clerk, "insert", `{"into":"Item","values":[`+strings.Join(values, ",")+`]}`)
			}
			h.mustRollback(with("name: text\n size: int"))
			victim := other
			if deleted {
				victim = item
			}
			old := h.model
			var deleting sync.WaitGroup
			var once sync.Once
			var refused error
			stop := h.store.OnApply([]byte("entity/next"), func(store.Seq, store.Change) {
				once.Do(func() {
					deleting.Go(func() {
						_, refused = h.store.Update(context.Background(), func(tx *store.Tx) error {
							var a entity.Access
							a.Reset(old, tx, clerk, 100_000)
							return a.Do("delete", fmt.Appendf(nil, `{"from":"Item","where":[["id","=",%q]]}`, victim), &entity.Result{})
						})
					})
				})
			})
			list := h.refusals(with("name: text\n size: int @unique") + mark)
			deleting.Wait()
			stop()
			switch {
			case refused != nil && !errors.Is(refused, entity.ErrOutdated):
				t.Fatal(refused)
			case deleted && refused == nil && (len(list) != 1 || list[0].Code != "E607"):
				t.Errorf("deleted, and the activation: %v", list)
			case (!deleted || refused != nil) && list != nil:
				t.Errorf("refused: %v", list)
			}
			t.Logf("the delete: %v", refused)
			h.verify()
		})
	}
}

func TestASalvageReadsKeptFieldsThatItsSchemaDeclares(t *testing.T) {
	newer := with("name: text\n note: text?\n size: int = 1") + mark
	h := newFixture(t, newer)
	item := h.insert(clerk, "Item", `{"name":"a","note":"n","size":2}`)
	h.insert(clerk, "Mark", fmt.Sprintf(`{"item":%q,"label":"one"}`, item))
	h.mustRollback(with("name: text"))
	h.insert(clerk, "Item", `{"name":"b"}`)
	for _, c := range []struct{ text, kept, rows string }{
		{with("name: text"), "[Item.note Item.size Mark]", `Item {"id":"ID","name":"a"}, Item {"id":"ID","name":"b"}`},
		{with("name: text\n note: text?"), "[Item.size Mark]", `Item {"id":"ID","name":"a","note":"n"}, Item {"id":"ID","name":"b","note":null}`},
		{newer, "[]", `Item {"id":"ID","name":"a","note":"n","size":2}, Item {"id":"ID","name":"b","note":null,"size":1}, Mark {"id":"ID","item":"ID","label":"one"}`},
		{with("name: text\n other: text?"), "", ""},
		{with("title: text?"), "", ""},
	} {
		s, _ := compileText(t, c.text)
		var rows []string
		kept, err := entity.EachRow(context.Background(), h.store, s, func(name string, row *entity.StoredRow) error {
			rows = append(rows, name+" "+idPattern.ReplaceAllString(string(row.JSON), `"ID"`))
			return row.Err
		})
		if c.kept == "" {
			if err == nil {
				t.Errorf("it reads %v, although the schema declares what is not stored", rows)
			}
			continue
		}
		slices.Sort(rows) // rows of the same millisecond are in no order
		if got := strings.Join(rows, ", "); err != nil || fmt.Sprint(kept) != c.kept || got != c.rows {
			t.Errorf("kept %v, %v, rows\n%s, want\n%s", kept, err, got, c.rows)
		}
	}
}

var idPattern = regexp.MustCompile(`"[0-9a-z]{26}"`)

// An id may exist in several tenants: the row of another tenant does not count.
func TestAReturningRelationRefersWithinItsTenant(t *testing.T) {
	const older = `
auth { session cookie { idle: 30m } tenant: Org }
entity Org { id: id
  @@allow all to session }
entity Item { id: id
  org: Org @tenant
  @@allow all to session }`
	const newer = older + `
entity Mark { id: id
  org: Org @tenant
  item: Item @onDelete(cascade)
  @@allow all to session }`
	h := newFixture(t, newer)
	const id = "01arz3ndektsv4rrffq69g5fav"
	for _, tenant := range []string{"t1", "t2"} {
		err := h.in(operator, func(a *entity.Access) error {
			a.Import = true
			return a.Do("insert", fmt.Appendf(nil, `{"into":"Item","values":{"id":%q,"org":%q}}`, id, tenant), nil)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	mark := h.insert(memberOf("t1"), "Mark", fmt.Sprintf(`{"item":%q}`, id))
	h.mustRollback(older)
	h.must(memberOf("t2"), "delete", `{"from":"Item","where":[]}`)
	h.mustActivate(newer)
	if got := h.rows(memberOf("t1"), `{"from":"Mark"}`); len(got) != 1 || got[0]["item"] != id {
		t.Errorf("got %v", got)
	}
	h.mustRollback(older)
	h.must(memberOf("t1"), "delete", `{"from":"Item","where":[]}`)
	h.wantRefused(newer, "E607", mark, id)
}

// Its index is built before the release is active: a delete finds the rows that refer to the deleted
// one, also those that were written meanwhile.
func TestAReturningRelationIsFollowedAtOnce(t *testing.T) {
	older, newer := with("name: text"), with("name: text\n of: Item? @onDelete(cascade)\n near: Item? @onDelete(restrict)")
	h := newFixture(t, newer)
	head, plain := h.insert(clerk, "Item", `{"name":"head"}`), h.insert(clerk, "Item", `{"name":"plain"}`)
	h.insert(clerk, "Item", fmt.Sprintf(`{"name":"a","of":%q}`, head))
	h.insert(clerk, "Item", fmt.Sprintf(`{"name":"b","of":%q}`, head))
	h.insert(clerk, "Item", fmt.Sprintf(`{"name":"c","near":%q}`, plain))
	h.mustRollback(older)
	h.must(clerk, "update", `{"in":"Item","set":{"name":"d"},"where":[["name","=","b"]]}`)
	h.mustActivate(newer)
	h.fails(clerk, fault.Conflict, "delete", fmt.Sprintf(`{"from":"Item","where":[["id","=",%q]]}`, plain), "near")
	h.must(clerk, "delete", fmt.Sprintf(`{"from":"Item","where":[["id","=",%q]]}`, head))
	if got := h.must(clerk, "query", `{"from":"Item","select":["name"],"orderBy":[["name","asc"]]}`); got != `{"rows":[{"name":"c"},{"name":"plain"}],"nextCursor":null}` {
		t.Errorf("got %s", got)
	}
}
