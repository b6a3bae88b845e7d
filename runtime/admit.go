package runtime

import (
	"net/netip"
	"time"

	"runner.example/internal/caller"
	"runner.example/internal/fault"
	"runner.example/runtime/auth"
	"runner.example/runtime/front"
	"runner.example/runtime/limit"
	"runner.example/runtime/router"
)

// admit finds the route, authenticates the caller and, unless the request has been admitted before to a bundle
// that was active then, counts the request. It reports whether the host itself has answered.
func (r *Runtime) admit(a *activeBundle, s *requestState, x *front.Exchange, now time.Time, counts bool) (answered bool, err error) {
	if answered, err := a.findRoute(s, x); answered || err != nil {
		return answered, err
	}
	if counts {
		s.route.allowOrigin(x)
	}
	if s.route.shared || s.route.links { // each watch is admitted; a link is itself the credential
		return false, nil
	}
	if !counts {
		return false, r.authenticate(a, s, x, now)
	}
	epoch := r.opt.Keystore.Epoch()
	if err := r.authenticate(a, s, x, now); err != nil {
		return false, err
	}
	if err := r.count(a, s, x); err != nil {
		return false, err
	}
	if r.opt.Keystore.Epoch() != epoch { // a key or a session has changed meanwhile
		return false, r.authenticate(a, s, x, now)
	}
	return false, nil
}

// findRoute matches the request with the routes. It reports whether it has answered: a
// CORS preflight, or OPTIONS for a path without such a route.
func (a *activeBundle) findRoute(s *requestState, x *front.Exchange) (answered bool, err error) {
	x.Realm = a.schema.App
	s.route = nil
	s.match.Params = x.Request.Params[:0]
	outcome := a.router.Match(x.Request.Method, x.Request.Path, &s.match)
	if a.cors && string(x.Request.Method) == "OPTIONS" && a.answerPreflight(s, x) {
		return true, nil
	}
	if outcome != router.Found && outcome != router.BadPath {
		if answered, err := a.findAssets(s, x, outcome); answered || s.route != nil || err != nil {
			return answered, err
		}
	}
	switch outcome {
	case router.Found:
	case router.Options:
		x.AddHeader("Allow", []byte(s.match.Allow))
		x.Send(&noContent)
		return true, nil
	case router.MethodNotAllowed:
		return false, fault.New(fault.MethodNotAllowed, "method not supported on this path; allowed: %s", s.match.Allow)
	case router.BadPath:
		return false, errBadPath
	default:
		return false, errRouteNotFound
	}
	s.route = &a.routes[s.match.Route]
	x.Request.Route, x.Request.Params = s.route.Path, s.match.Params
	return false, nil
}

// authenticate checks the credential against the route's auth mode and sets the caller.
func (r *Runtime) authenticate(a *activeBundle, s *requestState, x *front.Exchange, now time.Time) (err error) {
	rt := s.route
	presented := a.present(x)
	if rt.Auth.ChecksCredentials() {
		x.Varies, x.Private = true, !rt.Auth.None
		x.StripCredentials(a.cookie)
	}
	if rt.Auth.Session || rt.CreatesSession {
		a.presentCookie(&presented, x)
	}
	s.presented = presented
	s.caller, err = r.auth.Check(r.serving, a.schema, a.tokens, rt.Route, presented, now)
	if a.host.Observe != nil {
		observeAuth(a.host.Observe, rt, &s.caller, err)
	}
	if err != nil {
		s.caller = caller.Caller{}
		return err
	}
	s.session = s.caller.SessionID
	s.clearsCookie = rt.Auth.Session && presented.Cookies > 0 && s.caller.Kind == caller.Anonymous
	if rt.Auth.None && s.caller.Kind != caller.Anonymous {
		x.Private, x.Unshared = true, true
	}
	if !rt.Auth.Session && rt.CreatesSession {
		s.session = r.auth.SessionOf(a.schema, presented)
	}
	return nil
}

// present returns what the request says about its sender, without its cookie.
func (a *activeBundle) present(x *front.Exchange) auth.Presented {
	credentials := x.Credentials()
	return auth.Presented{
		Authorization: credentials.Authorization, AuthorizationLines: credentials.AuthorizationLines,
		APIKey: credentials.APIKey, APIKeyLines: credentials.APIKeyLines,
		Address: x.Address(), Request: &x.Request,
	}
}

// presentCookie adds the cookie of a session, and what says which page has sent it.
func (a *activeBundle) presentCookie(p *auth.Presented, x *front.Exchange) {
	if a.cookie == "" {
		return
	}
	p.Cookie, p.Cookies = x.Cookie(a.cookie)
	p.Method = x.Request.Method
	p.Host, _ = x.Header("host")
	p.Origin, p.OriginLines = x.Header("origin")
	p.FetchSite, p.FetchSiteLines = x.Header("sec-fetch-site")
}

// count counts the request against the route's limits, and adds the headers that say what
// remains.
func (r *Runtime) count(a *activeBundle, s *requestState, x *front.Exchange) error {
	rt := s.route
	if len(rt.limits) == 0 {
		return nil
	}
	allowed := r.takeLimits(a, s, x.Address())
	s.remaining = limit.AppendState(s.remaining[:0], s.uses)
	policy := rt.policy
	if r.limiter.IsDivided() {
		s.policy = limit.AppendPolicy(s.policy[:0], s.uses)
		policy = s.policy
	}
	x.AddHeader("RateLimit-Policy", policy)
	x.AddHeader("RateLimit", s.remaining)
	if !allowed {
		return errRateLimited
	}
	return nil
}

// takeLimits counts a request from the address against the limits of its route, and reports whether all of them admit it.
func (r *Runtime) takeLimits(a *activeBundle, s *requestState, address netip.Addr) (allowed bool) {
	if len(s.route.limits) == 0 {
		return true
	}
	s.uses, s.names = s.uses[:0], s.names[:0]
	for _, l := range s.route.limits {
		start := len(s.names)
		s.names = l.AppendCaller(s.names, &s.caller, address)
		s.uses = append(s.uses, limit.Use{Limit: l, Caller: s.names[start:]})
	}
	allowed = r.limiter.Take(r.opt.Calendar(), s.uses)
	if observe := a.host.Observe; observe != nil {
		for i := range s.uses {
			observe(ObservedLimit, s.route.Limits[i].ID, !s.uses[i].Refused)
		}
	}
	return allowed
}
