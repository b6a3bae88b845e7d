package router

import (
	"bytes"
	"unicode/utf8"
)

// wellFormed reports whether a route may get this path: origin-form, no empty segment but
// the last, no "." or ".." in any encoding, no encoded slash or backslash, no control
// character, valid percent-encoding of valid UTF-8.
//
// A raw space, "?" and "#" cannot occur in a path (RFC 3986, section 3.3): a client that
// sends them means something else by them.
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

// segmentsAllowed refuses "//" and dot segments in a decoded path. unescape has refused
// encoded slashes.
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

// textAllowed refuses what is not UTF-8, and Unicode's control characters, including C1:
// some parsers end a line at U+0085.
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

// unescape appends raw, percent-decoded once, to dst. It returns false for an invalid
// escape and for an encoded slash or backslash.
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

// unhex returns the value of a hexadecimal digit, -1 for anything else.
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
