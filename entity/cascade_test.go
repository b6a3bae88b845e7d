package entity_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"runner.example/entity"
	"runner.example/internal/fault"
	"runner.example/store"
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
		a.Reset(h.model, tx, reader, 0)
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
