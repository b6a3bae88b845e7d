package content

import (
	"bytes"
	"slices"
)

// maxRanges limits the ranges of one answer. A request for more gets the whole content.
const maxRanges = 64

// byteRange is a part of a content: size bytes at from.
type byteRange struct{ from, size int64 }

// rangesOf are the ranges that a Range header asks for.
type rangesOf struct {
	// ignored: the header has another unit, or asks for so much that the whole content is the better answer.
	ignored bool
	// refused: the header is malformed, or the content has none of the ranges.
	refused bool
	list    []byteRange
}

// parseRanges reads a Range header (RFC 9110, section 14.2) for a content of that size.
func parseRanges(header []byte, size int64) rangesOf {
	const unit = "bytes="
	if len(header) < len(unit) || !bytes.EqualFold(header[:len(unit)], []byte(unit)) {
		return rangesOf{ignored: true}
	}
	var (
		list  []byteRange
		total int64
		none  bool // the content does not have some range
	)
	for spec := range bytes.SplitSeq(header[len(unit):], []byte{','}) {
		if spec = trimBlanks(spec); len(spec) == 0 {
			continue
		}
		one, ok := parseRange(spec, size)
		switch {
		case !ok:
			return rangesOf{refused: true}
		case one.size == 0:
			none = true
			continue
		case len(list) == maxRanges:
			return rangesOf{ignored: true}
		}
		list = append(list, one)
		total += one.size
	}
	switch {
	case len(list) == 0 && none:
		return rangesOf{refused: size > 0, ignored: size == 0}
	case len(list) == 0, total > size:
		return rangesOf{ignored: true}
	}
	return rangesOf{list: list}
}

// parseRange reads one range. ok is false if it is malformed; a range that the content does not have has no bytes.
func parseRange(spec []byte, size int64) (r byteRange, ok bool) {
	first, last, found := bytes.Cut(spec, []byte{'-'})
	first, last = trimBlanks(first), trimBlanks(last)
	switch {
	case !found:
		return byteRange{}, false
	case len(first) == 0: // the last bytes
		n, ok := parseNumber(last)
		n = min(n, size)
		return byteRange{size - n, n}, ok
	}
	from, ok := parseNumber(first)
	switch {
	case !ok:
		return byteRange{}, false
	case from >= size:
		return byteRange{}, true
	case len(last) == 0:
		return byteRange{from, size - from}, true
	}
	to, ok := parseNumber(last)
	if !ok || to < from {
		return byteRange{}, false
	}
	return byteRange{from, min(to, size-1) - from + 1}, true
}

// parseNumber reads a number of digits, at most 2^62.
func parseNumber(s []byte) (n int64, ok bool) {
	if len(s) == 0 || slices.ContainsFunc(s, func(c byte) bool { return c < '0' || c > '9' }) {
		return 0, false
	}
	for _, c := range s {
		if n = n*10 + int64(c-'0'); n >= 1<<58 {
			return 1 << 62, true
		}
	}
	return n, true
}
