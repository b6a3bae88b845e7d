package entity_test

import (
	"context"
	"encoding/json"
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
	p := h.insert(reader, "P", "{}")
	insertChild(h, "D", p, 900, strings.Repeat("x", 40_000)) // 36 MB that would be written again
	touched, err := deleting(h, p)
	if f := fault.Of(err); err == nil || f.Code != fault.Limit || touched > 850 {
		t.Errorf("%v after %d rows", err, touched)
	}
	if got := h.must(reader, "count", `{"from":"D"}`); got != `{"count":900}` {
		t.Errorf("then there are %s", got)
	}
	h.fails(reader, fault.Limit, "delete", `{"from":"D","where":[["x","!=","a"]]}`, "MiB")
	h.fails(reader, fault.Limit, "update", `{"in":"D","set":{"x":"a"},"where":[]}`, "MiB")
	first := h.must(reader, "delete", `{"from":"D","where":[],"limit":900}`)
	if !strings.HasSuffix(first, `"more":true}`) || first == `{"count":0,"more":true}` {
		t.Errorf("with a limit, rows that are too long together: %s", first)
	}
}

// A row of C has two keys, and a transaction 50,000.
func TestACascadeIsLimitedByTheTransaction(t *testing.T) {
	sequential(t)
	h := newFixture(t, family)
	p := h.insert(reader, "P", "{}")
	insertChild(h, "C", p, 25_200, "x")
	touched, err := deleting(h, p)
	if f := fault.Of(err); err == nil || f.Code != fault.Limit || touched > 25_010 {
		t.Errorf("%v after %d rows", err, touched)
	}
	if got := h.must(reader, "count", `{"from":"C"}`); got != `{"count":25200}` {
		t.Errorf("then there are %s", got)
	}
	h.must(reader, "delete", `{"from":"C","where":[],"limit":600}`)
	if _, err := deleting(h, p); err != nil {
		t.Error(err)
	}
	if got := h.must(reader, "count", `{"from":"C"}`); got != `{"count":0}` {
		t.Errorf("then there are %s", got)
	}
}

// inParts deletes all rows of an entity in parts of so many rows, and returns how many rows were deleted, how many
// others were deleted or changed, and the number of rows of the largest part.
func inParts(h *fixture, name string, part int) (count, following, largest int) {
	h.t.Helper()
	var answer struct {
		Count, Following int
		More             bool
	}
	for parts, more := 0, true; more; parts++ {
		var out entity.Result
		err := h.in(operator, func(a *entity.Access) error {
			a.Part = part
			return a.Do("delete", []byte(`{"from":"`+name+`","where":[]}`), &out)
		})
		if err == nil {
			err = json.Unmarshal(out.JSON, &answer)
		}
		if err != nil || parts > 100 {
			h.t.Fatalf("%v after %d parts", err, parts)
		}
		count, following, more = count+answer.Count, following+answer.Following, answer.More
		largest = max(largest, answer.Count+answer.Following)
	}
	return count, following, largest
}

func TestADeleteInPartsDeletesReferringRowsFirst(t *testing.T) {
	h := newFixture(t, family)
	p, q := h.insert(reader, "P", "{}"), h.insert(reader, "P", "{}")
	insertChild(h, "C", p, 13, "x")
	insertChild(h, "D", p, 4, "x")
	insertChild(h, "C", q, 2, "x")
	if count, following, largest := inParts(h, "P", 10); count != 2 || following != 19 || largest != 10 {
		t.Errorf("%d rows and %d others, at most %d in a part", count, following, largest)
	}
	if got := h.must(reader, "count", `{"from":"D","where":[["p","=",null]]}`); got != `{"count":4}` {
		t.Errorf("cleared: %s", got)
	}
}

// Rows that refer to each other in a circle are deleted together, chains from their end.
func TestADeleteInPartsFollowsTrees(t *testing.T) {
	h := newFixture(t, `app a
entity N {
  id: id
  up: N? @onDelete(cascade)
}
auth { session cookie {} }
routes("/", auth: session, rateLimit: none) { GET /x -> x }`)
	below := func(up string) string { return h.insert(operator, "N", fmt.Sprintf(`{"up":%q}`, up)) }
	a := h.insert(operator, "N", `{}`)
	b := below(a)
	below(below(b))
	below(b)
	x := below(b)
	h.must(operator, "update", fmt.Sprintf(`{"in":"N","set":{"up":%q},"where":[["id","=",%q]]}`, below(below(x)), x))
	if count, following, largest := inParts(h, "N", 2); count != 8 || following != 0 || largest > 4 {
		t.Errorf("%d rows and %d others, at most %d in a part", count, following, largest)
	}
}

// A row that another one keeps by @onDelete(restrict) is deleted after it, if that one is deleted too.
func TestADeleteInPartsDeletesFirstWhatKeepsARow(t *testing.T) {
	const project = `app a
entity Project {
  id: id
}
%s
auth { session cookie {} }
routes("/", auth: session, rateLimit: none) { GET /x -> x }`
	kept := []string{`
entity Task {
  id: id
  project: Project @onDelete(cascade)
  goal: Goal @onDelete(restrict)
}`, `
entity Goal {
  id: id
  project: Project @onDelete(cascade)
}`, `
entity Note {
  id: id
  goal: Goal @onDelete(restrict)
}`}
	for _, order := range [][]int{{0, 1, 2}, {2, 1, 0}} {
		h := newFixture(t, fmt.Sprintf(project, kept[order[0]]+kept[order[1]]+kept[order[2]]))
		p := h.insert(operator, "Project", `{}`)
		for range 5 {
			goal := h.insert(operator, "Goal", fmt.Sprintf(`{"project":%q}`, p))
			h.insert(operator, "Task", fmt.Sprintf(`[{"project":%q,"goal":%q},{"project":%[1]q,"goal":%[2]q}]`, p, goal))
		}
		goal := h.insert(operator, "Goal", fmt.Sprintf(`{"project":%q}`, p))
		h.insert(operator, "Note", fmt.Sprintf(`{"goal":%q}`, goal))
		var err error
		for range 20 {
			if err == nil {
				err = h.in(operator, func(a *entity.Access) error {
					a.Part = 3
					return a.Do("delete", []byte(`{"from":"Project","where":[]}`), new(entity.Result))
				})
			}
		}
		if fault.CodeOf(err) != fault.Conflict {
			t.Errorf("with a note: %v", err)
		}
		h.must(operator, "delete", `{"from":"Note","where":[]}`)
		if count, _, largest := inParts(h, "Project", 3); count != 1 || largest > 3 {
			t.Errorf("%d rows, at most %d in a part", count, largest)
		}
		for _, name := range []string{"Project", "Task", "Goal"} {
			if got := h.must(operator, "count", `{"from":"`+name+`"}`); got != `{"count":0}` {
				t.Errorf("then there are %s of %s", got, name)
			}
		}
	}
}

// A row that stays keeps all rows that it refers to, and no others.
func TestADeleteInPartsKeepsWhatAKeptRowRefersTo(t *testing.T) {
	h := newFixture(t, `app a
entity P {
  id: id
}
entity C {
  id: id
  a: P @onDelete(cascade)
  b: P @onDelete(cascade)
}
entity Guard {
  id: id
  c: C @onDelete(restrict)
}
auth { session cookie {} }
routes("/", auth: session, rateLimit: none) { GET /x -> x }`)
	a, b := h.insert(operator, "P", `{}`), h.insert(operator, "P", `{}`)
	h.insert(operator, "Guard", fmt.Sprintf(`{"c":%q}`, h.insert(operator, "C", fmt.Sprintf(`{"a":%q,"b":%q}`, a, b))))
	h.insert(operator, "P", `{}`)
	part := func() (out entity.Result, err error) {
		err = h.in(operator, func(a *entity.Access) error {
			a.Part = 10
			return a.Do("delete", []byte(`{"from":"P","where":[]}`), &out)
		})
		return out, err
	}
	if out, err := part(); err != nil || string(out.JSON) != `{"count":1,"following":0,"more":true}` {
		t.Errorf("%s, %v", out.JSON, err)
	}
	if _, err := part(); fault.CodeOf(err) != fault.Conflict {
		t.Errorf("when both rows stay: %v", err)
	}
	h.must(operator, "delete", `{"from":"Guard","where":[]}`)
	if count, following, _ := inParts(h, "P", 10); count != 2 || following != 1 {
		t.Errorf("%d rows and %d others", count, following)
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
