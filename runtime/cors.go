package runtime

import (
	"slices"

	"runner.example/runtime/front"
	"runner.example/runtime/router"
)

// How pages of other origins may use a route whose schema says cors: the CORS
// protocol of the Fetch standard.
const (
	anyOrigin      = "*"
	preflightAge   = "600" // seconds that a browser may keep a preflight's answer
	exposedHeaders = "RateLimit, RateLimit-Policy, Retry-After, X-Request-Id"
)

// preflight answers the question of a browser whether a page may send a request to a
// route that says cors:. It reports whether there was one: to other routes, and of
// other kinds, OPTIONS is a request like another.
func preflight(rel *release, v *visit, x *front.Exchange) bool {
	if !rel.cors || string(x.Request.Method) != "OPTIONS" {
		return false
	}
	_, origins := x.Header("origin")
	v.match.Params = x.Request.Params[:0]
	method, methods := x.Header("access-control-request-method")
	if origins != 1 || methods != 1 || rel.router.Match(method, x.Request.Path, &v.match) != router.Found {
		return false
	}
	rt := &rel.routes[v.match.Route]
	if rt.CORS == nil {
		return false
	}
	if rt.allowOrigin(x) {
		x.AddHeader("Access-Control-Allow-Methods", []byte(rt.Method))
		if headers, lines := x.Header("access-control-request-headers"); lines == 1 {
			x.AddHeader("Access-Control-Allow-Headers", headers)
		}
		x.AddHeader("Access-Control-Max-Age", []byte(preflightAge))
	}
	x.Send(&noContent)
	return true
}

// allowRefusal lets a page read why its request was refused before it came to a route.
func (r *Runtime) allowRefusal(x *front.Exchange) {
	rel := r.enter()
	if rel == nil {
		return
	}
	defer rel.leave()
	if !rel.cors {
		return
	}
	v := r.visits.Get().(*visit)
	defer r.visits.Put(v)
	v.match.Params = x.Request.Params[:0]
	if rel.router.Match(x.Request.Method, x.Request.Path, &v.match) == router.Found {
		rel.routes[v.match.Route].allowOrigin(x)
	}
}

// allowOrigin lets the page that has sent the request read its answer, whatever that
// will be, and reports whether it may.
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
