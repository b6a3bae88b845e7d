package runtime

import (
	"bytes"
	"math"
	"time"

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
	writePath  = healthPath + "/write"
)

// ErrNoRelease means that the server waits for its first release, and needs nothing else.
var ErrNoRelease error = fault.New(fault.NotReady, "no release is active")

var errDraining = fault.New(fault.NotReady, "the server is shutting down")

var errHealthMethod = fault.New(fault.MethodNotAllowed, "method not supported on this path; allowed: GET, HEAD")

var (
	healthy = abi.Response{Status: 200, Body: []byte(`{"status":"ok"}`)}
	isReady = abi.Response{Status: 200, Body: []byte(`{"status":"ready"}`)}
	writes  = abi.Response{Status: 200, Body: []byte(`{"status":"writable"}`)}
)

// serveHealth answers a request for one of the health paths, and reports whether
// it was one.
func (r *Runtime) serveHealth(x *front.Exchange) bool {
	path := x.Request.Path
	if !bytes.HasPrefix(path, []byte(healthPath)) {
		return false
	}
	switch string(path) {
	case healthPath, livePath, readyPath, writePath:
	default:
		return false
	}
	if method := string(x.Request.Method); method != "GET" && method != "HEAD" {
		x.Refuse(errHealthMethod, front.Extra{Allow: "GET, HEAD"})
		return true
	}
	answer, err := &healthy, error(nil)
	switch string(path) {
	case readyPath:
		answer, err = &isReady, r.NotReady()
	case writePath:
		answer, err = &writes, r.NotWritable()
	}
	if err != nil {
		x.Refuse(err, front.Extra{RetryAfter: 1})
		return true
	}
	x.Send(answer)
	return true
}

// Drain makes the server not ready, so that a load balancer stops sending requests. It
// continues to serve them, and each answer ends its connection.
func (r *Runtime) Drain() {
	r.draining.Store(true)
	r.front.Drain()
}

// Reason is a kind of cause for not being ready. Each is set and removed independently of the others.
type Reason int

const (
	// NotLoaded: the release that should be active is not. The next activation removes it.
	NotLoaded Reason = iota
	// Clock: the clock differs from those of other nodes.
	Clock
	// Server: the etcd server of this voter does not run, or has no vote yet.
	Server
	reasons // their number
)

// SetNotReady makes the server not ready for a reason; a nil cause removes the reason. The detail of
// the cause can be read by anyone. Requests are served meanwhile if a bundle is active.
func (r *Runtime) SetNotReady(reason Reason, cause *fault.Fault) { r.notReady[reason].Store(cause) }

// NotReady returns the first reason why requests should go to another server, nil if
// there is none. It is ErrNoRelease only if there is no other one.
func (r *Runtime) NotReady() error {
	if r.draining.Load() {
		return errDraining
	}
	for i := range r.notReady {
		if cause := r.notReady[i].Load(); cause != nil {
			return cause
		}
	}
	health := r.opt.Store.Health()
	if health.Reason != nil {
		return fault.New(fault.NotReady, "%v", health.Reason)
	}
	if limit := r.opt.MaxStaleness; limit > 0 && health.Staleness > limit {
		return tooStale(health.Staleness, limit)
	}
	if cause := r.opt.Keystore.Ready(); cause != nil {
		return fault.New(fault.NotReady, "%v", cause)
	}
	if r.active.Load() == nil {
		return ErrNoRelease
	}
	return nil
}

// NotWritable returns the first reason why requests that write should go to another server, nil if there is
// none: the server is not ready, or its store accepts no commits.
func (r *Runtime) NotWritable() error {
	if err := r.NotReady(); err != nil {
		return err
	}
	if cause := r.opt.Store.Health().NotWritable; cause != nil {
		return fault.New(fault.NotReady, "%v", cause)
	}
	return nil
}

// tooStale is why a node that lags too far behind its cluster is not ready.
func tooStale(staleness, limit time.Duration) *fault.Fault {
	if staleness == math.MaxInt64 {
		return fault.New(fault.NotReady, "no connection to the cluster yet")
	}
	return fault.New(fault.NotReady, "no connection to the cluster for %v; the limit is %v",
		staleness.Truncate(time.Second), limit)
}
