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

// keptBodyBytes is the most that a connection keeps for the body of an answer, of which
// it makes a copy. It takes over larger ones.
const keptBodyBytes = 16 << 10

// Extra is what the headers of a refusal say beside its code. Zero fields are
// not sent.
type Extra struct {
	// Allow are the methods of the path, comma-separated, for 405.
	Allow string
	// Scope is what the route needs, for fault.InsufficientScope.
	Scope string
	// RetryAfter is in seconds, for 429 and 503. Overloaded says 1 without it.
	RetryAfter int
	// Errors is the JSON of the problem's member "errors", nil without it.
	Errors []byte
}

// AddHeader puts a header of the host's own on the answer, whichever it will
// be. It is called before Send or Refuse; name and value are copied.
func (x *Exchange) AddHeader(name string, value []byte) {
	x.ctx.Response.Header.AddBytesV(name, value)
}

// Send makes r the answer: what an error helper filled becomes problem+json
// with r's headers; an empty detail becomes the one of the code. Headers that could end a line or frame the message are
// left out, whoever let them come this far. r is copied, but for a Body of more than
// 16 KiB: that belongs to the exchange from then on, and r has none.
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
		h.Set("Cache-Control", "no-store")
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

// Refuse makes err the answer: its code gives the status, its detail is told,
// its cause is logged here and nowhere else. An error that is no fault is
// fault.Internal.
func (x *Exchange) Refuse(err error, extra Extra) {
	f := fault.Of(err)
	row := refusalOf(f.Code)
	x.logCause(f, row.status)
	h := x.answer(row.status)
	if x.Private || noStore(row.status) {
		h.Set("Cache-Control", "no-store")
	}
	switch {
	case f.Code == fault.InvalidToken:
		x.challenge("invalid_token", "")
	case f.Code == fault.InsufficientScope:
		x.challenge("insufficient_scope", extra.Scope)
	case row.status == fasthttp.StatusUnauthorized:
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
	if detail == "" || row.fixed {
		detail = row.detail
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
	log("request refused", slog.String("requestId", x.Request.ID), slog.String("code", string(f.Code)),
		slog.String("cause", f.Cause.Error()))
}

// answer begins the answer: there is one for each exchange.
func (x *Exchange) answer(status int) *fasthttp.ResponseHeader {
	if x.status != 0 {
		panic("BUG: front: a second answer")
	}
	x.status = status
	r := &x.ctx.Response
	r.SkipBody = x.framing.headOnly
	r.Header.SetStatusCode(status)
	r.Header.SetBytesV("X-Request-Id", x.id[:])
	if x.framing.headOnly && !bodyless(status) {
		r.Header.SetContentLength(0) // stands when there is no body to count
	}
	if x.Private {
		r.Header.Add("Vary", "Authorization, Cookie")
	}
	return &r.Header
}

// startOver forgets an answer that was begun, but not which pages may read it.
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

// problem makes the body of a refusal (RFC 9457). Its type is always
// about:blank, so its title is the status's own; code tells the kinds apart.
// Its instance is the request's id and nothing of the request, whose path may
// hold what nobody should repeat.
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

// title is the phrase of a status; one without a phrase is an error like
// another.
func title(status int) string {
	if text := fasthttp.StatusMessage(status); text != unknownStatus {
		return text
	}
	return "Error"
}

var unknownStatus = fasthttp.StatusMessage(599)

// challenge says how to authenticate (RFC 6750, section 3).
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

// describesBody names the headers that belong to a body the host replaces.
func describesBody(name []byte) bool {
	return equalFold(name, "content-type") || equalFold(name, "content-encoding")
}

// noStore says whether answers of this status are never kept by anyone.
func noStore(status int) bool {
	return status == 401 || status == 403 || status == 429
}

// forCaches names the headers that tell caches what to keep: those of all, and of one
// operator's (RFC 9213).
func forCaches(name []byte) bool {
	const all = "cache-control"
	return len(name) >= len(all) && equalFold(name[len(name)-len(all):], all) || equalFold(name, "surrogate-control")
}

// bodyless says whether answers of this status have neither body nor type.
func bodyless(status int) bool { return status == 204 || status == 304 }

// sendable is the last look at a header before the wire: a name is a token, a
// value ends no line, and what frames or dates the message, or is the host's
// to say, is not the handler's to set.
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
