package collation_test

import (
	"encoding/json"
	"testing"

	"runner.example/internal/collation"
)

// Every code point is in the range of its answer, and the ranges follow each other.
func TestTheRangesCoverAllCodePoints(t *testing.T) {
	n, plain := 0, 0
	for c := rune(0); c <= 0x10ffff; n++ {
		var answer struct {
			From, To, Rank rune
			Elements       []any
		}
		if err := json.Unmarshal(collation.At(c), &answer); err != nil {
			t.Fatal(err)
		}
		if answer.From != c || answer.To < c || answer.Rank == 0 && len(answer.Elements) != int(answer.To-answer.From)+1 {
			t.Fatalf("U+%04X: from %X to %X, rank %d, %d elements", c, answer.From, answer.To, answer.Rank, len(answer.Elements))
		}
		if string(collation.At(answer.To)) != string(collation.At(c)) {
			t.Errorf("U+%04X is not in the range that begins at U+%04X", answer.To, c)
		}
		if answer.Rank > 0 {
			plain++
		}
		c = answer.To + 1
	}
	if n < 500 || plain < 20 {
		t.Errorf("%d ranges, %d of them with ranks", n, plain)
	}
}
