package runtime

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"runner.example/hostabi"
	"runner.example/runtime/assets"
	"runner.example/runtime/auth"
	"runner.example/runtime/limit"
	"runner.example/runtime/router"
	"runner.example/runtime/sandbox"
	"runner.example/schema"
	"runner.example/state/entity"
	"runner.example/state/webhook"
)

// activeBundle is a bundle with its routes bound to their handlers. It serves requests until another bundle replaces
// it, and is closed after its last request. Once it serves, only its reference count and what retires it change.
type activeBundle struct {
	release    string // see Bundle.Release
	activation uint64 // counts the bundles that this process has activated
	schema     *schema.Schema
	router     *router.Router
	// routes are those of the router, followed by the functions and jobs that have no URL.
	routes          []route
	functions, jobs map[string]int // indexes into routes
	modules         []*sandbox.Module
	host            *hostabi.Host
	sites           []int          // indexes into routes of those with a site, those with the longest paths first
	assetFiles      map[string]int // the number of files of each directory of assets
	cors            bool           // a route has cors:
	cookie          string         // of sessions; "" if the app has none
	tokens          *auth.Tokens   // nil if the app accepts none
	public          *limit.Limit   // of requests to public hosts; nil if the app sends none
	// stopBackground ends its background tasks.
	stopBackground context.CancelFunc

	replaced chan struct{} // closed when another bundle is active

	refs        atomic.Int64
	retired     atomic.Bool
	drained     chan struct{} // closed when retired and no longer referenced
	drainedOnce sync.Once
}

// route is a route of the schema with what serving it needs.
type route struct {
	*schema.Route
	id        string // method and path
	module    *sandbox.Module
	input     *schema.ObjectType // type of the body; nil: any
	query     *schema.ObjectType // type of the query; nil: any
	fills     bool               // defaults are filled into the body
	result    *schema.Type       // type of a 200 or 201 answer; nil: any
	verify    *webhook.Verifier  // of the body's signature; nil: none
	limits    []*limit.Limit
	policy    []byte // of the undivided limits, for RateLimit-Policy
	shared    bool   // it is the path of the live routes of a prefix
	links     bool   // it is the path of signed links to files
	bodyBytes int64
	timeout   time.Duration
	metrics   *routeMetrics
	site      *assets.Site // whose files it serves; nil: it has a handler
}

func (a *activeBundle) limits() (all []*limit.Limit) {
	if a.public != nil {
		all = append(all, a.public)
	}
	for i := range a.routes {
		all = append(all, a.routes[i].limits...)
	}
	return all
}

// close closes the modules.
func (a *activeBundle) close(ctx context.Context) error {
	var all []error
	for _, m := range a.modules {
		all = append(all, m.Close(ctx))
	}
	return errors.Join(all...)
}

func (a *activeBundle) unref() {
	if a.refs.Add(-1) == 0 && a.retired.Load() {
		a.drainedOnce.Do(func() { close(a.drained) })
	}
}

// drain waits until the requests of a replaced bundle have finished.
func (a *activeBundle) drain() {
	a.refs.Add(1)
	a.retired.Store(true)
	a.unref()
	<-a.drained
}

// acquire returns the active bundle and counts a reference, which unref returns. It returns
// nil before the first activation.
func (r *Runtime) acquire() *activeBundle {
	for {
		a := r.active.Load()
		if a == nil {
			return nil
		}
		a.refs.Add(1)
		if a == r.active.Load() {
			return a
		}
		a.unref() // it was replaced between the two loads
	}
}

// retire closes a replaced bundle after its last request.
func (r *Runtime) retire(a *activeBundle) {
	close(a.replaced)
	a.stopBackground()
	r.retired.Go(func() {
		a.drain()
		if err := a.close(context.Background()); err != nil {
			r.opt.Logger.Error("release not closed", "cause", err)
		}
		r.returnMemory()
	})
}

// maxActive is how many active bundles a request may run on while the schema of its rows changes.
const maxActive = 3

// maxActivationWait is how long a request waits until an outdated bundle is replaced.
const maxActivationWait = time.Second

// onActive calls do with the active bundle. If its error matches entity.ErrOutdated, because the schema of the
// rows has changed meanwhile, do is called again with the bundle that is active then; n counts the calls
// from 1 on. The error is ErrNoRelease if nothing is active, and else that of the last call.
func (r *Runtime) onActive(do func(a *activeBundle, n int) error) error {
	a := r.acquire()
	if a == nil {
		return ErrNoRelease
	}
	defer func() { a.unref() }()
	for n := 1; ; n++ {
		err := do(a, n)
		if !errors.Is(err, entity.ErrOutdated) || n == maxActive {
			return err
		}
		next := r.awaitNext(a)
		if next == nil {
			return ErrNoRelease
		}
		a.unref()
		a = next
	}
}

// awaitNext waits until a is replaced, which is soon because the store has the next schema
// already. It returns the active bundle; nil: there is none.
func (r *Runtime) awaitNext(a *activeBundle) *activeBundle {
	ctx, stop := context.WithTimeout(r.serving, maxActivationWait)
	defer stop()
	select {
	case <-a.replaced:
	case <-ctx.Done():
	}
	return r.acquire()
}
