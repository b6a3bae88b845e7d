package runtime

import (
	"errors"

	"runner.example/hostabi/abi"
	"runner.example/internal/fault"
	"runner.example/runtime/auth"
	"runner.example/runtime/front"
	"runner.example/runtime/limit"
	"runner.example/runtime/sandbox"
)

// noContent is an answer of the host; it is never changed.
var noContent = abi.Response{Status: 204}

var (
	errRouteNotFound = fault.New(fault.RouteNotFound, "no route has this path")
	errBadPath       = fault.New(fault.BadPath, "the path has a character, an escape or a segment that is not allowed")
	errRateLimited   = fault.New(fault.RateLimited, "too many requests: wait for the number of seconds in Retry-After")
	errConflict      = fault.New(fault.WriteConflict,
		"other requests kept changing the data that this request read: retry after the time in Retry-After")
	errSent = fault.New(fault.WriteConflict,
		"other requests changed the data that this request read, and it cannot run again: it has sent an outbound request")
	errPartsRead = fault.New(fault.WriteConflict,
		"other requests changed the data that this request read, and it cannot run again: it has read parts of its body")
	errAnswerMemory = fault.New(fault.Overloaded, "no memory for a response of this size at the moment")
)

// Results of an invocation that are not failures.
var (
	errDuplicateDelivery = errors.New("the delivery was handled before")
	errWritesDiscarded   = errors.New("the handler answered an error: its writes are discarded")
)

// refusalDetails returns what the headers of a refusal say.
func refusalDetails(err error, s *requestState) front.Extra {
	if err == errRateLimited {
		return front.Extra{RetryAfter: limit.RetryAfter(s.uses)}
	}
	if err == ErrNoRelease || err == errConflict {
		return front.Extra{RetryAfter: 1}
	}
	if refusal, ok := errors.AsType[*auth.Refusal](err); ok {
		return front.Extra{Scope: refusal.Scopes, RetryAfter: refusal.RetryAfter}
	}
	if invalid, ok := errors.AsType[*inputError](err); ok {
		return front.Extra{Errors: invalid.errors}
	}
	if unavailable, ok := errors.AsType[*sandbox.Unavailable](err); ok {
		return front.Extra{RetryAfter: unavailable.RetryAfter}
	}
	if fault.CodeOf(err) == fault.MethodNotAllowed {
		return front.Extra{Allow: s.match.Allow}
	}
	return front.Extra{}
}
