package assets

import (
	"bytes"
	"strconv"
)

// Encoding is a content coding.
type Encoding int

// The content codings, the usually smallest first. Identity is the file as it is.
const (
	Brotli Encoding = iota
	Zstd
	Gzip
	Identity
)

// encodings is the number of compressed forms of a file.
const encodings = int(Identity)

// String returns the name of the coding in headers; Identity has none.
func (e Encoding) String() string { return [...]string{"br", "zstd", "gzip", ""}[e] }

// weights are the weights of codings that a client accepts, in thousandths; 0: it does not accept the coding.
type weights [encodings]int

// accepted reads an Accept-Encoding header (RFC 9110, section 12.5.3). What is not valid in it is ignored.
func accepted(header []byte) (w weights) {
	any, named := 0, [encodings]bool{}
	for len(header) > 0 {
		var item []byte
		item, header, _ = bytes.Cut(header, []byte{','})
		name, q := weighted(item)
		if string(name) == "*" {
			any = q
			continue
		}
		for e := range named {
			if equalFold(name, Encoding(e).String()) || e == int(Gzip) && equalFold(name, "x-gzip") {
				w[e], named[e] = q, true
			}
		}
	}
	for e := range named {
		if !named[e] {
			w[e] = any
		}
	}
	return w
}

// weighted splits `name;q=0.5`. The weight is in thousandths, and 1000 if there is none.
func weighted(item []byte) (name []byte, q int) {
	name, params, _ := bytes.Cut(item, []byte{';'})
	q = 1000
	for len(params) > 0 {
		var param []byte
		param, params, _ = bytes.Cut(params, []byte{';'})
		key, value, _ := bytes.Cut(bytes.TrimSpace(param), []byte{'='})
		if len(key) != 1 || key[0]|0x20 != 'q' {
			continue
		}
		q = 0
		if f, err := strconv.ParseFloat(string(bytes.TrimSpace(value)), 64); err == nil && f > 0 {
			q = int(min(f, 1)*1000 + 0.5)
		}
	}
	return bytes.TrimSpace(name), q
}

// Navigates reports whether a request with this Accept header is one for a page: it names text/html. Browsers send it when
// a page is opened, and not for what the page loads.
func Navigates(accept []byte) bool {
	for len(accept) > 0 {
		var item []byte
		item, accept, _ = bytes.Cut(accept, []byte{','})
		if name, q := weighted(item); q > 0 && (equalFold(name, "text/html") || equalFold(name, "application/xhtml+xml")) {
			return true
		}
	}
	return false
}

// equalFold reports whether b is the text, whose letters are in lower case, in any case.
func equalFold(b []byte, lower string) bool {
	if len(b) != len(lower) {
		return false
	}
	for i, c := range b {
		if c >= 'A' && c <= 'Z' {
			c |= 0x20
		}
		if c != lower[i] {
			return false
		}
	}
	return true
}
