package collation

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"sync"
)

// packed has a line for each range of code points, sorted, without gaps.
//
//go:generate go run ./gen
//go:embed root.jsonl.gz
var packed []byte

// entry is a line: an answer of At.
type entry struct {
	from, to rune
	text     json.RawMessage
}

// entries are unpacked at the first use: 1.4 MB.
var entries = sync.OnceValue(func() (all []entry) {
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		panic("BUG: root.jsonl.gz: " + err.Error())
	}
	text, err := io.ReadAll(z)
	if err != nil {
		panic("BUG: root.jsonl.gz: " + err.Error())
	}
	for line := range bytes.Lines(text) {
		var e struct{ From, To rune }
		if err := json.Unmarshal(line, &e); err != nil {
			panic("BUG: root.jsonl.gz: " + err.Error())
		}
		all = append(all, entry{e.From, e.To, bytes.TrimSpace(line)})
	}
	return all
})

// At returns what is known of a range of code points that contains the code point c, as JSON: {"from","to"} and either the primary
// "rank" of the first, which those of the others follow, or "elements" with the weights of each. These are one number, a
// primary rank with common other weights; 0, nothing; or three numbers for each collation element: the ranks of the
// primary, the secondary and the tertiary weight, the last with 64 for mixed and 128 for upper case. Characters that NFD decomposes
// have 0. "contractions" has the weights of
// sequences that begin in the range, and "classes" the canonical combining classes that are not 0. Callers must
// not change the result.
func At(c rune) json.RawMessage {
	all := entries()
	i, ok := slices.BinarySearchFunc(all, c, func(e entry, c rune) int {
		switch {
		case e.to < c:
			return -1
		case e.from > c:
			return 1
		}
		return 0
	})
	if !ok {
		panic(fmt.Sprintf("BUG: %d is not a code point", c))
	}
	return all[i].text
}
