package runtime

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"runner.example/hostabi"
	"runner.example/hostabi/recording"
	"runner.example/internal/clock"
	"runner.example/keystore"
	"runner.example/runtime/auth"
	"runner.example/schema"
	"runner.example/state/entity"
	"runner.example/state/jobs"
	"runner.example/state/store"
)

// ForkOptions are the parts of a fork that differ from the runtime that is forked. Store, Keystore, Logger and Calendar
// are required. Any goroutine may call the functions.
type ForkOptions struct {
	// Store is a fork of the store of the runtime that is forked, see store.Store.Fork.
	Store    *store.Store
	Keystore *keystore.Keystore
	// Logger is Options.Logger. The access log goes there too.
	Logger *slog.Logger
	// Calendar is the clock of the fork. The Store and the Keystore have their own.
	Calendar clock.Calendar
	// Sleep is hostabi.Host.Sleep.
	Sleep func(time.Duration)
	// Outbound answers the requests of handlers; nil: they are sent.
	Outbound http.RoundTripper
	// Seeds gives the seed of the random bytes of each run of a handler; nil: they are random.
	Seeds func() [32]byte
	// Trace is called with each run of a handler when it has ended, before its answer is sent. It may be nil. It owns the
	// recording, which has the values of secrets.
	Trace func(*recording.Recording)
	// Observe is called with each decision of the schema. It may be nil.
	Observe schema.Observer
	// TokenKeys is a JWKS whose keys sign the tokens of the app's identity provider, in place of the provider's; nil: they are
	// the provider's.
	TokenKeys []byte
}

// Fork returns a runtime that serves what is active in r, on another store. It shares the modules, their images and
// their compiled code with r; rate limits, sessions, jobs and all else is its own. It has no background tasks: jobs run
// only in RunJobs. r must stay open, and keep its active bundle, until the fork is closed.
func (r *Runtime) Fork(ctx context.Context, own ForkOptions) (*Runtime, error) {
	from := r.acquire()
	if from == nil {
		return nil, ErrNoRelease
	}
	defer from.unref()
	opt := r.opt
	opt.Store, opt.Keystore, opt.Logger, opt.Calendar, opt.Metrics = own.Store, own.Keystore, own.Logger, own.Calendar, nil
	opt.Front.Logger, opt.Auth.Logger = own.Logger, own.Logger
	opt.Front.Metrics, opt.Auth.Metrics, opt.Recorded = nil, nil, nil
	opt.Outbound.Answer, opt.AccessLog = own.Outbound, true
	fork, err := newRuntime(opt, r.engine, r.longWork)
	if err != nil {
		return nil, err
	}
	fork.fork = &own
	tokens, err := auth.NewTokens(from.schema, auth.TokenOptions{
		Logger: own.Logger, Before: from.tokens, Keys: own.TokenKeys, Calendar: own.Calendar,
	})
	if err != nil {
		return nil, errors.Join(err, fork.Close())
	}
	host := *from.host
	host.Keystore, host.Store, host.Logger, host.Calendar, host.Sleep = own.Keystore, own.Store, own.Logger, own.Calendar, own.Sleep
	host.Outbound, host.Jobs, host.TakePublic, host.Observe = fork.client, fork.jobs.queue, nil, own.Observe
	host.Entities, err = entity.Current(ctx, own.Store, from.schema, entity.Options{
		CursorKey: own.Keystore.Derive("cursors"), Logger: own.Logger,
	})
	if err == nil && host.Entities == nil {
		err = entity.ErrOutdated
	}
	if err != nil {
		return nil, errors.Join(err, fork.Close())
	}
	a := &activeBundle{
		release: from.release, schema: from.schema, router: from.router, functions: from.functions, jobs: from.jobs,
		host: hostabi.NewHost(host), cors: from.cors, cookie: from.cookie, tokens: tokens,
		routes:         append([]route(nil), from.routes...),
		stopBackground: func() {}, replaced: make(chan struct{}), drained: make(chan struct{}),
	}
	fork.addLimits(a)
	fork.attachMetrics(a)
	fork.active.Store(a)
	fork.notReady[NotLoaded].Store(nil)
	fork.jobs.queue.SetSchema(a.schema)
	return fork, nil
}

// RunJobs runs the jobs that are due, and those that these enqueue and that are due then, until none is left. A
// schedule fires once for its time. r must be a fork. One goroutine at a time may call it.
func (r *Runtime) RunJobs(ctx context.Context) error {
	for {
		claimed, err := r.jobs.queue.Claim(ctx)
		var running sync.WaitGroup
		for _, c := range claimed {
			running.Go(func() { r.runForked(c) })
		}
		running.Wait()
		if err != nil || len(claimed) == 0 {
			return err
		}
	}
}

func (r *Runtime) runForked(c *jobs.Claimed) {
	defer r.jobs.queue.Ended(c)
	r.runJob(c)
}
