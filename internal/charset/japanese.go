package charset

import "unicode/utf8"

// halfwidth is the first of the half-width katakana.
const halfwidth = 0xff61

// eucJP decodes EUC-JP (Encoding Standard, section 12.1.1).
type eucJP struct {
	whole
	jis0208, jis0212 index
}

func newEUCJP() eucJP { return eucJP{jis0208: indexes()["jis0208"], jis0212: indexes()["jis0212"]} }

func (d eucJP) next(dst, src []byte) ([]byte, int, bool) {
	lead := src[0]
	switch {
	case lead != 0x8e && lead != 0x8f && (lead < 0xa1 || lead == 0xff):
		return dst, 1, true
	case len(src) < 2:
		return dst, 0, false
	case lead == 0x8e && src[1] >= 0xa1 && src[1] <= 0xdf:
		return utf8.AppendRune(dst, halfwidth+rune(src[1]-0xa1)), 2, false
	case lead == 0x8f && src[1] >= 0xa1 && src[1] != 0xff:
		if len(src) < 3 {
			return dst, 0, false
		}
		return appendPoint(dst, eucPoint(d.jis0212, src[1], src[2]), src, 3)
	}
	return appendPoint(dst, eucPoint(d.jis0208, lead, src[1]), src, 2)
}

// eucPoint returns the code point of two bytes in an index, or U+FFFD.
func eucPoint(x index, lead, trail byte) rune {
	if lead < 0xa1 || lead == 0xff || trail < 0xa1 || trail == 0xff {
		return utf8.RuneError
	}
	return x.at(int(lead-0xa1)*94 + int(trail-0xa1))
}

// shiftJIS decodes Shift_JIS (section 12.3.1), and has the index jis0208.
type shiftJIS index

func (d shiftJIS) next(dst, src []byte) ([]byte, int, bool) {
	lead := src[0]
	switch {
	case lead == 0x80:
		return utf8.AppendRune(dst, 0x80), 1, false
	case lead >= 0xa1 && lead <= 0xdf:
		return utf8.AppendRune(dst, halfwidth+rune(lead-0xa1)), 1, false
	case lead == 0xa0 || lead > 0xfc:
		return dst, 1, true
	case len(src) < 2:
		return dst, 0, false
	}
	offset, leadOffset := 0x41, 0xc1
	if src[1] < 0x7f {
		offset = 0x40
	}
	if lead < 0xa0 {
		leadOffset = 0x81
	}
	r := utf8.RuneError
	if trail := src[1]; trail >= 0x40 && trail != 0x7f && trail <= 0xfc {
		pointer := (int(lead)-leadOffset)*188 + int(trail) - offset
		if pointer >= 8836 && pointer <= 10715 { // characters that users define
			r = 0xe000 + rune(pointer-8836)
		} else {
			r = index(d).at(pointer)
		}
	}
	return appendPoint(dst, r, src, 2)
}

func (shiftJIS) cut(src []byte) int { return len(src) }

// The modes of ISO-2022-JP.
const (
	modeASCII    = 'a'
	modeRoman    = 'r'
	modeKatakana = 'k'
	modeJIS0208  = 'j'
)

// iso2022JP decodes ISO-2022-JP (section 12.2.1).
type iso2022JP struct {
	jis0208 index
	mode    byte
	// escaped is true directly after an escape sequence. A second one is malformed then.
	escaped bool
}

// state returns the mode, in upper case if d is escaped.
func (d *iso2022JP) state() string {
	if d.escaped {
		return string(d.mode - 'a' + 'A')
	}
	return string(d.mode)
}

func (d *iso2022JP) setState(s string) bool {
	d.mode, d.escaped = s[0]|0x20, s[0]&0x20 == 0
	return d.mode == modeASCII || d.mode == modeRoman || d.mode == modeKatakana || d.mode == modeJIS0208
}

func (d *iso2022JP) next(dst, src []byte) ([]byte, int, bool) {
	first := src[0]
	if first == 0x1b {
		n, malformed := d.escape(src)
		return dst, n, malformed
	}
	d.escaped = false
	switch {
	case d.mode == modeJIS0208 && isJIS(first):
		return d.pair(dst, src)
	case d.mode == modeJIS0208:
	case d.mode == modeKatakana && first >= 0x21 && first <= 0x5f:
		return utf8.AppendRune(dst, halfwidth+rune(first-0x21)), 1, false
	case d.mode == modeKatakana, first >= 0x80, first == 0x0e, first == 0x0f:
	case d.mode == modeRoman && first == '\\':
		return append(dst, "¥"...), 1, false
	case d.mode == modeRoman && first == '~':
		return append(dst, "‾"...), 1, false
	default:
		return append(dst, first), 1, false
	}
	return dst, 1, true
}

// isJIS reports whether a byte may belong to a character of two bytes.
func isJIS(b byte) bool { return b >= 0x21 && b <= 0x7e }

// pair decodes a character of two bytes.
func (d *iso2022JP) pair(dst, src []byte) ([]byte, int, bool) {
	switch {
	case len(src) < 2:
		return dst, 0, false
	case src[1] == 0x1b:
		return dst, 1, true
	case !isJIS(src[1]):
		return dst, 2, true
	}
	if r := d.jis0208.at(int(src[0]-0x21)*94 + int(src[1]-0x21)); r != utf8.RuneError {
		return utf8.AppendRune(dst, r), 2, false
	}
	return dst, 2, true
}

// escape reads an escape sequence.
func (d *iso2022JP) escape(src []byte) (n int, malformed bool) {
	if len(src) < 2 || len(src) < 3 && (src[1] == '$' || src[1] == '(') {
		return 0, false
	}
	mode := byte(0)
	if len(src) > 2 {
		switch string(src[1:3]) {
		case "(B":
			mode = modeASCII
		case "(J":
			mode = modeRoman
		case "(I":
			mode = modeKatakana
		case "$@", "$B":
			mode = modeJIS0208
		}
	}
	if mode == 0 {
		d.escaped = false
		return 1, true
	}
	second := d.escaped
	d.mode, d.escaped = mode, true
	return 3, second
}

// cut returns 1: the bytes after the first one are decoded again.
func (d *iso2022JP) cut([]byte) int {
	d.escaped = false
	return 1
}
