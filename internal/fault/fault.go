package fault

import (
	"errors"
	"fmt"
)

// Code is the kind of a fault. Its text is stable, snake_case, and part of the public
// interface.
type Code string

// The codes with which the host itself answers an HTTP request.
const (
	RouteNotFound        Code = "route_not_found"
	MethodNotAllowed     Code = "method_not_allowed"
	MethodNotImplemented Code = "method_not_implemented"
	BadPath              Code = "bad_path"
	InvalidRequest       Code = "invalid_request"
	HTTPVersion          Code = "http_version"
	URITooLong           Code = "uri_too_long"
	HeadersTooLarge      Code = "headers_too_large"
	RequestTimeout       Code = "request_timeout"
	BodyTooLarge         Code = "body_too_large"
	UnsupportedEncoding  Code = "unsupported_encoding"
	PreconditionFailed   Code = "precondition_failed"
	RangeNotSatisfiable  Code = "range_not_satisfiable"
	InvalidJSON          Code = "invalid_json"
	InvalidInput         Code = "invalid_input"
	MissingCredentials   Code = "missing_credentials"
	InvalidToken         Code = "invalid_token"
	MissingSignature     Code = "missing_signature"
	InvalidSignature     Code = "invalid_signature"
	InsufficientScope    Code = "insufficient_scope"
	InsufficientRole     Code = "insufficient_role"
	CrossOrigin          Code = "cross_origin"
	RateLimited          Code = "rate_limited"
	Overloaded           Code = "overloaded"
	NotReady             Code = "not_ready"
	HandlerFailed        Code = "handler_failed"
	HandlerTimeout       Code = "handler_timeout"
	HandlerOutOfMemory   Code = "handler_out_of_memory"
	HandlerUnavailable   Code = "handler_unavailable"
	KeyStoreStale        Code = "key_store_stale"
)

// The codes of a handler's error answer without a code, beside those of the host: see
// OfStatus.
const (
	BadRequest   Code = "bad_request"
	Unauthorized Code = "unauthorized"
	Forbidden    Code = "forbidden"
	Error        Code = "error"
)

// The codes of failed operations, seen by guests as errnos and by operators as
// exit statuses.
const (
	NotFound Code = "not_found"
	Invalid  Code = "invalid"
	Denied   Code = "denied"
	Conflict Code = "conflict"
	// WriteConflict: other requests changed the same data. A retry may succeed.
	WriteConflict Code = "write_conflict"
	TooLarge      Code = "too_large"
	Limit         Code = "limit"
	Unavailable   Code = "unavailable"
	DiskFull      Code = "disk_full" // of operators alone; others see unavailable
	Deadline      Code = "deadline"
	Internal      Code = "internal"
	// NotActivated: a node cannot activate a release or its settings; the active ones stay in force.
	NotActivated Code = "not_activated"
)

// byStatus are the codes of error answers that have only a status. The host's own refusals with
// these codes have these statuses.
var byStatus = map[int]Code{
	400: BadRequest, 401: Unauthorized, 403: Forbidden, 404: NotFound, 405: MethodNotAllowed, 408: RequestTimeout,
	409: Conflict, 413: BodyTooLarge, 429: RateLimited, 501: MethodNotImplemented, 503: Unavailable,
}

// OfStatus returns the code of an error answer that has only a status; Error for a status
// without a code of its own.
func OfStatus(status int) Code {
	if code, ok := byStatus[status]; ok {
		return code
	}
	return Error
}

// Fault is an error that the caller or the operator can act on. A Fault is immutable and
// safe for concurrent use.
type Fault struct {
	Code Code
	// Detail is for the caller: it says what is wrong and what to do, and contains nothing
	// that the caller may not know.
	Detail string
	// Hint is for operators: the next command to type. Clients and guests do not get it.
	Hint string
	// Cause is only for the log; nil when Detail says all.
	Cause error
	// Subject is what a failed operation is about.
	Subject Subject
}

// Subject is what a fault is about. The zero value is unknown.
type Subject struct {
	// Entity is the entity whose rows the operation should read or change.
	Entity string
	// Field is the name of the field or argument. The fields of a unique index are separated by commas.
	Field string
	// Value is the JSON of the refused value, or of the refused name if Named is true. It is nil if the
	// fault is not about a given value.
	Value []byte
	// Named reports that Value is a name that cannot be used, and not a value.
	Named bool
	// Public is the message about Field for clients, without the name of an entity. If it is
	// empty, the fault's Detail is the message.
	Public string
}

// New returns a fault without a cause.
func New(code Code, format string, args ...any) *Fault {
	return &Fault{Code: code, Detail: fmt.Sprintf(format, args...)}
}

// Wrap returns a fault with a detail for the caller and a cause for the log.
func Wrap(cause error, code Code, format string, args ...any) *Fault {
	return &Fault{Code: code, Detail: fmt.Sprintf(format, args...), Cause: cause}
}

// WithHint returns a copy of the fault with a hint.
func (f *Fault) WithHint(hint string) *Fault {
	hinted := *f
	hinted.Hint = hint
	return &hinted
}

// About returns a copy of the fault with a subject.
func (f *Fault) About(s Subject) *Fault {
	about := *f
	about.Subject = s
	return &about
}

// Error returns the text for logs: the detail and the cause.
func (f *Fault) Error() string {
	switch {
	case f.Cause == nil:
		return f.Detail
	case f.Detail == "":
		return f.Cause.Error()
	}
	return f.Detail + ": " + f.Cause.Error()
}

// Unwrap returns the cause.
func (f *Fault) Unwrap() error { return f.Cause }

// Of returns the fault in err's chain. For an error without one it returns an Internal fault
// with err as its cause and no detail. Of(nil) is nil.
func Of(err error) *Fault {
	if err == nil {
		return nil
	}
	if f, ok := errors.AsType[*Fault](err); ok {
		return f
	}
	return &Fault{Code: Internal, Cause: err}
}

// CodeOf returns the code of err's fault, Internal if it has none, and "" for nil.
func CodeOf(err error) Code {
	if err == nil {
		return ""
	}
	return Of(err).Code
}
