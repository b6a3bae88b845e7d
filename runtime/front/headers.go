package front

import (
	"bytes"

	"runner.example/hostabi/abi"
)

// headers are the header lines of a request, and what the handler sees of them.
type headers struct {
	raw   []byte     // a copy of the head; lines point into it
	lines []abi.Pair // as they arrived, names in lower case
	arena []byte     // decoded query pairs and joined lines

	strip       bool   // StripCredentials was called
	stripCookie string // with the name of this cookie
}

// Header returns the raw value of the last line of that name, in lower case, and the number
// of such lines. The exchange owns the value.
func (x *Exchange) Header(name string) (value []byte, lines int) {
	for _, l := range x.headers.lines {
		if string(l.Name) == name {
			value, lines = l.Value, lines+1
		}
	}
	return value, lines
}

// StripCredentials removes Authorization, X-API-Key and the cookie of that name (empty: no
// cookie) from Request.Headers. It is called before BuildHeaders on every route that checks
// credentials.
func (x *Exchange) StripCredentials(sessionCookie string) {
	x.headers.strip, x.headers.stripCookie = true, sessionCookie
}

// makeRoom allocates the arena for the query and the headers. What it gets is at most as
// long as the head, except ", " between joined lines. So it never grows, and the pairs that
// point into it stay valid.
func (x *Exchange) makeRoom() {
	room := len(x.headers.raw) + 2*len(x.headers.lines)
	if cap(x.headers.arena) < room {
		x.headers.arena = make([]byte, 0, room)
	}
	x.headers.arena = x.headers.arena[:0]
}

// BuildHeaders fills Request.Headers: lines of one name are joined, at the position of the
// first.
func (x *Exchange) BuildHeaders() {
	x.Request.Secure = x.secure()
	x.Request.Headers = x.Request.Headers[:0]
	for i, l := range x.headers.lines {
		if x.seenBefore(i) || x.hidden(l.Name) {
			continue
		}
		value := l.Value
		switch {
		case string(l.Name) == "cookie":
			if value = x.joinCookies(i); len(value) == 0 {
				continue
			}
		case x.repeated(i):
			value = x.joinLines(i)
		}
		x.Request.Headers = append(x.Request.Headers, abi.Pair{Name: l.Name, Value: value})
	}
}

func (x *Exchange) seenBefore(i int) bool {
	for _, l := range x.headers.lines[:i] {
		if bytes.Equal(l.Name, x.headers.lines[i].Name) {
			return true
		}
	}
	return false
}

func (x *Exchange) repeated(i int) bool {
	for _, l := range x.headers.lines[i+1:] {
		if bytes.Equal(l.Name, x.headers.lines[i].Name) {
			return true
		}
	}
	return false
}

// joinLines appends the values of all lines with the name of line i.
func (x *Exchange) joinLines(i int) []byte {
	start := len(x.headers.arena)
	for _, l := range x.headers.lines[i:] {
		if bytes.Equal(l.Name, x.headers.lines[i].Name) {
			x.appendJoined(start, ", ", l.Value)
		}
	}
	return x.headers.arena[start:len(x.headers.arena):len(x.headers.arena)]
}

func (x *Exchange) appendJoined(start int, between string, value []byte) {
	if len(x.headers.arena) > start {
		x.headers.arena = append(x.headers.arena, between...)
	}
	x.headers.arena = append(x.headers.arena, value...)
}

// hidden reports whether the handler does not see headers of this name.
func (x *Exchange) hidden(name []byte) bool {
	switch string(name) {
	case "connection", "keep-alive", "proxy-authenticate", "proxy-authorization",
		"proxy-connection", "te", "trailer", "transfer-encoding", "upgrade":
		return true
	case "authorization", "x-api-key":
		return x.headers.strip
	}
	return isReserved(name) || x.hasTwin(name) || x.connectionNames(name)
}

// isReserved reports whether the name begins with x-runner-, also with _ for -.
func isReserved(name []byte) bool {
	const ours = "x-runner-"
	if len(name) < len(ours) {
		return false
	}
	for i := range len(ours) {
		if name[i] != ours[i] && (ours[i] != '-' || name[i] != '_') {
			return false
		}
	}
	return true
}

// hasTwin reports whether the name has a _ where the name of another line has a -: some
// servers treat them as equal.
func (x *Exchange) hasTwin(name []byte) bool {
	if bytes.IndexByte(name, '_') < 0 {
		return false
	}
	for _, l := range x.headers.lines {
		if isTwin(name, l.Name) {
			return true
		}
	}
	return false
}

func isTwin(name, other []byte) bool {
	if len(name) != len(other) || bytes.Equal(name, other) {
		return false
	}
	for i, c := range name {
		if c != other[i] && (c != '_' || other[i] != '-') {
			return false
		}
	}
	return true
}

// connectionNames reports whether a Connection header declares the header to be hop-by-hop.
func (x *Exchange) connectionNames(name []byte) bool {
	for _, l := range x.headers.lines {
		if string(l.Name) != "connection" {
			continue
		}
		for option := range bytes.SplitSeq(l.Value, []byte{','}) {
			if option = trimBlanks(option); len(option) == len(name) && bytes.EqualFold(option, name) {
				return true
			}
		}
	}
	return false
}
