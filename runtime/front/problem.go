package front

import (
	"cmp"
	"log/slog"
	"strconv"

	"github.com/valyala/fasthttp"

	"runner.example/hostabi/abi"
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
	if x.Private || x.NoStore || noStore(outcome.HTTP) {
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
	p := ProblemOf(f, x.Request.ID)
	p.Errors = extra.Errors
	x.sendProblem(p)
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

// Problem is the body of a refusal (RFC 9457).
type Problem struct {
	Status int
	// Code and Detail say what is wrong. An empty detail is that of the code.
	Code, Detail string
	// RequestID is that of the request; empty: the problem names none.
	RequestID string
	// Errors and Members are JSON: the member "errors", and further members of the handler. Nil: none.
	Errors, Members []byte
}

// ProblemOf returns the body of Exchange.Refuse with the error.
func ProblemOf(err error, id string) Problem {
	f := fault.Of(err)
	outcome, _ := fault.OutcomeOf(f.Code)
	p := Problem{Status: outcome.HTTP, Code: string(f.Code), Detail: f.Detail, RequestID: id}
	if p.Detail == "" || outcome.Uniform {
		p.Detail = outcome.Detail
	}
	return p
}

// ProblemOfResponse returns the body of Exchange.Send with r, whose Code is not empty.
func ProblemOfResponse(r *abi.Response, id string) Problem {
	return Problem{
		Status: r.Status, Code: r.Code, Detail: cmp.Or(r.Public, r.Detail, detailOf(r.Code)), RequestID: id,
		Errors: r.Errors, Members: r.Members,
	}
}

// Append appends the problem as JSON. Its type is always about:blank, so the title is the phrase of the status; code
// distinguishes the kinds. Its instance is the request's id, because the path may contain secrets.
func (p *Problem) Append(b []byte) []byte {
	b = append(b, `{"type":"about:blank","title":`...)
	b = appendJSON(b, title(p.Status))
	b = append(b, `,"status":`...)
	b = strconv.AppendInt(b, int64(p.Status), 10)
	b = append(b, `,"detail":`...)
	b = appendJSON(b, p.Detail)
	if p.RequestID != "" {
		b = append(append(append(b, `,"instance":"urn:ulid:`...), p.RequestID...), '"')
	}
	b = append(b, `,"code":`...)
	b = appendJSON(b, p.Code)
	if p.RequestID != "" {
		b = append(append(append(b, `,"requestId":"`...), p.RequestID...), '"')
	}
	if len(p.Errors) > 0 {
		b = append(append(b, `,"errors":`...), p.Errors...)
	}
	if len(p.Members) > 0 {
		b = append(append(b, ','), p.Members...)
	}
	return append(b, '}')
}

// sendProblem makes p the body of the answer.
func (x *Exchange) sendProblem(p Problem) {
	x.scratch = p.Append(x.scratch[:0])
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
