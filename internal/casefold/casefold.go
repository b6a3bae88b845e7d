package casefold

import (
	"unicode/utf8"

	"golang.org/x/text/cases"
)

// Version is the version of Unicode. Another one may fold characters that this one does not
// know, so stored results are those of one version.
const Version = cases.UnicodeVersion

// Fold returns the text folded: two texts that differ only in case have one result. Each
// character is folded alone, so the result of a prefix or of a part is a prefix or a part of
// that of the whole.
func Fold(text string) string {
	for i := range len(text) {
		if c := text[i]; c >= utf8.RuneSelf || 'A' <= c && c <= 'Z' {
			return cases.Fold().String(text)
		}
	}
	return text
}

// Head returns a prefix of the text that is long enough to compare its folded form with the
// first n bytes of another, and to see that it is longer.
func Head(text string, n int) string {
	most := utf8.UTFMax * (n + 1) // every character, of at most UTFMax bytes, folds to one or more
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most]
}
