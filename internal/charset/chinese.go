package charset

import (
	"sort"
	"unicode/utf8"
)

// gb18030 decodes gb18030 and GBK (Encoding Standard, section 10.2.1).
type gb18030 struct {
	whole
	index, ranges index
}

func newGB18030() gb18030 {
	return gb18030{index: indexes()["gb18030"], ranges: indexes()["gb18030-ranges"]}
}

func (d gb18030) next(dst, src []byte) ([]byte, int, bool) {
	first := src[0]
	switch {
	case first == 0x80:
		return append(dst, "€"...), 1, false
	case first == 0xff:
		return dst, 1, true
	case len(src) < 2:
		return dst, 0, false
	}
	if second := src[1]; second < 0x30 || second > 0x39 {
		r := utf8.RuneError
		switch {
		case second >= 0x40 && second < 0x7f:
			r = d.index.at(int(first-0x81)*190 + int(second-0x40))
		case second >= 0x80 && second < 0xff:
			r = d.index.at(int(first-0x81)*190 + int(second-0x41))
		}
		return appendPoint(dst, r, src, 2)
	}
	switch {
	case len(src) < 3:
		return dst, 0, false
	case src[2] < 0x81 || src[2] == 0xff:
		return dst, 1, true
	case len(src) < 4:
		return dst, 0, false
	case src[3] < 0x30 || src[3] > 0x39:
		return dst, 1, true
	}
	r, ok := d.inRange(((int(first-0x81)*10+int(src[1]-0x30))*126+int(src[2]-0x81))*10 + int(src[3]-0x30))
	if !ok {
		return dst, 4, true
	}
	return utf8.AppendRune(dst, r), 4, false
}

// inRange returns the code point of a pointer of four bytes (section 5, "index gb18030 ranges code point").
func (d gb18030) inRange(pointer int) (rune, bool) {
	switch {
	case pointer > 39419 && pointer < 189000, pointer > 1237575:
		return 0, false
	case pointer == 7457:
		return 0xe7c7, true
	}
	i := 2 * (sort.Search(len(d.ranges)/2, func(i int) bool { return int(d.ranges[2*i]) > pointer }) - 1)
	return d.ranges[i+1] + rune(pointer) - d.ranges[i], true
}

// big5 decodes Big5 (section 11.1.1), and has its index.
type big5 index

// big5Pairs has the pointers that stand for two code points.
var big5Pairs = map[int]string{1133: "\u00ca\u0304", 1135: "\u00ca\u030c", 1164: "\u00ea\u0304", 1166: "\u00ea\u030c"}

func (d big5) next(dst, src []byte) ([]byte, int, bool) {
	lead := src[0]
	switch {
	case lead == 0x80 || lead == 0xff:
		return dst, 1, true
	case len(src) < 2:
		return dst, 0, false
	}
	pointer := -1
	switch trail := src[1]; {
	case trail >= 0x40 && trail < 0x7f:
		pointer = int(lead-0x81)*157 + int(trail-0x40)
	case trail >= 0xa1 && trail < 0xff:
		pointer = int(lead-0x81)*157 + int(trail-0x62)
	}
	if pointer < 0 {
		return appendPoint(dst, utf8.RuneError, src, 2)
	}
	if pair, ok := big5Pairs[pointer]; ok {
		return append(dst, pair...), 2, false
	}
	return appendPoint(dst, index(d).at(pointer), src, 2)
}

func (big5) cut(src []byte) int { return len(src) }
