package casefold_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"runner.example/internal/casefold"
)

func TestTextsThatDifferInCaseFoldToOne(t *testing.T) {
	for _, same := range [][]string{
		{"order", "ORDER", "oRdEr"}, {"straße", "STRASSE", "Straẞe", "strasse"}, {"ÄÖÜ", "äöü"}, {"ΣΊΣΥΦΟΣ", "σίσυφος", "Σίσυφοσ"},
		{"K", "k", "\u212a"}, {"ﬁn", "FIN"}, {"", ""}, {"日本", "日本"},
	} {
		for _, text := range same[1:] {
			if casefold.Fold(text) != casefold.Fold(same[0]) {
				t.Errorf("%q folds to %q, %q to %q", text, casefold.Fold(text), same[0], casefold.Fold(same[0]))
			}
		}
	}
	for _, other := range [][2]string{{"é", "e\u0301"}, {"a", "b"}, {"i", "ı"}} {
		if casefold.Fold(other[0]) == casefold.Fold(other[1]) {
			t.Errorf("%q and %q fold to one text", other[0], other[1])
		}
	}
}

// FuzzFold: what indexes and searches rely on.
func FuzzFold(f *testing.F) {
	f.Add("Straße", "STR")
	f.Add("\u1fe7\u0390ﬃ", "\u212a\u2126")
	f.Fuzz(func(t *testing.T, a, b string) {
		if !utf8.ValidString(a) || !utf8.ValidString(b) {
			return
		}
		x, y := casefold.Fold(a), casefold.Fold(b)
		if casefold.Fold(a+b) != x+y {
			t.Fatalf("%q and %q fold to %q and %q, both together to %q", a, b, x, y, casefold.Fold(a+b))
		}
		if casefold.Fold(x) != x {
			t.Fatalf("%q folds to %q, and that to %q", a, x, casefold.Fold(x))
		}
		if 8*utf8.RuneCountInString(a) < len(x) || utf8.RuneCountInString(a) > len(x) {
			t.Fatalf("%q folds to %d bytes", a, len(x))
		}
		head := casefold.Fold(casefold.Head(a, len(y)))
		if strings.HasPrefix(head, y) != strings.HasPrefix(x, y) || (head == y) != (x == y) {
			t.Fatalf("%q: its head folds to %q, compared with %q", a, head, y)
		}
	})
}
