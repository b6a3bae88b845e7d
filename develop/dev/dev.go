package dev

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"runner.example/develop/toolchain"
	"runner.example/develop/toolchain/python"
	"runner.example/internal/clock"
	"runner.example/internal/console"
	"runner.example/internal/diag"
	"runner.example/internal/fault"
	"runner.example/internal/telemetry"
	"runner.example/internal/wait"
	"runner.example/node"
	"runner.example/node/admin"
	"runner.example/node/app"
	"runner.example/node/config"
	"runner.example/node/release"
	"runner.example/runtime"
	"runner.example/schema"
)

// Options are the input of Run. All are required but Listen, At and Flags.
type Options struct {
	Console *console.Console
	// Secrets are the values that the log hides.
	Secrets *telemetry.Values
	// Dir is the app directory, ConfigFile the path of its configuration.
	Dir, ConfigFile string
	// Listen is the address of the command line; empty: the port of the configuration on
	// 127.0.0.1.
	Listen string
	// At are the jobs whose schedules fire once, when the app is first served.
	At []string
	// Test runs the tests of the app, which is built, and returns its report; nil: there are none to run. It is called when
	// the app is served and again after each save, with the names of the changed files. It ends early with ctx.
	Test func(ctx context.Context, changed []string) (report string)
	// Flags are the global flags of the command line, for hints.
	Flags string
	// ReadApp reads the configuration of the app.
	ReadApp        func() (*app.App, error)
	RuntimeOptions func(*app.App) runtime.Options
	// PrintError prints an error, and returns its exit status and a hint.
	PrintError func(error) (status int, hint string)
	// ExitNow ends the process at once.
	ExitNow func()
}

// dev is one run of `runner dev`. It belongs to one goroutine at a time; its log does not.
type dev struct {
	opt    Options
	listen string // kept over restarts
	log    *devLog
	files  *watcher
	python *python.Interpreter // of all builds

	// app has the active settings. name and handlers are those of the last build.
	app      *app.App
	name     string
	handlers []string
	// outdated are the sources that must be built.
	outdated map[string]bool
	// built are the modules that this run has built, by source.
	built map[string]string
	// announced: the address was printed. routes are those that were printed last.
	announced bool
	routes    [][]string
	// stopTests stops the running tests, and waits for their end.
	stopTests func()
	// fired: the schedules of Options.At have fired.
	fired bool
	// types is the current or last type check.
	types   typeCheck
	command buildCommand
	reload  *reloader
}

// errSettings means that the settings have changed, which requires a restart of the server.
var errSettings = errors.New("the settings have changed")

// Run builds and serves the app until a signal, and starts again when the settings have changed.
func Run(ctx context.Context, opt Options) (err error) {
	d := &dev{
		opt: opt, listen: opt.Listen, log: newDevLog(opt, opt.Dir), files: newWatcher(opt.Dir, opt.ConfigFile),
		outdated: map[string]bool{}, built: map[string]string{}, stopTests: func() {},
		reload: newReloader(),
	}
	defer d.files.close()
	defer func() { d.stopTests() }()
	defer func() {
		if d.python != nil {
			err = errors.Join(err, d.python.Close(context.WithoutCancel(ctx)))
		}
	}()
	if err := checkDirectory(d.opt.Dir); err != nil {
		return err
	}
	for served := false; ; {
		err := d.start(ctx)
		if errors.Is(err, errSettings) {
			served = true
			continue
		}
		if !served || err == nil || ctx.Err() != nil {
			return err
		}
		d.log.problems(err)
		if _, _, err := d.files.next(ctx); err != nil {
			return err
		}
	}
}

// start serves with the present settings. The error is errSettings when they have changed.
func (d *dev) start(ctx context.Context) error {
	if err := d.readSettings(ctx); err != nil {
		return err
	}
	if err := d.app.CheckData(); err != nil {
		return err
	}
	over, again := make(chan struct{}), false
	opt := d.options()
	opt.Tools = d.reload
	var other *proxy // nil: requests that no route matches are refused
	if target := d.app.Config.Development.Proxy; target != "" {
		other = newProxy(target, opt.Front.TLSCert != "", d.log)
		other.anyHost = len(opt.Front.Hosts) == 0
		defer other.close()
		opt.Unrouted = other
	}
	err := node.Run(ctx, d.app, opt, slog.New(d.log), d.opt.ExitNow, func(n *node.Node) error {
		if other != nil {
			other.schema = n.Runtime.Schema
		}
		n.Local.Bundle = func(context.Context, string) (*runtime.Bundle, error) { return d.app.Read() }
		if strings.HasSuffix(d.listen, ":0") {
			d.listen = n.Listener.Addr().String() // the port stays the same over restarts
		}
		return n.Serve(ctx, d.app, node.Hooks{Stop: over, Begin: func() (end func()) {
			ctx, cancel := context.WithCancel(ctx)
			var running sync.WaitGroup
			running.Go(func() { d.logSlow(ctx) })
			running.Go(func() {
				if again = d.buildLoop(ctx, n); again {
					close(over)
				}
			})
			return func() {
				cancel()
				running.Wait()
			}
		}})
	})
	if err == nil && again {
		return errSettings
	}
	return err
}

// readSettings reads the settings, and waits until they have no error. A directory without a
// schema is an error.
func (d *dev) readSettings(ctx context.Context) error {
	for {
		a, err := d.opt.ReadApp()
		if err != nil {
			return err
		}
		if _, _, _, err := a.Check(); err != nil {
			return err
		}
		if !a.Problems.HasErrors() {
			d.app = a
			if len(a.Problems) > 0 {
				d.log.warnings(nil, a.Problems)
			}
			return nil
		}
		d.log.problems(a.InvalidConfiguration())
		if _, _, err := d.files.next(ctx); err != nil {
			return err
		}
	}
}

// options returns the options of `runner serve`, changed for development.
func (d *dev) options() runtime.Options {
	opt := d.opt.RuntimeOptions(d.app)
	opt.AccessLog, opt.AccessDetail = true, true
	opt.Sandbox.CacheDir = d.app.ToolOptions().CacheDir // that builds use too
	opt.Sandbox.NoBreaker = true                        // the developer wants to see every failure
	_, port, _ := net.SplitHostPort(opt.Front.Listen)   // checked by the configuration
	if _, set := d.app.Config.Place("record", "failures"); !set {
		opt.Record.Failures = recordedFailures
	}
	opt.Front.Listen = cmp.Or(d.listen, net.JoinHostPort("127.0.0.1", port))
	if len(opt.Front.Hosts) > 0 {
		opt.Front.Hosts = append(slices.Clone(opt.Front.Hosts), "localhost", "127.0.0.1")
	}
	return opt
}

// recordedFailures is how many failures are recorded if the settings do not say it.
const recordedFailures = 100

// logSlow logs requests that take long.
func (d *dev) logSlow(ctx context.Context) {
	for wait.For(ctx, slow/4) == nil {
		d.log.printSlow()
	}
}

// buildLoop builds and activates the app, and again after each change, until ctx ends or the
// settings change. It reports whether they have changed.
func (d *dev) buildLoop(ctx context.Context, n *node.Node) (again bool) {
	began := clock.Mark()
	sources, _ := toolchain.Sources(d.app.Dir) // the build reports the error
	for _, source := range sources {
		d.outdated[source] = true
	}
	d.announced = false
	d.command = buildCommand{due: true, output: map[string]bool{}}
	d.files.watchInputs(d.app.Config.Development.BuildCommand != "", d.app.Data)
	defer d.types.stop()
	err := d.rebuild(ctx, n, nil, began)
	d.announce(n)
	if err == nil {
		d.test(ctx, nil)
	}
	for {
		switch {
		case ctx.Err() != nil:
			return false
		case errors.Is(err, errSettings):
			return true
		case err != nil:
			d.log.problems(err)
		case !d.fired:
			d.fired = true
			d.fire(ctx, n)
		}
		changed, at, ended := d.files.next(ctx)
		if ended != nil {
			return false
		}
		if err == nil && !slices.ContainsFunc(changed, func(name string) bool { return !strings.HasPrefix(name, TestsDir+"/") }) {
			d.test(ctx, changed)
			continue
		}
		if err = d.rebuild(ctx, n, changed, at); err == nil {
			d.test(ctx, changed)
		}
	}
}

// TestsDir is the directory of the tests of an app.
const TestsDir = "test"

// test starts the tests in the background. It stops a run that has not ended.
func (d *dev) test(ctx context.Context, changed []string) {
	if d.opt.Test == nil {
		return
	}
	d.stopTests()
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	d.stopTests = func() {
		cancel()
		<-ended
	}
	go func() {
		defer close(ended)
		if report := d.opt.Test(ctx, changed); ctx.Err() == nil {
			d.log.tests(report)
		}
	}()
}

// fire lets the schedules of Options.At fire.
func (d *dev) fire(ctx context.Context, n *node.Node) {
	for _, job := range d.opt.At {
		if _, err := n.Local.Client().EnqueueJob(ctx, admin.EnqueueJob{Name: job, Fire: true}); err != nil {
			d.log.problems(fmt.Errorf("--at %s: %w", job, err))
		}
	}
}

// rebuild builds and activates the app after files have changed. After an error the previous
// release keeps serving.
func (d *dev) rebuild(ctx context.Context, n *node.Node, changed []string, began time.Time) error {
	if err := d.markOutdated(changed); err != nil {
		return err
	}
	latest, err := d.opt.ReadApp()
	switch {
	case err != nil:
		return err
	case latest.Problems.HasErrors():
		return latest.InvalidConfiguration()
	case !latest.Config.Equal(d.app.Config):
		d.log.event(devEvent{Event: "settings"}, "the settings have changed: restarting")
		return errSettings
	}
	if len(d.files.trees) == 0 && d.files.inputs { // their files are not input of the build command
		silent := *latest
		silent.Unset = func([]diag.Source, diag.List) {}
		if s, _, err := silent.Compile(); err == nil {
			d.files.watchTrees(treesOf(s))
		}
	}
	meanwhile, err := d.runCommand(ctx, latest.Config.Development.BuildCommand, changed)
	if err := cmp.Or(d.markOutdated(meanwhile), err); err != nil {
		return err
	}
	if len(changed) > 0 { // else it is the start, which all files are part of
		changed = slices.Compact(slices.Sorted(slices.Values(append(changed, meanwhile...))))
	}
	s, sources, err := latest.Compile()
	if err != nil {
		return err
	}
	trees := append(treesOf(s), python.PackagesDir)
	if d.opt.Test != nil {
		trees = append(trees, TestsDir)
	}
	d.files.watchTrees(trees)
	if err := d.build(ctx, s); err != nil {
		return err
	}
	d.checkTypes(ctx, changed)
	now, err := latest.Bundle(s, sources)
	if err != nil {
		return err
	}
	if err := d.reload.inject(now); err != nil {
		return err
	}
	d.log.holdStart()
	// The release is not stored: it would be one more for each save.
	err = n.Runtime.Activate(ctx, now, runtime.Activation{Also: release.Deactivate})
	if err := d.started(ctx, now, err); err != nil {
		return err
	}
	d.reload.announce()
	d.logServing(n, now, changed, time.Since(began))
	return nil
}

// started logs what modules have written in their start, and returns the error of the activation as `runner build` reports it.
func (d *dev) started(ctx context.Context, now *runtime.Bundle, err error) error {
	var ofPython error
	if err != nil && ctx.Err() == nil && strings.HasPrefix(fault.Of(err).Detail, "build/"+schema.PythonModule+".wasm: ") {
		ofPython = err
	}
	shown, wrong := toolchain.PythonStarted(d.app.Dir, d.log.heldStart(), ofPython)
	for _, line := range shown {
		level := strings.ToLower(line.Level.String())
		d.log.event(devEvent{Event: "log", Level: level, Message: line.Text}, "log: "+console.Harmless(line.Text))
	}
	switch {
	case wrong != nil:
		return notBuilt(wrong)
	case err != nil:
		if unbound, ok := errors.AsType[*runtime.UnboundError](err); ok {
			python.ExplainUnbound(d.app.Dir, now.Schema, unbound.List)
		}
		return now.Explain(err)
	}
	return nil
}

func notBuilt(wrong *toolchain.DiagnosticsError) error {
	return &console.Problems{
		What: "the handlers cannot be built: " + console.Counted(wrong.List), Sources: wrong.Sources, List: wrong.List,
	}
}

// treesOf returns the directories of modules' files and of assets.
func treesOf(s *schema.Schema) (dirs []string) {
	for _, m := range s.Modules {
		if m.Files != "" && !slices.Contains(dirs, m.Files) {
			dirs = append(dirs, m.Files)
		}
	}
	for _, a := range s.Assets {
		if !slices.Contains(dirs, a.Dir) {
			dirs = append(dirs, a.Dir)
		}
	}
	return dirs
}

// markOutdated finds the sources that must be built because of the changed files. It removes
// the modules of deleted sources.
func (d *dev) markOutdated(changed []string) error {
	all, err := toolchain.Sources(d.app.Dir)
	if err != nil {
		return err
	}
	for _, name := range changed {
		for _, source := range d.sourcesOf(name, all) {
			d.outdated[source] = true
		}
	}
	for source, module := range d.built {
		if !slices.Contains(all, source) {
			d.remove(module)
			delete(d.built, source)
		}
	}
	removed, err := toolchain.Clean(d.app.Dir) // modules of earlier runs
	for _, module := range removed {
		d.noteRemoved(module)
	}
	if err != nil {
		return err
	}
	for source := range d.outdated {
		if !slices.Contains(all, source) {
			delete(d.outdated, source)
		}
	}
	for _, source := range all { // a new source, or one whose module is missing
		if module := d.built[source]; module == "" || !isFile(filepath.Join(d.app.Dir, module)) {
			d.outdated[source] = true
		}
	}
	return nil
}

// sourcesOf returns the sources that a changed file belongs to. all are the sources of the app.
func (d *dev) sourcesOf(name string, all []string) []string {
	switch {
	case strings.HasSuffix(name, ".schema"), strings.HasPrefix(name, python.PackagesDir+"/"):
		return []string{toolchain.PythonSource} // whose module has a part of them
	case name == config.FileName, slices.Contains(typesNames, name), strings.HasPrefix(name, "build/"),
		d.files.inTree(name) && !strings.HasPrefix(name, "handlers/"):
		return nil
	}
	if d.files.isInput(name) && !slices.Contains(d.files.also, name) { // of the build command
		return nil
	}
	if parts := strings.SplitN(name, "/", 3); len(parts) == 3 && slices.Contains(all, parts[0]+"/"+parts[1]) {
		return []string{parts[0] + "/" + parts[1]}
	}
	if filepath.Ext(name) == ".py" {
		return []string{toolchain.PythonSource}
	}
	return []string{"handlers", toolchain.PythonSource} // by an import, or as data
}

func isFile(path string) bool {
	_, there := versionOf(path)
	return there
}

// remove deletes a module and its debug file.
func (d *dev) remove(module string) {
	debug := release.DebugOf(filepath.ToSlash(module))
	_ = os.Remove(filepath.Join(d.app.Dir, debug)) // it may have none
	d.files.accept(debug)
	if err := os.Remove(filepath.Join(d.app.Dir, module)); err == nil {
		d.noteRemoved(module)
	}
	d.files.accept(filepath.ToSlash(module))
}

// noteRemoved logs a deleted module.
func (d *dev) noteRemoved(module string) {
	d.log.event(devEvent{Event: "removed", Module: module}, "removed "+module+": its source was deleted")
	d.files.accept(filepath.ToSlash(module))
}

// build builds the outdated sources.
func (d *dev) build(ctx context.Context, s *schema.Schema) error {
	if err := app.RefreshTypes(d.app.Dir, s); err != nil {
		return err
	}
	for _, name := range typesNames {
		d.files.accept(name)
	}
	handlers := s.HandlersOfRoutes()
	name, err := d.app.Name(s)
	if err != nil {
		return err
	}
	if d.python == nil {
		d.python = python.NewInterpreter(d.app.ToolOptions(), func(text string) {
			d.log.event(devEvent{Event: "log", Level: "info", Message: text}, text)
		})
	}
	if d.built["handlers"] != "" && (name != d.name || !slices.Equal(handlers, d.handlers)) {
		d.outdated["handlers"] = true // the module has the name, and must export each handler once
	}
	if len(d.outdated) == 0 {
		return nil
	}
	if slow := d.slowSources(); len(slow) > 0 {
		d.log.event(devEvent{Event: "building", Changed: slow}, "building "+strings.Join(slow, ", "))
	}
	_, warnings, err := toolchain.Build(ctx, toolchain.Options{
		Dir: d.app.Dir, Name: name, Handlers: handlers, CacheDir: toolchain.EngineCache(),
		Only: func(source string) bool { return d.outdated[source] },
		Log: func(text string) {
			d.log.event(devEvent{Event: "log", Level: "info", Message: text}, "log: "+console.Harmless(text))
		},
		Schema: s, Interpreter: d.python, NoStart: true, // the activation starts it
		MemoryBytes: d.app.Config.Runtime.Sandbox.MemoryBytes,
		Built:       d.noteBuilt, Removed: d.noteRemoved,
	})
	if wrong, ok := errors.AsType[*toolchain.DiagnosticsError](err); ok {
		return notBuilt(wrong)
	}
	if err != nil && !errors.Is(err, toolchain.ErrNothing) {
		return err
	}
	if warnings != nil {
		d.log.warnings(warnings.Sources, warnings.List)
	}
	d.name, d.handlers = name, handlers
	return nil
}

// slowSources returns the sources that other toolchains build, which may take long.
func (d *dev) slowSources() (slow []string) {
	for source := range d.outdated {
		if source != "handlers" && source != toolchain.PythonSource {
			slow = append(slow, source)
		}
	}
	slices.Sort(slow)
	return slow
}

// noteBuilt records and logs a module that was built.
func (d *dev) noteBuilt(m *toolchain.Module) {
	if m.Source == "handlers" {
		d.files.also = nil
		for _, file := range m.Sources {
			if !strings.HasPrefix(file, "handlers/") {
				d.files.also = append(d.files.also, file)
				d.files.accept(file)
			}
		}
	}
	delete(d.outdated, m.Source)
	d.built[m.Source] = m.File
	d.files.accept(m.File)
	d.files.accept(release.DebugOf(m.File))
	d.log.event(devEvent{Event: "built", Module: m.File, Bytes: m.Bytes, Seconds: m.Took.Seconds()},
		fmt.Sprintf("built %s in %s", m.File, m.Took.Round(time.Millisecond)))
}

// announce prints the address of the server, after the first build.
func (d *dev) announce(n *node.Node) {
	if d.announced {
		return
	}
	d.announced = true
	if d.opt.Console.JSON {
		d.log.event(devEvent{Event: "listening", URL: n.Local.URL}, "")
		return
	}
	_ = d.opt.Console.SayListening(n.Local.URL) // a closed terminal is ignored
}

// logServing logs what is active now, and prints its routes if they have changed.
func (d *dev) logServing(n *node.Node, now *runtime.Bundle, changed []string, took time.Duration) {
	d.announce(n)
	text := fmt.Sprintf("serving %s after %s", console.Plural(len(now.Schema.Routes), "route"),
		took.Round(time.Millisecond))
	if len(changed) > 0 {
		text = console.FewOf(changed) + " changed: " + text
	}
	d.log.event(devEvent{
		Event: "serving", Changed: changed, Routes: len(now.Schema.Routes), Seconds: took.Seconds(), URL: n.Local.URL,
	}, text)
	var rows [][]string
	for _, r := range now.Schema.Routes {
		rows = append(rows, []string{r.Method, n.Local.URL + r.Path, r.Target(), r.Auth.String()})
	}
	for _, a := range now.Schema.Assets {
		rows = append(rows, []string{"GET", n.Local.URL + strings.TrimSuffix(a.Path, "/") + "/", a.Dir + "/", a.Auth.String()})
	}
	if d.opt.Console.JSON || slices.EqualFunc(rows, d.routes, slices.Equal) {
		return
	}
	d.routes = rows
	// A closed terminal is ignored.
	_ = d.opt.Console.PrintTable([]string{"METHOD", "URL", "HANDLER", "AUTH"}, rows, "the schema declares no route")
	for _, line := range d.credentials(now.Schema) {
		d.opt.Console.Say("hint: ", line)
	}
}

// credentials returns the commands that create the credentials of the routes.
func (d *dev) credentials(s *schema.Schema) (lines []string) {
	where := d.opt.Flags
	scopes, sessions := map[string]bool{}, false
	for _, r := range s.Routes {
		for _, scope := range r.Auth.Scopes {
			scopes[scope] = true
		}
		sessions = sessions || r.Auth.Session
	}
	for _, scope := range slices.Sorted(maps.Keys(scopes)) {
		tenant := ""
		if known := s.Scope(scope); known != nil && s.NeedsTenant(known) {
			tenant = forTenant
		}
		lines = append(lines, "a key: runner api-keys create --scope "+scope+" --name dev"+tenant+where)
	}
	if sessions && s.Auth.Cookie != nil {
		tenant := ""
		if s.Auth.Tenant != "" || slices.ContainsFunc(s.Entities, func(e *schema.Entity) bool { return e.Tenant != nil }) {
			tenant = forTenant
		}
		lines = append(lines, "a session: runner sessions create --user me"+tenant+where)
	}
	return lines
}

// forTenant follows a command in an app whose callers have tenants.
const forTenant = " --tenant <tenant>"
