package console_test

import (
	"encoding/json"
	"strings"
	"testing"

	"runner.example/internal/console"
	"runner.example/internal/diag"
)

func TestDiagnosticsAreColouredWhereTheirStreamIsATerminal(t *testing.T) {
	sources := []diag.Source{{Name: "a.schema", Text: []byte("app x\n")}}
	var list diag.List
	list.Errorf("E100", diag.Span{}, "wrong")
	for _, tt := range []struct{ stderr, stdout bool }{{false, false}, {true, false}, {false, true}, {true, true}} {
		var out, errs strings.Builder
		c := console.Console{Stdout: &out, Stderr: &errs, Color: tt.stderr, ColorOut: tt.stdout}
		if err := c.PrintDiagnostics(&out, sources, list.Excerpt()); err != nil {
			t.Fatal(err)
		}
		if err := c.PrintDiagnostics(&errs, sources, list.Excerpt()); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(out.String(), "\x1b["); got != tt.stdout {
			t.Errorf("%+v: stdout has colours: %v", tt, got)
		}
		if got := strings.Contains(errs.String(), "\x1b["); got != tt.stderr {
			t.Errorf("%+v: stderr has colours: %v", tt, got)
		}
	}
}

func TestJSONIsEscapedOnlyWhereItMustBe(t *testing.T) {
	var out strings.Builder
	c := console.Console{Stdout: &out}
	err := c.PrintJSON(map[string]any{
		"text": "<b> & \"q\" é\n", "row": json.RawMessage(`{"a":"\u003cp\u003e \\u003c","n":1.50,"a":9007199254740993}`),
	})
	if err != nil {
		t.Fatal(err)
	}
	want := `{
  "row": {
    "a": "<p> \\u003c",
    "n": 1.50,
    "a": 9007199254740993
  },
  "text": "<b> & \"q\" é\n"
}
`
	if out.String() != want {
		t.Errorf("got %s\nwant %s", out.String(), want)
	}
}
