package entity_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// naming is a release in a history of renames: the names of an entity, its fields and the values of its
// enum. Their meanings are their positions.
type naming struct {
	entity         string
	fields, values []string
	schema         string
}

// renameHistory is a store that was activated under many namings, and a plain model of its rows.
type renameHistory struct {
	*fixture
	dice
	releases []naming
	active   int
	names    int                   // that were given so far
	rows     map[string]renamedRow // by id
}

// renamedRow has the values of the fields, and the position of the enum's value.
type renamedRow struct {
	fields []string
	value  int
}

// renamed returns a name for what was called before, which is new in so many percent of the cases, and
// its attribute.
func (h *renameHistory) renamed(before string, percent int) (name, attr string) {
	if !h.percent(percent) {
		return before, ""
	}
	h.names++
	return fmt.Sprintf("%s%d", before[:1], h.names), fmt.Sprintf(" @was(%q)", before)
}

// next returns a release that renames so many percent of the names of the active one.
func (h *renameHistory) next(percent int) naming {
	was := h.releases[h.active]
	var n naming
	var attr string
	lines := make([]string, len(was.fields))
	n.entity, attr = h.renamed(was.entity, percent)
	head := n.entity + attr
	for i, before := range was.fields {
		name, attr := h.renamed(before, percent)
		n.fields = append(n.fields, name)
		lines[i] = name + ": text" + attr
	}
	values := make([]string, len(was.values))
	for i, before := range was.values {
		name, attr := h.renamed(before, percent)
		n.values = append(n.values, name)
		values[i] = name + attr
	}
	for _, list := range [][]string{lines, values} { // the order has no meaning
		h.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	}
	unique := n.fields[0]
	n.schema = fmt.Sprintf("auth { session cookie { } }\nenum State { %s }\nentity %s {\n id: id\n %s\n state: State @index\n all: State[]\n @@unique(%s, state)\n @@allow all to session }",
		strings.Join(values, ", "), head, strings.Join(lines, "\n "), unique)
	return n
}

// check compares all rows with the model, by the names of the active release.
func (h *renameHistory) check() {
	h.t.Helper()
	n := h.releases[h.active]
	got := map[string]renamedRow{}
	for i, name := range n.values { // by the index, and without
		for _, row := range h.find(n, fmt.Sprintf(`[["state","=",%q]]`, name)) {
			var r renamedRow
			for _, field := range n.fields {
				r.fields = append(r.fields, fmt.Sprint(row[field]))
			}
			r.value = i
			if all := fmt.Sprint(row["all"]); row["state"] != name || all != "["+name+"]" {
				h.t.Fatalf("state %v, all %s, want %s", row["state"], all, name)
			}
			got[fmt.Sprint(row["id"])] = r
		}
	}
	if len(got) != len(h.rows) {
		h.t.Fatalf("%d rows, want %d", len(got), len(h.rows))
	}
	for id, want := range h.rows {
		if r := got[id]; r.value != want.value || !slices.Equal(r.fields, want.fields) {
			h.t.Fatalf("row %s is %v, want %v; %s", id, r, want, n.schema)
		}
	}
}

func (h *renameHistory) find(n naming, where string) []map[string]any {
	return h.fixture.rows(alice, fmt.Sprintf(`{"from":%q,"where":%s,"limit":1000}`, n.entity, where))
}

// write inserts a row, or changes one.
func (h *renameHistory) write() {
	h.t.Helper()
	n := h.releases[h.active]
	r := renamedRow{value: h.IntN(len(n.values))}
	members := map[string]any{"state": n.values[r.value], "all": []string{n.values[r.value]}}
	for i, field := range n.fields {
		h.names++
		r.fields = append(r.fields, fmt.Sprintf("%d-%d", i, h.names))
		members[field] = r.fields[i]
	}
	text, err := json.Marshal(members)
	if err != nil {
		h.t.Fatal(err)
	}
	if len(h.rows) > 0 && h.percent(50) {
		for id := range h.rows {
			h.must(alice, "update", fmt.Sprintf(`{"in":%q,"set":%s,"where":[["id","=",%q]]}`, n.entity, text, id))
			h.rows[id] = r
			return
		}
	}
	h.rows[h.insert(alice, n.entity, string(text))] = r
}

// Releases rename fields, enum values and their entity, and are activated in any order: the rows are
// the same under all of them.
func TestRowsAreTheSameUnderAllNames(t *testing.T) {
	sequential(t)
	first := newSeed(t)
	for seed := first; seed < first+8; seed++ {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			h := &renameHistory{dice: newDice(seed, 0), rows: map[string]renamedRow{}}
			h.releases = []naming{{entity: "Order", fields: []string{"a", "b", "c"}, values: []string{"x", "y", "z"}}}
			h.releases[0] = h.next(0)
			h.fixture = newFixture(t, h.releases[0].schema)
			for range 60 {
				switch roll := h.IntN(10); {
				case roll < 5:
					h.write()
				case roll < 7:
					n := h.next(25)
					h.mustActivate(n.schema)
					h.releases = append(h.releases, n)
					h.active = len(h.releases) - 1
				default:
					to := h.IntN(len(h.releases))
					if to < h.active {
						h.mustRollback(h.releases[to].schema)
					} else {
						h.mustActivate(h.releases[to].schema)
					}
					h.active = to
				}
				if h.percent(50) {
					h.buildIndexes()
				}
				h.check()
			}
		})
	}
}
