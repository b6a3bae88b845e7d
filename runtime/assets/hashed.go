package assets

import (
	"path"
	"strings"
)

// isHashed reports whether the name of a file has a hash of its content, as Vite, Rollup, esbuild, webpack, Parcel and
// Angular write it: index-B4xk2aZq.js, app-7HW4QZ2K.css, main.8e0a3f44.chunk.js. Another content then has another name, so
// browsers may keep the file for ever. In doubt the name has none: a file that is asked for again costs a short answer, and
// one that is kept too long cannot be replaced.
func isHashed(name string) bool {
	parts := strings.Split(path.Base(name), ".")
	if len(parts) < 2 || parts[len(parts)-1] == "html" {
		return false
	}
	for i, part := range parts[:len(parts)-1] {
		if isUUID(part) {
			continue
		}
		if i > 0 && isHash(part) || i == 0 && len(part) >= 16 && isHexHash(part) {
			return true
		}
		for at := strings.IndexByte(part, '-'); at >= 0; {
			if isHash(part[at+1:]) {
				return true
			}
			next := strings.IndexByte(part[at+1:], '-')
			if next < 0 {
				break
			}
			at += 1 + next
		}
	}
	return false
}

// hashChars is the length of the hashes of Vite, Rollup, esbuild and Angular, and the shortest of the others.
const hashChars = 8

func isHash(s string) bool {
	return isHexHash(s) || len(s) == hashChars && (isBase32Hash(s) || isBase64Hash(s))
}

// isHexHash reports whether s is 8 to 64 hexadecimal digits in lower case, with letters and digits: a date has no letters.
func isHexHash(s string) bool {
	digits := 0
	for _, c := range []byte(s) {
		switch {
		case isDigit(c):
			digits++
		case c < 'a' || c > 'f':
			return false
		}
	}
	return len(s) >= hashChars && len(s) <= 64 && digits > 0 && digits < len(s)
}

// isBase32Hash reports whether s has only upper-case letters and 2 to 7, and a letter follows a digit: in a word with a
// number, such as VERSION2, none does.
func isBase32Hash(s string) bool {
	digit, mixed := false, false
	for _, c := range []byte(s) {
		switch {
		case c >= '2' && c <= '7':
			digit = true
		case c >= 'A' && c <= 'Z':
			mixed = mixed || digit
		default:
			return false
		}
	}
	return mixed
}

// isBase64Hash reports whether s looks like random characters of base64url: it has upper-case letters, lower-case ones and a
// digit before a letter, or changes often between upper and lower case.
func isBase64Hash(s string) bool {
	var upper, lower, digit, mixed bool
	changes, before := 0, byte(0)
	for _, c := range []byte(s) {
		class := byte('-')
		switch {
		case isDigit(c):
			class, digit = '0', true
		case c >= 'a' && c <= 'z':
			class, lower, mixed = 'a', true, mixed || digit
		case c >= 'A' && c <= 'Z':
			class, upper, mixed = 'A', true, mixed || digit
		case c != '-' && c != '_':
			return false
		}
		if before != 0 && class != before {
			changes++
		}
		before = class
	}
	return upper && lower && (mixed || changes >= 4)
}

// isUUID reports whether s is a UUID, which names a file and not its content.
func isUUID(s string) bool {
	if len(s) != 36 {
		return false
	}
	for i, c := range []byte(strings.ToLower(s)) {
		if hyphen := i == 8 || i == 13 || i == 18 || i == 23; hyphen != (c == '-') || !hyphen && !isDigit(c) && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }
