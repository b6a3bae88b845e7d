package schema_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"runner.example/schema"
)

// fieldOf compiles an entity with the declared field and returns the field.
func fieldOf(t testing.TB, declared string) *schema.Field {
	t.Helper()
	const around = `auth { session cookie { idle: 30m } user: User }
enum Color { red, green, blue }
entity User { id: id @@allow read to session }
entity Other { id: id @@allow read to session }
entity E { id: id @@allow read to session }
type Line { sku: string(1..4) count: int(1..9) = 1 }
type T {
  f: %s
}`
	s, found := compileAll(fmt.Sprintf(around, declared))
	if s == nil {
		t.Fatalf("%s: %v", declared, found)
	}
	return s.Type("T").Fields[0]
}

func TestParseReadsValuesOfEachType(t *testing.T) {
	for _, tt := range []struct {
		declared, raw string
		want          string // as JSON, or an error's text
	}{
		{"string", `"héllo"`, `"héllo"`},
		{"string", `""`, `""`},
		{"string", "\"a\\u00e9\\n\\\"\"", `"aé\n\""`},
		{"string", `"\ud83d\ude00"`, `"😀"`},
		{"string", `1`, "must be a string"},
		{"string", `null`, "must not be null"},
		{"string", `["a"]`, "must be a string"},
		{"string", `"a`, "must be a string"},
		{"string", `"\ud800"`, "must be a string"},
		{"string", "\"\xff\"", "must be a string"},
		{"string", "\"a\nb\"", "must be a string"},
		{"string", `"a"b"`, "must be a string"},
		{"string", ``, "must be a string"},
		{"string?", " null\n", `null`},
		{"string(2..3)", `"é"`, "must be at least 2 characters"},
		{"string(2..3)", `"éé"`, `"éé"`},
		{"string(2..3)", `"😀😀😀"`, `"😀😀😀"`},
		{"string(2..3)", `"éééé"`, "must be at most 3 characters"},
		{"string(1)", `"ab"`, "must be at most 1 character"},
		{"string(0..0)", `"a"`, "must be at most 0 characters"},
		{"string(0..0)", `""`, `""`},
		{`text(9) @pattern("^[a-z]+$")`, `"abc"`, `"abc"`},
		{`text(9) @pattern("^[a-z]+$")`, `"aBc"`, "must match ^[a-z]+$"},

		{"id", `"01j9zzzzzzzzzzzzzzzzzzzzza"`, `"01j9zzzzzzzzzzzzzzzzzzzzza"`},
		{"Other", `"01j9zzzzzzzzzzzzzzzzzzzzza"`, `"01j9zzzzzzzzzzzzzzzzzzzzza"`},
		{"Other", `"01J9ZZZZZZZZZZZZZZZZZZZZZA"`, "must be an id: 26 lower-case letters and digits"},
		{"Other", `"81j9zzzzzzzzzzzzzzzzzzzzza"`, "must be an id: 26 lower-case letters and digits"},
		{"Other", `"01j9zzzzzzzzzzzzzzzzzzzzzu"`, "must be an id: 26 lower-case letters and digits"},
		{"Other", `"u1"`, "must be an id: 26 lower-case letters and digits"},
		{"Other", `{"id":"x"}`, "must be a string"},
		{"User", `"auth0|Ann.B_c-d@e:f"`, `"auth0|Ann.B_c-d@e:f"`},
		{"User", `""`, "must be an id: letters, digits and . _ - | @ : (1 to 64 of them)"},
		{"User", `"a b"`, "must be an id: letters, digits and . _ - | @ : (1 to 64 of them)"},
		{"User", `"` + strings.Repeat("a", 65) + `"`, "must be an id: letters, digits and . _ - | @ : (1 to 64 of them)"},
		{"User", `"é"`, "must be an id: letters, digits and . _ - | @ : (1 to 64 of them)"},
		{"uuid", `"0B5F1D9E-0000-4000-8000-00000000000A"`, `"0b5f1d9e-0000-4000-8000-00000000000a"`},
		{"uuid", `"0b5f1d9e00004000800000000000000a"`, "must be a UUID"},
		{"uuid", `"0b5f1d9e-0000-4000-8000-00000000000g"`, "must be a UUID"},
		{"uuid", `"0b5f1d9e-0000-4000-80000-0000000000a"`, "must be a UUID"},
		{"email", `"ann@example.com"`, `"ann@example.com"`},
		{"email", `"Ann <ann@example.com>"`, "must be an email address"},
		{"email", `"ann"`, "must be an email address"},
		{"email", `"a@b, c@d"`, "must be an email address"},
		{"url", `"https://example.com/a?b#c"`, `"https://example.com/a?b#c"`},
		{"url", `"/a"`, "must be a URL with a scheme and a host"},
		{"url", `"mailto:a@b"`, "must be a URL with a scheme and a host"},

		{"int", `-0`, `0`},
		{"int", `9007199254740991`, `9007199254740991`},
		{"int", `-9007199254740991`, `-9007199254740991`},
		{"int", `9007199254740992`, "must be within ±9007199254740991"},
		{"int", `1e400`, "must be within ±9007199254740991"},
		{"int", `1e99999999999999999999`, "must be within ±9007199254740991"},
		{"int", `1.0`, `1`},
		{"int", `1.20e1`, `12`},
		{"int", `0e-99999999999`, `0`},
		{"int", `9007199254740990.6`, "must be a whole number"},
		{"int", `1e-1`, "must be a whole number"},
		{"int", `"1"`, "must be a number"},
		{"int", `01`, "must be a number"},
		{"int", `+1`, "must be a number"},
		{"int", `1_0`, "must be a number"},
		{"int", `1.`, "must be a number"},
		{"int", `.5`, "must be a number"},
		{"int", `1e`, "must be a number"},
		{"int", `0x10`, "must be a number"},
		{"int", `-`, "must be a number"},
		{"int", `NaN`, "must be a number"},
		{"int(1..100)", `0`, "must be at least 1"},
		{"int(1..100)", `101`, "must be at most 100"},
		{"int(-5..10)", `-6`, "must be at least -5"},
		{"int(-10..-5)", `-4`, "must be at most -5"},
		{"int(1..100) @max(50)", `51`, "must be at most 50"},
		{"int @min(5)", `4`, "must be at least 5"},
		{"float", `1.50`, `1.5`},
		{"float", `-0.0`, `0`},
		{"float", `5e-324`, `5e-324`},
		{"float", `1e309`, "must be a finite number"},
		{"float", `Infinity`, "must be a number"},
		{"float", `"1"`, "must be a number"},
		{"float(0..1)", `1.0000000000000002`, "must be at most 1"},

		{"decimal(6,2)", `"12.50"`, `"12.50"`},
		{"decimal(6,2)", `"-0.0"`, `"0.00"`},
		{"decimal(6,2)", `"007.5"`, `"7.50"`},
		{"decimal(6,2)", `12.5`, `"12.50"`},
		{"decimal(6,2)", `1.25e1`, `"12.50"`},
		{"decimal(6,2)", `125e-1`, `"12.50"`},
		{"decimal(6,2)", `1e3`, `"1000.00"`},
		{"decimal(6,2)", `-1e-2`, `"-0.01"`},
		{"decimal(6,2)", `0.1`, `"0.10"`},
		{"decimal(6,2)", `9999.99`, `"9999.99"`},
		{"decimal(6,2)", `10000`, "must have at most 4 digits before the decimal point"},
		{"decimal(6,2)", `1e999999999999`, "must have at most 4 digits before the decimal point"},
		{"decimal(6,2)", `1.005`, "must have at most 2 decimal places"},
		{"decimal(6,2)", `1e-999999999999`, "must have at most 2 decimal places"},
		{"decimal(6,2)", `"1e2"`, "must be a decimal, such as 12.50"},
		{"decimal(6,2)", `"--1"`, "must be a decimal, such as 12.50"},
		{"decimal(6,2)", `"1."`, "must be a decimal, such as 12.50"},
		{"decimal(6,2)", `""`, "must be a decimal, such as 12.50"},
		{"decimal(6,2)", `" 1"`, "must be a decimal, such as 12.50"},
		{"decimal(6,2)", `true`, "must be a decimal, such as 12.50"},
		{"decimal(38,0)", `"99999999999999999999999999999999999999"`, `"99999999999999999999999999999999999999"`},
		{"decimal(38,0)", `99999999999999999999999999999999999999`, rounded},
		{"decimal(38,0)", `1000000000000000`, rounded}, // perhaps 1000000000000000.01, read as a float64
		{"decimal(38,0)", `999999999999999`, `"999999999999999"`},
		{"decimal(20,2)", `12345678901234567.89`, rounded},
		{"decimal(20,2)", `12345678901234568`, rounded},
		{"decimal(20,2)", `-12345678901234.5`, rounded},
		{"decimal(20,2)", `"12345678901234567.89"`, `"12345678901234567.89"`},
		{"decimal(20,2)", `1234567890123.45`, `"1234567890123.45"`},
		{"decimal(20,2)", `0.30000000000000004`, "must have at most 2 decimal places"},
		{"decimal(38,20)", `0.1`, rounded},
		{"decimal(38,20)", `0.000001`, `"0.00000100000000000000"`},
		{"decimal(38,20)", `0`, `"0.00000000000000000000"`},
		{"decimal(38,38)", `"-0.00000000000000000000000000000000000001"`, `"-0.00000000000000000000000000000000000001"`},
		{"decimal(6,2) @min(0)", `"-0.01"`, "must be at least 0"},
		{"decimal(6,2) @max(10.50)", `"10.51"`, "must be at most 10.50"},

		{"bool", `true`, `true`},
		{"bool", `"true"`, "must be true or false"},
		{"bool", `0`, "must be true or false"},
		{"time", `"2026-01-31T10:30:00.1239+01:00"`, `"2026-01-31T09:30:00.123Z"`},
		{"time", `"2026-01-31t10:30:00.1+01:00"`, `"2026-01-31T09:30:00.100Z"`},
		{"time", `"2026-01-31t09:30:00z"`, `"2026-01-31T09:30:00.000Z"`},
		{"time", `"2026-01-31T09:30:00z"`, `"2026-01-31T09:30:00.000Z"`},
		{"time", `"0000-01-01T00:00:00Z"`, `"0000-01-01T00:00:00.000Z"`},
		{"time", `"9999-12-31T23:59:59.999Z"`, `"9999-12-31T23:59:59.999Z"`},
		{"time", `"9999-12-31T23:59:59-01:00"`, "must be an RFC 3339 time, such as 2026-01-31T09:30:00Z"},
		{"time", `"2026-01-31 10:30:00Z"`, "must be an RFC 3339 time, such as 2026-01-31T09:30:00Z"},
		{"time", `"2026-01-31T9:30:00Z"`, "must be an RFC 3339 time, such as 2026-01-31T09:30:00Z"},
		{"time", `"2026-01-31T09:30:00,5Z"`, "must be an RFC 3339 time, such as 2026-01-31T09:30:00Z"},
		{"time", `"2026-02-30T09:30:00Z"`, "must be an RFC 3339 time, such as 2026-01-31T09:30:00Z"},
		{"time", `"2026-01-31T09:30:00+24:00"`, "must be an RFC 3339 time, such as 2026-01-31T09:30:00Z"},
		{"time", `"2016-12-31T23:59:60Z"`, "must have seconds from 00 to 59: a leap second cannot be stored"},
		{"time", `"2016-12-31t23:59:60.5+01:00"`, "must have seconds from 00 to 59: a leap second cannot be stored"},
		{"time", `"2016-12-31T23:59:61Z"`, "must be an RFC 3339 time, such as 2026-01-31T09:30:00Z"},
		{"time", `"2016-13-31T23:59:60Z"`, "must be an RFC 3339 time, such as 2026-01-31T09:30:00Z"},
		{"time", `""`, "must be an RFC 3339 time, such as 2026-01-31T09:30:00Z"},
		{"time", `1769851800`, "must be a string"},
		{`time @min("2026-01-01T00:00:00+01:00")`, `"2025-12-31T22:59:59Z"`, "must be at least 2025-12-31T23:00:00.000Z"},
		{"date", `"2026-01-31"`, `"2026-01-31"`},
		{"date", `"1969-12-31"`, `"1969-12-31"`},
		{"date", `"0000-02-29"`, `"0000-02-29"`},
		{"date", `"2026-02-29"`, "must be a date, such as 2026-01-31"},
		{"date", `"2026-1-31"`, "must be a date, such as 2026-01-31"},
		{"duration", `-90`, `-90`},
		{"duration", `9007199254740991`, `9007199254740991`},
		{"duration", `0.5`, "must be a whole number"},
		{"duration @max(1h)", `3601`, "must be at most 3600"},
		{"bytes", `"aGk="`, `"aGk="`},
		{"bytes", `""`, `""`},
		{"bytes", `"aGk"`, "must be base64 with padding"},
		{"bytes", `"aGl="`, "must be base64 with padding"}, // bits that would be lost
		{"bytes", `"aG\nk="`, "must be base64 with padding"},
		{"bytes", `"-_-_"`, "must be base64 with padding"},
		{"Color", `"green"`, `"green"`},
		{"Color", `"gr\u0065en"`, `"green"`},
		{"Color", `"Green"`, "must be one of red, green, blue"},
		{"Color", `1`, "must be a string"},

		{"json", ` { "a" : [ 1.50 , null , "\u0041" ] } `, `{"a":[1.50,null,"A"]}`},
		{"json", `null`, "must not be null"},
		{"json", `{"a":1,"a":2}`, "must not repeat a member of an object"},
		{"json", strings.Repeat("[", 64) + strings.Repeat("]", 64), strings.Repeat("[", 64) + strings.Repeat("]", 64)},
		{"json", strings.Repeat("[", 65) + strings.Repeat("]", 65), "must not be nested more than 64 levels deep"},
		{"json", `"]]` + strings.Repeat("[", 99) + `"`, `"]]` + strings.Repeat("[", 99) + `"`},

		{"string(1..2)[]", `[]`, `[]`},
		{"string(1..2)[]", ` [ "a" , "],\"" ] `, "must be at most 2 characters, at position 2 of the list"},
		{"string(1..3)[]", ` [ "a" , "],\"" ] `, `["a","],\""]`},
		{"int[]", `[1,[2]]`, "must be a number, at position 2 of the list"},
		{"int[]", `[1,null]`, "must not be null, at position 2 of the list"},
		{"int[]", `1`, "must be a list"},
		{"int[]", `null`, "must not be null"},
		{"int[]?", `null`, `null`},
		{"json[]", `[{"a":[1,2]},[],3]`, `[{"a":[1,2]},[],3]`},

		{"Line", `{ "sku": "a" }`, `{"sku":"a"}`},
		{"Line", `{"sku":"abcde","count":2}`, "has an invalid sku: must be at most 4 characters"},
		{"Line", `[]`, "must be an object"},
	} {
		typ := &fieldOf(t, tt.declared).Type
		v, err := typ.Parse([]byte(tt.raw))
		got := ""
		if err != nil {
			got = err.Error()
			if !v.IsNull() {
				t.Errorf("%s: %s: got a value and an error", tt.declared, tt.raw)
			}
		} else {
			got = string(typ.AppendJSON(nil, v))
		}
		if got != tt.want {
			t.Errorf("%s: %s: %s, want %s", tt.declared, tt.raw, got, tt.want)
		}
		if err == nil {
			again, err := typ.Parse([]byte(got))
			if err != nil || !again.Equal(v) {
				t.Errorf("%s: the output %s is parsed as %v, %v", tt.declared, got, again, err)
			}
		}
	}
}

const rounded = `must be a string, such as "12.50": a JSON number with more than 15 digits, its places included, may have been rounded`

// hostile are texts that are known to break JSON parsers. None of them is valid input.
var hostile = map[string]string{
	"empty text":                         ``,
	"blanks only":                        " \n\t",
	"deep arrays":                        strings.Repeat("[", 100_000),
	"deep objects":                       strings.Repeat(`{"a":`, 100_000) + "1" + strings.Repeat("}", 100_000),
	"65 levels":                          strings.Repeat(`[{"a":`, 32) + "[1]" + strings.Repeat("}]", 32),
	"repeated member":                    `{"a":1,"b":2,"a":3}`,
	"repeated member, escaped":           `{"a":1,"\u0061":2}`,
	"repeated member, deep":              `[{"a":{"x":null,"x":null}}]`,
	"invalid UTF-8":                      "\"\xff\"",
	"invalid UTF-8 in a name":            "{\"\xc3\x28\":1}",
	"overlong UTF-8":                     "\"\xc0\xaf\"",
	"a surrogate in UTF-8":               "\"\xed\xa0\x80\"",
	"truncated UTF-8":                    "\"\xe2\x82\"",
	"lone high surrogate":                `"\ud800"`,
	"lone low surrogate":                 `"\udc00"`,
	"reversed surrogates":                `"\udc00\ud800"`,
	"high surrogate, then text":          `"\ud800a"`,
	"two values":                         `{} {}`,
	"trailing text":                      `{}x`,
	"a byte order mark":                  "\xef\xbb\xbf{}",
	"UTF-16":                             "{\x00}\x00",
	"trailing comma":                     `[1,]`,
	"trailing comma in an object":        `{"a":1,}`,
	"missing comma":                      `[1 2]`,
	"no colon":                           `{"a" 1}`,
	"unquoted name":                      `{a:1}`,
	"single quotes":                      `{'a':1}`,
	"comment":                            `{/* */}`,
	"NaN":                                `[NaN]`,
	"infinity":                           `[-Infinity]`,
	"hex":                                `[0x1]`,
	"leading zero":                       `[012]`,
	"leading plus":                       `[+1]`,
	"no digits after the decimal point":  `[1.]`,
	"no digits before the decimal point": `[.1]`,
	"no digits of the exponent":          `[1e+]`,
	"raw newline in a string":            "\"a\nb\"",
	"raw NUL in a string":                "\"a\x00b\"",
	"unknown escape":                     `"\x41"`,
	"truncated escape":                   `"\u12"`,
	"open string":                        `"abc`,
	"open array":                         `[1`,
	"open object":                        `{"a":1`,
	"mismatched brackets":                `[1}`,
	"only a minus":                       `-`,
	"words in capitals":                  `[TRUE]`,
	"a number as name":                   `{1:2}`,
	"form feed as blank":                 "[\f]",
	"no-break space as blank":            "[\u00a0]",
	"numbers without a separator":        `[1-2]`,
}

func TestHostileJSONIsRefused(t *testing.T) {
	any, free := &fieldOf(t, "json?").Type, schema.ParseUntyped
	object := schema.ObjectType{Name: "O"}
	for name, raw := range hostile {
		start := time.Now()
		if v, err := any.Parse([]byte(raw)); err == nil {
			t.Errorf("%s: parsed as %s", name, any.AppendJSON(nil, v))
		}
		if v, err := free([]byte(raw)); err == nil {
			t.Errorf("%s: parsed as %v", name, v)
		}
		if found := object.Check([]byte(raw), nil); len(found) == 0 {
			t.Errorf("%s: accepted as an object", name)
		}
		if took := time.Since(start); took > time.Minute {
			t.Errorf("%s: took %v", name, took)
		}
	}
}

func TestTextThatIsNotUnicodeIsFound(t *testing.T) {
	for name, raw := range hostile {
		bad := strings.Contains(name, "UTF-8") || strings.Contains(name, "surrogate")
		if err := schema.CheckUnicode([]byte(raw), nil); (err != nil) != bad {
			t.Errorf("%s: %v", name, err)
		}
	}
	for raw, bad := range map[string]bool{
		`"\ud83d\ude00"`: false, `"\uD83D\uDE00\udbff\uDFFF"`: false, `"\\ud800"`: false, `"\\\ud800"`: true, `"\ud800\\udc00"`: true, `"\ufffd` + "\ufffd" + `"`: false,
		`"\ud83d\ude00\ude00"`: true, `"\ud83d\ud83d\ude00"`: true, `"\ud800`: true, `"\ud8`: false, `\`: false, `"\udbff\u`: true,
	} {
		if err := schema.CheckUnicode([]byte(raw), nil); (err != nil) != bad {
			t.Errorf("%s: %v", raw, err)
		}
	}
}

func TestHugeNumbersAreUnchangedInJSONAndRefusedElsewhere(t *testing.T) {
	for _, raw := range []string{"1e400", "-1e400", strings.Repeat("9", 5000), "0." + strings.Repeat("1", 5000), "1e-400000000000000000000", "1E+5"} {
		any := &fieldOf(t, "json").Type
		v, err := any.Parse([]byte(raw))
		if err != nil || string(any.AppendJSON(nil, v)) != raw {
			t.Errorf("json: %.20s: %.20q, %v", raw, v.Text(), err)
		}
		for _, declared := range []string{"int(0..9)", "decimal(38,19)", "duration", "float(0..0)"} {
			if v, err := fieldOf(t, declared).Type.Parse([]byte(raw)); err == nil && v.Float() != 0 {
				t.Errorf("%s: %.20s: %v", declared, raw, v)
			}
		}
	}
}

func TestParseTextReadsValuesOfEachType(t *testing.T) {
	for _, tt := range []struct{ declared, text, want string }{
		{"string", `a "b"`, `"a \"b\""`},
		{"string", "", `""`},
		{"string?", "", "null"},
		{"string(1..9)", "", "must be at least 1 character"},
		{"string", "\xff", "must be valid UTF-8"},
		{"string", "null", `"null"`},
		{"int", "-5", "-5"},
		{"int", "", "must be a number"},
		{"int?", "null", "null"},
		{"decimal(6,2)", "1.5", `"1.50"`},
		{"bool", "true", "true"},
		{"time", "2026-01-31T09:30:00Z", `"2026-01-31T09:30:00.000Z"`},
		{"date?", "2026-01-31", `"2026-01-31"`},
		{"Color", "red", `"red"`},
		{"Color", "pink", "must be one of red, green, blue"},
		{"bytes", "aGk=", `"aGk="`},
		{"json", `{"a": 1}`, `{"a":1}`},
		{"string[]", `["a"]`, `["a"]`},
		{"User", "u|1", `"u|1"`},
	} {
		typ := &fieldOf(t, tt.declared).Type
		v, err := typ.ParseText(tt.text)
		got := string(typ.AppendJSON(nil, v))
		if err != nil {
			got = err.Error()
		}
		if got != tt.want {
			t.Errorf("%s: %q: %s, want %s", tt.declared, tt.text, got, tt.want)
		}
	}
}

func TestParseOperandIgnoresBounds(t *testing.T) {
	for _, tt := range []struct{ declared, raw, want string }{
		{"string(1..2)", `"abc"`, `"abc"`},
		{`string(9) @pattern("^a")`, `"b"`, `"b"`},
		{"email", `"ann"`, `"ann"`},
		{"Other", `"no id"`, `"no id"`},
		{"int(1..9)", `100`, `100`},
		{"int", `null`, `null`},
		{"decimal(6,2)", `12.505`, `"12.505"`},
		{"decimal(6,2)", `0.30000000000000004`, `"0.30000000000000004"`},
		{"decimal(6,2)", `1e18`, `"1000000000000000000.00"`},
		{"decimal(6,2)", `12345678901234568`, rounded},
		{"decimal(6,2)", `"1000000"`, `"1000000.00"`},
		{"decimal(6,2)", `1e5000`, "must have at most 1000 digits"},
		{"decimal(6,2)", `1e-5000`, "must have at most 1000 digits"},
		{"string[]", `"a"`, `"a"`},
		{"int", `"1"`, "must be a number"},
		{"int", `1.5`, "must be a whole number"},
		{"uuid", `"0B5F1D9E-0000-4000-8000-00000000000A"`, `"0b5f1d9e-0000-4000-8000-00000000000a"`},
		{"Color", `"pink"`, "must be one of red, green, blue"},
		{"time", `"yesterday"`, "must be an RFC 3339 time, such as 2026-01-31T09:30:00Z"},
	} {
		typ := &fieldOf(t, tt.declared).Type
		v, err := typ.ParseOperand([]byte(tt.raw))
		got := string(typ.AppendJSON(nil, v))
		if err != nil {
			got = err.Error()
		}
		if got != tt.want {
			t.Errorf("%s: %s: %s, want %s", tt.declared, tt.raw, got, tt.want)
		}
	}
}

// ---- order ----

// numbers returns a random number as a value of a random kind, and as a *big.Rat.
func numbers(d dice) (schema.Value, *big.Rat) {
	rat := func(s string) *big.Rat {
		r, _ := new(big.Rat).SetString(s)
		return r
	}
	switch d.IntN(3) {
	case 0:
		n := pick(d, 0, 1, -1, 1<<53-1, 1<<53, 1<<53+1, -1<<63, 1<<63-1, d.Int64()>>d.IntN(64), -d.Int64()>>d.IntN(64))
		return schema.IntValue(n), new(big.Rat).SetInt64(n)
	case 1:
		f := pick(d, 0, 0.1, 1.5, -1.5, 1<<53, 1<<63, -1<<63, 1e300, 5e-324, -5e-324, d.NormFloat64(), float64(d.Int64()>>d.IntN(64)))
		return schema.FloatValue(f), new(big.Rat).SetFloat64(f)
	}
	places := d.IntN(20)
	text := pick(d, "0", "0.1", "1.5", "-1.50", "9007199254740992", "9007199254740993", "0.1000000000000000055511151231257827021181583404541015625",
		rat(fmt.Sprint(d.Int64()>>d.IntN(64))).FloatString(places), rat(fmt.Sprint(d.NormFloat64())).FloatString(places))
	if strings.Trim(text, "-0.") == "" {
		text = "0"
	}
	return schema.DecimalValue(text), rat(text)
}

func TestNumbersOfAllKindsCompareExactly(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	d := dice{rand.New(rand.NewPCG(seed, 0))}
	equal := 0
	for range 20_000 {
		v, x := numbers(d)
		w, y := numbers(d)
		got, ok := v.Compare(w)
		if want := x.Cmp(y); !ok || got != want || v.Equal(w) != (want == 0) {
			t.Fatalf("seed %d: %s and %s: %d, %v, %v; want %d", seed, x.RatString(), y.RatString(), got, ok, v.Equal(w), want)
		}
		if got == 0 && v.Kind() != w.Kind() {
			equal++
		}
	}
	if equal < 100 {
		t.Errorf("seed %d: only %d times were numbers of different kinds equal", seed, equal)
	}
}

func TestOnlyValuesOfTheSameKindHaveAnOrder(t *testing.T) {
	values := []schema.Value{
		{}, schema.BoolValue(false), schema.BoolValue(true), schema.IntValue(0), schema.TextValue(""), schema.TextValue("0"), schema.TimeValue(0),
		schema.DateValue(0), schema.DurationValue(0), schema.BytesValue(""), schema.JSONValue("0"), schema.ListValue(nil),
		schema.ListValue([]schema.Value{schema.IntValue(1)}),
	}
	for i, v := range values {
		for j, w := range values {
			if v.Equal(w) != (i == j) {
				t.Errorf("%v and %v: equal is %v", v, w, v.Equal(w))
			}
			_, ordered := v.Compare(w)
			want := v.Kind() == w.Kind() && v.Kind() != schema.KindNull && v.Kind() != schema.KindJSON && v.Kind() != schema.KindList
			if ordered != want {
				t.Errorf("%v and %v: ordered is %v", v, w, ordered)
			}
		}
	}
	a, b := schema.ListValue([]schema.Value{schema.IntValue(1), {}}), schema.ListValue([]schema.Value{schema.FloatValue(1), {}})
	if !a.Equal(b) {
		t.Error("lists with equal elements are not equal")
	}
}

func TestDecimalsAreOrderedByTheirText(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	d := dice{rand.New(rand.NewPCG(seed, 0))}
	typ := &fieldOf(t, "decimal(12,3)").Type
	read := func() schema.Value {
		v, err := typ.Parse([]byte(fmt.Sprintf("%de-%d", d.IntN(2_000_000)-1_000_000, d.IntN(4))))
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	// byText is the order that the comment of Text describes.
	byText := func(a, b string) int {
		x, below := strings.CutPrefix(a, "-")
		y, below2 := strings.CutPrefix(b, "-")
		switch order := len(x) - len(y); {
		case below != below2:
			return btoi(below2) - btoi(below)
		case below && order != 0:
			return -order
		case below:
			return strings.Compare(y, x)
		case order != 0:
			return order
		}
		return strings.Compare(x, y)
	}
	for range 5000 {
		v, w := read(), read()
		order, _ := v.Compare(w)
		if got := byText(v.Text(), w.Text()); got*order < 0 || (got == 0) != (order == 0) {
			t.Fatalf("seed %d: %s and %s: %d by text, %d", seed, v.Text(), w.Text(), got, order)
		}
	}
}

func TestParseAllocatesLittle(t *testing.T) {
	for declared, tt := range map[string]struct {
		raw string
		max float64
	}{
		"string(1..9)": {`"hällo"`, 1}, "int(1..100)": {"42", 0}, "decimal(12,2) @min(0)": {`"12.50"`, 2}, "bool": {"true", 0}, "Color": {`"green"`, 0},
		"time": {`"2026-01-31T09:30:00.123Z"`, 2}, "float": {"1.5", 1}, "date": {`"2026-01-31"`, 1}, "Other": {`"01j9zzzzzzzzzzzzzzzzzzzzza"`, 1},
	} {
		typ, raw := &fieldOf(t, declared).Type, []byte(tt.raw)
		var out []byte
		n := testing.AllocsPerRun(100, func() {
			v, err := typ.Parse(raw)
			if err != nil {
				t.Fatal(err)
			}
			out = typ.AppendJSON(out[:0], v)
		})
		if n > tt.max {
			t.Errorf("%s: %v allocations, want at most %v", declared, n, tt.max)
		}
	}
}

func TestNowAndTodayConvertTimes(t *testing.T) {
	at := time.Date(1969, 12, 31, 23, 30, 0, 999_999, time.FixedZone("", 3600))
	typ := &fieldOf(t, "time").Type
	if got := string(typ.AppendJSON(nil, schema.Now(at))); got != `"1969-12-31T22:30:00.000Z"` {
		t.Errorf("now: %s", got)
	}
	if got := string(typ.AppendJSON(nil, schema.Today(at))); got != `"1969-12-31"` {
		t.Errorf("today: %s", got)
	}
}

// valueTypes are types of every kind.
var valueTypes = []string{
	"id", "uuid", "string(1..8)", "text", "email", "url", "int(5..500)", "int", "float", "decimal(12,2)", "decimal(38,0)", "bool", "time", "date", "duration",
	"json", "bytes", "Color", "Other", "User", "string[]", "int[]?", "decimal(5,5)[]", "json?", "Line", `text(99) @pattern("^a*$")`,
}

// FuzzValue parses any bytes as a value of each type. Parsing the JSON of a value must return
// the same value.
func FuzzValue(f *testing.F) {
	var types []*schema.Type
	for i, declared := range valueTypes {
		types = append(types, &fieldOf(f, declared).Type)
		for _, raw := range []string{"null", `""`, `"a"`, "1", "1.5e3", "true", "[]", "{}", `"2026-01-31T09:30:00Z"`, `"2026-01-31"`, `"12.50"`, `["a"]`, `{"sku":"a"}`} {
			f.Add(i, []byte(raw))
		}
	}
	for _, raw := range hostile {
		f.Add(15, []byte(raw[:min(len(raw), 1000)]))
	}
	f.Fuzz(func(t *testing.T, i int, raw []byte) {
		typ := types[(i%len(types)+len(types))%len(types)]
		v, err := typ.Parse(raw)
		if err != nil {
			if msg := err.Error(); msg == "" || !v.IsNull() {
				t.Fatalf("%s: %q: %v, %q", typ, raw, v, msg)
			}
			return
		}
		if !jsontext.Value(raw).IsValid() {
			t.Fatalf("%s: %q is not JSON but was accepted", typ, raw)
		}
		out := typ.AppendJSON(nil, v)
		if !jsontext.Value(out).IsValid() || !utf8.Valid(out) {
			t.Fatalf("%s: %q is written as %q", typ, raw, out)
		}
		again, err := typ.Parse(out)
		if err != nil || !again.Equal(v) || !bytes.Equal(typ.AppendJSON(nil, again), out) {
			t.Fatalf("%s: %q is written as %q, which reads as %v, %v", typ, raw, out, again, err)
		}
		if typ.Kind == schema.String || typ.Kind == schema.Text {
			var std any
			if err := json.Unmarshal(raw, &std); err == nil && std != any(v.Text()) && !typ.List {
				t.Fatalf("%s: %q was read as %q, elsewhere as %q", typ, raw, v.Text(), std)
			}
		}
		if w, err := typ.ParseOperand(raw); !typ.List && (err != nil || !w.Equal(v)) {
			t.Fatalf("%s: %q is %v, to compare with %v, %v", typ, raw, v, w, err)
		}
	})
}

func BenchmarkParse(b *testing.B) {
	for declared, raw := range map[string]string{
		"string(1..32)": `"an ordinary name"`, "int(1..100)": "42", "decimal(12,2) @min(0)": `"12.50"`, "Color": `"green"`,
		"time": `"2026-01-31T09:30:00.123Z"`, "Other": `"01j9zzzzzzzzzzzzzzzzzzzzza"`, "json": `{"plan":"pro","seats":[1,2,3]}`, "email": `"ann@example.com"`,
	} {
		typ, text := &fieldOf(b, declared).Type, []byte(raw)
		b.Run(declared, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := typ.Parse(text); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func TestCheckBoundsAgreesWithParse(t *testing.T) {
	row := mustCompile(t, `
entity Row {
  id: id
  name: string(2..4)?
  names: string(2..4)[]?
  code: text(1..9) @pattern("^[a-z]+$")
  size: int(1..10)?
  share: float? @min(0.5) @max(1.5)
  price: decimal(5, 2)? @min(-1.5)
  day: date? @max("2026-01-31")
  mail: email?
}`).Entity("Row")
	for _, tt := range []struct{ field, raw, want string }{
		{"name", `null`, ""},
		{"name", `"äbcd"`, ""},
		{"name", `"a"`, "must be at least 2 characters"},
		{"name", `"abcde"`, "must be at most 4 characters"},
		{"names", `["ab","abcde"]`, "must be at most 4 characters, at position 2 of the list"},
		{"names", `[]`, ""},
		{"code", `"abc"`, ""},
		{"code", `"ABC"`, "must match ^[a-z]+$"},
		{"size", `10`, ""},
		{"size", `11`, "must be at most 10"},
		{"share", `0.25`, "must be at least 0.5"},
		{"price", `"999.99"`, ""},
		{"price", `"1000"`, "must have at most 3 digits before the decimal point"},
		{"price", `-2`, "must be at least -1.5"},
		{"day", `"2026-02-01"`, "must be at most 2026-01-31"},
		{"mail", `"` + strings.Repeat("a", 64) + "@" + strings.Repeat("b.", 90) + `example"`, ""},
	} {
		f := row.Field(tt.field)
		wide := schema.Type{Kind: f.Type.Kind, List: f.Type.List, Optional: true, Digits: schema.MaxDigits, Places: f.Type.Places}
		v, err := wide.Parse([]byte(tt.raw))
		if err != nil {
			t.Fatalf("%s: %s: %v", tt.field, tt.raw, err)
		}
		got := ""
		if err := f.Type.CheckBounds(v); err != nil {
			got = err.Error()
		}
		if got != tt.want {
			t.Errorf("%s: %s: %q, want %q", tt.field, tt.raw, got, tt.want)
		}
		if _, err := f.Type.Parse([]byte(tt.raw)); (err == nil) != (got == "") && tt.raw != "null" {
			t.Errorf("%s: %s: Parse says %v, CheckBounds %q", tt.field, tt.raw, err, got)
		}
	}
}
