package diag

import (
	"fmt"
	"strings"
)

// Vocabulary is the words that are known at one place of a language, and the words of other
// languages that people write there.
type Vocabulary struct {
	// Known are the words in the order in which they are listed.
	Known []string
	// Mark is written before each word: "@".
	Mark string
	// Also says what else can be written; it ends the list of the known words.
	Also string
	// Others are words of other languages, in lower case, with the known words for them.
	Others map[string][]string
	// Remedies are words of other languages, in lower case, with what to write instead.
	Remedies map[string]string
}

// Meant returns the known words that word probably means: those of Others, or the most similar
// one of the known and the declared words.
func (v Vocabulary) Meant(word string, declared ...string) []string {
	if words := v.Others[strings.ToLower(word)]; words != nil {
		return words
	}
	if s := Suggest(word, v.Known, declared); s != "" {
		return []string{s}
	}
	return nil
}

// Hint says what to write instead of an unknown word, to append to a message. Without a better
// hint it lists the known words.
func (v Vocabulary) Hint(word string, declared ...string) string {
	if remedy := v.Remedies[strings.ToLower(word)]; remedy != "" {
		return ": " + remedy
	}
	if meant := v.Meant(word, declared...); meant != nil {
		quoted := make([]string, len(meant))
		for i, m := range meant {
			quoted[i] = fmt.Sprintf("%q", v.Mark+m)
		}
		return " (did you mean " + OneOf(quoted) + "?)"
	}
	marked := make([]string, len(v.Known))
	for i, known := range v.Known {
		marked[i] = v.Mark + known
	}
	if v.Also != "" {
		return ": use " + strings.Join(marked, ", ") + ", or " + v.Also
	}
	return ": use " + OneOf(marked)
}

// OneOf is `a`, `a or b`, `a, b or c`.
func OneOf(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}
