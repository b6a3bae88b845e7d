package runtime

import (
	"errors"

	"runner.example/internal/caller"
	"runner.example/internal/fault"
	"runner.example/schema"
)

// ObservedLimit is the part that an observer reads for rate limits. The rule is the ID of the limit.
const ObservedLimit = "rate limit"

// The rules that an observer reads for a route.
const (
	ObservedNone    = "none"    // the auth mode none
	ObservedSession = "session" // the auth mode session
	ObservedKey     = "apiKey"  // the auth mode apiKey
	ObservedInput   = "input"   // the type of the body
	ObservedQuery   = "query"   // the type of the query
)

// observeAuth reports which auth mode of a route accepted a request, or which modes refused it.
func observeAuth(observe schema.Observer, rt *route, who *caller.Caller, err error) {
	code := fault.CodeOf(err)
	switch {
	case err == nil && who.Kind == caller.APIKey:
		observe(rt.id, ObservedKey, true)
	case err == nil && who.Kind == caller.Session:
		observe(rt.id, ObservedSession, true)
	case err == nil:
		observe(rt.id, ObservedNone, true)
	case code == fault.InsufficientScope:
		observe(rt.id, ObservedKey, false)
	case code == fault.InsufficientRole || code == fault.CrossOrigin:
		observe(rt.id, ObservedSession, false)
	case code == fault.MissingCredentials || code == fault.InvalidToken:
		if rt.Auth.Session {
			observe(rt.id, ObservedSession, false)
		}
		if len(rt.Auth.Scopes) > 0 {
			observe(rt.id, ObservedKey, false)
		}
	}
}

// observeInput reports whether a body or a query matches the type of its route.
func observeInput(observe schema.Observer, rt *route, err error) {
	_, wrong := errors.AsType[*inputError](err)
	if err != nil && !wrong {
		return
	}
	if rt.query != nil {
		observe(rt.id, ObservedQuery, !wrong)
	} else if rt.input != nil {
		observe(rt.id, ObservedInput, !wrong)
	}
}
