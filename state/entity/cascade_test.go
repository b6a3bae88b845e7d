package entity_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"runner.example/internal/caller"
	"runner.example/internal/fault"
	"runner.example/state/entity"
	"runner.example/state/store"
)

// family is a schema of parents and of children that are deleted with them.
const family = `app a
entity P {
  id: id
  @@allow all to session
}
entity C {
  id: id
  p: P @onDelete(cascade)
  x: text?
  @@allow all to session
}
entity D {
  id: id
  p: P? @onDelete(clear)
  x: text?
  @@allow all to session
}
auth { session cookie {} }
routes("/", auth: session, rateLimit: none) { GET /x -> x }`

// insertChild inserts n rows that refer to p.
func insertChild(h *fixture, name, p string, n int, text string) {
	h.t.Helper()
	for at := 0; at < n; at += 200 {
		var rows []string
		for range min(200, n-at) {
			rows = append(rows, fmt.Sprintf(`{"p":%q,"x":%q}`, p, text))
		}
		h.must(reader, "insert", `{"into":"`+name+`","values":[`+strings.Join(rows, ",")+`]}`)
	}
}

// deleting deletes a parent and returns how many rows were touched.
func deleting(h *fixture, p string) (touched int, err error) {
	_, err = h.store.Update(context.Background(), func(tx *store.Tx) error {
		var a entity.Access
		a.Reset(h.model, tx, reader, 100_000)
		err := a.Do("delete", fmt.Appendf(nil, `{"from":"P","where":[["id","=",%q]]}`, p), new(entity.Result))
		touched = a.Touched()
		return err
	})
	return touched, err
}

func TestTheMemoryOfADeleteIsLimited(t *testing.T) {
	sequential(t)
	h := newFixture(t, family)
	for _, name := range []string{"C", "D"} {
		p := h.insert(reader, "P", "{}")
		insertChild(h, name, p, 900, strings.Repeat("x", 40_000)) // 36 MB
		touched, err := deleting(h, p)
		if f := fault.Of(err); err == nil || f.Code != fault.Limit || touched > 850 {
			t.Errorf("%s: %v after %d rows", name, err, touched)
		}
		if got := h.must(reader, "count", `{"from":"`+name+`"}`); got != `{"count":900}` {
			t.Errorf("then there are %s", got)
		}
	}
	h.fails(reader, fault.Limit, "delete", `{"from":"C","where":[["x","!=","a"]]}`, "MiB")
	h.fails(reader, fault.Limit, "update", `{"in":"C","set":{"x":"a"},"where":[]}`, "MiB")
}

func TestADeleteStopsAtItsRowLimit(t *testing.T) {
	sequential(t)
	h := newFixture(t, family)
	p := h.insert(reader, "P", "{}")
	insertChild(h, "C", p, 12_000, "x")
	touched, err := deleting(h, p)
	if f := fault.Of(err); err == nil || f.Code != fault.Limit || touched > 10_010 {
		t.Errorf("%v after %d rows", err, touched)
	}
}

// A relation of a row may be cleared, and another one of the same row deletes it, in one delete and
// in any order: the row is gone, its entries in indexes too. A row that loses two relations is
// written once.
func TestARowThatIsClearedAndDeletedIsGone(t *testing.T) {
	const relations = `app a
entity P {
  id: id
}
entity C {
  id: id
  p: P @onDelete(cascade)
}
entity ClearedFirst {
  id: id
  name: string(1..9) @unique
  p: P? @onDelete(clear)
  q: P? @onDelete(clear)
  c: C? @onDelete(cascade)
}
entity DeletedFirst {
  id: id
  name: string(1..9) @unique
  p: P? @onDelete(cascade)
  c: C? @onDelete(clear)
}
entity Kept {
  id: id
  name: string(1..9) @unique
  p: P? @onDelete(clear)
  q: P? @onDelete(clear)
  c: C? @onDelete(clear)
}
entity Stays {
  id: id
  c: ClearedFirst @onDelete(restrict)
  p: P? @onDelete(cascade)
}
apiKeys { scopes: { any: @system("any") { @grant read on P } } }
routes("/", auth: apiKey(any), rateLimit: none) { GET /x -> x }`
	d := openDatabase(t, relations)
	operator := &caller.Caller{Kind: caller.System}
	p := d.insert(t, "P", `[{}]`)
	other := d.insert(t, "P", `[{}]`)
	c := d.insert(t, "C", `[{"p":"`+p+`"}]`)
	all := `[{"name":"a","p":"` + p + `","q":"` + p + `","c":"` + c + `"}]`
	cleared := d.insert(t, "ClearedFirst", all)
	d.insert(t, "DeletedFirst", `[{"name":"a","p":"`+p+`","c":"`+c+`"}]`)
	d.insert(t, "Kept", all)
	d.insert(t, "Kept", `[{"name":"b","p":"`+p+`","q":"`+other+`","c":null}]`)
	// A row that stays refuses all of it.
	stays := d.insert(t, "Stays", `[{"c":"`+cleared+`","p":null}]`)
	remove := `{"from":"P","where":[["id","=","` + p + `"]]}`
	if got := d.do(t, operator, "delete", remove); !strings.HasPrefix(got, "conflict: Stays.c still refers to this ClearedFirst") {
		t.Fatal(got)
	}
	// One that is deleted too does not.
	if got := d.do(t, operator, "update", `{"in":"Stays","set":{"p":"`+p+`"},"where":[["id","=","`+stays+`"]]}`); !strings.Contains(got, `"count":1`) {
		t.Fatal(got)
	}
	if got := d.do(t, operator, "delete", remove); got != `{"count":1}` {
		t.Fatal(got)
	}
	for name, want := range map[string]string{
		"P": `{"count":1}`, "C": `{"count":0}`, "ClearedFirst": `{"count":0}`, "DeletedFirst": `{"count":0}`, "Stays": `{"count":0}`, "Kept": `{"count":2}`,
	} {
		if got := d.do(t, operator, "count", `{"from":"`+name+`"}`); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	for _, name := range []string{"ClearedFirst", "DeletedFirst"} { // the unique index too
		d.insert(t, name, `[{"name":"a"}]`)
	}
	got := d.do(t, operator, "query", `{"from":"Kept","select":["name","p","q","c"],"orderBy":[["name","asc"]]}`)
	if want := `[{"name":"a","p":null,"q":null,"c":null},{"name":"b","p":null,"q":"` + other + `","c":null}]`; !strings.Contains(got, want) {
		t.Errorf("%s, want %s", got, want)
	}
}
