package diag

import (
	"fmt"
	"strings"
)

// Suggest returns the candidate that word probably means, or "" if none is similar. It
// prefers a candidate that differs only in case, then the one with the smallest edit
// distance (a letter missing, added, changed, or two swapped), then the first one. It never
// returns word itself.
func Suggest(word string, candidates ...[]string) string {
	best, bestDistance := "", 0
	for _, group := range candidates {
		for _, c := range group {
			if c == word || c == "" {
				continue
			}
			if strings.EqualFold(c, word) {
				return c
			}
			n := distance(strings.ToLower(word), strings.ToLower(c))
			if n <= maxDistance(word, c) && (best == "" || n < bestDistance) {
				best, bestDistance = c, n
			}
		}
	}
	return best
}

// DidYouMean returns ` (did you mean "x"?)` with the result of Suggest, or "", to append to a
// message.
func DidYouMean(word string, candidates ...[]string) string {
	if s := Suggest(word, candidates...); s != "" {
		return fmt.Sprintf(" (did you mean %q?)", s)
	}
	return ""
}

// maxDistance is the largest distance for a suggestion: one edit in three letters, at most 4.
func maxDistance(a, b string) int { return min(max(len(a), len(b))/3, 4) }

// distance is the Damerau-Levenshtein distance (optimal string alignment).
func distance(a, b string) int {
	const far = 1 << 20
	if len(a) > 4*64 || len(b) > 4*64 {
		return far
	}
	x, y := []rune(a), []rune(b)
	if len(x) > 64 || len(y) > 64 {
		return far // names are not that long; this limits the work
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
