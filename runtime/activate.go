package runtime

import (
	"context"
	"errors"
	"time"

	"runner.example/hostabi"
	"runner.example/hostabi/outbound"
	"runner.example/internal/diag"
	"runner.example/internal/fault"
	"runner.example/runtime/auth"
	"runner.example/runtime/limit"
	"runner.example/runtime/router"
	"runner.example/runtime/sandbox"
	"runner.example/schema"
	"runner.example/state/entity"
	"runner.example/state/store"
	"runner.example/state/webhook"
)

// Activation says how Activate changes the store.
type Activation struct {
	// Also, if not nil, is called in the transaction that activates the schema of the rows. If it returns an
	// error, nothing is activated. It may be called several times, because a transaction runs again after a conflict.
	Also func(*store.Tx) error
	// KeepRemoved keeps entities and fields of rows that the schema does not declare, instead of
	// refusing it.
	KeepRemoved bool
}

// Activate compiles the modules, binds every route to its handler, activates the schema in
// the store, and replaces the active bundle. After an error the previous bundle stays active
// and the store is unchanged. The error is an *UnboundError, an
// *catalog.ChangeError, or a fault with the code Invalid about a module or a secret.
func (r *Runtime) Activate(ctx context.Context, bundle *Bundle, how Activation) error {
	r.activating.Lock()
	defer r.activating.Unlock()
	a, err := r.bindWithLimits(ctx, bundle)
	if err != nil {
		return err
	}
	a.host.Entities, err = entity.Activate(ctx, r.opt.Store, bundle.Schema, bundle.Sources, entity.Options{
		CursorKey: r.opt.Keystore.Derive("cursors"), Logger: r.opt.Logger, Also: how.Also, KeepRemoved: how.KeepRemoved,
	})
	if err != nil {
		return errors.Join(err, a.close(ctx))
	}
	// The store has the new schema from here on: nothing may fail any more.
	r.replace(a, bundle.Sources)
	return nil
}

// Follow makes a bundle active whose schema another node of the cluster has activated
// in the store: it is Activate without a change of the store. The error is ErrOutdated if the schema
// is not the active one any more, and else one of Activate.
func (r *Runtime) Follow(ctx context.Context, bundle *Bundle) error {
	r.activating.Lock()
	defer r.activating.Unlock()
	a, err := r.bindWithLimits(ctx, bundle)
	if err != nil {
		return err
	}
	a.host.Entities, err = entity.Current(ctx, r.opt.Store, bundle.Schema, entity.Options{
		CursorKey: r.opt.Keystore.Derive("cursors"), Logger: r.opt.Logger,
	})
	if err == nil && a.host.Entities == nil {
		err = entity.ErrOutdated
	}
	if err != nil {
		return errors.Join(err, a.close(ctx))
	}
	r.replace(a, bundle.Sources)
	return nil
}

// Prepare compiles and binds the bundle as Activate does. Its compiled modules are kept until discard is called,
// which the caller does once, so a later activation does not compile them again. It waits for no activation. The
// errors are those of Activate about modules and secrets.
func (r *Runtime) Prepare(ctx context.Context, bundle *Bundle) (discard func() error, err error) {
	a, err := r.bind(ctx, bundle)
	if err != nil {
		return nil, err
	}
	return func() error { return a.close(context.Background()) }, nil
}

// replace makes a the active bundle, retires the previous one, and starts the background tasks and jobs of a.
func (r *Runtime) replace(a *activeBundle, sources []diag.Source) {
	r.attachMetrics(a)
	old := r.active.Load()
	if old != nil {
		a.activation = old.activation + 1
	}
	r.active.Store(a)
	r.engine.DiscardSymbols()
	if old != nil {
		r.retire(old)
	} else {
		// Loading left several times the size of the modules as garbage, and a server may not
		// allocate enough for a long time to collect it. The caller still has their files.
		r.background.Go(r.returnMemory)
	}
	r.notReady[NotLoaded].Store(nil)
	r.limiter.Retain(a.limits())
	r.startBackground(a, sources)
	r.startJobs(a.schema)
}

// bindWithLimits is bind, and creates the rate limits of the routes. After an error no limit was created.
func (r *Runtime) bindWithLimits(ctx context.Context, bundle *Bundle) (*activeBundle, error) {
	a, err := r.bind(ctx, bundle)
	if err != nil {
		return nil, err
	}
	r.addLimits(a)
	return a, nil
}

// addLimits creates the rate limits of the routes.
func (r *Runtime) addLimits(a *activeBundle) {
	for i := range a.routes {
		bound := &a.routes[i]
		bound.limits = nil
		var uses []limit.Use
		for _, l := range bound.Limits {
			counted := r.limiter.Limit(limit.Spec{ID: l.ID, Count: l.Count, Per: l.Per, By: l.By})
			bound.limits = append(bound.limits, counted)
			uses = append(uses, limit.Use{Limit: counted})
		}
		bound.policy = limit.AppendWholePolicy(nil, uses)
	}
	if a.schema.OutboundPublic {
		a.public = r.limiter.Limit(limit.Spec{
			ID: "[outbound] public_rate", Count: r.client.PublicRate(), Per: time.Minute, By: "tenant",
		})
		a.host.TakePublic = func(tenant string) bool { return r.takePublic(a.public, tenant) }
	}
}

// bind compiles the modules of the bundle and binds its routes to their handlers. It changes neither the active
// bundle nor the rate limits.
func (r *Runtime) bind(ctx context.Context, bundle *Bundle) (*activeBundle, error) {
	origins, err := outbound.ParseOrigins(bundle.Schema.Outbound)
	if err != nil {
		return nil, err
	}
	var before *auth.Tokens
	if old := r.active.Load(); old != nil {
		before = old.tokens
	}
	tokens, err := auth.NewTokens(bundle.Schema, auth.TokenOptions{Logger: r.opt.Logger, Before: before})
	if err != nil {
		return nil, err
	}
	modules, err := load(ctx, r.engine, bundle)
	if err != nil {
		return nil, err
	}
	a := &activeBundle{
		release:   bundle.Release,
		tokens:    tokens,
		schema:    bundle.Schema,
		functions: map[string]int{},
		jobs:      map[string]int{},
		modules:   modules,
		replaced:  make(chan struct{}),
		drained:   make(chan struct{}),
		host: hostabi.NewHost(hostabi.Host{
			Keystore: r.opt.Keystore, Store: r.opt.Store, Schema: bundle.Schema, Secrets: bundle.Secrets, Logger: r.opt.Logger, Limits: r.opt.Limits,
			Origins: origins.WithPublic(bundle.Schema.OutboundPublic), Outbound: r.client,
			Passwords: r.opt.Passwords.Hashes, LongWork: r.longWork,
			Jobs: r.jobs.queue, KeepJobs: r.opt.Jobs.Keep, Calendar: r.opt.Calendar,
		}),
	}
	if declared := bundle.Schema.Auth.Cookie; declared != nil {
		a.cookie = declared.Name
	}
	exporters, named := map[string]*sandbox.Module{}, namesHandler(bundle.Schema)
	for _, m := range modules {
		for _, name := range m.Offers(named) {
			exporters[name] = m
		}
	}
	for i := range bundle.Schema.Routes {
		declared := &bundle.Schema.Routes[i]
		input := bundle.Schema.Type(declared.Input)
		a.routes = append(a.routes, route{
			Route: declared, input: input, fills: input.HasDefaults(), query: bundle.Schema.Type(declared.Query),
			result: declared.Result,
		})
	}
	a.addLivePaths()
	a.addLinkPath()
	a.addFunctions(true)
	templates := make([]router.Route, len(a.routes))
	a.addFunctions(false)
	if r.opt.Unrouted == nil {
		a.addAssets(bundle, r.opt.Store)
	}
	a.addJobs()
	for i := range a.routes {
		bound := &a.routes[i]
		declared := bound.Route
		a.cors = a.cors || declared.CORS != nil
		if i < len(templates) {
			templates[i] = router.Route{Method: declared.Method, Path: declared.Path}
		}
		bound.id, bound.module = declared.Method+" "+declared.Path, exporters[declared.Handler]
		if bound.site != nil {
			bound.id = "assets " + declared.Path
		}
		bound.bodyBytes, bound.timeout = r.opt.BodyBytes, r.opt.Timeout
		if declared.BodyBytes > 0 {
			bound.bodyBytes = declared.BodyBytes
		}
		if declared.Timeout > 0 {
			bound.timeout = declared.Timeout
		}
	}
	for i := range bundle.Schema.Jobs {
		exporters[bundle.Schema.Jobs[i].Name].SetBackground(bundle.Schema.Jobs[i].Name)
	}
	a.router = router.New(templates)
	var unusable []error
	for i := range a.routes {
		rt := &a.routes[i]
		var err error
		if rt.verify, err = verifierOf(bundle, rt.Route); err != nil {
			unusable = append(unusable, err)
		}
	}
	if unusable != nil {
		return nil, errors.Join(append(unusable, a.close(ctx))...)
	}
	return a, nil
}

// CheckSettings returns the errors of Activate that do not depend on the modules and the rows: about origins, the keys of
// tokens, and secrets of webhooks.
func CheckSettings(bundle *Bundle) error {
	_, origins := outbound.ParseOrigins(bundle.Schema.Outbound)
	_, tokens := auth.NewTokens(bundle.Schema, auth.TokenOptions{})
	all := []error{origins, tokens}
	for i := range bundle.Schema.Routes {
		_, err := verifierOf(bundle, &bundle.Schema.Routes[i])
		all = append(all, err)
	}
	for i := range bundle.Schema.Functions {
		_, err := verifierOf(bundle, bundle.Schema.Functions[i].Route())
		all = append(all, err)
	}
	return errors.Join(all...)
}

// addFunctions adds the functions that are exposed, or those that are not exposed.
func (a *activeBundle) addFunctions(exposed bool) {
	for i := range a.schema.Functions {
		if f := &a.schema.Functions[i]; f.Exposed == exposed {
			a.functions[f.Name] = len(a.routes)
			a.routes = append(a.routes, route{Route: f.Route(), input: f.Input(), fills: true, result: f.Result})
		}
	}
}

// addJobs adds the jobs, which have no URL.
func (a *activeBundle) addJobs() {
	for i := range a.schema.Jobs {
		j := &a.schema.Jobs[i]
		a.jobs[j.Name] = len(a.routes)
		a.routes = append(a.routes, route{Route: j.Route(), input: j.Input(), fills: true})
	}
}

// verifierOf returns the webhook verifier of a route; nil: it has none. The error says why its secret cannot be used.
func verifierOf(bundle *Bundle, declared *schema.Route) (*webhook.Verifier, error) {
	v := declared.Verify
	if v == nil {
		return nil, nil
	}
	value, _ := bundle.Secrets.Get(v.Secret)
	verifier, err := webhook.New(v.Scheme, value, v.Tolerance)
	if err != nil {
		return nil, fault.New(fault.Invalid, "%s %s: secret %s: %s", declared.Method, declared.Path, v.Secret, fault.Of(err).Detail)
	}
	return verifier, nil
}

// Load makes the bundle available to Call, in a Runtime that serves no requests. It does not
// change the store: rows describes the active schema's rows there. The errors are those of
// Activate.
func (r *Runtime) Load(ctx context.Context, bundle *Bundle, rows *entity.Model) error {
	r.activating.Lock()
	defer r.activating.Unlock()
	a, err := r.bindWithLimits(ctx, bundle)
	if err != nil {
		return err
	}
	a.host.Entities, a.stopBackground = rows, func() {}
	if old := r.active.Swap(a); old != nil {
		r.retire(old)
	}
	return nil
}
