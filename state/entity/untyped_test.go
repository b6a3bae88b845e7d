package entity_test

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"runner.example/internal/caller"
	"runner.example/internal/fault"
	"runner.example/state/entity"
)

// freeRun is the reference for a schema without entities: rows are JSON objects that belong
// to the writer's tenant.
type freeRun struct {
	rows map[string]map[string]map[string]any // entity, id
	of   map[string]string                    // id: tenant
}

// freeGrants are the rights of the scope of untyped, by entity and operation.
var freeGrants = map[string]map[string]bool{
	"Order":   {"query": true, "get": true, "count": true, "insert": true, "update": true},
	"Partner": {"query": true, "get": true, "count": true},
}

func (r *freeRun) do(who *caller.Caller, o operationKind, ids []string) (map[string]any, fault.Code) {
	var name string
	for _, member := range []string{"from", "into", "in"} {
		if v, ok := o.args[member].(string); ok {
			name = v
		}
	}
	scoped := who.Kind == caller.APIKey || who.As != ""
	if scoped && !freeGrants[name][o.op] {
		return nil, fault.Denied
	}
	project := func(row map[string]any) any {
		out := maps.Clone(row)
		if scoped && name == "Partner" {
			maps.DeleteFunc(out, func(member string, _ any) bool { return member != "id" && member != "n" })
		}
		return out
	}
	if scoped && name == "Partner" {
		text, _ := json.Marshal(o.args)
		if strings.Contains(string(text), `"state"`) || strings.Contains(string(text), `"x"`) {
			return nil, fault.Invalid
		}
	}
	mine := func(id string) bool { return r.rows[name][id] != nil && r.of[id] == who.Tenant }
	var found []map[string]any
	for _, id := range slices.Sorted(maps.Keys(r.rows[name])) {
		conditions, _ := o.args["where"].([]any)
		if mine(id) && !slices.ContainsFunc(conditions, func(c any) bool { return !freeMatch(r.rows[name][id], c.([]any)) }) {
			found = append(found, r.rows[name][id])
		}
	}
	switch o.op {
	case "get":
		if id := o.args["id"].(string); mine(id) {
			return object("row", project(r.rows[name][id])), ""
		}
		return nil, fault.NotFound
	case "count":
		return object("count", float64(len(found))), ""
	case "insert":
		row := object(append(pairsOf(o.args["values"].(map[string]any)), "id", ids[0])...)
		r.rows[name][ids[0]], r.of[ids[0]] = row, who.Tenant
		return object("rows", list(project(row))), ""
	case "update":
		out := list()
		for _, old := range found {
			row := maps.Clone(old)
			maps.Copy(row, o.args["set"].(map[string]any))
			if scoped && !freeOpen(old) {
				continue
			}
			if scoped && !freeOpen(row) {
				return nil, fault.Denied
			}
			out = append(out, row)
		}
		for i, row := range out {
			r.rows[name][row.(map[string]any)["id"].(string)] = row.(map[string]any)
			out[i] = project(row.(map[string]any))
		}
		return object("count", float64(len(out)), "rows", out), ""
	case "delete":
		for _, row := range found {
			delete(r.rows[name], row["id"].(string))
		}
		return object("count", float64(len(found))), ""
	}
	term := o.args["orderBy"].([]any)[0].([]any)
	if term[1] == "desc" {
		slices.Reverse(found)
	}
	slices.SortStableFunc(found, func(a, b map[string]any) int {
		c := freeOrder(a[term[0].(string)], b[term[0].(string)])
		if term[1] == "desc" {
			return -c
		}
		return c
	})
	out := list()
	for _, row := range found {
		out = append(out, project(row))
	}
	return object("rows", out), ""
}

// freeOpen is the rule of the scope's grant of update: state != "shut". Rules do not
// compare lists: the result is unknown.
func freeOpen(row map[string]any) bool {
	_, many := row["state"].([]any)
	return !many && row["state"] != "shut"
}

// freeMatch: a missing member is null; values of different types are unequal and not
// ordered.
func freeMatch(row map[string]any, c []any) bool {
	if c[0] == "not" {
		return !freeMatch(row, c[1].([]any))
	}
	v, want := row[c[0].(string)], c[2]
	sameType := reflect.TypeOf(v) == reflect.TypeOf(want) && v != nil
	switch c[1] {
	case "=":
		return reflect.DeepEqual(v, want)
	case "!=":
		return !reflect.DeepEqual(v, want)
	case "<":
		return sameType && freeOrder(v, want) < 0
	}
	return sameType && freeOrder(v, want) >= 0
}

// freeOrder: null, false, true, numbers, texts, then all other values, which are equal.
func freeOrder(a, b any) int {
	rank := func(v any) int {
		switch v.(type) {
		case nil:
			return 0
		case bool:
			return 1
		case float64:
			return 2
		case string:
			return 3
		}
		return 4
	}
	if rank(a) != rank(b) || rank(a) == 4 {
		return rank(a) - rank(b)
	}
	return refOrder("", a, b)
}

// TestRowsWithoutEntitiesAgreeWithTheReference compares with the reference for a schema
// that declares no entities.
func TestRowsWithoutEntitiesAgreeWithTheReference(t *testing.T) {
	// A new store from time to time: a page scans all rows, and a transaction has a row
	// limit.
	stores := 1
	if long() {
		stores = 20
	}
	seed, answers := newSeed(t), map[string]int{}
	for i := range stores {
		runFree(t, newDice(seed, uint64(i)), answers)
	}
	t.Logf("answers: %v", answers)
}

// runFree runs random operations on one store and on the reference.
func runFree(t *testing.T, d dice, answers map[string]int) {
	t.Helper()
	w := &twin{rig: newRig(t, untyped)}
	defer w.close()
	ref := &freeRun{rows: map[string]map[string]map[string]any{"Order": {}, "Partner": {}}, of: map[string]string{}}
	known := func(name string) []string { return slices.Sorted(maps.Keys(ref.rows[name])) }
	for range 1500 {
		who := pick(d, session("u1", "t1"), session("u2", "t2"), session("u1", ""), &caller.Caller{}, &caller.Caller{As: "some"},
			&caller.Caller{Kind: caller.APIKey, KeyID: "key_1", Scope: "some", Capability: "some", Tenant: "t1"})
		o := d.freeOperation(pick(d, "Order", "Partner"), known)
		var got answer
		w.update(who, func(a *entity.Access) { got = w.pages(a, o) })
		var ids []string
		if o.op == "insert" && got.code == "" {
			ids = idsIn(got.result)
		}
		encoded, _ := json.Marshal(o.args)
		var args map[string]any
		if err := json.Unmarshal(encoded, &args); err != nil {
			t.Fatal(err)
		}
		want, code := map[string]any(nil), fault.Code("")
		if o.op != "insert" || ids != nil || got.code == "" {
			want, code = ref.do(who, operationKind{o.op, args}, ids)
		} else if who.Kind != caller.Session && who.Scope+who.As != "" && !freeGrants[o.args["into"].(string)]["insert"] {
			code = fault.Denied
		}
		if got.code != code || code == "" && !reflect.DeepEqual(got.result, want) {
			t.Fatalf("%s, %v\nanswers  %v\nexpected %v %s", describe(who), o, got, answer{result: want}, code)
		}
		answers[o.op+" "+string(got.code)]++
	}
}
