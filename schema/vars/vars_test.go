package vars_test

import (
	"strings"
	"testing"

	"runner.example/internal/diag"
	"runner.example/schema/syntax"
	"runner.example/schema/vars"
)

func TestEachTypeTakesItsValues(t *testing.T) {
	for _, row := range []struct{ typ, text, want string }{
		{"string", strings.Repeat("a", vars.MaxBytes), `"` + strings.Repeat("a", vars.MaxBytes) + `"`},
		{"string", "", `""`}, {"string", "a \"b\"\n", `"a \"b\"\n"`}, {"string", " 5 ", `" 5 "`},
		{"url", "https://a.example.com/b?c#d", `"https://a.example.com/b?c#d"`},
		{"int", "20", "20"}, {"int", "-1_000", "-1000"}, {"int", "9007199254740991", "9007199254740991"},
		{"decimal", "19.50", `"19.50"`}, {"decimal", "-007", `"-7"`}, {"decimal", "-0.0", `"0.0"`},
		{"decimal", "12345678901234567890.123", `"12345678901234567890.123"`},
		{"bool", "true", "true"}, {"bool", "false", "false"},
		{"duration", "500ms", "0.5"}, {"duration", "2w", "1209600"},
		{"rate", "600/minute", `"600/minute"`}, {"rate", "1_000 / day", `"1000/day"`},
	} {
		v, err := vars.Parse(row.typ, row.text)
		if err != nil || string(v.JSON) != row.want {
			t.Errorf("%s %q: %s %v, want %s", row.typ, row.text, v.JSON, err, row.want)
		}
		if isRate := row.typ == "rate"; (v.Rate != nil) != isRate {
			t.Errorf("%s %q: the rate is %v", row.typ, row.text, v.Rate)
		}
	}
}

func TestOtherValuesAreRefusedWithoutShowingThem(t *testing.T) {
	for typ, texts := range map[string][]string{
		"string":   {"\xff", strings.Repeat("a", vars.MaxBytes+1)},
		"url":      {"", "a.example.com", "/a", "https://", " https://a.example.com"},
		"int":      {"", "1.5", "1s", "0x10", "9007199254740992", "99999999999999999999", "true", " 1", "1 ", "1 // one", "1\nsecret A", "\"1\"", "+1"},
		"decimal":  {"", "1e5", "1,5", ".5", "1.", "NaN", "\"1.5\""},
		"bool":     {"", "yes", "1", "TRUE"},
		"duration": {"", "30", "1h30m", "-1s", "1.5s", "1y"},
		"rate":     {"", "600", "600/fortnight", "0/minute", "600/minute by ip", "600/", "LIMIT", "600/minute, 5/second", "1/day\nvar B: int"},
	} {
		for _, text := range texts {
			v, err := vars.Parse(typ, text)
			if err == nil {
				t.Errorf("%s accepts %q as %s", typ, text, v.JSON)
			}
		}
		if _, err := vars.Parse(typ, "c4n4ry\xff"); err == nil || strings.Contains(err.Error(), "c4n4ry") {
			t.Errorf("%s: the error is %v", typ, err)
		}
	}
}

// FuzzParse compares the text of an operator with the same text as a default in a schema.
func FuzzParse(f *testing.F) {
	for _, text := range []string{"20", "-1.50", "true", "30s", "600/minute", "a", "1 // b", "1\n"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, typ := range vars.Types {
			v, err := vars.Parse(typ, text)
			if err != nil || typ == "string" || typ == "url" {
				continue
			}
			file, found := syntax.Parse(diag.Source{Name: "a.schema", Text: []byte("var A: " + typ + " = " + text)})
			if found.HasErrors() || len(file.Decls) != 1 {
				t.Fatalf("%s %q is not valid in a schema: %v", typ, text, found)
			}
			same, err := vars.Default(file.Decls[0].(*syntax.VarDecl))
			if err != nil || string(same.JSON) != string(v.JSON) {
				t.Fatalf("%s %q is %s, and in a schema %s %v", typ, text, v.JSON, same.JSON, err)
			}
		}
	})
}
