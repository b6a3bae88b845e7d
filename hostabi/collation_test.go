package hostabi_test

import (
	"reflect"
	"strconv"
	"testing"

	"runner.example/hostabi"
)

func TestTheWeightsOfCharactersAreAnswered(t *testing.T) {
	g := newGuest(t, hostabi.Limits{})
	rank := func(c int) float64 {
		for _, one := range []int{0x61, c} {
			result, n := g.op("collation", `{"at":`+strconv.Itoa(one)+`}`)
			if from, ok := result["from"].(float64); n < 0 || !ok || int(from) > one || int(result["to"].(float64)) < one {
				t.Fatalf("U+%04X: %d %v", one, n, result)
			}
			if one != c {
				continue
			}
			if first, ok := result["rank"].(float64); ok {
				return first + float64(one) - result["from"].(float64)
			}
			switch weights := result["elements"].([]any)[one-int(result["from"].(float64))].(type) {
			case float64:
				return weights
			case []any:
				return weights[0].(float64)
			}
		}
		return -1
	}
	last := 0.0
	// A space, punctuation, a symbol, digits, letters of several scripts, an ideograph, a character that is not assigned.
	for _, c := range []int{' ', '-', '$', '0', '9', 'a', 'b', 'z', 0x3B1, 0x431, 0x5D0, 0x4E00, 0x4E01, 0x10FFFD} {
		if n := rank(c); n <= last {
			t.Errorf("U+%04X has the rank %v, and the one before it %v", c, n, last)
		} else {
			last = n
		}
	}
	if a, b := rank('a'), rank('A'); a != b {
		t.Errorf("a and A have the ranks %v and %v", a, b)
	}
	if result, n := g.op("collation", `{"at":768}`); n < 0 || result["classes"].(map[string]any)["768"] != 230.0 {
		t.Errorf("the class of a mark: %d %v", n, result)
	}
	if result, n := g.op("collation", `{"at":3648}`); n < 0 || !reflect.DeepEqual(result["contractions"].(map[string]any)["เก"].([]any)[1:3], []any{1.0, 2.0}) {
		t.Errorf("contractions: %d %v", n, result)
	}
	for args, want := range map[string]string{
		`{}`: `collation: member "at" must be a code point, from 0 to 1114111`, `{"at":-1}`: `collation: member "at" must be a code point, from 0 to 1114111`,
		`{"at":1114112}`: `collation: member "at" must be a code point, from 0 to 1114111`, `{"at":97,"of":1}`: `collation: unknown member "of"; known: at`,
	} {
		if result, n := g.op("collation", args); n >= 0 || result["message"] != want {
			t.Errorf("%s: %d %v, want %s", args, n, result, want)
		}
	}
}
