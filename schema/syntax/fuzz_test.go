package syntax_test

import (
	"os"
	"path/filepath"
	"testing"

	"runner.example/internal/diag"
	"runner.example/schema/syntax"
)

// FuzzParse parses any bytes.
func FuzzParse(f *testing.F) {
	for _, pattern := range []string{"testdata/examples/*.schema", "../compiler/testdata/fixtures/*.schema"} {
		names, err := filepath.Glob(pattern)
		if err != nil || len(names) == 0 {
			f.Fatalf("%s: no files, %v", pattern, err)
		}
		for _, name := range names {
			text, err := os.ReadFile(name)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(text)
		}
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		file, diags := syntax.Parse(diag.Source{Name: "fuzz.schema", Text: text})
		if file == nil {
			t.Fatal("no tree")
		}
		for _, d := range diags {
			s := d.Span
			if s.Start.Line < 1 || s.Start.Col < 1 || s.End.Offset < s.Start.Offset || s.End.Offset > len(text) || d.Code == "" {
				t.Fatalf("invalid span: %+v", d)
			}
		}
	})
}
