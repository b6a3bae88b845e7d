package content

import (
	"bytes"
	"slices"
)

// maxRanges limits the ranges of one answer. A request for more is answered with all bytes.
const maxRanges = 64

// byteRange is size bytes of the content, beginning at from.
type byteRange struct{ from, size int64 }

// rangeSet is the value of a Range header.
type rangeSet struct {
	// ignored: send all bytes, because the header has another unit, too many ranges, or more bytes than the content.
	ignored bool
	// refused: answer 416, because the header is malformed, or all ranges are beyond the content.
	refused bool
	list    []byteRange
}

// parseRanges reads a Range header (RFC 9110, section 14.2) for content of that size.
func parseRanges(header []byte, size int64) rangeSet {
	const unit = "bytes="
	if len(header) < len(unit) || !bytes.EqualFold(header[:len(unit)], []byte(unit)) {
		return rangeSet{ignored: true}
	}
	var (
		list   []byteRange
		total  int64
		beyond bool // some range is beyond the content
	)
	for spec := range bytes.SplitSeq(header[len(unit):], []byte{','}) {
		if spec = trimBlanks(spec); len(spec) == 0 {
			continue
		}
		one, ok := parseRange(spec, size)
		switch {
		case !ok:
			return rangeSet{refused: true}
		case one.size == 0:
			beyond = true
			continue
		case len(list) == maxRanges:
			return rangeSet{ignored: true}
		}
		list = append(list, one)
		total += one.size
	}
	switch {
	case len(list) == 0 && beyond:
		return rangeSet{refused: size > 0, ignored: size == 0}
	case len(list) == 0, total > size:
		return rangeSet{ignored: true}
	}
	return rangeSet{list: list}
}

// parseRange reads one range. ok is false if it is malformed. A range beyond the content has the size 0.
func parseRange(spec []byte, size int64) (r byteRange, ok bool) {
	first, last, found := bytes.Cut(spec, []byte{'-'})
	first, last = trimBlanks(first), trimBlanks(last)
	switch {
	case !found:
		return byteRange{}, false
	case len(first) == 0: // -n: the last n bytes
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

// parseNumber reads a decimal number. A number from 2^58 on is returned as 2^62, which is beyond all content.
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
