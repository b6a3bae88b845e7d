package charset

import "unicode/utf8"

// singleByte decodes an encoding with one byte for each character (Encoding Standard, section 9.1), and has its index.
type singleByte index

func (d singleByte) next(dst, src []byte) ([]byte, int, bool) {
	if r := d[src[0]-0x80]; r != utf8.RuneError {
		return utf8.AppendRune(dst, r), 1, false
	}
	return dst, 1, true
}

func (singleByte) cut(src []byte) int { return len(src) }

// userDefined decodes x-user-defined (section 14.5).
type userDefined struct{ whole }

func (userDefined) next(dst, src []byte) ([]byte, int, bool) {
	return utf8.AppendRune(dst, 0xf780+rune(src[0]-0x80)), 1, false
}
