package runtime

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"runner.example/hostabi"
	"runner.example/hostabi/longwork"
	"runner.example/hostabi/outbound"
	"runner.example/hostabi/password"
	"runner.example/internal/clock"
	"runner.example/internal/fault"
	"runner.example/internal/settings"
	"runner.example/internal/telemetry"
	"runner.example/keystore"
	"runner.example/runtime/assets"
	"runner.example/runtime/auth"
	"runner.example/runtime/front"
	"runner.example/runtime/limit"
	"runner.example/runtime/live"
	"runner.example/runtime/recorded"
	"runner.example/runtime/sandbox"
	"runner.example/schema"
	"runner.example/state/entity"
	"runner.example/state/jobs"
	"runner.example/state/store"
)

// Options configure a Runtime. Store, Keystore and Logger are required; the rest have
// defaults.
type Options struct {
	Store    *store.Store
	Keystore *keystore.Keystore
	// Logger must redact secrets: traps and causes are logged.
	Logger *slog.Logger
	// Metrics measures requests; nil: nothing is measured.
	Metrics *telemetry.Metrics

	// Calendar says the time to handlers, in defaults, and for the counts of rate limits; nil: the machine's.
	// The Store and the Keystore have their own, and tokens of identity providers expire by the machine's.
	Calendar clock.Calendar

	Front   front.Options
	Live    live.Options
	Auth    auth.Options
	Sandbox sandbox.Options
	Limits  hostabi.Limits
	Jobs    jobs.Options
	// Outbound configures the requests that handlers send.
	Outbound outbound.Options
	// Passwords are the parameters of hashes of passwords, and how much is hashed at the same time.
	Passwords struct {
		Hashes   password.Options
		LongWork longwork.Options
	}
	RateLimits limit.Options
	// Record says what Recorded keeps; its owner opens it.
	Record recorded.Options
	// Recorded keeps recordings of runs; nil: nothing is recorded. Its owner closes it after the runtime.
	Recorded *recorded.Keeper
	// Compressed keeps the compressed forms of assets; nil: assets are sent as they are.
	Compressed *assets.Cache
	// BodyBytes limits the body of a route without `body:`; beyond that the answer is 413.
	BodyBytes int64 `toml:"front.body" unit:"size" default:"1mb" min:"1b" max:"1gb"`
	// WholeBodyBytes limits a body that the handler of a route with `stream:` reads as a whole; 0: as the route does.
	WholeBodyBytes int64
	// Timeout limits the time of a handler on a route without `timeout:`; beyond that the
	// answer is 504.
	Timeout time.Duration `toml:"runtime.timeout" default:"10s" min:"1ms" max:"1h"`
	// DrainTime is how long a shutdown waits before it begins, so that load balancers notice it:
	// meanwhile /_health/ready answers 503, and all requests are served, with Connection: close.
	// TimeoutStopSec of a systemd unit must be more than drain and shutdown_timeout together.
	DrainTime time.Duration `toml:"runtime.drain" default:"0s" max:"1h"`
	// ShutdownTimeout limits the time of a shutdown. Requests in flight are cut off a second
	// before its end.
	ShutdownTimeout time.Duration `toml:"runtime.shutdown_timeout" default:"10s" max:"1h"`
	// MaxStaleness is how far the store may lag behind the other nodes of its cluster; beyond that the
	// server is not ready. 0: any time. Auth.MaxStaleness limits what is still accepted.
	MaxStaleness time.Duration
	// Unrouted answers the requests that no route matches, in place of the assets; nil: assets are served, and other requests
	// refused. Requests that it answers have no line in the access log.
	Unrouted http.Handler
	// Tools answers the requests below ToolsPath before the routes, for a developer. Nil: this path is as others. With it
	// assets are not compressed.
	Tools http.Handler
	// AccessLog writes one log line for every request.
	AccessLog bool `toml:"telemetry.access_log" reload:"true"`
	// AccessDetail adds to that line the raw path, which may contain personal data, and the
	// text of a refusal. It is for the developer's terminal.
	AccessDetail bool
}

// ToolsPath is the path of the tools of a developer.
const ToolsPath = "/_dev/"

// Runtime serves one app at a time. Its methods may be called by any goroutine; Close is
// called last.
type Runtime struct {
	opt      Options
	front    *front.Server
	auth     *auth.Authenticator
	limiter  *limit.Limiter
	engine   *sandbox.Engine
	client   *outbound.Client
	longWork *longwork.Slots
	requests sync.Pool // of *requestState
	streams  streams
	live     *live.Hub[liveQuery]
	watchers *watchers

	jobs       jobRunner
	active     atomic.Pointer[activeBundle]
	notReady   [reasons]atomic.Pointer[fault.Fault]
	draining   atomic.Bool
	accessLog  atomic.Bool
	metrics    *metrics
	activating sync.Mutex
	retired    sync.WaitGroup // those replaced that still serve requests, or whose memory is not returned yet
	returning  atomic.Bool    // returnMemory waits
	background sync.WaitGroup // goroutines that New started
	// serving is cancelled when handlers must stop.
	serving      context.Context
	stopHandlers context.CancelFunc
	// fork is what a fork has of its own: the modules and the engine are another runtime's, and jobs run by RunJobs
	// alone. Nil: it is none.
	fork *ForkOptions
}

// New returns a runtime without an app: until Activate, requests are refused with
// not_ready.
func New(opt Options) (*Runtime, error) {
	settings.FillZero(&opt)
	opt.Calendar = opt.Calendar.Or()
	opt.Front.Logger, opt.Auth.Logger, opt.Sandbox.Logger = opt.Logger, opt.Logger, opt.Logger
	opt.Front.Metrics, opt.Auth.Metrics, opt.Sandbox.Metrics = opt.Metrics, opt.Metrics, opt.Metrics
	if err := opt.Front.Validate(); err != nil {
		return nil, fault.New(fault.Invalid, "[front] %v", err)
	}
	engine, err := sandbox.New(context.Background(), opt.Sandbox)
	if err != nil {
		return nil, err
	}
	r, err := newRuntime(opt, engine, longwork.New(opt.Passwords.LongWork))
	if err != nil {
		return nil, errors.Join(err, engine.Close(context.Background()))
	}
	r.addGauges() // after all else, because the metrics may be read at once
	r.background.Go(func() { r.auth.Run(r.serving) })
	r.background.Go(func() { r.sweepDeliveries(r.serving) })
	r.background.Go(func() { r.sweepJobs(r.serving) })
	r.background.Go(func() { r.takeOver(r.serving) })
	return r, nil
}

// newRuntime returns a runtime without background tasks.
func newRuntime(opt Options, engine *sandbox.Engine, longWork *longwork.Slots) (*Runtime, error) {
	r := &Runtime{
		opt: opt, engine: engine, client: outbound.New(opt.Outbound), longWork: longWork,
		limiter: limit.New(opt.Calendar(), opt.RateLimits),
	}
	var err error
	if r.jobs.queue, err = openJobs(opt); err != nil {
		return nil, err
	}
	r.auth = auth.New(opt.Store, opt.Keystore, opt.Auth)
	r.accessLog.Store(opt.AccessLog)
	r.metrics = newMetrics(opt.Metrics)
	r.requests.New = func() any { return new(requestState) }
	r.jobs.runs.New = func() any { return new(invocation) }
	opt.Front.BeforeRefusal, opt.Front.AnyHost = r.allowRefusal, healthPath
	r.front = front.New(opt.Front, r.serve)
	r.live, r.watchers = r.newLive(), newWatchers(r.front.ConnLimit()/8*7)
	r.serving, r.stopHandlers = context.WithCancel(context.Background())
	return r, nil
}

// Reconfigure takes the settings from opt that may change while the server runs: AccessLog,
// and of Front what front.Server.Reconfigure takes. It may be called by any goroutine.
func (r *Runtime) Reconfigure(opt Options) {
	r.accessLog.Store(opt.AccessLog)
	r.front.Reconfigure(opt.Front)
}

// SetNode says which node of its cluster this is: the index, from 0 on, among so many nodes, in an order
// that is the same on all of them. With RateLimits.AcrossNodes "divided" it gives this node its part of all rate
// limits, see limit.Limiter.Divide. Any goroutine may call it, at any time.
func (r *Runtime) SetNode(index, nodes int) {
	if r.opt.RateLimits.AcrossNodes == "divided" {
		r.limiter.Divide(index, nodes)
	}
}

// RouteDefaults returns the limit of a body and the timeout of routes that declare none.
func (r *Runtime) RouteDefaults() (bodyBytes int64, timeout time.Duration) {
	return r.opt.BodyBytes, r.opt.Timeout
}

// AssetFiles returns the number of files of each directory of assets of the active bundle, which the caller must not change.
func (r *Runtime) AssetFiles() map[string]int {
	if a := r.active.Load(); a != nil {
		return a.assetFiles
	}
	return nil
}

// Authenticator returns what checks the credentials of requests.
func (r *Runtime) Authenticator() *auth.Authenticator { return r.auth }

// Serve serves ln, and closes it, until Shutdown; then it returns nil.
func (r *Runtime) Serve(ln net.Listener) error { return r.front.Serve(ln) }

// Schema returns the schema of the active app, nil before the first activation.
func (r *Runtime) Schema() *schema.Schema {
	if a := r.active.Load(); a != nil {
		return a.schema
	}
	return nil
}

// Entities returns the model of the active app's rows, nil before the first activation.
func (r *Runtime) Entities() (*entity.Model, error) {
	if a := r.active.Load(); a != nil {
		return a.host.Entities, nil
	}
	return nil, nil
}

// Shutdown stops accepting, and claiming jobs, and waits for the requests and the runs of jobs that
// have begun. If ctx ends first, it stops their handlers and returns the error of ctx.
func (r *Runtime) Shutdown(ctx context.Context) error {
	r.jobs.stop()
	r.watchers.end()
	err := cmp.Or(r.front.Shutdown(ctx), r.jobs.wait(ctx))
	if err != nil {
		r.stopHandlers()
	}
	return err
}

// Close stops the background tasks and frees all resources. It is called after Serve has
// returned.
func (r *Runtime) Close() error {
	r.jobs.stop()
	r.stopHandlers()
	r.watchers.end()
	r.live.Close()
	r.background.Wait()
	r.jobs.queue.Close()
	if a := r.active.Swap(nil); a != nil && r.fork == nil {
		r.retire(a)
	}
	r.retired.Wait()
	r.client.Close()
	if r.fork != nil {
		return nil
	}
	r.longWork.Close()
	if err := r.engine.Close(context.Background()); err != nil {
		return fmt.Errorf("close the sandboxes: %w", err)
	}
	return nil
}
