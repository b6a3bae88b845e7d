package diag_test

import (
	"testing"

	"runner.example/internal/diag"
)

func TestHintsNameTheWordMeantOrListAllWords(t *testing.T) {
	v := diag.Vocabulary{
		Known:    []string{"int", "float", "text"},
		Mark:     "@",
		Others:   map[string][]string{"number": {"int", "float"}, "varchar": {"text"}},
		Remedies: map[string]string{"array": "a list is written text[]"},
	}
	for word, want := range map[string]string{
		"itn":    ` (did you mean "@int"?)`,
		"Number": ` (did you mean "@int" or "@float"?)`,
		"orders": ` (did you mean "@Order"?)`,
		"ARRAY":  ": a list is written text[]",
		"widget": ": use @int, @float or @text",
	} {
		if got := v.Hint(word, "Order"); got != want {
			t.Errorf("the hint for %s is %q, want %q", word, got, want)
		}
	}
	v.Also = "a declared type"
	if got, want := v.Hint("widget"), ": use @int, @float, @text, or a declared type"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
