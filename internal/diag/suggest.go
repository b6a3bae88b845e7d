package diag

import (
	"fmt"
	"strings"
)

// Suggest returns the candidate that word was most likely meant to be, or ""
// when none is near. A candidate that differs only in case comes first, then
// the one with the fewest typing slips (a letter missing, added, changed, or
// two swapped); of equals the first given wins. word itself is never suggested.
func Suggest(word string, candidates ...[]string) string {
	best, bestSlips := "", 0
	for _, group := range candidates {
		for _, c := range group {
			if c == word || c == "" {
				continue
			}
			if strings.EqualFold(c, word) {
				return c
			}
			n := slips(strings.ToLower(word), strings.ToLower(c))
			if n <= allowed(word, c) && (best == "" || n < bestSlips) {
				best, bestSlips = c, n
			}
		}
	}
	return best
}

// DidYouMean returns ` (did you mean "x"?)` for what Suggest finds, or "": put
// it behind a message.
func DidYouMean(word string, candidates ...[]string) string {
	if s := Suggest(word, candidates...); s != "" {
		return fmt.Sprintf(" (did you mean %q?)", s)
	}
	return ""
}

// allowed is how many slips still look like slips: one in three letters.
func allowed(a, b string) int { return min(max(len(a), len(b))/3, 4) }

// slips is the Damerau-Levenshtein distance in which no piece is edited twice
// (optimal string alignment).
func slips(a, b string) int {
	const far = 1 << 20
	if len(a) > 4*64 || len(b) > 4*64 {
		return far
	}
	x, y := []rune(a), []rune(b)
	if len(x) > 64 || len(y) > 64 {
		return far // no name is that long; keeps the work bounded
	}
	var older []int
	prev := make([]int, len(y)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(x); i++ {
		row := make([]int, len(y)+1)
		row[0] = i
		for j := 1; j <= len(y); j++ {
			cost := 1
			if x[i-1] == y[j-1] {
				cost = 0
			}
			row[j] = min(prev[j]+1, row[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && x[i-1] == y[j-2] && x[i-2] == y[j-1] {
				row[j] = min(row[j], older[j-2]+1)
			}
		}
		older, prev = prev, row
	}
	return prev[len(y)]
}
