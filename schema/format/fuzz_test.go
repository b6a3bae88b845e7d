package format_test

import (
	"testing"

	"runner.example/internal/diag"
	"runner.example/schema/syntax"
)

// FuzzFormat formats any text without syntax errors.
func FuzzFormat(f *testing.F) {
	for _, src := range append(examples(f), sources(f, "../compiler/testdata/fixtures/*.schema")...) {
		f.Add(src.Text)
	}
	for _, text := range formatCases {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		src := diag.Source{Name: "fuzz.schema", Text: text}
		if _, diags := syntax.Parse(src); len(diags) == 0 {
			checkFormat(t, src)
		}
	})
}
