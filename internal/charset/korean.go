package charset

import "unicode/utf8"

// eucKR decodes EUC-KR (Encoding Standard, section 13.1.1), and has its index.
type eucKR index

func (d eucKR) next(dst, src []byte) ([]byte, int, bool) {
	lead := src[0]
	switch {
	case lead == 0x80 || lead == 0xff:
		return dst, 1, true
	case len(src) < 2:
		return dst, 0, false
	}
	r := utf8.RuneError
	if trail := src[1]; trail >= 0x41 && trail < 0xff {
		r = index(d).at(int(lead-0x81)*190 + int(trail-0x41))
	}
	return appendPoint(dst, r, src, 2)
}

func (eucKR) cut(src []byte) int { return len(src) }
