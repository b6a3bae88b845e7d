package syntax_test

import (
	"testing"

	"runner.example/internal/diag"
	"runner.example/schema/syntax"
)

// FuzzSchema feeds any bytes to the parser and the printer. Seeds are the
// examples and every fixture.
func FuzzSchema(f *testing.F) {
	for _, src := range append(examples(f), sources(f, "../compiler/testdata/fixtures/*.schema")...) {
		f.Add(src.Text)
	}
	for _, text := range tidy {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		src := diag.Source{Name: "fuzz.schema", Text: text}
		file, diags := syntax.Parse(src)
		if file == nil {
			t.Fatal("no tree")
		}
		for _, d := range diags {
			s := d.Span
			if s.Start.Line < 1 || s.Start.Col < 1 || s.End.Offset < s.Start.Offset || s.End.Offset > len(text) || d.Code == "" {
				t.Fatalf("misplaced: %+v", d)
			}
		}
		if len(diags) == 0 {
			checkFormat(t, src)
		}
	})
}
