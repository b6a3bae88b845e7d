package front

import (
	"log/slog"
	"strconv"

	"github.com/valyala/fasthttp"

	"runner.example/internal/fault"
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

// Refuse sends err: its code decides the status, its detail is sent, and its cause is
// logged here and nowhere else. An error that is not a fault is fault.Internal.
func (x *Exchange) Refuse(err error, extra Extra) {
	f := fault.Of(err)
	outcome, _ := fault.OutcomeOf(f.Code)
	x.srv.metrics.refusals.With(string(f.Code)).Inc()
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
	x.problem(string(f.Code), detail, extra.Errors, nil)
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

// problem makes the body of a refusal (RFC 9457). Its type is always about:blank, so the
// title is the phrase of the status; code distinguishes the kinds. Its instance is the
// request's id, because the path may contain secrets. members are those of the handler.
func (x *Exchange) problem(code, detail string, errors, members []byte) {
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
	if len(members) > 0 {
		b = append(append(b, ','), members...)
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

// detailOf returns the default detail of a code. Handlers may use codes of their own; their
// detail says only that the request failed.
func detailOf(code string) string {
	outcome, known := fault.OutcomeOf(fault.Code(code))
	if !known {
		outcome, _ = fault.OutcomeOf(fault.Error)
	}
	return outcome.Detail
}
