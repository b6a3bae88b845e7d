package runtime

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"runner.example/hostabi/files"
	"runner.example/hostabi/recording"
	"runner.example/internal/console"
	"runner.example/internal/diag"
	"runner.example/internal/fault"
	"runner.example/internal/secret"
	"runner.example/internal/symbols"
	"runner.example/internal/tree"
	"runner.example/internal/wasm"
	"runner.example/runtime/sandbox"
	"runner.example/schema"
	"runner.example/state/entity/catalog"
)

// Bundle is an app in memory: a checked schema, its modules, and the values of its secrets. It does not change
// after its activation.
type Bundle struct {
	// App is the name of the app.
	App string
	// Release is the id of the stored release that has these files, for the log; empty: there is none.
	Release string
	Schema  *schema.Schema
	// Sources are the files that the schema was compiled from. The store keeps them, to
	// compare the next schema with this one.
	Sources []diag.Source
	// Refused are warnings about what this version would refuse in the schema of a new release.
	Refused diag.List
	Modules []ModuleFile
	// Assets are the files of the directories of Schema.Assets, by directory. They are those of the release, or of the
	// app directory, and do not change.
	Assets map[string]*tree.Tree
	// Secrets are the values of the secrets that the schema declares.
	Secrets secret.Values
}

// ModuleFile is one compiled module; messages call it Name.
type ModuleFile struct {
	Name string
	Wasm []byte
	// Debug is its debug file (see package symbols); nil: there is none, or it was not read. It plays no part in
	// an activation. DebugErr says why a debug file that is there cannot be used; it continues "debug information".
	Debug    []byte
	DebugErr error
	// Files are the files that the schema gives the module; nil: none. They are those of the release, or of the app
	// directory, and do not change. A content is read when it is asked for, and not kept: who starts a program keeps
	// what it needs. The digest of their listing tells whether two bundles have equal files. Arguments, environment
	// and the other settings of the module are in Schema.Module.
	Files *tree.Tree
	// Draws is sandbox.Settings.Draws: what the module draws when it is loaded for a replay.
	Draws *recording.Drawn
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

// Explain adds the places in the schema to an error of an activation of the bundle.
func (b *Bundle) Explain(err error) error {
	if unbound, ok := errors.AsType[*UnboundError](err); ok {
		return &console.Problems{
			What: "the modules do not match the schema: " + console.Counted(unbound.List), Sources: b.Sources, List: unbound.List,
		}
	}
	if change, ok := errors.AsType[*catalog.ChangeError](err); ok {
		return RowsRefused(b.Sources, change.List)
	}
	return err
}

// RowsRefused returns the error of an activation that the rows in the store do not allow.
func RowsRefused(sources []diag.Source, found diag.List) *console.Problems {
	return &console.Problems{What: "existing rows violate the schema: " + console.Counted(found), Sources: sources, List: found}
}

// ModuleFeatures names the parts of WebAssembly that a module uses and that its first version did not have.
type ModuleFeatures struct {
	Module   string   `json:"module"` // its name in a schema
	Features []string `json:"features"`
}

// CheckModules compiles the modules and reports what Activate would refuse, without a
// server. It returns what the modules use.
func CheckModules(ctx context.Context, opt sandbox.Options, bundle *Bundle) (used []ModuleFeatures, err error) {
	engine, err := sandbox.New(ctx, opt)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, engine.Close(ctx)) }()
	modules, err := load(ctx, engine, bundle)
	for _, m := range modules {
		used = append(used, ModuleFeatures{ModuleFile{Name: m.Name()}.ShortName(), m.Features()})
		err = errors.Join(err, m.Close(ctx))
	}
	return used, err
}

// load compiles the modules of a bundle and checks that exactly one of them exports each
// handler; a schema without handlers needs no module. After an error no module stays open.
func load(ctx context.Context, engine *sandbox.Engine, bundle *Bundle) (modules []*sandbox.Module, err error) {
	defer func() {
		if err != nil {
			for _, m := range modules {
				err = errors.Join(err, m.Close(ctx))
			}
			modules = nil
		}
	}()
	if s := bundle.Schema; len(bundle.Modules) == 0 && s.HasHandlers() {
		return nil, fault.New(fault.Invalid, "no module in build/: compile the handlers to build/*.wasm")
	}
	named := namesHandler(bundle.Schema)
	exporters := map[string]string{}
	var exports, programs []string
	var all []error
	var names []string
	var wrong diag.List
	for _, file := range bundle.Modules {
		name := file.ShortName()
		names = append(names, name)
		m, err := engine.LoadAs(ctx, file.Name, file.Wasm, ModuleSettings(bundle.Schema, file))
		if err != nil {
			all = append(all, err)
			continue
		}
		modules = append(modules, m)
		if err := m.CheckNames(named); err != nil {
			all = append(all, err)
		}
		if !m.Initializes() {
			wrong.Append(bundle.Schema.CheckFresh(name))
		}
		if offers := m.Offers(named); len(offers) == 1 && offers[0] == m.Command() {
			programs = append(programs, offers[0])
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
	wrong.Append(bundle.Schema.CheckModules(names))
	wrong.Append(bundle.Schema.CheckHandlers(exports, programs...))
	if wrong.HasErrors() {
		return modules, &UnboundError{List: wrong}
	}
	return modules, nil
}

// isPython reports whether the module is the interpreter of handlers in Python: it has files and no block.
func (f ModuleFile) isPython(s *schema.Schema) bool {
	return f.Files != nil && s.Module(f.ShortName()) == nil
}

// ModuleSettings are what the schema says of a module, with the module's files.
func ModuleSettings(s *schema.Schema, file ModuleFile) sandbox.Settings {
	block, t := s.Module(file.ShortName()), file.Files
	if file.isPython(s) {
		block = s.Python.Module()
	}
	if block == nil {
		return sandbox.Settings{Draws: file.Draws}
	}
	settings := sandbox.Settings{Fresh: block.Fresh, Stub: block.Stub, Draws: file.Draws}
	if len(block.Args) == 0 && len(block.Env) == 0 && t == nil && block.StartTimeout == 0 {
		return settings
	}
	settings.Program = &sandbox.Program{Args: block.Args, Timeout: block.StartTimeout}
	for _, v := range block.Env {
		settings.Program.Env = append(settings.Program.Env, v.Name+"="+v.Value)
	}
	if t != nil {
		settings.Program.Tree = fmt.Sprintf("%x", t.Digest())
		for _, f := range t.List() {
			settings.Program.Files = append(settings.Program.Files, files.File{
				Path: f.Path, Size: f.Size, Read: func() ([]byte, error) { return t.ReadFile(f.Path) },
			})
		}
	}
	return settings
}

// namesHandler returns whether the routes, functions and jobs of a schema name a handler.
func namesHandler(s *schema.Schema) func(name string) bool {
	named := map[string]bool{}
	for _, handler := range s.HandlersOfRoutes() {
		named[handler] = true
	}
	for i := range s.Functions {
		named[s.Functions[i].Name] = true
	}
	for i := range s.Jobs {
		named[s.Jobs[i].Name] = true
	}
	return func(name string) bool { return named[name] }
}
