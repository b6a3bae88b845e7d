package entity_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"runner.example/internal/fault"
)

// history is a store with rows that were written under several releases, and a plain model of it.
type history struct {
	*fixture
	dice
	releases []histRelease
	active   int
	tables   map[string]*histTable
	refused  map[string]int // activations, by the code; "" for none
}

// histRelease declares fields of each entity; an entity that it does not name is not declared.
type histRelease map[string][]histField

type histField struct {
	name, typ string
	optional  bool
	def       any // nil: none
	unique    bool
	to        string // the entity that a relation refers to
}

// histTable is an entity of the model. A row has the values that were written, so it lacks a field
// that was not declared then.
type histTable struct {
	rows map[string]map[string]any
	kept bool
	// fields are those that are stored: declared or kept.
	fields map[string]*histStored
}

type histStored struct {
	kept bool
	// missing is the value of rows that lack the field.
	missing any
}

func (f *histField) declaration() string {
	text := f.name + ": " + f.typ
	if f.optional {
		text += "?"
	}
	if f.def != nil {
		encoded, _ := json.Marshal(f.def)
		text += " = " + string(encoded)
	}
	if f.to != "" {
		text += " @onDelete(cascade)"
	}
	if f.unique {
		text += " @unique"
	}
	return text
}

func (r histRelease) schema() string {
	text := "auth { session cookie { idle: 30m } }\n"
	for _, name := range slices.Sorted(maps.Keys(r)) {
		text += "entity " + name + " {\n  id: id\n"
		for _, f := range r[name] {
			text += "  " + f.declaration() + "\n"
		}
		text += "  @@allow all to session\n}\n"
	}
	return text
}

func (r histRelease) field(entity, name string) *histField {
	at := slices.IndexFunc(r[entity], func(f histField) bool { return f.name == name })
	if at < 0 {
		return nil
	}
	return &r[entity][at]
}

// histFields are the fields that releases may have. A required one without a default often prevents
// the return of its release.
var histFields = histRelease{
	"Item": {
		{name: "name", typ: "text"}, {name: "level", typ: "int", optional: true}, {name: "count", typ: "int", def: 3.0},
		{name: "note", typ: "text", optional: true}, {name: "state", typ: "text", def: "new"}, {name: "mood", typ: "text", optional: true, def: "calm"},
		{name: "next", typ: "Item", optional: true, to: "Item"}, {name: "size", typ: "int"},
	},
	"Mark": {
		{name: "of", typ: "Item", optional: true, to: "Item"}, {name: "count", typ: "int", def: 3.0}, {name: "level", typ: "int", optional: true},
		{name: "item", typ: "Item", to: "Item"},
	},
}

// release returns a release that has most of the fields of the one before, and some more, in any
// order.
func (d dice) release(before histRelease) histRelease {
	r := histRelease{}
	for _, name := range slices.Sorted(maps.Keys(histFields)) {
		if name != "Item" && before[name] == nil && d.percent(40) {
			continue
		}
		fields := []histField{}
		for _, f := range histFields[name] {
			percent := 25
			switch {
			case before.field(name, f.name) != nil:
				percent = 95
			case f.name == "size" || f.name == "item":
				percent = 3
			}
			if f.unique = f.to == "" && f.def == nil && d.percent(30); d.percent(percent) {
				fields = append(fields, f)
			}
		}
		d.Shuffle(len(fields), func(i, j int) { fields[i], fields[j] = fields[j], fields[i] })
		r[name] = fields
	}
	return r
}

// read returns a row as a release with these fields reads it.
func (h *history) read(name, id string) map[string]any {
	t := h.tables[name]
	row := map[string]any{"id": id}
	for _, f := range h.releases[h.active][name] {
		value, has := t.rows[id][f.name]
		if !has {
			value = t.fields[f.name].missing
		}
		row[f.name] = value
	}
	return row
}

// codes returns what an activation of the release must be refused with, and what is stored after it
// otherwise.
func (h *history) codes(to int) (codes []string, after map[string]*histTable) {
	next := h.releases[to]
	keep := to < h.active
	after = map[string]*histTable{}
	refuse := func(code string) { codes = append(codes, code) }
	for name, old := range h.tables {
		fields, declared := next[name]
		if !declared {
			switch {
			case len(old.rows) == 0:
			case old.kept || keep:
				after[name] = &histTable{rows: old.rows, kept: true, fields: old.fields}
			default:
				refuse("E601")
			}
			continue
		}
		now := &histTable{rows: old.rows, fields: map[string]*histStored{}}
		after[name] = now
		filled := len(old.rows) > 0
		for i := range fields {
			f := &fields[i]
			prior := old.fields[f.name]
			now.fields[f.name] = &histStored{}
			if prior != nil {
				now.fields[f.name].missing = prior.missing
			}
			lacking := false
			for _, row := range old.rows {
				if _, has := row[f.name]; !has {
					lacking = true
				}
			}
			required := !f.optional
			switch {
			case !filled || prior != nil && !prior.kept:
			case prior != nil && (f.optional || prior.missing != nil): // as it was
			case f.def != nil:
				now.fields[f.name].missing = f.def
			case required && lacking:
				refuse("E602")
			}
		}
		for field, prior := range old.fields {
			switch {
			case now.fields[field] != nil:
			case prior.kept || filled && (old.kept || keep):
				now.fields[field] = &histStored{true, prior.missing}
			case filled:
				refuse("E601")
			}
		}
	}
	for name, fields := range next {
		if after[name] == nil {
			now := &histTable{rows: map[string]map[string]any{}, fields: map[string]*histStored{}}
			for _, f := range fields {
				now.fields[f.name] = &histStored{}
			}
			after[name] = now
		}
	}
	return append(codes, violations(next, after)...), after
}

// violations returns the codes of rows that the release does not allow.
func violations(next histRelease, tables map[string]*histTable) (codes []string) {
	for name, fields := range next {
		t := tables[name]
		for _, f := range fields {
			seen := map[any]bool{}
			for _, row := range t.rows {
				value, has := row[f.name]
				if !has {
					value = t.fields[f.name].missing
				}
				if value == nil {
					continue
				}
				if f.unique && seen[value] {
					codes = append(codes, "E603")
				}
				seen[value] = true
				if f.to != "" && tables[f.to].rows[value.(string)] == nil {
					codes = append(codes, "E607")
				}
			}
		}
	}
	return codes
}

// step activates another release, the model's way and the real one.
func (h *history) step() {
	h.t.Helper()
	to := h.IntN(len(h.releases))
	codes, after := h.codes(to)
	text := h.releases[to].schema()
	var err error
	if to < h.active {
		err = h.rollback(text)
	} else {
		err = h.activate(text)
	}
	list := h.refusalsOf(err)
	if (len(list) > 0) != (len(codes) > 0) {
		h.t.Fatalf("release %d after %d: refused with %v, want %v\n%s", to, h.active, list, codes, text)
	}
	for _, d := range list {
		if !slices.Contains(codes, d.Code) {
			h.t.Fatalf("release %d after %d: refused with %v, want %v", to, h.active, d, codes)
		}
		h.refused[d.Code]++
	}
	if len(list) == 0 {
		h.refused[""]++
		h.active, h.tables = to, after
		if h.percent(50) {
			if err := h.model.BuildIndexes(context.Background(), nil); err != nil {
				h.t.Fatal(err)
			}
		}
	}
	h.verify()
	h.compare()
}

// compare compares all rows that the active release declares.
func (h *history) compare() {
	h.t.Helper()
	for name := range h.releases[h.active] {
		rows := h.rows(clerk, fmt.Sprintf(`{"from":%q,"limit":1000}`, name))
		if len(rows) != len(h.tables[name].rows) {
			h.t.Fatalf("%s has %d rows, want %d", name, len(rows), len(h.tables[name].rows))
		}
		for _, row := range rows {
			if want := h.read(name, row["id"].(string)); !reflect.DeepEqual(row, want) {
				h.t.Fatalf("release %d reads %s %v, want %v", h.active, name, row, want)
			}
		}
	}
}

// given returns values of some of the fields of a release.
func (h *history) given(name string, insert bool) map[string]any {
	values := map[string]any{}
	for _, f := range h.releases[h.active][name] {
		switch must := insert && !f.optional && f.def == nil; {
		case !must && h.percent(50):
		case f.to != "":
			ids := slices.Sorted(maps.Keys(h.tables[f.to].rows))
			if len(ids) > 0 {
				values[f.name] = pick(h.dice, ids...)
			}
		case f.optional && h.percent(20):
			values[f.name] = nil
		case f.typ == "int":
			values[f.name] = float64(h.IntN(40))
		default:
			values[f.name] = strings.Repeat(pick(h.dice, "a", "é", "\x00"), h.IntN(4)) + fmt.Sprint(h.IntN(20))
		}
	}
	return values
}

// write runs one operation in the model and in the store.
func (h *history) write() {
	h.t.Helper()
	name := pick(h.dice, "Item", "Item", "Mark")
	release := h.releases[h.active]
	if _, declared := release[name]; !declared {
		return
	}
	t := h.tables[name]
	id := ""
	if ids := slices.Sorted(maps.Keys(t.rows)); len(ids) > 0 {
		id = pick(h.dice, ids...)
	}
	switch kind := h.IntN(20); {
	case kind < 9 || id == "":
		values := h.given(name, true)
		if f := release.field(name, "item"); f != nil && values["item"] == nil {
			return // there is no Item yet
		}
		row := map[string]any{}
		for _, f := range release[name] {
			row[f.name] = f.def
		}
		maps.Copy(row, values)
		got, err := h.do(clerk, "insert", encode(map[string]any{"into": name, "values": values}))
		if h.conflicts(name, "", row, err) {
			return
		}
		var out struct{ Rows []struct{ ID string } }
		if err := json.Unmarshal([]byte(got), &out); err != nil {
			h.t.Fatal(err)
		}
		t.rows[out.Rows[0].ID] = row
	case kind < 18:
		values := h.given(name, false)
		if len(values) == 0 {
			return
		}
		row := h.read(name, id)
		delete(row, "id")
		maps.Copy(row, values)
		_, err := h.do(clerk, "update", encode(map[string]any{"in": name, "set": values, "where": byID(id)}))
		if h.conflicts(name, id, row, err) {
			return
		}
		maps.Copy(t.rows[id], row) // an update writes all declared fields
	default:
		h.must(clerk, "delete", encode(map[string]any{"from": name, "where": byID(id)}))
		h.remove(name, id)
	}
}

func encode(v any) string {
	encoded, _ := json.Marshal(v)
	return string(encoded)
}

// conflicts reports whether a unique field forbids the row, and compares that with the error.
func (h *history) conflicts(name, id string, row map[string]any, err error) bool {
	h.t.Helper()
	want := false
	for _, f := range h.releases[h.active][name] {
		for other := range h.tables[name].rows {
			if f.unique && other != id && row[f.name] != nil && h.read(name, other)[f.name] == row[f.name] {
				want = true
			}
		}
	}
	if got := fault.CodeOf(err) == fault.Conflict; got != want || err != nil && !got {
		h.t.Fatalf("%s %v: %v, want a conflict: %t", name, row, err, want)
	}
	return want
}

// remove deletes a row and those whose declared relations refer to it.
func (h *history) remove(name, id string) {
	delete(h.tables[name].rows, id)
	for from, fields := range h.releases[h.active] {
		for _, f := range fields {
			for other, row := range h.tables[from].rows {
				if f.to == name && row[f.name] == id {
					h.remove(from, other)
				}
			}
		}
	}
}

// Releases with different fields and entities are activated in any order, and rows are written under
// each. An activation of an earlier one is a rollback.
func TestRollbacksAgreeWithAModel(t *testing.T) {
	sequential(t)
	seed := newSeed(t)
	runs := 40
	if long() {
		runs = 2000
	}
	refused := map[string]int{}
	for run := range runs {
		t.Run(fmt.Sprint(run), func(t *testing.T) {
			d := newDice(seed, uint64(run))
			h := &history{dice: d, refused: refused}
			last := histRelease{}
			for range 2 + d.IntN(3) {
				last = d.release(last)
				h.releases = append(h.releases, last)
			}
			h.fixture = newFixture(t, h.releases[0].schema())
			_, h.tables = h.codes(0)
			for range 12 {
				for range d.IntN(30) {
					h.write()
				}
				h.step()
			}
		})
	}
	t.Log("activations by code:", refused)
	for _, code := range []string{"", "E601", "E602", "E603", "E607"} {
		if refused[code] == 0 {
			t.Errorf("no activation with the code %q", code)
		}
	}
}
