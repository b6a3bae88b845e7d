package front

import (
	"cmp"
	"log/slog"
	"strconv"
	"strings"

	"github.com/valyala/fasthttp"

	"runner.example/hostabi/abi"
	"runner.example/internal/fault"
)

// keptBodyBytes is the largest body that is copied to the connection's buffer. Larger
// bodies are sent without a copy.
const keptBodyBytes = 16 << 10

// Headers of most answers, in the form that SetCanonical needs.
var (
	requestID    = []byte("X-Request-Id")
	cacheControl = []byte("Cache-Control")
	valueNoStore = []byte("no-store")
)

// Extra is what the headers of a refusal say beside its code. Zero fields are not sent.
type Extra struct {
	// Allow lists the methods of the path, separated by commas, for 405.
	Allow string
	// Scope is the scope that the route needs, for fault.InsufficientScope.
	Scope string
	// RetryAfter is in seconds, for 429 and 503. 0: one second for Overloaded, else no
	// header.
	RetryAfter int
	// Errors is the JSON of the problem's member "errors"; nil: none.
	Errors []byte
}

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
	h := x.answer(r.Status)
	private, never := x.Private, x.NoStore || noStore(r.Status)
	for _, p := range r.Headers {
		if !sendable(p.Name, p.Value) || r.Code != "" && describesBody(p.Name) {
			continue
		}
		if forCaches(p.Name) {
			if never {
				continue
			}
			private = private && !equalFold(p.Name, "cache-control")
		}
		h.AddBytesKV(p.Name, trimBlanks(p.Value))
	}
	if private || never {
		h.SetCanonical(cacheControl, valueNoStore)
	}
	if r.Status == fasthttp.StatusUnauthorized {
		x.challenge("", "")
	}
	if r.Code != "" {
		x.problem(r.Code, cmp.Or(r.Detail, detailOf(r.Code)), nil)
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

// Refuse sends err: its code decides the status, its detail is sent, and its cause is
// logged here and nowhere else. An error that is not a fault is fault.Internal.
func (x *Exchange) Refuse(err error, extra Extra) {
	f := fault.Of(err)
	outcome, _ := fault.OutcomeOf(f.Code)
	x.srv.opt.Metrics.Refused(string(f.Code))
	x.logCause(f, outcome.HTTP)
	h := x.answer(outcome.HTTP)
	if x.Private || noStore(outcome.HTTP) {
		h.Set("Cache-Control", "no-store")
	}
	switch {
	case f.Code == fault.InvalidToken:
		x.challenge("invalid_token", "")
	case f.Code == fault.InsufficientScope:
		x.challenge("insufficient_scope", extra.Scope)
	case outcome.HTTP == fasthttp.StatusUnauthorized:
		x.challenge("", "")
	}
	if extra.Allow != "" {
		h.Set("Allow", extra.Allow)
	}
	if f.Code == fault.Overloaded {
		extra.RetryAfter = max(extra.RetryAfter, 1)
	}
	if extra.RetryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(extra.RetryAfter))
	}
	detail := f.Detail
	if detail == "" || outcome.Uniform {
		detail = outcome.Detail
	}
	x.problem(string(f.Code), detail, extra.Errors)
}

func (x *Exchange) logCause(f *fault.Fault, status int) {
	if f.Cause == nil {
		return
	}
	log := x.srv.opt.Logger.Info
	if status >= 500 {
		log = x.srv.opt.Logger.Error
	}
	log("request refused", x.Request.LogID(), slog.String("code", string(f.Code)),
		slog.String("cause", f.Cause.Error()))
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
	if x.Private {
		r.Header.Add("Vary", "Authorization, Cookie")
	}
	return &r.Header
}

// startOver discards an answer that was begun, except its CORS headers.
func (x *Exchange) startOver() {
	x.status = 0
	h := &x.ctx.Response.Header
	var kept [][2]string
	for name, value := range h.All() {
		if lower := strings.ToLower(string(name)); strings.HasPrefix(lower, "access-control-") || lower == "vary" && string(value) == "Origin" {
			kept = append(kept, [2]string{string(name), string(value)})
		}
	}
	x.ctx.Response.Reset()
	h.SetNoDefaultContentType(true)
	for _, header := range kept {
		h.Add(header[0], header[1])
	}
}

// problem makes the body of a refusal (RFC 9457). Its type is always about:blank, so the
// title is the phrase of the status; code distinguishes the kinds. Its instance is the
// request's id, because the path may contain secrets.
func (x *Exchange) problem(code, detail string, errors []byte) {
	b := append(x.scratch[:0], `{"type":"about:blank","title":`...)
	b = appendJSON(b, title(x.status))
	b = append(b, `,"status":`...)
	b = strconv.AppendInt(b, int64(x.status), 10)
	b = append(b, `,"detail":`...)
	b = appendJSON(b, detail)
	b = append(b, `,"instance":"urn:ulid:`...)
	b = append(b, x.id[:]...)
	b = append(b, `","code":`...)
	b = appendJSON(b, code)
	b = append(b, `,"requestId":"`...)
	b = append(b, x.id[:]...)
	b = append(b, '"')
	if len(errors) > 0 {
		b = append(append(b, `,"errors":`...), errors...)
	}
	x.scratch = append(b, '}')
	x.ctx.Response.Header.SetContentType("application/problem+json")
	if len(x.scratch) > keptBodyBytes {
		x.conn.sendBody(x, x.scratch)
		x.scratch = nil
		return
	}
	x.ctx.Response.SetBody(x.scratch)
}

// title returns the phrase of a status; a status without a phrase has that of 500.
func title(status int) string {
	if text := fasthttp.StatusMessage(status); text != unknownStatus {
		return text
	}
	return "Error"
}

var unknownStatus = fasthttp.StatusMessage(599)

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
	"date", "server", "www-authenticate", "x-request-id",
}
