package runtime

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"runner.example/entity"
	"runner.example/hostabi"
	"runner.example/internal/diag"
	"runner.example/internal/fault"
	"runner.example/internal/secret"
	"runner.example/runtime/limit"
	"runner.example/runtime/router"
	"runner.example/runtime/sandbox"
	"runner.example/schema"
)

// App is what is activated: a checked schema and the modules with its handlers.
type App struct {
	Schema *schema.Schema
	// Sources are what the schema was compiled from. The store keeps them, so that
	// the next schema can be compared with this one.
	Sources []diag.Source
	Modules []ModuleFile
}

// ModuleFile is one compiled module; Name is how messages call it.
type ModuleFile struct {
	Name string
	Wasm []byte
}

// ReadModules reads the modules of an app's folder: build/*.wasm, in name
// order.
func ReadModules(dir string) ([]ModuleFile, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "build", "*.wasm"))
	if err != nil {
		return nil, fmt.Errorf("list modules of %s: %w", dir, err)
	}
	var modules []ModuleFile
	for _, path := range paths {
		wasm, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("read module: %w", err)
		}
		modules = append(modules, ModuleFile{Name: filepath.Join("build", filepath.Base(path)), Wasm: wasm})
	}
	return modules, nil
}

// UnboundError tells every route that cannot be served: its handler is exported
// by no module, or it asks for a check that is not there.
type UnboundError struct{ List diag.List }

func (e *UnboundError) Error() string {
	return e.List.Sorted()[0].String()
}

// Activate compiles the modules, binds every route to its handler and puts the
// app in place of the one that is served, once the rows in the store obey its
// schema. An error leaves that one serving and the store as it was; it is an
// *UnboundError, an *entity.ChangeError, or a fault with the code Invalid that
// says what is wrong with a module or a secret.
func (r *Runtime) Activate(ctx context.Context, app App) error {
	r.activating.Lock()
	defer r.activating.Unlock()
	rel, err := r.bind(ctx, app)
	if err != nil {
		return err
	}
	rel.host.Entities, err = entity.Activate(ctx, r.opt.Store, app.Schema, app.Sources, entity.Options{
		CursorKey: r.opt.Keystore.Derive("cursors"), Logger: r.opt.Logger,
	})
	if err != nil {
		return errors.Join(err, rel.close(ctx))
	}
	// The store has a new schema from here on: nothing may fail any more.
	old := r.active.Swap(rel)
	if old != nil {
		r.retire(old)
	}
	r.limiter.Retain(rel.limits())
	r.tend(rel, app.Sources)
	return nil
}

// CheckModules compiles the modules and reports what Activate would refuse,
// without a server.
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

// release is one activated app. Nothing changes it but the count of its
// visitors.
type release struct {
	schema  *schema.Schema
	router  *router.Router
	routes  []route
	modules []*sandbox.Module
	host    hostabi.Host
	cookie  string // of sessions; "" where the app has none
	// tending ends what is done for the release beside serving it.
	tending context.CancelFunc

	replaced chan struct{} // closed when it is no longer the active one

	visitors atomic.Int64
	retired  atomic.Bool
	empty    chan struct{} // closed when retired and without visitors
	emptied  sync.Once
}

// route is a schema's route with what serving it needs.
type route struct {
	*schema.Route
	module    *sandbox.Module
	input     *schema.ObjectType // that the body must fit; nil: any
	limits    []*limit.Limit
	policy    []byte // of the limits, for RateLimit-Policy
	bodyBytes int64
	timeout   time.Duration
}

func (r *Runtime) bind(ctx context.Context, app App) (*release, error) {
	values := secret.Values{}
	if r.opt.Secrets != nil {
		var err error
		if values, err = r.opt.Secrets(app.Schema.Secrets); err != nil {
			return nil, err
		}
	}
	modules, err := load(ctx, r.engine, app)
	if err != nil {
		return nil, err
	}
	rel := &release{
		schema:   app.Schema,
		modules:  modules,
		replaced: make(chan struct{}),
		empty:    make(chan struct{}),
		host: hostabi.Host{
			Keystore: r.opt.Keystore, Schema: app.Schema, Secrets: values, Logger: r.opt.Logger, Limits: r.opt.Limits,
		},
	}
	if declared := app.Schema.Auth.Cookie; declared != nil {
		rel.cookie = declared.Name
	}
	exporters := map[string]*sandbox.Module{}
	for _, m := range modules {
		for _, name := range m.Handlers() {
			exporters[name] = m
		}
	}
	templates := make([]router.Route, len(app.Schema.Routes))
	for i := range app.Schema.Routes {
		declared := &app.Schema.Routes[i]
		templates[i] = router.Route{Method: declared.Method, Path: declared.Path}
		bound := route{Route: declared, module: exporters[declared.Handler], input: app.Schema.Type(declared.Input), bodyBytes: r.opt.BodyBytes, timeout: r.opt.Timeout}
		if declared.BodyBytes > 0 {
			bound.bodyBytes = declared.BodyBytes
		}
		if declared.Timeout > 0 {
			bound.timeout = declared.Timeout
		}
		var uses []limit.Use
		for _, l := range declared.Limits {
			counted := r.limiter.Limit(limit.Spec{ID: l.ID, Count: l.Count, Per: l.Per, By: l.By})
			bound.limits = append(bound.limits, counted)
			uses = append(uses, limit.Use{Limit: counted})
		}
		bound.policy = limit.AppendPolicy(nil, uses)
		rel.routes = append(rel.routes, bound)
	}
	rel.router = router.New(templates)
	return rel, nil
}

// load compiles the modules of an app and checks that each route has its
// handler in exactly one of them. On an error nothing stays open.
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
	named := map[string]bool{}
	for i := range app.Schema.Routes {
		named[app.Schema.Routes[i].Handler] = true
	}
	exporters := map[string]string{}
	var exports []string
	var all []error
	for _, file := range app.Modules {
		m, err := engine.Load(ctx, file.Name, file.Wasm)
		if err != nil {
			all = append(all, err)
			continue
		}
		modules = append(modules, m)
		for _, name := range m.Handlers() {
			if first, ok := exporters[name]; ok && named[name] {
				all = append(all, fault.New(fault.Invalid, "handler %q is exported by %s and by %s: keep one of them", name, first, file.Name))
			}
			exporters[name] = file.Name
			exports = append(exports, name)
		}
	}
	if len(all) > 0 {
		return modules, errors.Join(all...)
	}
	unbound := app.Schema.CheckHandlers(exports)
	unbound.Append(unserved(app.Schema))
	if unbound.HasErrors() {
		return modules, &UnboundError{List: unbound}
	}
	return modules, nil
}

// unserved tells what a schema may declare and this version does not do: a
// route that counts on a check is not served without it.
func unserved(s *schema.Schema) (list diag.List) {
	for i := range s.Routes {
		rt := &s.Routes[i]
		if rt.Verify != nil {
			list.Errorf("", rt.Span, "this version does not check webhook signatures: leave verify: out and let handler %q check req.rawBody", rt.Handler)
		}
	}
	for i := range s.Functions {
		if f := &s.Functions[i]; f.Exposed {
			list.Errorf("", f.Span, "this version does not serve functions: declare a route for %q", f.Name)
		}
	}
	return list
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

func (rel *release) leave() {
	if rel.visitors.Add(-1) == 0 && rel.retired.Load() {
		rel.emptied.Do(func() { close(rel.empty) })
	}
}

// drain waits for the visitors of a release that nobody enters any more.
func (rel *release) drain() {
	rel.visitors.Add(1)
	rel.retired.Store(true)
	rel.leave()
	<-rel.empty
}
