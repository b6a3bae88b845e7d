package front

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"net/netip"
	"time"
	"unicode/utf8"

	"github.com/oklog/ulid/v2"
	"github.com/valyala/fasthttp"

	"runner.example/hostabi/abi"
	"runner.example/internal/fault"
)

const (
	// maxQueryPairs is how many pairs a query may hold.
	maxQueryPairs = 100
	// keptBytes is the most that an idle exchange keeps of each buffer.
	keptBytes = 64 << 10
)

// Credentials are what a request presents beside its cookies, not looked at.
// The bytes belong to the exchange.
type Credentials struct {
	// Authorization and APIKey are the values of the last header line of that
	// name: of the only one when the count is 1.
	Authorization, APIKey []byte
	// AuthorizationLines and APIKeyLines count the lines.
	AuthorizationLines, APIKeyLines int
}

// Exchange is one request and its answer. It belongs to handle, and so do all
// bytes that it gives out, until handle returns; one goroutine at a time may
// use it.
type Exchange struct {
	// Request has ID, Method, Path and Query from the start. Headers are filled
	// by BuildHeaders, Body by ReadBody, Route and Params by whoever matches the
	// route: Params is empty then and may be appended to.
	Request abi.Request
	// Realm stands in every challenge of a 401 or 403. Empty: runner.
	Realm string
	// Private marks the answer of a route that asked for credentials: it gets
	// Cache-Control: no-store, unless the answer says otherwise, and Vary.
	Private bool
	// NoStore is the same whatever the answer says.
	NoStore bool

	srv  *Server
	conn *conn
	ctx  *fasthttp.RequestCtx

	id    [ulid.EncodedSize]byte
	head  []byte     // the exchange's own copy; all below points into it
	lines []abi.Pair // header lines as they came, names in lower case
	arena []byte     // decoded pairs and joined lines

	credentials Credentials
	strip       bool
	stripCookie string

	// What parse found out about the message.
	minor      byte // of the HTTP version
	headOnly   bool // HEAD: no body in the answer
	keepAlive  bool
	closeAsked bool
	length     int64
	chunked    bool
	framed     bool         // it is known where the body ends
	refusal    *fault.Fault // of the head

	expectsContinue bool
	bodyBegun       bool
	bodyDone        bool
	body            []byte
	claimed         int64 // of the server's room for large bodies

	memory []byte // outside of the heap, for the body of the answer

	// status is the answer's; 0: none yet.
	status  int
	scratch []byte
}

// begin makes the exchange that of a new request: it has an id, whatever comes.
func (x *Exchange) begin(c *conn) {
	x.conn = c
	var id ulid.ULID
	_ = id.SetTime(ulid.Timestamp(time.Now())) // fails after the year 10889
	binary.BigEndian.PutUint64(id[6:14], rand.Uint64())
	binary.BigEndian.PutUint16(id[14:], uint16(rand.Uint32()))
	_ = id.MarshalTextTo(x.id[:]) // fails for a short buffer
	lowerInPlace(x.id[:])
	x.Request.ID = string(x.id[:])
}

// reset drops all that belonged to the request and keeps buffers of sane size.
func (x *Exchange) reset() {
	*x = Exchange{
		srv:     x.srv,
		head:    keep(x.head),
		arena:   keep(x.arena),
		body:    keep(x.body),
		scratch: keep(x.scratch),
		lines:   x.lines[:0],
		Request: abi.Request{
			Params:  x.Request.Params[:0],
			Query:   x.Request.Query[:0],
			Headers: x.Request.Headers[:0],
		},
	}
}

func keep(b []byte) []byte {
	if cap(b) > keptBytes {
		return nil
	}
	return b[:0]
}

// Address is that of the client: of the peer, or what trusted proxies say of
// theirs. It is the zero Addr for a peer that has none.
func (x *Exchange) Address() netip.Addr {
	if !x.conn.trusted {
		return x.conn.peer
	}
	var hops [][]byte
	for _, l := range x.lines {
		if string(l.Name) == "x-forwarded-for" {
			hops = append(hops, l.Value)
		}
	}
	return clientOf(x.conn.peer, x.srv.opt.TrustedProxies, hops)
}

// Credentials gives what the request presents.
func (x *Exchange) Credentials() Credentials { return x.credentials }

// Header gives the value of the last line of that name, in small letters, as it
// came, and how many there are. The value belongs to the exchange.
func (x *Exchange) Header(name string) (value []byte, lines int) {
	for _, l := range x.lines {
		if string(l.Name) == name {
			value, lines = l.Value, lines+1
		}
	}
	return value, lines
}

// Cookie gives the value of the last cookie of that name (RFC 6265, section
// 4.2), case and all, and how many there are. The value belongs to the exchange.
func (x *Exchange) Cookie(name string) (value []byte, count int) {
	for _, l := range x.lines {
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

// splitCookie gives name and value of one cookie. Cookie and joinCookies must
// not differ in what they take for the session's.
func splitCookie(cookie []byte) (name, value []byte) {
	name, value, _ = bytes.Cut(cookie, []byte{'='})
	return trimBlanks(name), trimBlanks(value)
}

// StripCredentials keeps Authorization, X-API-Key and the cookie of that name
// (empty: no cookie) out of Request.Headers. It is called before BuildHeaders, on
// every route that looks at credentials.
func (x *Exchange) StripCredentials(sessionCookie string) {
	x.strip, x.stripCookie = true, sessionCookie
}

// Status is the answer's, 0 before there is one.
func (x *Exchange) Status() int { return x.status }

var (
	errQueryPairs = fault.New(fault.InvalidRequest, "a query may hold %d pairs", maxQueryPairs)
	errQuery      = fault.New(fault.InvalidRequest, "a %% in the query is not followed by two hexadecimal digits, or the query is not UTF-8 once decoded")
)

// makeRoom readies the arena for the query and the headers. Both only shrink
// what they take from the head, but for a ", " between joined lines; with the
// room made once, nothing moves under the pairs.
func (x *Exchange) makeRoom() {
	room := len(x.head) + 2*len(x.lines)
	if cap(x.arena) < room {
		x.arena = make([]byte, 0, room)
	}
	x.arena = x.arena[:0]
}

// parseQuery fills Request.Query. More than 100 pairs, or one that cannot be
// decoded, is fault.InvalidRequest.
func (x *Exchange) parseQuery() *fault.Fault {
	x.Request.Query = x.Request.Query[:0]
	for rest := x.Request.RawQuery; len(rest) > 0; {
		var pair []byte
		pair, rest, _ = bytes.Cut(rest, []byte{'&'})
		if len(pair) == 0 {
			continue
		}
		if len(x.Request.Query) == maxQueryPairs {
			return errQueryPairs
		}
		name, value, _ := bytes.Cut(pair, []byte{'='})
		name, ok := x.decode(name)
		value, ok2 := x.decode(value)
		if !ok || !ok2 {
			return errQuery
		}
		x.Request.Query = append(x.Request.Query, abi.Pair{Name: name, Value: value})
	}
	return nil
}

// decode appends what b says to the arena: %xx is a byte, + a blank.
func (x *Exchange) decode(b []byte) (out []byte, ok bool) {
	start := len(x.arena)
	for i := 0; i < len(b); i++ {
		c := b[i]
		switch c {
		case '+':
			c = ' '
		case '%':
			if len(b)-i < 3 {
				return nil, false
			}
			high, ok := hexDigit(b[i+1])
			low, ok2 := hexDigit(b[i+2])
			if !ok || !ok2 {
				return nil, false
			}
			c = high<<4 | low
			i += 2
		}
		x.arena = append(x.arena, c)
	}
	out = x.arena[start:len(x.arena):len(x.arena)]
	return out, utf8.Valid(out)
}

// BuildHeaders fills Request.Headers: lines of one name are joined at the place
// of the first of them.
func (x *Exchange) BuildHeaders() {
	x.Request.Headers = x.Request.Headers[:0]
	for i, l := range x.lines {
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
	for _, l := range x.lines[:i] {
		if bytes.Equal(l.Name, x.lines[i].Name) {
			return true
		}
	}
	return false
}

func (x *Exchange) repeated(i int) bool {
	for _, l := range x.lines[i+1:] {
		if bytes.Equal(l.Name, x.lines[i].Name) {
			return true
		}
	}
	return false
}

// joinLines appends the values of all lines with the name of line i.
func (x *Exchange) joinLines(i int) []byte {
	start := len(x.arena)
	for _, l := range x.lines[i:] {
		if bytes.Equal(l.Name, x.lines[i].Name) {
			x.appendJoined(start, ", ", l.Value)
		}
	}
	return x.arena[start:len(x.arena):len(x.arena)]
}

// joinCookies does the same for cookies, which may lose the session's.
func (x *Exchange) joinCookies(i int) []byte {
	start := len(x.arena)
	for _, l := range x.lines[i:] {
		if string(l.Name) != "cookie" {
			continue
		}
		if x.stripCookie == "" || !bytes.Contains(l.Value, []byte(x.stripCookie)) {
			x.appendJoined(start, "; ", l.Value)
			continue
		}
		for cookie := range bytes.SplitSeq(l.Value, []byte{';'}) {
			cookie = trimBlanks(cookie)
			if name, _ := splitCookie(cookie); string(name) != x.stripCookie {
				x.appendJoined(start, "; ", cookie)
			}
		}
	}
	return x.arena[start:len(x.arena):len(x.arena)]
}

func (x *Exchange) appendJoined(start int, between string, value []byte) {
	if len(x.arena) > start {
		x.arena = append(x.arena, between...)
	}
	x.arena = append(x.arena, value...)
}

// hidden says whether the handler does not see headers of this name.
func (x *Exchange) hidden(name []byte) bool {
	switch string(name) {
	case "connection", "keep-alive", "proxy-authenticate", "proxy-authorization",
		"proxy-connection", "te", "trailer", "transfer-encoding", "upgrade":
		return true
	case "authorization", "x-api-key":
		return x.strip
	}
	return isReserved(name) || x.hasTwin(name) || x.connectionNames(name)
}

// isReserved takes x-runner-… for ours, with whatever stands for its dashes.
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

// hasTwin says whether the name has a _ where another has a -: servers behind
// servers are known to take one for the other.
func (x *Exchange) hasTwin(name []byte) bool {
	if bytes.IndexByte(name, '_') < 0 {
		return false
	}
	for _, l := range x.lines {
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

// connectionNames says whether Connection declares the header to be of this
// hop alone.
func (x *Exchange) connectionNames(name []byte) bool {
	for _, l := range x.lines {
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
