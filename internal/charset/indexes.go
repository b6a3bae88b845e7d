package charset

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"io"
	"strings"
	"sync"
	"unicode/utf8"
)

// packed has a line for each index of the Encoding Standard (section 5): its name, a tab, and the code point of each
// pointer. Where there is none it has U+FFFD. The index gb18030-ranges is pairs of a pointer and its code point.
//
//go:generate go run ./gen
//go:embed indexes.txt.gz
var packed []byte

// index has the code points by pointer.
type index []rune

// at returns the code point of a pointer, or U+FFFD.
func (x index) at(pointer int) rune {
	if pointer >= len(x) {
		return utf8.RuneError
	}
	return x[pointer]
}

// indexes are all indexes by name. They are unpacked at the first call, and take 400 KB.
var indexes = sync.OnceValue(func() map[string]index {
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		panic("BUG: indexes.txt.gz: " + err.Error())
	}
	text, err := io.ReadAll(z)
	if err != nil {
		panic("BUG: indexes.txt.gz: " + err.Error())
	}
	all := map[string]index{}
	for line := range strings.Lines(string(text)) {
		name, points, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		all[name] = index(points)
	}
	return all
})

// appendPoint appends a code point of an index, of n bytes; U+FFFD means that they are malformed. Malformed input does
// not include its last byte if that is ASCII, which is then decoded again.
func appendPoint(dst []byte, r rune, src []byte, n int) (out []byte, length int, malformed bool) {
	if r != utf8.RuneError {
		return utf8.AppendRune(dst, r), n, false
	}
	if src[n-1] < 0x80 {
		n--
	}
	return dst, n, true
}

// whole is the cut of decoders for which one error stands for all bytes of a character that has begun.
type whole struct{}

func (whole) cut(src []byte) int { return len(src) }
