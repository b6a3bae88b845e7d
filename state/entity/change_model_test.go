package entity_test

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"runner.example/internal/diag"
	"runner.example/schema/compiler"
	"runner.example/state/entity/catalog"
)

// changing is a field in a history of changed schemas.
type changing struct {
	name, typ, attrs string
	optional         bool
	def              string
	removed          bool
	was              string // the name in the release before, if it has another one now
	serial           int    // which field it is, under all names
}

func (f changing) String() string {
	text := f.name + ": " + f.typ
	if f.optional {
		text += "?"
	}
	if f.def != "" {
		text += " = " + f.def
	}
	if f.was != "" && !f.removed {
		text += fmt.Sprintf(" @was(%q)", f.was)
	}
	if f.removed {
		text += " @removed"
	}
	return text + f.attrs
}

// changingTypes are types of fields with values, and with defaults.
var changingTypes = map[string]struct{ values, defaults []string }{
	"int":          {[]string{"0", "7", "-3", "100"}, []string{"5"}},
	"int(0..10)":   {[]string{"0", "7", "10"}, []string{"5"}},
	"text":         {[]string{`"a"`, `"b"`, `"a long text"`}, []string{`"c"`}},
	"string(0..3)": {[]string{`"a"`, `"b"`, `""`}, []string{`"c"`}},
	"decimal(9,2)": {[]string{`"1.50"`, `"-20000.00"`}, []string{"2.00"}},
	"decimal(5,2)": {[]string{`"1.50"`, `"-20.00"`}, []string{"2.00"}},
	"email":        {[]string{`"a@example.com"`, `"b@example.com"`}, nil},
	"State":        {[]string{`"open"`, `"sent"`}, []string{"open"}},
	"text[]":       {[]string{`[]`, `["a","long text"]`}, nil},
	"Order":        {nil, nil},
}

var changingNames = []string{"int", "int(0..10)", "text", "string(0..3)", "decimal(9,2)", "decimal(5,2)", "email", "State", "text[]", "Order"}

// change returns the fields of the next release.
func (d dice) change(fields []changing, serial *int) (next []changing) {
	for _, f := range fields {
		f.was, f.attrs = "", ""
		if f.removed {
			if d.percent(50) {
				f.removed = false // it returns
			}
			if d.percent(30) {
				continue // the line is deleted
			}
		}
		switch roll := d.IntN(20); {
		case roll == 0:
			continue
		case roll < 3:
			f.removed = true
		case roll < 6:
			*serial++
			f.was, f.name = f.name, fmt.Sprint("f", *serial)
		case roll == 6:
			f.typ, f.def = pick(d, changingNames...), ""
		case roll < 10 && roll > 7:
			f.optional = !f.optional
		case roll == 10:
			f.attrs = " @unique"
		case roll == 11:
			f.attrs = " @index"
		}
		if strings.Contains(f.attrs, "@") && strings.HasSuffix(f.typ, "[]") {
			f.attrs = ""
		}
		next = append(next, f)
	}
	if len(next) < 6 {
		*serial++
		f := changing{name: fmt.Sprint("f", *serial), typ: pick(d, changingNames...), optional: d.percent(70), serial: *serial}
		if defaults := changingTypes[f.typ].defaults; len(defaults) > 0 && d.percent(40) {
			f.def = pick(d, defaults...)
		}
		next = append(next, f)
	}
	return next
}

func changingSchema(entity string, fields []changing) string {
	lines := make([]string, len(fields))
	for i, f := range fields {
		lines[i] = strings.ReplaceAll(f.String(), ": Order", ": "+strings.Fields(entity)[0])
	}
	return tradeWith(entity, strings.Join(lines, "\n  "), "open, sent")
}

// What the plan of a change refuses is refused by its activation, and nothing else. The values of fields
// are the same under all names, and after a rollback.
func TestAPlanIsWhatAnActivationDoes(t *testing.T) {
	sequential(t)
	first := newSeed(t)
	rounds := uint64(40)
	if long() {
		rounds = 500
	}
	outcomes := map[string]int{}
	for seed := first; seed < first+rounds; seed++ {
		d := newDice(seed, 0)
		serial, name := 0, "Order"
		var active []changing
		for range 4 {
			active = d.change(active, &serial)
		}
		for i := range active {
			active[i].removed, active[i].was = false, ""
		}
		text := changingSchema(name, active)
		h := newFixture(t, text)
		for range 6 {
			h.fillChanging(d, name, active)
			next, head := d.change(active, &serial), name
			if d.percent(20) {
				serial++
				head = fmt.Sprintf("E%d @was(%q)", serial, name)
			}
			after := changingSchema(head, next)
			s, list := compiler.Compile([]diag.Source{{Name: "app.schema", Text: []byte(after)}}, compiler.Options{})
			if s == nil {
				t.Fatalf("seed %d: %v\n%s", seed, list, after)
			}
			before := h.changingRows(name, active)
			_, planned, err := catalog.Plan(context.Background(), h.store, s)
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			refused := h.refusals(after)
			if !reflect.DeepEqual(codes(planned), codes(refused)) {
				t.Fatalf("seed %d: the plan refuses %v, the activation %v\n%s\n%s", seed, planned, refused, text, after)
			}
			if refused != nil {
				outcomes[refused[0].Code]++
				continue
			}
			outcomes["activated"]++
			newName := strings.Fields(head)[0]
			h.wantChanging(seed, before, h.changingRows(newName, next), after)
			if again, findings, err := catalog.Plan(context.Background(), h.store, s); err != nil || len(findings) > 0 {
				t.Fatalf("seed %d: the plan of the active schema: %v %v %v", seed, again, findings, err)
			}
			h.verify()
			if h.rollback(text) == nil { // a type that was widened has no way back
				h.wantChanging(seed, before, h.changingRows(name, active), text)
				if err := h.activate(after); err != nil {
					t.Fatalf("seed %d: forward again: %v\n%s\n%s", seed, err, text, after)
				}
				outcomes["rolled back"]++
			}
			text, name, active = after, newName, next
		}
	}
	t.Log(outcomes)
	for _, outcome := range []string{"activated", "rolled back", "E601", "E602"} {
		if outcomes[outcome] == 0 {
			t.Errorf("nothing was %s", outcome)
		}
	}
}

func codes(list diag.List) (codes []string) {
	for _, d := range list {
		codes = append(codes, d.Code+" "+d.Message)
	}
	return codes
}

// fillChanging inserts rows with most of the fields.
func (h *fixture) fillChanging(d dice, name string, fields []changing) {
	var ids []string
	for _, row := range h.rows(alice, fmt.Sprintf(`{"from":%q}`, name)) {
		ids = append(ids, fmt.Sprintf("%q", row["id"]))
	}
	for range 2 {
		var members []string
		for _, f := range fields {
			values := changingTypes[f.typ].values
			if f.typ == "Order" {
				values = ids
			}
			if !f.removed && len(values) > 0 && d.percent(85) {
				members = append(members, fmt.Sprintf("%q:%s", f.name, pick(d, values...)))
			}
		}
		_, _ = h.do(alice, "insert", fmt.Sprintf(`{"into":%q,"values":{%s}}`, name, strings.Join(members, ","))) // one that violates the schema is not inserted
	}
}

// changingRows returns the values of rows by their ids and the numbers of the fields.
func (h *fixture) changingRows(name string, fields []changing) map[string]string {
	values := map[string]string{}
	for _, row := range h.rows(alice, fmt.Sprintf(`{"from":%q}`, name)) {
		for _, f := range fields {
			if v, ok := row[f.name]; ok {
				text, _ := json.Marshal(v)
				values[fmt.Sprint(row["id"], " ", f.serial)] = string(text)
			}
		}
	}
	return values
}

// wantChanging compares the values that both releases have.
func (h *fixture) wantChanging(seed uint64, before, after map[string]string, schema string) {
	h.t.Helper()
	for key, want := range before {
		if got, ok := after[key]; ok && got != want {
			h.t.Fatalf("seed %d: %s was %s and is %s\n%s", seed, key, want, got, schema)
		}
	}
}
