package runtime

import (
	"bytes"

	"runner.example/hostabi/abi"
	"runner.example/internal/fault"
	"runner.example/runtime/front"
)

// The paths of health checks. A schema cannot declare a path
// below /_health, so they are answered before the routes: without credentials,
// limits or a line in the log.
const (
	healthPath = "/_health"
	livePath   = healthPath + "/live"
	readyPath  = healthPath + "/ready"
)

var errDraining = fault.New(fault.NotReady, "the server is shutting down")

var errHealthMethod = fault.New(fault.MethodNotAllowed, "method not supported on this path; allowed: GET, HEAD")

var (
	healthy = abi.Response{Status: 200, Body: []byte(`{"status":"ok"}`)}
	isReady = abi.Response{Status: 200, Body: []byte(`{"status":"ready"}`)}
)

// serveHealth answers a request for one of the health paths, and reports whether
// it was one.
func (r *Runtime) serveHealth(x *front.Exchange) bool {
	path := x.Request.Path
	if !bytes.HasPrefix(path, []byte(healthPath)) {
		return false
	}
	switch string(path) {
	case healthPath, livePath, readyPath:
	default:
		return false
	}
	if method := string(x.Request.Method); method != "GET" && method != "HEAD" {
		x.Refuse(errHealthMethod, front.Extra{Allow: "GET, HEAD"})
		return true
	}
	if string(path) != readyPath {
		x.Send(&healthy)
		return true
	}
	if err := r.NotReady(); err != nil {
		x.Refuse(err, front.Extra{RetryAfter: 1})
		return true
	}
	x.Send(&isReady)
	return true
}

// Drain makes the server not ready, so that a load balancer stops sending requests. It
// continues to serve them.
func (r *Runtime) Drain() { r.draining.Store(true) }

// SetNotReady says why no release is active. It applies until one is.
func (r *Runtime) SetNotReady(cause *fault.Fault) { r.absent.Store(cause) }

// NotReady returns the first reason why requests should go to another server, nil if
// there is none.
func (r *Runtime) NotReady() error {
	if r.draining.Load() {
		return errDraining
	}
	if r.active.Load() == nil {
		if cause := r.absent.Load(); cause != nil {
			return cause
		}
		return errNotReady
	}
	if cause := r.opt.Store.Health().Reason; cause != nil {
		return fault.New(fault.NotReady, "%v", cause)
	}
	if cause := r.opt.Keystore.Ready(); cause != nil {
		return fault.New(fault.NotReady, "%v", cause)
	}
	return nil
}
