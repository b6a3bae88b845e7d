package runtime

import (
	"slices"

	"runner.example/runtime/front"
	"runner.example/runtime/router"
)

// The CORS protocol of the Fetch Standard, for routes with cors:.
const (
	anyOrigin      = "*"
	preflightAge   = "600" // seconds that browsers may cache a preflight
	exposedHeaders = "RateLimit, RateLimit-Policy, Retry-After, X-Request-Id"
)

// answerPreflight answers a CORS preflight: OPTIONS with an origin and a method, to a route
// with cors:. It reports whether the request was one.
func (a *activeBundle) answerPreflight(s *requestState, x *front.Exchange) bool {
	method, _ := x.Header("access-control-request-method")
	i, ok := s.match.RouteOf(method)
	if !ok || !a.routes[i].isPreflight(x) {
		return false
	}
	a.routes[i].answerPreflight(x)
	return true
}

// isPreflight reports whether a request is a CORS preflight, and the route has cors:.
func (rt *route) isPreflight(x *front.Exchange) bool {
	_, origins := x.Header("origin")
	_, methods := x.Header("access-control-request-method")
	return origins == 1 && methods == 1 && rt.CORS != nil
}

// answerPreflight answers a CORS preflight to the route.
func (rt *route) answerPreflight(x *front.Exchange) {
	method, _ := x.Header("access-control-request-method")
	if rt.allowOrigin(x) {
		x.AddHeader("Access-Control-Allow-Methods", rt.preflightMethods(method))
		if headers, lines := x.Header("access-control-request-headers"); lines == 1 {
			x.AddHeader("Access-Control-Allow-Headers", headers)
		}
		x.AddHeader("Access-Control-Max-Age", []byte(preflightAge))
	}
	x.Send(&noContent)
}

// preflightMethods are the methods that the route allows to a page that has asked for one.
func (rt *route) preflightMethods(asked []byte) []byte {
	if rt.Method == router.Any {
		return asked
	}
	return []byte(rt.Method)
}

// allowRefusal adds CORS headers to a refusal before routing, so that pages can read it.
func (r *Runtime) allowRefusal(x *front.Exchange) {
	a := r.acquire()
	if a == nil {
		return
	}
	defer a.unref()
	if !a.cors {
		return
	}
	s := r.requests.Get().(*requestState)
	defer r.requests.Put(s)
	s.match.Params = x.Request.Params[:0]
	if a.router.Match(x.Request.Method, x.Request.Path, &s.match) == router.Found {
		a.routes[s.match.Route].allowOrigin(x)
	}
}

// allowOrigin adds the CORS headers of the route for the request's origin, and reports
// whether its pages may read the answer.
func (rt *route) allowOrigin(x *front.Exchange) bool {
	if rt.CORS == nil {
		return false
	}
	if !slices.Contains(rt.CORS, anyOrigin) {
		x.AddHeader("Vary", []byte("Origin"))
	}
	origin, lines := x.Header("origin")
	switch {
	case lines != 1:
		return false
	case slices.Contains(rt.CORS, anyOrigin):
		x.AddHeader("Access-Control-Allow-Origin", []byte(anyOrigin))
	case slices.Contains(rt.CORS, string(origin)):
		x.AddHeader("Access-Control-Allow-Origin", origin)
		if rt.Auth.Session {
			x.AddHeader("Access-Control-Allow-Credentials", []byte("true"))
		}
	default:
		return false
	}
	x.AddHeader("Access-Control-Expose-Headers", []byte(exposedHeaders))
	return true
}
