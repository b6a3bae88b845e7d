package hostabi

import (
	"runner.example/hostabi/abi"
	"runner.example/internal/fault"
)

// Errno returns the number that a guest sees for a fault of a host call.
func Errno(code fault.Code) abi.Errno {
	if e, ok := errnos[code]; ok {
		return e
	}
	return abi.Internal
}

// errnos has every code, also those that only HTTP answers use today: any package below
// may return any of them.
var errnos = map[fault.Code]abi.Errno{
	fault.NotFound:    abi.NotFound,
	fault.Invalid:     abi.Invalid,
	fault.Denied:      abi.Denied,
	fault.Conflict:    abi.Conflict,
	fault.TooLarge:    abi.TooLarge,
	fault.Limit:       abi.Limit,
	fault.Unavailable: abi.Unavailable,
	fault.Deadline:    abi.Deadline,
	fault.Internal:    abi.Internal,

	fault.RouteNotFound:        abi.NotFound,
	fault.MethodNotAllowed:     abi.Invalid,
	fault.MethodNotImplemented: abi.Invalid,
	fault.BadPath:              abi.Invalid,
	fault.InvalidRequest:       abi.Invalid,
	fault.HTTPVersion:          abi.Invalid,
	fault.InvalidJSON:          abi.Invalid,
	fault.InvalidInput:         abi.Invalid,
	fault.BadRequest:           abi.Invalid,
	fault.URITooLong:           abi.TooLarge,
	fault.HeadersTooLarge:      abi.TooLarge,
	fault.BodyTooLarge:         abi.TooLarge,
	fault.RequestTimeout:       abi.Deadline,
	fault.MissingCredentials:   abi.Denied,
	fault.InvalidToken:         abi.Denied,
	fault.MissingSignature:     abi.Denied,
	fault.InvalidSignature:     abi.Denied,
	fault.InsufficientScope:    abi.Denied,
	fault.InsufficientRole:     abi.Denied,
	fault.CrossOrigin:          abi.Denied,
	fault.Unauthorized:         abi.Denied,
	fault.Forbidden:            abi.Denied,
	fault.RateLimited:          abi.Limit,
	fault.Overloaded:           abi.Unavailable,
	fault.NotReady:             abi.Unavailable,
	fault.HandlerTimeout:       abi.Deadline,
	fault.HandlerFailed:        abi.Internal,
	fault.HandlerOutOfMemory:   abi.Internal,
	fault.HandlerUnavailable:   abi.Unavailable,
	fault.KeyStoreStale:        abi.Unavailable,
	fault.Error:                abi.Internal,
}
