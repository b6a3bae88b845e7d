package schema_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"runner.example/internal/cost"
	"runner.example/schema"
)

const inputForm = `type OrderInput {
  number: string(1..32)
  total: decimal(12,2) @min(0)
  currency: string(3..3) = "EUR"
  at: time = now
  note: text?
  lines: Line[]?
  first: Line?
  tags: string(1..3)[]?
}
type Line { sku: string(1..8) count: int(1..99) = 1 sub: Line? partOfTheLineAbove: Line? }
routes("/", auth: none, rateLimit: none) { POST / -> x (input: OrderInput) }
`

func TestCheckReportsAllErrorsOfAnInput(t *testing.T) {
	typ := mustCompile(t, inputForm).Type("OrderInput")
	for _, tt := range []struct{ body, want string }{
		{`{"number":"a","total":"1.50"}`, ``},
		{` {"total":1.5,"number":"a","currency":"USD","at":"2026-01-31T09:30:00Z","note":null,"lines":[{"sku":"x"},{"sku":"y","count":2}],"first":null,"tags":[]} ` + "\n", ``},
		{`{}`, `number: is required; total: is required`},
		{
			`{"number":"","total":-1,"currency":null,"nubmer":"a","note":1,"x":{"deep":[1]}}`,
			`number: must be at least 1 character; total: must be at least 0; currency: must not be null; ` +
				`nubmer: is not a field of OrderInput (did you mean "number"?); note: must be a string; x: is not a field of OrderInput`,
		},
		{
			`{"number":"a","total":1,"lines":[{"sku":"x"},{"count":0},5,null,{"sku":"y","sub":{"sku":"z","sub":{"a":1}}}],"tags":["a","abcd"]}`,
			`lines[1].count: must be at least 1; lines[1].sku: is required; lines[2]: must be an object; lines[3]: must not be null; ` +
				`lines[4].sub.sub.a: is not a field of Line; lines[4].sub.sub.sku: is required; tags[1]: must be at most 3 characters`,
		},
		{`{"number":"a","total":1,"lines":{},"first":[],"tags":"a"}`, `lines: must be a list; first: must be an object; tags: must be a list`},
		{`[]`, `: must be an object`},
		{`null`, `: must be an object`},
		{``, `: must be a JSON object`},
		{`  `, `: must be a JSON object`},
		{`{"number":"a","total":1} {}`, `: must be one JSON object and nothing else`},
		{`{"number":"a","total":1}x`, `: must be one JSON object and nothing else`},
		{`{"number":"a","number":"b","total":1}`, `number: must not be given twice`},
		{`{"number":"a","first":{"sku":"a","sku":"b"}}`, `first.sku: must not be given twice`},
		{`{"x":{"a":1,"a":2}}`, `x.a: must not be given twice`},
		{`{"lines":[{"sku":"x"},{"sku":"y","sku":"z"}]}`, `lines[1].sku: must not be given twice`},
		{`{"number":"a",}`, `: is not JSON: invalid character ',' at start of value`},
		{`{"number":"` + "\xff" + `"}`, `number: is not JSON: invalid UTF-8`},
		{`{"number":"a"`, `: is not JSON: unexpected EOF`},
		{`{"x":` + strings.Repeat("[", 64) + strings.Repeat("]", 64) + `}`, `: must not be nested more than 64 levels deep`},
	} {
		var got []string
		for _, e := range typ.Check([]byte(tt.body), nil) {
			got = append(got, e.Field+": "+e.Message)
		}
		if got := strings.Join(got, "; "); got != tt.want {
			t.Errorf("%.200q:\n%s, want\n%s", tt.body, got, tt.want)
		}
	}
}

func TestCheckReportsAtMost100Errors(t *testing.T) {
	typ := mustCompile(t, inputForm).Type("OrderInput")
	var members []string
	for i := range 5000 {
		members = append(members, fmt.Sprintf(`"m%d":1`, i))
	}
	if found := typ.Check([]byte("{"+strings.Join(members, ",")+"}"), nil); len(found) != 100 || found[99].Field != "m99" {
		t.Errorf("%d errors", len(found))
	}
}

// A body that is 200 times as large, with as many reported errors, allocates the same.
func TestCheckStopsReadingAfterTheLastReportedError(t *testing.T) {
	s := mustCompile(t, inputForm+`entity Row { id: id title: string? }`)
	typ := s.Type("OrderInput")
	rows := schema.Type{Kind: schema.Relation, Entity: s.Entity("Row"), List: true}
	onRows := func(body []byte, m *cost.Meter) []schema.FieldError { return rows.CheckResult(body, false, m) }
	for name, of := range map[string]struct {
		check             func(body []byte, m *cost.Meter) []schema.FieldError
		open, each, close string
	}{
		"unknown members": {typ.Check, `{`, `"nubmer%d":1`, `}`},
		"list elements":   {typ.Check, `{"lines":[`, `{"conut":%d}`, `]}`},
		"a row's members": {onRows, `[{`, `"tilte%d":1`, `}]`},
		"rows":            {onRows, `[`, `{"tilte":%d}`, `]`},
	} {
		allocations := func(count int) float64 {
			members := make([]string, count)
			for i := range members {
				members[i] = fmt.Sprintf(of.each, i)
			}
			body := []byte(of.open + strings.Join(members, ",") + of.close)
			return testing.AllocsPerRun(1, func() { of.check(body, nil) })
		}
		if few, many := allocations(150), allocations(30_000); many > few+10 {
			t.Errorf("%s: %g allocations with 150 errors, %g with 30,000", name, few, many)
		}
	}
}

func TestOnlyTheFirstUnknownMembersGetSuggestions(t *testing.T) {
	s := mustCompile(t, inputForm)
	var members []string
	for i := range 50 {
		members = append(members, fmt.Sprintf(`"numbe%c":1`, 'A'+i))
	}
	suggested := 0
	for _, e := range s.Type("OrderInput").Check([]byte("{"+strings.Join(members, ",")+"}"), nil) {
		if strings.HasSuffix(e.Message, `(did you mean "number"?)`) {
			suggested++
		}
	}
	if suggested != 5 {
		t.Errorf("%d members got a suggestion, want 5", suggested)
	}
}

func TestErrorsOfAnInputAreLimitedInSize(t *testing.T) {
	typ := mustCompile(t, inputForm).Type("OrderInput")
	names := func(count int, filler string) []byte {
		members := make([]string, count)
		for i := range members {
			members[i] = fmt.Sprintf(`"%s%d":1`, filler, i)
		}
		return []byte(`{"first":{` + strings.Join(members, ",") + "}}")
	}
	found := typ.Check(names(1, strings.Repeat("é", 1_000_000)), nil)
	if want := "first." + strings.Repeat("é", 94) + "…"; len(found) == 0 || found[0].Field != want {
		t.Errorf("a long name is reported as %.300q", found)
	}
	text, err := json.Marshal(typ.Check(names(5000, strings.Repeat(`\u0001`, 2000)), nil))
	if err != nil || len(text) > 128<<10 {
		t.Errorf("5,000 names of control characters are reported in %d bytes, %v", len(text), err)
	}
	twice := `{"` + strings.Repeat(`x`, 200) + `":{"b":1,"b":2}}`
	if broken := schema.JSONError([]byte(twice), nil); broken == nil || len(broken.Field) > 110 {
		t.Errorf("a repeated member is reported as %+v", broken)
	}
}

// deepAndTwice repeats a member at a path that is longer than FieldError.Field may be.
var deepAndTwice = `{"first":` + strings.Repeat(`{"partOfTheLineAbove":`, 50) + `{"sku":1,"sku":2}` + strings.Repeat("}", 51)

func TestARepeatedMemberIsReportedAtAnyDepth(t *testing.T) {
	found := mustCompile(t, inputForm).Type("OrderInput").Check([]byte(deepAndTwice), nil)
	want := schema.FieldError{Field: ("first" + strings.Repeat(".partOfTheLineAbove", 50))[:100] + "…", Message: "must not be given twice"}
	if len(found) == 0 || found[len(found)-1] != want {
		t.Errorf("%+v, want %+v as the last", found, want)
	}
}

func TestJSONErrorHasTheFieldOfTheError(t *testing.T) {
	for text, want := range map[string]string{
		`{"a":[1,{"b":1,"b":2}]}`: "a[1].b: must not be given twice",
		`{"a":1,}`:                ": is not JSON: invalid character '}' at start of string (expecting '\"')",
		`{"":1,"":2}`:             ": must not repeat a member of an object",
		`{"a":1`:                  ": is not JSON: unexpected EOF",
		`{} {}`:                   ": must be one JSON value and nothing else",
		` {"a":[1, null]} `:       "",
	} {
		got := ""
		if broken := schema.JSONError([]byte(text), nil); broken != nil {
			got = broken.Field + ": " + broken.Message
		}
		if got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

func TestFillWritesWholeNumbersAsDigits(t *testing.T) {
	typ := mustCompile(t, `type T { n: int? l: int[]? d: duration? f: float? j: json? x: decimal(6,2)? sub: T? deep: T[]? }`).Type("T")
	for body, want := range map[string]string{
		`{"n":1.0}`:                                   `{"n":1}`,
		`{"n":-1.50e1,"d":6E1}`:                       `{"n":-15,"d":60}`,
		`{"l":[1, 2.0, 1e2],"n":null}`:                `{"l":[1,2,100],"n":null}`,
		`{"sub":{"n":0e5},"deep":[{"n":1e15},{}]}`:    `{"sub":{"n":0},"deep":[{"n":1000000000000000},{}]}`,
		`{"f":1.0,"j":{"a":1.0},"x":1e1,"n":12 }`:     `{"f":1.0,"j":{"a":1.0},"x":1e1,"n":12}`,
		`{"x":"1.5","l":[],"d":9007199254740991.000}`: `{"x":"1.5","l":[],"d":9007199254740991}`,
	} {
		if found := typ.Check([]byte(body), nil); found != nil {
			t.Errorf("%s: %v", body, found)
		}
		if got, err := typ.Fill(nil, []byte(body), time.Time{}, nil); err != nil || string(got) != want {
			t.Errorf("Fill(%s) = %s, %v; want %s", body, got, err, want)
		}
	}
}

func TestAFieldThatMayBeOmittedIsNotNull(t *testing.T) {
	typ := mustCompile(t, `type Patch { note: text? due?: date both?: text? }`).Type("Patch")
	for body, want := range map[string]string{
		`{}`:                         "",
		`{"note":null,"both":null}`:  "",
		`{"due":"2026-01-31"}`:       "",
		`{"due":null}`:               "due: must not be null",
		`{"due":null,"both":"text"}`: "due: must not be null",
	} {
		found := typ.Check([]byte(body), nil)
		got := ""
		for _, e := range found {
			got += e.Field + ": " + e.Message
		}
		if got != want {
			t.Errorf("%s: %q, want %q", body, got, want)
			continue
		}
		if filled, err := typ.Fill(nil, []byte(body), time.Time{}, nil); want == "" && (err != nil || string(filled) != body) {
			t.Errorf("Fill(%s) = %s, %v: what is absent must not become null", body, filled, err)
		}
	}
}

func TestListsHaveDefaults(t *testing.T) {
	typ := mustCompile(t, `enum State { open, paid }
type T { a: string(1..8)[] = [] b: int[] = [1, -2] c: State[]? = [open] d: decimal(6,2)[] = ["1.50", 2] e: time[] = ["2026-01-31T12:00:00Z"] }`).Type("T")
	want := `{"a":[],"b":[1,-2],"c":["open"],"d":["1.50","2.00"],"e":["2026-01-31T12:00:00.000Z"]}`
	if got, err := typ.Fill(nil, []byte(`{}`), time.Time{}, nil); err != nil || string(got) != want {
		t.Errorf("Fill({}) = %s, %v; want %s", got, err, want)
	}
}

func TestCheckIsDeterministic(t *testing.T) {
	typ := mustCompile(t, inputForm).Type("OrderInput")
	body := []byte(`{"b":1,"a":2,"lines":[1,2]}`)
	if diff := cmp.Diff(typ.Check(body, nil), typ.Check(body, nil)); diff != "" {
		t.Error(diff)
	}
}

func FuzzInput(f *testing.F) {
	s, found := compileAll(inputForm)
	if s == nil {
		f.Fatal(found)
	}
	typ := s.Type("OrderInput")
	wrapped := schema.Type{Kind: schema.Object, Object: typ, Optional: true}
	for _, raw := range hostile {
		f.Add([]byte(raw[:min(len(raw), 1000)]))
	}
	f.Add([]byte(`{"number":"a","total":1,"lines":[{"sku":"x"}]}`))
	f.Add([]byte(deepAndTwice))
	f.Fuzz(func(t *testing.T, body []byte) {
		found := typ.Check(body, nil)
		for _, e := range found {
			if e.Message == "" {
				t.Fatalf("%q: %+v", body, e)
			}
		}
		_, err := wrapped.Parse(body)
		if string(bytes.TrimSpace(body)) == "null" {
			return
		}
		if broken := schema.JSONError(body, nil); broken != nil && len(found) == 0 {
			t.Fatalf("%q: no errors, but %+v", body, broken)
		}
		if (err == nil) != (len(found) == 0) {
			t.Fatalf("%q: as a body %v, as a value %v", body, found, err)
		}
	})
}

// FuzzJSON compares which texts the host takes for JSON with encoding/json. The host also
// refuses what programs read in different ways: repeated members, invalid UTF-8, lone
// surrogates and deep nesting.
func FuzzJSON(f *testing.F) {
	for _, raw := range hostile {
		f.Add([]byte(raw[:min(len(raw), 1000)]))
	}
	for _, raw := range []string{`null`, `-0.5e+7`, `"a\u00e9\n"`, `[1,{"a":[]},"\ud83d\ude00"]`, ` {"a" : 1 , "b" : { } } `, `{"__proto__":1}`, deepAndTwice} {
		f.Add([]byte(raw))
	}
	typ := &fieldOf(f, "json?").Type
	f.Fuzz(func(t *testing.T, raw []byte) {
		standard := json.Valid(raw) && utf8.Valid(raw)
		if schema.CheckDepth(raw, nil) != nil || schema.JSONError(raw, nil) != nil {
			if standard && schema.CheckDepth(raw, nil) == nil && !hasLoneSurrogate(raw) && !repeatsMember(json.NewDecoder(bytes.NewReader(raw))) {
				t.Fatalf("%q: %+v, but encoding/json accepts it", raw, schema.JSONError(raw, nil))
			}
			return
		}
		if !standard {
			t.Fatalf("%q is accepted, but encoding/json refuses it", raw)
		}
		value, err := typ.Parse(raw)
		if err != nil {
			t.Fatalf("%q is JSON, but no value: %v", raw, err)
		}
		var want, have any
		if json.Unmarshal(raw, &want) == nil && (json.Unmarshal(typ.AppendJSON(nil, value), &have) != nil || !reflect.DeepEqual(have, want)) {
			t.Fatalf("%q is written as %q", raw, typ.AppendJSON(nil, value))
		}
	})
}

// hasLoneSurrogate reports whether encoding/json has replaced half of a surrogate pair.
func hasLoneSurrogate(raw []byte) bool {
	var value any
	_ = json.Unmarshal(raw, &value) // fails for numbers beyond a float64, whose place stays empty
	out, _ := json.Marshal(value)
	return surrogate.Match(raw) && bytes.Contains(out, []byte("\ufffd"))
}

var surrogate = regexp.MustCompile(`(?i)\\ud[89a-f]`)

// repeatsMember reports whether an object of the value that dec reads has two members of one
// name.
func repeatsMember(dec *json.Decoder) bool {
	token, err := dec.Token()
	if err != nil {
		return false
	}
	switch token {
	case json.Delim('['):
		for dec.More() {
			if repeatsMember(dec) {
				return true
			}
		}
		_, _ = dec.Token()
	case json.Delim('{'):
		names := map[any]bool{}
		for dec.More() {
			name, _ := dec.Token()
			if names[name] || repeatsMember(dec) {
				return true
			}
			names[name] = true
		}
		_, _ = dec.Token()
	}
	return false
}
