package front

import "bytes"

// Cookie returns the value of the last cookie of that name (RFC 6265, section 4.2;
// case-sensitive), and the number of such cookies. The exchange owns the value.
func (x *Exchange) Cookie(name string) (value []byte, count int) {
	for _, l := range x.headers.lines {
		if string(l.Name) != "cookie" || !bytes.Contains(l.Value, []byte(name)) {
			continue
		}
		for cookie := range bytes.SplitSeq(l.Value, []byte{';'}) {
			if n, v := splitCookie(cookie); string(n) == name {
				value, count = v, count+1
			}
		}
	}
	return value, count
}

// splitCookie returns name and value of one cookie. Cookie and joinCookies must agree on
// which cookie is the session's.
func splitCookie(cookie []byte) (name, value []byte) {
	name, value, _ = bytes.Cut(cookie, []byte{'='})
	return trimBlanks(name), trimBlanks(value)
}

// joinCookies is joinLines for cookies, without the stripped one.
func (x *Exchange) joinCookies(i int) []byte {
	start := len(x.headers.arena)
	for _, l := range x.headers.lines[i:] {
		if string(l.Name) != "cookie" {
			continue
		}
		if x.headers.stripCookie == "" || !bytes.Contains(l.Value, []byte(x.headers.stripCookie)) {
			x.appendJoined(start, "; ", l.Value)
			continue
		}
		for cookie := range bytes.SplitSeq(l.Value, []byte{';'}) {
			cookie = trimBlanks(cookie)
			if name, _ := splitCookie(cookie); string(name) != x.headers.stripCookie {
				x.appendJoined(start, "; ", cookie)
			}
		}
	}
	return x.headers.arena[start:len(x.headers.arena):len(x.headers.arena)]
}
