package front

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"net/netip"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/valyala/fasthttp"

	"runner.example/hostabi/abi"
	"runner.example/internal/fault"
)

// keptBytes is the largest buffer of each kind that an idle exchange keeps.
const keptBytes = 64 << 10

// Credentials are what a request presents beside its cookies, unchecked. The exchange owns
// the bytes.
type Credentials struct {
	// Authorization and APIKey are the values of the last header line of that name: of the
	// only one if the count is 1.
	Authorization, APIKey []byte
	// AuthorizationLines and APIKeyLines count the lines.
	AuthorizationLines, APIKeyLines int
}

// Exchange is one request and its answer. The exchange and all bytes that it returns are
// valid until handle returns, for one goroutine at a time.
type Exchange struct {
	// Request has ID, Method, Path and Query from the start. BuildHeaders fills Headers,
	// ReadBody fills Body, and the router fills Route and Params; Params is empty before
	// and may be appended to.
	Request abi.Request
	// Started is when the head had been read, and handle was about to be called.
	Started time.Time
	// Realm is that of the challenge in a 401 or 403. Empty: runner.
	Realm string
	// Varies marks the answer of a route that looks at credentials: it gets Vary.
	Varies bool
	// Private marks an answer that depends on credentials: it gets Vary, and
	// Cache-Control: no-store unless it has another.
	Private bool
	// Unshared marks a private answer of a handler that also answers anonymous callers. Of the handler's headers
	// for caches, only a Cache-Control with private or no-store is sent.
	Unshared bool
	// NoStore replaces the answer's Cache-Control by no-store.
	NoStore bool

	srv  *Server
	conn *conn
	ctx  *fasthttp.RequestCtx

	id          [ulid.EncodedSize]byte
	headers     headers
	credentials Credentials
	framing     framing
	refusal     *fault.Fault // of the head
	body        requestBody

	// status is that of the answer; 0: not answered yet.
	status  int
	scratch []byte
	stream  *stream // of an answer in parts; nil: it has none
	// hijacked means that net/http has answered.
	hijacked bool
	memory   []byte // outside the heap, for the body of the answer
}

// begin starts a new request, which has an id even if its head cannot be read.
func (x *Exchange) begin(c *conn, now time.Time) {
	x.conn = c
	var id ulid.ULID
	_ = id.SetTime(ulid.Timestamp(now)) // fails after the year 10889
	binary.BigEndian.PutUint64(id[6:14], rand.Uint64())
	binary.BigEndian.PutUint16(id[14:], uint16(rand.Uint32()))
	_ = id.MarshalTextTo(x.id[:]) // fails for a short buffer
	lowerInPlace(x.id[:])
	x.Request.ID = string(x.id[:])
}

// reset drops all that belonged to the request and keeps buffers up to keptBytes.
func (x *Exchange) reset() {
	*x = Exchange{
		srv:     x.srv,
		headers: headers{raw: keep(x.headers.raw), arena: keep(x.headers.arena), lines: x.headers.lines[:0]},
		body:    requestBody{bytes: keep(x.body.bytes)},
		scratch: keep(x.scratch),
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

// Address returns the client's address: that of the peer or, if the peer is a trusted
// proxy, the one that it names. It is the zero Addr if the peer has none.
func (x *Exchange) Address() netip.Addr {
	if !x.conn.trusted {
		return x.conn.peer
	}
	var hops [][]byte
	for _, l := range x.headers.lines {
		if string(l.Name) == "x-forwarded-for" {
			hops = append(hops, l.Value)
		}
	}
	return clientOf(x.conn.peer, x.srv.live.Load().proxies, hops)
}

// secure reports whether the client has sent the request over HTTPS. A trusted proxy says so in the last
// X-Forwarded-Proto.
func (x *Exchange) secure() bool {
	secure := x.conn.tls != nil
	if !x.conn.trusted {
		return secure
	}
	for _, l := range x.headers.lines {
		if string(l.Name) == "x-forwarded-proto" {
			last := trimBlanks(l.Value[bytes.LastIndexByte(l.Value, ',')+1:])
			secure = bytes.EqualFold(last, []byte("https"))
		}
	}
	return secure
}

// Credentials returns what the request presents.
func (x *Exchange) Credentials() Credentials { return x.credentials }

// Status is the status of the answer, 0 before it.
func (x *Exchange) Status() int { return x.status }
