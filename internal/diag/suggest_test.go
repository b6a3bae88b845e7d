package diag_test

import (
	"strings"
	"testing"

	"runner.example/internal/diag"
)

func TestSuggestReturnsTheMostSimilarCandidate(t *testing.T) {
	words := []string{"GET", "routes", "read", "rateLimit", "auth", "user", "use", "orders_read"}
	for _, c := range []struct{ word, want string }{
		{"get", "GET"},                // only the case differs
		{"rotes", "routes"},           // a letter missing
		{"raed", "read"},              // two swapped
		{"rate_limit", "rateLimit"},   // another naming style
		{"authh", "auth"},             // one too many
		{"usr", "user"},               // the first of two equally similar
		{"order_read", "orders_read"}, // in the middle
		{"USE", "use"},                // only the case differs: wins over similar ones before it
		{"read", ""},                  // never the word itself
		{"fortnight", ""},
		{"x", ""},
		{"", ""},
		{strings.Repeat("read", 1000), ""},
	} {
		if got := diag.Suggest(c.word, words); got != c.want {
			t.Errorf("Suggest(%q) = %q, want %q", c.word, got, c.want)
		}
	}
}

func TestSuggestTakesSeveralGroups(t *testing.T) {
	if got := diag.Suggest("alow", []string{"deny"}, []string{"allow"}); got != "allow" {
		t.Errorf("got %q", got)
	}
}

func TestDidYouMeanIsEmptyWithoutASuggestion(t *testing.T) {
	if got := diag.DidYouMean("zzz", []string{"allow"}); got != "" {
		t.Errorf("got %q", got)
	}
	if got, want := diag.DidYouMean("alow", []string{"allow"}), ` (did you mean "allow"?)`; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
