package router

import (
	"bytes"
	"unicode/utf8"
)

// wellFormed reports whether a route may ever see this path: origin-form, no
// empty segment but the last, no "." or ".." however they are written, no
// slash or backslash in disguise, no control character, valid percent-encoding
// of valid UTF-8.
//
// A raw blank, "?" and "#" cannot stand in a path (RFC 3986, section 3.3):
// whoever sent them meant something else by them than we would.
func (m *Match) wellFormed(path []byte) bool {
	if len(path) == 0 || path[0] != '/' {
		return false
	}
	plain := true
	for _, c := range path {
		switch {
		case c <= ' ' || c == 0x7F || c == '\\' || c == '#' || c == '?':
			return false
		case c == '%' || c >= utf8.RuneSelf:
			plain = false
		}
	}
	if plain {
		return segmentsAllowed(path)
	}
	var ok bool
	m.buf, ok = unescape(m.buf[:0], path)
	return ok && textAllowed(m.buf) && segmentsAllowed(m.buf)
}

// segmentsAllowed refuses "//" and dot segments in a decoded path. That no
// slash came out of the decoding is for unescape to see to.
func segmentsAllowed(path []byte) bool {
	for rest, more := path[1:], true; more; {
		var segment []byte
		segment, rest, more = bytes.Cut(rest, []byte("/"))
		switch string(segment) {
		case "":
			if more {
				return false
			}
		case ".", "..":
			return false
		}
	}
	return true
}

// textAllowed refuses what is not UTF-8 and the control characters of Unicode,
// C1 among them: U+0085 ends a line for some.
func textAllowed(path []byte) bool {
	for len(path) > 0 {
		r, size := utf8.DecodeRune(path)
		if r == utf8.RuneError && size == 1 || r < ' ' || r >= 0x7F && r <= 0x9F {
			return false
		}
		path = path[size:]
	}
	return true
}

// unescape appends raw, percent-decoded once, to dst. It reports false at an
// invalid escape and at one that hides a slash or a backslash.
func unescape(dst, raw []byte) ([]byte, bool) {
	for i := 0; i < len(raw); i++ {
		c := raw[i]
		if c == '%' {
			if i+2 >= len(raw) {
				return dst, false
			}
			high, low := unhex(raw[i+1]), unhex(raw[i+2])
			if high < 0 || low < 0 {
				return dst, false
			}
			c = byte(high<<4 | low)
			if c == '/' || c == '\\' {
				return dst, false
			}
			i += 2
		}
		dst = append(dst, c)
	}
	return dst, true
}

// unhex gives the value of a hexadecimal digit, -1 for anything else.
func unhex(c byte) int {
	switch {
	case '0' <= c && c <= '9':
		return int(c - '0')
	case 'a' <= c && c <= 'f':
		return int(c-'a') + 10
	case 'A' <= c && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}
