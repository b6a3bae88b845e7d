package telemetry

import "bytes"

// hidden replaces a secret.
const hidden = "…"

// minSecret is the number of base62 characters after a prefix from which they count as a
// token. A whole token has 36, of which the first 30 are the secret; a token that was cut
// short is hidden too. Ids have 26.
const minSecret = 27

// span is a part of a line that must not be written.
type span struct{ from, to int }

// Redact returns text with every secret in it replaced: text itself if there is none,
// otherwise a copy.
//
// A secret is a token (prefix_ and at least 27 letters or digits, the _ also as %5F), a
// JWT, the part of a signed link after /_files/, the text after "Bearer" or "Basic", and the value after an authorization, cookie or
// x-api-key name. Text may be JSON, key=value pairs or HTTP: escapes and quotes end a
// value, they do not hide one.
func Redact(text []byte) []byte {
	var out []byte
	done := 0
	for {
		s, found := next(text, done)
		if !found {
			break
		}
		out = append(append(out, text[done:s.from]...), hidden...)
		done = s.to
	}
	if done == 0 {
		return text
	}
	return append(out, text[done:]...)
}

// next finds the first secret in text from an offset on. It reads each byte once, and looks
// closer at those that are in every secret and in few words.
func next(text []byte, from int) (span, bool) {
	for i := from; i < len(text); i++ {
		var s span
		switch text[i] {
		case '_', '%':
			if s = token(text, i, from); s.to == 0 {
				s = link(text, i)
			}
		case '.':
			s = jwt(text, i, from)
		case 'a', 'A', 'c', 'C', 'x', 'X':
			s = header(text, i)
		case 'b', 'B':
			s = credential(text, i)
		}
		if s.to > s.from {
			return s, true
		}
	}
	return span{}, false
}

// token finds a token with a prefix that ends at i. Only the secret part is hidden; the
// prefix stays. If it is in the middle of the first part of a JWT, the whole JWT is hidden.
func token(text []byte, i, done int) span {
	if i == 0 || !isLowerOrDigit(text[i-1]) {
		return span{}
	}
	from := i + 1
	if text[i] == '%' {
		if from += 2; from > len(text) || text[i+1] != '5' || text[i+2]|0x20 != 'f' {
			return span{}
		}
	}
	to := run(text, from, isBase62)
	if to-from < minSecret {
		return span{}
	}
	if dot := run(text, to, isBase64URL); dot < len(text) && text[dot] == '.' {
		if s := jwt(text, dot, done); s.to > 0 {
			return s
		}
	}
	return span{from, to}
}

// link finds the token of a signed link to a file, whose path begins with the _ or %5F at i.
func link(text []byte, i int) span {
	const path = "files"
	from := i + 1
	if text[i] == '%' {
		from += len("5F")
	}
	if from+len(path) >= len(text) || string(text[from:from+len(path)]) != path {
		return span{}
	}
	from = run(text, from+len(path), isQuoting) // a slash may be escaped
	switch {
	case from < len(text) && text[from] == '/':
		from++
	case from < len(text) && text[from] == '%':
		for from++; bytes.HasPrefix(text[from:], []byte("25")); { // a URL in a URL in a URL
			from += len("25")
		}
		if !bytes.HasPrefix(text[from:], []byte("2F")) && !bytes.HasPrefix(text[from:], []byte("2f")) {
			return span{}
		}
		from += len("2F")
	default:
		return span{}
	}
	to := run(text, from, isBase64URL)
	if to-from < minSecret {
		return span{}
	}
	return span{from, to}
}

// jwt finds at least three parts of base64url around the dot at i. The first of them must
// contain the start of a JSON object.
func jwt(text []byte, i, done int) span {
	from, middle := i, i+1
	for from > done && isBase64URL(text[from-1]) {
		from--
	}
	if head := text[from:i]; len(head) < 10 || !bytes.Contains(head, []byte("ey")) && !bytes.Contains(head, []byte("ew")) {
		return span{}
	}
	middle = run(text, middle, isBase64URL)
	if middle == i+1 || middle == len(text) || text[middle] != '.' {
		return span{}
	}
	if backslashes(text, from)%2 == 1 { // the first letters belong to an escape, which is kept whole
		if from++; text[from-1] == 'u' {
			from += 4
		}
	}
	to := run(text, middle+1, isBase64URL)
	for to < len(text) && text[to] == '.' { // of five parts, or the first was a word before it
		next := run(text, to+1, isBase64URL)
		if next == to+1 {
			break
		}
		to = next
	}
	return span{from, to}
}

// credential finds the text after "Bearer" or "Basic" at i. If it is shorter than eight
// characters it is a word or a parameter such as realm.
func credential(text []byte, i int) span {
	var from int
	switch {
	case hasFold(text[i:], "bearer"):
		from = i + len("bearer")
	case hasFold(text[i:], "basic"):
		from = i + len("basic")
	default:
		return span{}
	}
	start := run(text, from, isBlank)
	to := run(text, start, isToken68)
	if start == from || to-start < 8 {
		return span{}
	}
	return span{start, to}
}

// header finds the value of a header with its name at i, followed by ":" or "=", with any
// quotes around name and value.
//
// A value in quotes ends with them. A value without quotes ends with the string or the line
// that contains it, and after "=" also at a blank that does not follow a ";".
func header(text []byte, i int) span {
	j := 0
	for _, name := range []string{"authorization", "cookie", "x-api-key"} {
		if hasFold(text[i:], name) {
			j = run(text, i+len(name), isQuoting)
		}
	}
	if j == 0 || j == len(text) || text[j] != ':' && text[j] != '=' {
		return span{}
	}
	sep := text[j]
	from, depth, quoted := j+1, 0, false
	for ; from < len(text) && (isQuoting(text[from]) || text[from] == '['); from++ {
		if text[from] == '"' {
			depth, quoted = backslashes(text, from), true
			from++
			break
		}
	}
	if !quoted { // a backslash without a quote begins an escape, which is part of the value
		from -= backslashes(text, from)
	}
	to := from
	for ; to < len(text) && text[to] >= ' '; to++ {
		switch text[to] {
		case '"':
			if own, ends := closes(backslashes(text, to), depth); ends {
				return span{from, max(from, to-own)}
			}
		case 'r', 'n':
			if n := backslashes(text, to); n > 0 && to-n >= from {
				return span{from, to - n}
			}
		case ' ':
			if sep == '=' && !quoted && to > from && text[to-1] != ';' && text[to-1] != ',' {
				return span{from, to}
			}
		}
	}
	return span{from, to}
}

// closes reports whether a quote after n backslashes ends a value that was opened after
// depth of them, or a string that contains it, and how many of them belong to the quote.
// Each level of quoting turns k backslashes before a quote into 2k+1, and a backslash in
// the text into two.
func closes(n, depth int) (own int, ends bool) {
	for own = depth; own > 0; own = (own - 1) / 2 {
		if n%(2*(own+1)) == own {
			return own, true
		}
	}
	return 0, n%2 == 0
}

// backslashes returns how many backslashes are right before i.
func backslashes(text []byte, i int) (n int) {
	for n < i && text[i-n-1] == '\\' {
		n++
	}
	return n
}

// hasFold reports whether text begins with a lower-case word, in any case.
func hasFold(text []byte, word string) bool {
	if len(text) < len(word) || text[1]|0x20 != word[1]|0x20 {
		return false
	}
	return bytes.EqualFold(text[:len(word)], []byte(word))
}

// run returns the end of the run of characters of a kind at from.
func run(text []byte, from int, kind func(byte) bool) int {
	for from < len(text) && kind(text[from]) {
		from++
	}
	return from
}

func isBase62(c byte) bool {
	return isLowerOrDigit(c) || 'A' <= c && c <= 'Z'
}

func isLowerOrDigit(c byte) bool { return 'a' <= c && c <= 'z' || '0' <= c && c <= '9' }

func isBase64URL(c byte) bool { return isBase62(c) || c == '-' || c == '_' }

func isToken68(c byte) bool {
	return isBase64URL(c) || c == '.' || c == '~' || c == '+' || c == '/' || c == '='
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' }

func isQuoting(c byte) bool { return isBlank(c) || c == '"' || c == '\'' || c == '\\' }
