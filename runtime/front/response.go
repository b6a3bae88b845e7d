package front

import (
	"bytes"
	"strings"

	"github.com/valyala/fasthttp"

	"runner.example/hostabi/abi"
)

// keptBodyBytes is the largest body that is copied to the connection's buffer. Larger
// bodies are sent without a copy.
const keptBodyBytes = 16 << 10

// Headers of most answers, in the form that SetCanonical needs.
var (
	requestID    = []byte("X-Request-Id")
	cacheControl = []byte("Cache-Control")
	valueNoStore = []byte("no-store")
	valueNoCache = []byte("no-cache")
)

// AddHeader adds a header of the host to the answer. It is called before Send or Refuse;
// name and value are copied.
func (x *Exchange) AddHeader(name string, value []byte) {
	x.ctx.Response.Header.AddBytesV(name, value)
}

// Send sends r. A response with a Code becomes problem+json with the headers of r; an empty
// detail becomes that of the code. Headers that could end a line or frame the message are
// dropped. r is copied, except a Body of more than 16 KiB: the exchange owns that from then
// on, and r has none.
func (x *Exchange) Send(r *abi.Response) {
	h := x.head(r)
	if r.Code != "" {
		x.sendProblem(ProblemOfResponse(r, x.Request.ID))
		return
	}
	if bodyless(r.Status) {
		h.SetContentType("")
		return
	}
	if len(r.Body) > 0 && len(h.ContentType()) == 0 {
		h.SetContentType("application/json")
	}
	if len(r.Body) > keptBodyBytes {
		x.conn.sendBody(x, r.Body)
		r.Body = nil
		return
	}
	x.ctx.Response.SetBody(r.Body)
}

// head begins the answer r with its headers, and those of the host.
func (x *Exchange) head(r *abi.Response) *fasthttp.ResponseHeader {
	h := x.answer(r.Status)
	challenged := false
	private, never := x.Private, x.NoStore || noStore(r.Status)
	for _, p := range r.Headers {
		if !sendable(p.Name, p.Value) || r.Code != "" && describesBody(p.Name) {
			continue
		}
		if forCaches(p.Name) {
			if never || x.Unshared && !isUnshared(p.Name, p.Value) {
				continue
			}
			private = private && !equalFold(p.Name, "cache-control")
		}
		challenged = challenged || equalFold(p.Name, "www-authenticate")
		h.AddBytesKV(p.Name, trimBlanks(p.Value))
	}
	if private || never {
		h.SetCanonical(cacheControl, valueNoStore)
	}
	if r.Status == fasthttp.StatusUnauthorized && !challenged {
		x.challenge("", "")
	}
	return h
}

// answer begins the answer. An exchange has one.
func (x *Exchange) answer(status int) *fasthttp.ResponseHeader {
	if x.status != 0 {
		panic("BUG: front: exchange answered twice")
	}
	x.status = status
	r := &x.ctx.Response
	r.SkipBody = x.framing.headOnly
	r.Header.SetStatusCode(status)
	r.Header.SetCanonical(requestID, x.id[:])
	if x.framing.headOnly && !bodyless(status) {
		r.Header.SetContentLength(0) // sent if there is no body to count
	}
	if x.Varies || x.Private {
		r.Header.Add("Vary", "Authorization, Cookie, X-API-Key")
	}
	return &r.Header
}

// startOver discards an answer that was begun, except its CORS headers.
func (x *Exchange) startOver() {
	x.status = 0
	h := &x.ctx.Response.Header
	var kept [][2]string
	for name, value := range h.All() {
		if lower := strings.ToLower(string(name)); strings.HasPrefix(lower, "access-control-") ||
			lower == "vary" && string(value) == "Origin" {
			kept = append(kept, [2]string{string(name), string(value)})
		}
	}
	x.ctx.Response.Reset()
	h.SetNoDefaultContentType(true)
	for _, header := range kept {
		h.Add(header[0], header[1])
	}
}

// challenge adds WWW-Authenticate (RFC 6750, section 3).
func (x *Exchange) challenge(problem, scope string) {
	realm := x.Realm
	if realm == "" {
		realm = "runner"
	}
	b := append(x.scratch[:0], `Bearer realm="`...)
	b = appendQuoted(b, realm)
	if problem != "" {
		b = append(b, `", error="`...)
		b = append(b, problem...)
	}
	if scope != "" {
		b = append(b, `", scope="`...)
		b = appendQuoted(b, scope)
	}
	x.scratch = append(b, '"')
	x.ctx.Response.Header.SetBytesV("WWW-Authenticate", x.scratch)
}

// appendQuoted appends the inside of a quoted-string.
func appendQuoted(b []byte, s string) []byte {
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c >= ' ' && c != 0x7f:
			b = append(b, c)
		}
	}
	return b
}

// describesBody reports whether the header describes a body that the host replaces.
func describesBody(name []byte) bool {
	return equalFold(name, "content-type") || equalFold(name, "content-encoding")
}

// noStore reports whether answers of this status must never be cached.
func noStore(status int) bool {
	return status == 401 || status == 403 || status == 429
}

// forCaches reports whether the header instructs caches: all, or those of one operator (RFC
// 9213).
func forCaches(name []byte) bool {
	const all = "cache-control"
	return len(name) >= len(all) && equalFold(name[len(name)-len(all):], all) || equalFold(name, "surrogate-control")
}

// isUnshared reports whether the header is a Cache-Control that keeps shared caches from storing the answer. A private
// directive with field names does not.
func isUnshared(name, value []byte) bool {
	if !equalFold(name, "cache-control") {
		return false
	}
	for directive := range bytes.SplitSeq(value, []byte{','}) {
		if directive = trimBlanks(directive); equalFold(directive, "private") || equalFold(directive, "no-store") {
			return true
		}
	}
	return false
}

// bodyless reports whether answers of this status have neither body nor type.
func bodyless(status int) bool { return status == 204 || status == 304 }

// sendable is the last check of a header before it is sent: its name is a token, its value
// cannot end a line, and it is not one that only the host sets.
func sendable(name, value []byte) bool {
	if !isToken(name) || !isFieldValue(value) {
		return false
	}
	for _, h := range hostHeaders {
		if equalFold(name, h) {
			return false
		}
	}
	return true
}

var hostHeaders = [...]string{
	"connection", "keep-alive", "content-length", "transfer-encoding", "trailer", "upgrade", "te",
	"date", "server", "x-request-id",
}
