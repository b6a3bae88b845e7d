package runtime

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"runner.example/hostabi"
	"runner.example/hostabi/outbound"
	"runner.example/internal/diag"
	"runner.example/internal/fault"
	"runner.example/internal/secret"
	"runner.example/internal/symbols"
	"runner.example/internal/telemetry"
	"runner.example/internal/wasm"
	"runner.example/runtime/auth"
	"runner.example/runtime/limit"
	"runner.example/runtime/router"
	"runner.example/runtime/sandbox"
	"runner.example/schema"
	"runner.example/state/entity"
	"runner.example/state/store"
	"runner.example/state/webhook"
)

// App is what Activate activates: a checked schema and the modules with its handlers.
type App struct {
	// ReleaseID is the id of the stored release, for the log; empty: the app is not a stored release.
	ReleaseID string
	Schema    *schema.Schema
	// Sources are the files that the schema was compiled from. The store keeps them, to
	// compare the next schema with this one.
	Sources []diag.Source
	Modules []ModuleFile
	// Secrets are the values of the secrets that the schema declares.
	Secrets secret.Values
	// Also, if not nil, is called in the transaction that activates the schema of the rows. Its
	// error refuses the activation. It may be called several times.
	Also func(*store.Tx) error
	// KeepRemoved keeps entities and fields of rows that the schema does not declare, instead of
	// refusing it.
	KeepRemoved bool
}

// ModuleFile is one compiled module; messages call it Name.
type ModuleFile struct {
	Name string
	Wasm []byte
	// Debug is its debug file (see package symbols); nil: there is none, or it was not read. It plays no part in
	// an activation. DebugErr says why a debug file that is there cannot be used; it continues "debug information".
	Debug    []byte
	DebugErr error
}

// ShortName is the name of the module in a schema: the name of its file without .wasm.
func (f ModuleFile) ShortName() string {
	return strings.TrimSuffix(filepath.Base(f.Name), ".wasm")
}

// ReadModules reads build/*.wasm of an app directory, in name order, with their debug files. It does not
// block on pipes and devices. A fault with the code Invalid names a module that is not a regular file, cannot
// be read, or is larger than modules may be.
func ReadModules(dir string) ([]ModuleFile, error) {
	names, err := fs.Glob(os.DirFS(dir), "build/*.wasm")
	if err != nil {
		return nil, fmt.Errorf("list modules of %s: %w", dir, err)
	}
	var modules []ModuleFile
	for _, name := range names {
		file, err := wasm.ReadFile(filepath.Join(dir, name), wasm.DefaultLimits().ModuleBytes)
		if err != nil {
			return nil, fault.New(fault.Invalid, "%s: %v", name, err)
		}
		m := ModuleFile{Name: name, Wasm: file}
		m.readDebug(filepath.Join(dir, strings.TrimSuffix(name, ".wasm")+".debug"))
		modules = append(modules, m)
	}
	return modules, nil
}

// readDebug reads the debug file of a module, if there is one.
func (f *ModuleFile) readDebug(path string) {
	debug, err := wasm.ReadFile(path, symbols.MaxDebugBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err != nil {
		err = fmt.Errorf("cannot be used: its file %w", err)
	} else {
		err = symbols.Check(f.Wasm, debug)
	}
	if f.DebugErr = err; err == nil {
		f.Debug = debug
	}
}

// UnboundError has every route and function whose handler no module exports, and every module block
// of the schema whose module does not exist or has nothing to initialize.
type UnboundError struct{ List diag.List }

func (e *UnboundError) Error() string {
	return e.List.Sorted()[0].String()
}

// Activate compiles the modules, binds every route to its handler, activates the schema in
// the store, and replaces the active release. After an error the previous release keeps
// serving and the store is unchanged. The error is an *UnboundError, an
// *catalog.ChangeError, or a fault with the code Invalid about a module or a secret.
func (r *Runtime) Activate(ctx context.Context, app App) error {
	r.activating.Lock()
	defer r.activating.Unlock()
	rel, err := r.bind(ctx, app)
	if err != nil {
		return err
	}
	rel.host.Entities, err = entity.Activate(ctx, r.opt.Store, app.Schema, app.Sources, entity.Options{
		CursorKey: r.opt.Keystore.Derive("cursors"), Logger: r.opt.Logger, Also: app.Also, KeepRemoved: app.KeepRemoved,
	})
	if err != nil {
		return errors.Join(err, rel.close(ctx))
	}
	// The store has the new schema from here on: nothing may fail any more.
	r.replace(rel, app.Sources)
	return nil
}

// Follow replaces the active release with one whose schema another node of the cluster has activated
// in the store: it is Activate without a change of the store. The error is ErrOutdated if the schema
// is not the active one any more, and else one of Activate.
func (r *Runtime) Follow(ctx context.Context, app App) error {
	r.activating.Lock()
	defer r.activating.Unlock()
	rel, err := r.bind(ctx, app)
	if err != nil {
		return err
	}
	rel.host.Entities, err = entity.Current(ctx, r.opt.Store, app.Schema, entity.Options{
		CursorKey: r.opt.Keystore.Derive("cursors"), Logger: r.opt.Logger,
	})
	if err == nil && rel.host.Entities == nil {
		err = entity.ErrOutdated
	}
	if err != nil {
		return errors.Join(err, rel.close(ctx))
	}
	r.replace(rel, app.Sources)
	return nil
}

// Prepare compiles and binds the app as Activate does, so that an activation of it finds its modules
// compiled until release is called, once. The errors are those of Activate about modules and secrets.
// It waits for no activation.
func (r *Runtime) Prepare(ctx context.Context, app App) (release func() error, err error) {
	rel, err := r.compile(ctx, app)
	if err != nil {
		return nil, err
	}
	return func() error { return rel.close(context.Background()) }, nil
}

// replace makes rel the active release.
func (r *Runtime) replace(rel *release, sources []diag.Source) {
	r.attachMetrics(rel)
	old := r.active.Swap(rel)
	r.engine.DiscardSymbols()
	if old != nil {
		r.retire(old)
	} else {
		// Loading left several times the size of the modules as garbage, and a server may not
		// allocate enough for a long time to collect it. The caller still has their files.
		r.background.Go(r.returnMemory)
	}
	r.notReady[NotLoaded].Store(nil)
	r.limiter.Retain(rel.limits())
	r.startBackground(rel, sources)
	r.startJobs(rel.schema)
}

// CheckModules compiles the modules and reports what Activate would refuse, without a
// server.
func CheckModules(ctx context.Context, opt sandbox.Options, app App) (err error) {
	engine, err := sandbox.New(ctx, opt)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, engine.Close(ctx)) }()
	modules, err := load(ctx, engine, app)
	for _, m := range modules {
		err = errors.Join(err, m.Close(ctx))
	}
	return err
}

// release is one activated app. Only its reference count changes.
type release struct {
	id     string // see App.ReleaseID
	schema *schema.Schema
	router *router.Router
	// routes are those of the router, followed by the functions and jobs that have no URL.
	routes          []route
	functions, jobs map[string]int // indexes into routes
	modules         []*sandbox.Module
	host            *hostabi.Host
	cors            bool         // a route has cors:
	cookie          string       // of sessions; "" if the app has none
	tokens          *auth.Tokens // nil if the app accepts none
	// tending stops the background tasks of the release.
	stopBackground context.CancelFunc

	replaced chan struct{} // closed when another release is active

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
	bodyBytes int64
	timeout   time.Duration
	metrics   *telemetry.RouteMetrics
}

// bind compiles the app, and creates its limits.
func (r *Runtime) bind(ctx context.Context, app App) (*release, error) {
	rel, err := r.compile(ctx, app)
	if err != nil {
		return nil, err
	}
	for i := range rel.routes {
		bound := &rel.routes[i]
		var uses []limit.Use
		for _, l := range bound.Limits {
			counted := r.limiter.Limit(limit.Spec{ID: l.ID, Count: l.Count, Per: l.Per, By: l.By})
			bound.limits = append(bound.limits, counted)
			uses = append(uses, limit.Use{Limit: counted})
		}
		bound.policy = limit.AppendWholePolicy(nil, uses)
	}
	return rel, nil
}

// compile compiles the modules and binds the routes to their handlers. It changes nothing that the
// active release uses.
func (r *Runtime) compile(ctx context.Context, app App) (*release, error) {
	origins, err := outbound.ParseOrigins(app.Schema.Outbound)
	if err != nil {
		return nil, err
	}
	var before *auth.Tokens
	if old := r.active.Load(); old != nil {
		before = old.tokens
	}
	tokens, err := auth.NewTokens(app.Schema, auth.TokenOptions{Logger: r.opt.Logger, Before: before})
	if err != nil {
		return nil, err
	}
	modules, err := load(ctx, r.engine, app)
	if err != nil {
		return nil, err
	}
	rel := &release{
		id:        app.ReleaseID,
		tokens:    tokens,
		schema:    app.Schema,
		functions: map[string]int{},
		jobs:      map[string]int{},
		modules:   modules,
		replaced:  make(chan struct{}),
		drained:   make(chan struct{}),
		host: hostabi.NewHost(hostabi.Host{
			Keystore: r.opt.Keystore, Schema: app.Schema, Secrets: app.Secrets, Logger: r.opt.Logger, Limits: r.opt.Limits,
			Origins: origins, Outbound: r.client, Passwords: r.opt.Passwords.Hashes, LongWork: r.longWork,
			Jobs: r.jobs.queue, KeepJobs: r.opt.Jobs.Keep,
		}),
	}
	if declared := app.Schema.Auth.Cookie; declared != nil {
		rel.cookie = declared.Name
	}
	exporters, named := map[string]*sandbox.Module{}, namesHandler(app.Schema)
	for _, m := range modules {
		for _, name := range m.Offers(named) {
			exporters[name] = m
		}
	}
	for i := range app.Schema.Routes {
		declared := &app.Schema.Routes[i]
		rel.routes = append(rel.routes, route{Route: declared, input: app.Schema.Type(declared.Input), query: app.Schema.Type(declared.Query), result: declared.Result})
	}
	rel.addFunctions(true)
	templates := make([]router.Route, len(rel.routes))
	rel.addFunctions(false)
	rel.addJobs()
	for i := range rel.routes {
		bound := &rel.routes[i]
		declared := bound.Route
		rel.cors = rel.cors || declared.CORS != nil
		if i < len(templates) {
			templates[i] = router.Route{Method: declared.Method, Path: declared.Path}
		}
		bound.id, bound.module = declared.Method+" "+declared.Path, exporters[declared.Handler]
		bound.bodyBytes, bound.timeout = r.opt.BodyBytes, r.opt.Timeout
		if declared.BodyBytes > 0 {
			bound.bodyBytes = declared.BodyBytes
		}
		if declared.Timeout > 0 {
			bound.timeout = declared.Timeout
		}
	}
	for i := range app.Schema.Jobs {
		exporters[app.Schema.Jobs[i].Name].SetBackground(app.Schema.Jobs[i].Name)
	}
	rel.router = router.New(templates)
	if err := rel.bindVerifiers(); err != nil {
		return nil, errors.Join(err, rel.close(ctx))
	}
	return rel, nil
}

// addFunctions adds the functions that are exposed, or those that are not exposed.
func (rel *release) addFunctions(exposed bool) {
	for i := range rel.schema.Functions {
		if f := &rel.schema.Functions[i]; f.Exposed == exposed {
			rel.functions[f.Name] = len(rel.routes)
			rel.routes = append(rel.routes, route{Route: f.Route(), input: f.Input(), fills: true, result: f.Result})
		}
	}
}

// addJobs adds the jobs, which have no URL.
func (rel *release) addJobs() {
	for i := range rel.schema.Jobs {
		j := &rel.schema.Jobs[i]
		rel.jobs[j.Name] = len(rel.routes)
		rel.routes = append(rel.routes, route{Route: j.Route(), input: j.Input(), fills: true})
	}
}

// bindVerifiers creates the webhook verifiers. It reports all secrets that cannot be used
// at once.
func (rel *release) bindVerifiers() error {
	var all []error
	for i := range rel.routes {
		rt := &rel.routes[i]
		if rt.Verify == nil {
			continue
		}
		value, _ := rel.host.Secrets.Get(rt.Verify.Secret)
		var err error
		if rt.verify, err = webhook.New(rt.Verify.Scheme, value, rt.Verify.Tolerance); err != nil {
			all = append(all, fault.New(fault.Invalid, "%s: secret %s: %s", rt.id, rt.Verify.Secret, fault.Of(err).Detail))
		}
	}
	return errors.Join(all...)
}

// load compiles the modules of an app and checks that exactly one of them exports each
// handler. After an error no module stays open.
func load(ctx context.Context, engine *sandbox.Engine, app App) (modules []*sandbox.Module, err error) {
	defer func() {
		if err != nil {
			for _, m := range modules {
				err = errors.Join(err, m.Close(ctx))
			}
			modules = nil
		}
	}()
	if len(app.Modules) == 0 {
		return nil, fault.New(fault.Invalid, "no module in build/: compile the handlers to build/*.wasm")
	}
	named := namesHandler(app.Schema)
	exporters := map[string]string{}
	var exports []string
	var all []error
	var names []string
	var wrong diag.List
	for _, file := range app.Modules {
		loadModule, name := engine.Load, file.ShortName()
		if app.Schema.IsFresh(name) {
			loadModule = engine.LoadFresh
		}
		names = append(names, name)
		m, err := loadModule(ctx, file.Name, file.Wasm)
		if err != nil {
			all = append(all, err)
			continue
		}
		modules = append(modules, m)
		if !m.Initializes() {
			wrong.Append(app.Schema.CheckFresh(name))
		}
		for _, name := range m.Offers(named) {
			if first, ok := exporters[name]; ok && named(name) {
				all = append(all, fault.New(fault.Invalid, "handler %q is exported by %s and by %s: keep one of them", name, first, file.Name))
			}
			exporters[name] = file.Name
			exports = append(exports, name)
		}
	}
	if len(all) > 0 {
		return modules, errors.Join(all...)
	}
	wrong.Append(app.Schema.CheckModules(names))
	wrong.Append(app.Schema.CheckHandlers(exports))
	if wrong.HasErrors() {
		return modules, &UnboundError{List: wrong}
	}
	return modules, nil
}

// namesHandler returns whether the routes, functions and jobs of a schema name a handler.
func namesHandler(s *schema.Schema) func(name string) bool {
	named := map[string]bool{}
	for i := range s.Routes {
		named[s.Routes[i].Handler] = true
	}
	for i := range s.Functions {
		named[s.Functions[i].Name] = true
	}
	for i := range s.Jobs {
		named[s.Jobs[i].Name] = true
	}
	return func(name string) bool { return named[name] }
}

func (rel *release) limits() (all []*limit.Limit) {
	for i := range rel.routes {
		all = append(all, rel.routes[i].limits...)
	}
	return all
}

// close closes the modules.
func (rel *release) close(ctx context.Context) error {
	var all []error
	for _, m := range rel.modules {
		all = append(all, m.Close(ctx))
	}
	return errors.Join(all...)
}

func (rel *release) unref() {
	if rel.refs.Add(-1) == 0 && rel.retired.Load() {
		rel.drainedOnce.Do(func() { close(rel.drained) })
	}
}

// drain waits until the requests of a replaced release have finished.
func (rel *release) drain() {
	rel.refs.Add(1)
	rel.retired.Store(true)
	rel.unref()
	<-rel.drained
}

// Load makes the app available to Call, in a Runtime that serves no requests. It does not
// change the store: rows describes the active schema's rows there. The errors are those of
// Activate.
func (r *Runtime) Load(ctx context.Context, app App, rows *entity.Model) error {
	r.activating.Lock()
	defer r.activating.Unlock()
	rel, err := r.bind(ctx, app)
	if err != nil {
		return err
	}
	rel.host.Entities, rel.stopBackground = rows, func() {}
	if old := r.active.Swap(rel); old != nil {
		r.retire(old)
	}
	return nil
}

// awaitNext waits until rel is replaced, which is soon because the store has the next schema
// already. It returns the active release; nil if there is none.
func (r *Runtime) awaitNext(rel *release) *release {
	ctx, stop := context.WithTimeout(r.serving, maxActivationWait)
	defer stop()
	select {
	case <-rel.replaced:
	case <-ctx.Done():
	}
	return r.acquire()
}
