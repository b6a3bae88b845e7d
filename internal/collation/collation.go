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

// packed has one line for each range of code points. The ranges are sorted and have no gaps.
//
//go:generate go run ./gen
//go:embed root.jsonl.gz
var packed []byte

// entry is one line of the data, and a result of At.
type entry struct {
	from, to rune
	text     json.RawMessage
}

// entries returns all entries. They are unpacked at the first call, and take 1.4 MB.
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

// At returns the data of a range of code points that contains the code point c, as a JSON object. Callers must not
// change it. Its members are:
//
//   - "from" and "to", the first and the last code point.
//   - Either "rank", the primary rank of the first code point; each next code point has the next rank. Or "elements",
//     the weights of each code point.
//   - "contractions", the weights of sequences that begin in the range.
//   - "classes", the canonical combining classes that are not 0.
//
// Weights have one of three forms. One number is a primary rank, with the common secondary and tertiary weights. 0 is a
// code point without weights, or one that NFD decomposes. A list has three numbers for each collation element: the ranks
// of the primary, secondary and tertiary weight; 64 is added to the last for mixed case, and 128 for upper case.
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
