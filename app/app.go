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

	"runner.example/config"
	"runner.example/internal/console"
	"runner.example/internal/diag"
	"runner.example/keystore"
	"runner.example/runtime"
	"runner.example/runtime/sandbox"
	"runner.example/schema"
	"runner.example/schema/compiler"
	"runner.example/schema/syntax"
)

// app is the folder a command works on, with its configuration read.
type App struct {
	Dir    string
	Config *config.Config
	// data is the data folder.
	Data string
	// doubts is what was found in the configuration. With an error in it compile
	// finds no schema, and settings with a mistake have their defaults.
	Problems diag.List
}

// keystoreOptions are what the settings say to the keystore. The path of the pepper is
// as seen from here, empty when the keystore is to choose it.
func (a *App) KeystoreOptions() keystore.Options {
	opt := a.Config.Keystore
	if path := opt.PepperFile; path != "" && !filepath.IsAbs(path) {
		opt.PepperFile = filepath.Join(a.Dir, path)
	}
	opt.Dir = a.Data
	return opt
}

// compile reads and checks the schema. When the schema or the configuration has
// errors, the error tells those of both.
func (a *App) Compile() (*schema.Schema, []diag.Source, error) {
	s, sources, found, err := a.Check()
	bad := a.Problems.HasErrors()
	configuration := &console.Problems{What: "the configuration is invalid: " + console.Counted(a.Problems), List: a.Problems}
	switch {
	case err != nil && bad:
		return nil, nil, errors.Join(configuration, err)
	case err != nil:
		return nil, nil, err
	case s != nil && bad:
		return nil, nil, configuration
	case s != nil:
		return s, sources, nil
	}
	what := "the schema is invalid: "
	if bad {
		what = "the configuration and the schema are invalid: "
		found.Append(a.Problems)
	}
	return nil, nil, &console.Problems{What: what + console.Counted(found), Sources: sources, List: found}
}

// look reads and checks the schema, and finds what there is to say about it. A
// schema with errors is nil; an error means that none can be read at all.
func (a *App) Check() (*schema.Schema, []diag.Source, diag.List, error) {
	sources, err := syntax.Load(a.Dir)
	if err != nil {
		f := &console.Failure{Status: console.StatusInvalid, Err: err}
		if _, none := syntax.Files(a.Dir); none != nil && !errors.Is(none, fs.ErrPermission) {
			f.Hint = "name the app's folder with --app, or go there"
		}
		return nil, nil, nil, f
	}
	s, found := compiler.Compile(sources, a.SchemaOptions())
	return s, sources, found, nil
}

// strangers warns of values under [secrets] that the schema does not declare.
func (a *App) UnknownSecrets(s *schema.Schema) (found diag.List) {
	for name, place := range a.Config.SecretPlaces {
		if !slices.Contains(s.Secrets, name) {
			found.Warnf("", place, "the schema declares no secret %q%s", name, diag.DidYouMean(name, s.Secrets))
		}
	}
	return found
}

func (a *App) SchemaOptions() compiler.Options {
	opt := a.Config.Schema
	opt.Dir = a.Dir
	return opt
}

// checkCookies refuses to serve session cookies that any network may read where others
// than this machine could ask for them.
func (a *App) CheckCookies(listen string) error {
	host, _, err := net.SplitHostPort(listen)
	addr, notAddress := netip.ParseAddr(host)
	if !a.Config.Schema.InsecureCookies || err == nil && (host == "localhost" || notAddress == nil && addr.Unmap().IsLoopback()) {
		return nil
	}
	f := console.Invalid("[auth] insecure_cookies is for loopback alone, and this server would listen on %s", listen)
	f.Hint = "take it out of runner.toml, or listen on 127.0.0.1"
	return f
}
func (a *App) SandboxOptions(cache string) sandbox.Options {
	opt := a.Config.SandboxOptions(cache)
	opt.Compiler = moduleCompiler()
	return opt
}

// compilerCommand is internal: a server starts this program with it to compile a module
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

// name is the app's, as files can be called.
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

// checkData refuses a data folder that is none.
func (a *App) CheckData() error {
	if info, err := os.Stat(a.Data); err == nil && !info.IsDir() {
		return console.Invalid("data folder %q is a file: name a folder with --data or [store] dir", a.Data)
	}
	return nil
}

// CheckModules compiles the modules and reports the routes without a handler.
// An error says what is wrong with a module itself.
func (a *App) CheckModules(ctx context.Context, s *schema.Schema) (diag.List, error) {
	modules, err := runtime.ReadModules(a.Dir)
	if err != nil {
		return nil, err
	}
	err = runtime.CheckModules(ctx, a.SandboxOptions(""), runtime.App{Schema: s, Modules: modules})
	if unbound, ok := errors.AsType[*runtime.UnboundError](err); ok {
		return unbound.List, nil
	}
	return nil, err
}
