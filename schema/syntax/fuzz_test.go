package syntax_test

import (
	"testing"

	"runner.example/internal/diag"
	"runner.example/schema/syntax"
)

// FuzzParse parses any bytes, and formats those without errors.
func FuzzParse(f *testing.F) {
	for _, src := range append(examples(f), sources(f, "../compiler/testdata/fixtures/*.schema")...) {
		f.Add(src.Text)
	}
	for _, text := range formatCases {
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
				t.Fatalf("invalid span: %+v", d)
			}
		}
		if len(diags) == 0 {
			checkFormat(t, src)
		}
	})
}
