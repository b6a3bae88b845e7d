package compiler_test

import (
	"bytes"
	"os"
	"testing"

	"runner.example/internal/diag"
	"runner.example/schema/compiler"
	"runner.example/schema/syntax"
)

// misspelled calls do for each schema that comes from a valid one by removing, repeating or
// replacing one token, and has a syntax error thereby. The short form changes some tokens.
func misspelled(t *testing.T, name string, do func(src diag.Source, what string, line int)) (n int) {
	t.Helper()
	if testing.Short() {
		t.Skip("takes seconds")
	}
	src := readExample(t, name)
	file, _ := syntax.Parse(src)
	each := 12
	if os.Getenv("RUNNER_SOAK") != "" {
		each = 1
	}
	for i := 0; i < len(file.Tokens); i += each {
		token := file.Tokens[i]
		start, end := token.Loc.Start.Offset, token.Loc.End.Offset
		for _, put := range []string{"", token.Text + " " + token.Text, "?", "}", "{", "(", ")", "x", "\"", "$", ","} {
			changed := diag.Source{Name: name, Text: bytes.Join([][]byte{src.Text[:start], src.Text[end:]}, []byte(put))}
			if _, wrong := syntax.Parse(changed); len(wrong) > 0 {
				n++
				do(changed, token.Text+" → "+put, token.Loc.Start.Line)
			}
		}
	}
	return n
}

// In a schema that is valid except for one token, all other errors follow from the syntax error.
func TestASyntaxErrorRarelyCausesOthers(t *testing.T) {
	for _, name := range []string{"orders.schema", "tracker.schema"} {
		wrong := 0
		n := misspelled(t, name, func(src diag.Source, what string, line int) {
			_, found := compiler.Compile([]diag.Source{src}, compiler.Options{})
			for _, d := range found {
				if d.Severity == diag.Error && d.Code >= "E120" {
					wrong++
					t.Logf("%s in line %d: %v", what, line, d)
					return
				}
			}
		})
		t.Logf("%s: of %d syntax errors, %d cause other errors", name, n, wrong)
		if n < 500 || wrong > n/50 {
			t.Errorf("%s: of %d syntax errors, %d cause other errors", name, n, wrong)
		}
	}
}

func TestASyntaxErrorRarelyHidesOthers(t *testing.T) {
	const other = "\nentity Other {\n  id: id\n  a: nosuchtype\n  @@allow read to session when nosuchname == 1\n}\n"
	for _, name := range []string{"orders.schema", "tracker.schema"} {
		hidden := 0
		n := misspelled(t, name, func(src diag.Source, what string, line int) {
			src.Text = append(src.Text, other...)
			_, found := compiler.Compile([]diag.Source{src}, compiler.Options{})
			reported := map[string]bool{}
			for _, d := range found {
				reported[d.Code] = true
			}
			if !reported["E212"] || !reported["E230"] {
				hidden++
				t.Logf("%s in line %d", what, line)
			}
		})
		t.Logf("%s: of %d syntax errors, %d hide errors elsewhere", name, n, hidden)
		if n < 500 || hidden > n/4 {
			t.Errorf("%s: of %d syntax errors, %d hide errors elsewhere", name, n, hidden)
		}
	}
}
