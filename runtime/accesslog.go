package runtime

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"runner.example/internal/fault"
	"runner.example/runtime/front"
)

// logRequest writes the access log line of an HTTP request; err is the refusal.
func (r *Runtime) logRequest(s *requestState, x *front.Exchange, err error, took time.Duration) {
	attrs := appendAccess(s.attrs[:0], x.Request.LogID(), string(x.Request.Method), x.Status(), took)
	if s.route != nil {
		attrs = append(attrs, slog.String("route", s.route.Path))
	}
	if s.caller.KeyID != "" {
		attrs = append(attrs, slog.String("keyId", s.caller.KeyID))
	}
	s.attrs = attrs[:0]
	if !r.opt.AccessDetail {
		r.logAccess(attrs)
		return
	}
	path := string(x.Request.Path)
	if s.route != nil && s.route.links { // who has a signed link may read the file
		path = s.route.Path
	}
	attrs = append(attrs, slog.String("path", path))
	var code, detail, problems string
	if err != nil {
		f := fault.Of(err)
		code, detail = string(f.Code), f.Detail
		if invalid, ok := errors.AsType[*inputError](err); ok {
			problems = string(invalid.errors)
		}
	} else if s.route != nil {
		code, detail, problems = s.call.Response.Code, s.call.Response.Detail, string(s.call.Response.Errors)
	}
	r.logAccess(appendProblem(attrs, code, detail, problems))
}

// logCall writes the access log line of an operator's call.
func (r *Runtime) logCall(c FunctionCall, rt *route, answer *Answer, took time.Duration) {
	attrs := append(appendAccess(nil, slog.String("requestId", c.RequestID), rt.Method, answer.Status, took),
		slog.String("route", rt.Path), slog.String("operator", c.Caller.UserID))
	if r.opt.AccessDetail {
		attrs = appendProblem(append(attrs, slog.String("path", rt.Path)), answer.Code, answer.Detail, string(answer.Errors))
	}
	r.logAccess(attrs)
}

func appendAccess(attrs []slog.Attr, id slog.Attr, method string, status int, took time.Duration) []slog.Attr {
	return append(attrs,
		id,
		slog.String("method", method),
		slog.Int("status", status),
		slog.Duration("took", took),
	)
}

// appendProblem appends the parts of a problem that are not empty.
func appendProblem(attrs []slog.Attr, code, detail, problems string) []slog.Attr {
	if code != "" {
		attrs = append(attrs, slog.String("code", code), slog.String("detail", detail))
	}
	if problems != "" {
		attrs = append(attrs, slog.String("errors", problems))
	}
	return attrs
}

func (r *Runtime) logAccess(attrs []slog.Attr) {
	r.opt.Logger.LogAttrs(context.Background(), slog.LevelInfo, "request", attrs...)
}
