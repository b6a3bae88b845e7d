package app

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"runner.example/internal/console"
	"runner.example/internal/diag"
	"runner.example/internal/secret"
	"runner.example/keystore"
	"runner.example/node/cluster"
	"runner.example/node/config"
	"runner.example/runtime"
	"runner.example/runtime/compile"
	"runner.example/runtime/sandbox"
	"runner.example/schema"
	"runner.example/schema/compiler"
	"runner.example/schema/syntax"
)

// App is an app directory with its configuration.
type App struct {
	Dir    string
	Config *config.Config
	// Data is the data directory. With DataNamed the user has named it, and the app directory may be any.
	Data      string
	DataNamed bool
	// Problems are the diagnostics of the configuration. With an error in it Compile fails,
	// and settings with an error have their defaults.
	Problems diag.List
	// Unset takes the warnings about variables of the schema without a value, and makes them
	// warnings: the command needs no values. nil: they are errors.
	Unset func([]diag.Source, diag.List)
	// Secrets returns the values of the secrets that a schema declares; its error names each
	// secret without a value.
	Secrets func(names []string) (secret.Values, error)
}

// KeystoreOptions returns the options of the keystore. The path of the pepper is relative
// to the working directory, or empty for the default.
func (a *App) KeystoreOptions() keystore.Options {
	opt := a.Config.Keystore
	if opt.PepperFile != "" {
		opt.PepperFile = a.path(opt.PepperFile)
	}
	opt.Dir = a.Data
	return opt
}

// ClusterOptions returns the options of a node. Paths are relative to the working directory.
func (a *App) ClusterOptions() cluster.Options {
	opt := a.Config.Cluster
	for _, path := range []*string{&opt.TLSCA, &opt.TLSCert, &opt.TLSKey} {
		if *path != "" {
			*path = a.path(*path)
		}
	}
	return opt
}

// path returns the path of a file that a setting names: a relative one starts from the app
// directory.
func (a *App) path(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(a.Dir, name)
}

// Compile reads and checks the schema. The error has all errors of schema and
// configuration.
func (a *App) Compile() (*schema.Schema, []diag.Source, error) {
	sources, err := a.loadSchema()
	if err != nil && a.Problems.HasErrors() {
		return nil, nil, errors.Join(a.InvalidConfiguration(), err)
	}
	if err != nil {
		return nil, nil, err
	}
	s, _, err := a.compile(sources, false)
	if err != nil {
		return nil, nil, err
	}
	return s, sources, nil
}

// compile checks a schema, with accepted that of a release that was activated before: what only newer versions
// refuse is in refused then. The error has all errors of schema and configuration.
func (a *App) compile(sources []diag.Source, accepted bool) (s *schema.Schema, refused diag.List, _ error) {
	opt := a.SchemaOptions()
	opt.Accepted = accepted
	s, found := compileSources(sources, opt)
	bad := a.Problems.HasErrors()
	switch {
	case s != nil && bad:
		return nil, nil, a.InvalidConfiguration()
	case s != nil:
		for _, d := range found {
			if strings.HasPrefix(d.Code, "E") {
				refused = append(refused, d)
			}
		}
		a.noteUnset(sources, found)
		return s, refused, nil
	}
	what := "the schema is invalid: "
	if bad {
		what = "the configuration and the schema are invalid: "
		found.Append(a.Problems)
	}
	return nil, nil, &console.Problems{What: what + console.Counted(found), Sources: sources, List: found}
}

// Check reads and checks the schema and returns all diagnostics. A schema with errors is
// nil; an error means that no schema can be read.
func (a *App) Check() (*schema.Schema, []diag.Source, diag.List, error) {
	sources, err := a.loadSchema()
	if err != nil {
		return nil, nil, nil, err
	}
	s, found := a.CheckSources(sources)
	return s, sources, found, nil
}

// CheckSources checks a schema as Check does, whose files may not have been written.
func (a *App) CheckSources(sources []diag.Source) (*schema.Schema, diag.List) {
	return compileSources(sources, a.SchemaOptions())
}

func compileSources(sources []diag.Source, opt compiler.Options) (*schema.Schema, diag.List) {
	return withoutPanic(sources, func() (*schema.Schema, diag.List) { return compiler.Compile(sources, opt) })
}

// withoutPanic makes a panic of the compiler, which is a defect of the runner, an error about the
// schema: a server that reloads must stay up.
func withoutPanic(sources []diag.Source, compile func() (*schema.Schema, diag.List)) (s *schema.Schema, found diag.List) {
	defer func() {
		if cause := recover(); cause != nil {
			s, found = nil, nil
			found.Errorf("", diag.Span{File: sources[0].Name}, "this schema stops the compiler, which is a defect of the runner; undo the last change of the schema, and report it with the schema: %v", cause)
		}
	}()
	return compile()
}

// loadSchema reads the schema files.
func (a *App) loadSchema() ([]diag.Source, error) {
	sources, err := syntax.Load(a.Dir)
	if err != nil {
		f := &console.Failure{Status: console.StatusInvalid, Err: err}
		if !a.HasSchema() {
			f.Hint = "name the app directory with --app, or change to it"
		}
		return nil, f
	}
	return sources, nil
}

// HasSchema reports whether the app directory has schema files. One that cannot be read may have
// some.
func (a *App) HasSchema() bool {
	_, err := syntax.Files(a.Dir)
	return err == nil || errors.Is(err, fs.ErrPermission)
}

// noteUnset hands on the warnings about variables without a value.
func (a *App) noteUnset(sources []diag.Source, found diag.List) {
	if a.Unset == nil {
		return
	}
	if unset := slices.DeleteFunc(found, func(d diag.Diagnostic) bool { return d.Code != "W541" }); len(unset) > 0 {
		a.Unset(sources, unset)
	}
}

// Unknown warns about values of secrets and variables that the schema does not declare.
func (a *App) Unknown(s *schema.Schema) (found diag.List) {
	for name, place := range a.Config.SecretPlaces {
		if !slices.Contains(s.Secrets, name) {
			found.Warnf("", place, "the schema declares no secret %q%s", name, diag.DidYouMean(name, s.Secrets))
		}
	}
	for name, given := range a.Config.Vars {
		if s.Var(name) == nil {
			found.Warnf("", given.Place, "the schema declares no variable %q%s", name, diag.DidYouMean(name, s.VarNames()))
		}
	}
	return found
}

func (a *App) SchemaOptions() compiler.Options {
	opt := a.Config.Schema
	opt.Dir, opt.BodyMemory, opt.Vars = a.Dir, a.Config.Runtime.Front.MaxBodyMemory, a.Config.Vars
	if a.Unset != nil {
		opt.Unset = compiler.Assumed
	}
	return opt
}

// IsLoopback reports whether only this machine reaches host:port.
func IsLoopback(listen string) bool {
	host, _, err := net.SplitHostPort(listen)
	addr, notAddress := netip.ParseAddr(host)
	return err == nil && (host == "localhost" || notAddress == nil && addr.Unmap().IsLoopback())
}

// CheckCookies refuses session cookies without the __Host- prefix on other addresses than
// loopback.
func (a *App) CheckCookies(listen string) error {
	if !a.Config.Schema.InsecureCookies || IsLoopback(listen) {
		return nil
	}
	f := console.Invalid("[auth] insecure_cookies is for loopback only, and this server would listen on %s", listen)
	f.Hint = "remove it from runner.toml, or listen on 127.0.0.1"
	return f
}

// SandboxOptions returns the options of the sandbox with a cache in this directory; empty: without a cache.
func (a *App) SandboxOptions(cache string) sandbox.Options {
	opt := a.Config.SandboxOptions(cache)
	opt.Compiler = moduleCompiler()
	return opt
}

// ToolOptions returns the options of the sandbox for commands without a data directory. The cache is in the user's
// cache directory, if no other user can write to it.
func (a *App) ToolOptions() sandbox.Options {
	dir := userCache()
	if dir != "" && compile.MakePrivate(dir) != nil {
		dir = ""
	}
	return a.SandboxOptions(dir)
}

// ServerOptions returns the options of the sandbox of a server, whose cache is in the data directory. What runner build
// has compiled on this machine is not compiled again.
func (a *App) ServerOptions() sandbox.Options {
	opt := a.SandboxOptions(filepath.Join(a.Data, "cache"))
	opt.CacheFrom = userCache()
	return opt
}

// userCache is the user's directory of compiled code; empty: the user has none.
func userCache() string {
	dir, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "runner", "code")
}

// CompilerCommand is internal: a server starts this program with it to compile a module
// within limits.
const CompilerCommand = "compile-module"

// moduleCompiler returns the command line of sandbox.Options.Compiler: this program, even if
// its file was replaced meanwhile.
func moduleCompiler() []string {
	const self = "/proc/self/exe"
	if _, err := os.Stat(self); err == nil {
		return []string{self, CompilerCommand}
	}
	path, err := os.Executable()
	if err != nil {
		return nil // all modules are then compiled in this process
	}
	return []string{path, CompilerCommand}
}

// Name returns the app's name in a form for file names.
func (a *App) Name(s *schema.Schema) (string, error) {
	if s.App != "" {
		return s.App, nil
	}
	path, err := filepath.Abs(a.Dir)
	if err != nil {
		return "", err
	}
	name := strings.Trim(notInNames.ReplaceAllString(filepath.Base(path), "-"), "-.")
	if name == "" {
		name = "app"
	}
	return name, nil
}

var notInNames = regexp.MustCompile(`[^A-Za-z0-9._-]+`)

func (a *App) HasData() bool {
	_, err := os.Stat(a.Data)
	return !errors.Is(err, fs.ErrNotExist)
}

// CheckData returns an error if the data directory is a file.
func (a *App) CheckData() error {
	if info, err := os.Stat(a.Data); err == nil && !info.IsDir() {
		return console.Invalid("data directory %q is a file: name a directory with --data or [store] dir", a.Data)
	}
	return nil
}

// CheckModules compiles the modules. It reports routes without a handler, invalid module blocks, and
// random values that the modules draw before their first request, and what the modules use. An error is about a module
// itself.
func (a *App) CheckModules(ctx context.Context, s *schema.Schema) (diag.List, []runtime.ModuleFeatures, error) {
	modules, err := runtime.ReadModules(a.Dir)
	if err != nil {
		return nil, nil, err
	}
	bundle := &runtime.Bundle{Schema: s, Modules: modules}
	_ = a.ReadTrees(bundle) // CheckTrees reports it
	used, err := runtime.CheckModules(ctx, a.ToolOptions(), bundle)
	if unbound, ok := errors.AsType[*runtime.UnboundError](err); ok {
		return unbound.List, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	found, err := runtime.FindDraws(ctx, a.SandboxOptions(""), bundle)
	return found, used, err
}

// FindDraws warns about random values that the modules in build/ draw before their first request.
func (a *App) FindDraws(ctx context.Context, s *schema.Schema) (diag.List, error) {
	modules, err := runtime.ReadModules(a.Dir)
	if err != nil {
		return nil, err
	}
	bundle := &runtime.Bundle{Schema: s, Modules: modules}
	_ = a.ReadTrees(bundle) // CheckTrees reports it
	return runtime.FindDraws(ctx, a.SandboxOptions(""), bundle)
}

// ModuleNames returns the names of the modules in build/, as in a schema.
func (a *App) ModuleNames() (names []string) {
	files, _ := filepath.Glob(filepath.Join(a.Dir, "build", "*.wasm")) // the pattern is valid
	for _, file := range files {
		names = append(names, runtime.ModuleFile{Name: file}.ShortName())
	}
	return names
}
