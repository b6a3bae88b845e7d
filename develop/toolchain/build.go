package toolchain

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"runner.example/develop/toolchain/python"
	"runner.example/hostabi/wasi"
	"runner.example/internal/clock"
	"runner.example/internal/component"
	"runner.example/internal/diag"
	"runner.example/internal/symbols"
	"runner.example/internal/wasm"
	"runner.example/runtime/sandbox"
	"runner.example/schema"
)

// Options are the input of Build.
type Options struct {
	// Dir is the app directory.
	Dir string
	// Name is the name of the app; the TypeScript module is build/<Name>.wasm.
	Name string
	// Handlers are the names that the schema's routes call. A module exports every function
	// that its files export, but each of these names must be exported only once.
	Handlers []string
	// CacheDir stores the compiled JavaScript engine between builds, which makes builds
	// several times as fast. It is created if needed, and used only if no other user can
	// write to it. Empty: the engine is interpreted.
	CacheDir string
	// Schema is the app's schema, of which modules in Python have a part; nil: an empty one.
	Schema *schema.Schema
	// Interpreter runs CPython in builds of handlers in Python, which need it.
	Interpreter *python.Interpreter
	// NoStart: a module in Python is not started. An error in an import is then found by its activation.
	NoStart bool
	// Only selects the sources to build: "handlers" for all TypeScript and JavaScript
	// files, PythonSource for all of Python, handlers/<name> for a directory. nil selects all.
	Only func(source string) bool
	// Log receives the lines that the handlers' files log while they are evaluated; nil
	// discards them.
	Log func(text string)
	// MemoryBytes is the memory limit of a request. A module whose initial memory is larger
	// is an error. 0: no limit.
	MemoryBytes int64
	// Built is called with each module as soon as it is written; may be nil.
	Built func(*Module)
	// Removed is called with each module that was removed because its source was deleted or
	// is now built into a module of another name; may be nil.
	Removed func(file string)
}

func (o *Options) reportRemoved(files []string) {
	for _, file := range files {
		if o.Removed != nil {
			o.Removed(file)
		}
	}
}

func (o *Options) clean() error {
	removed, err := Clean(o.Dir)
	o.reportRemoved(removed)
	return err
}

func (o *Options) log(text string) {
	if o.Log != nil {
		o.Log(text)
	}
}

func (o *Options) wants(source string) bool { return o.Only == nil || o.Only(source) }

// Module is a module that was built.
type Module struct {
	// File is the path of the module, relative to the app directory, with slashes.
	File string
	// Debug is the path of its debug file; empty: it has none.
	Debug string
	// Source is what it was built from, as Options.Only names it.
	Source string
	// Sources are the files or the directory that it was built from, relative to the app
	// directory.
	Sources []string
	// Handlers are the handlers of a module in TypeScript or Python; unknown for other
	// languages.
	Handlers []string
	Bytes    int
	Took     time.Duration

	wasm, debug []byte
	// tree has the files of a module in Python; nil: the module has none.
	tree *python.Module
}

// DiagnosticsError has the errors and warnings of the sources.
type DiagnosticsError struct {
	// List has at least one entry.
	List diag.List
	// Sources are the files that the list names, if they could be read.
	Sources []diag.Source
}

func (e *DiagnosticsError) Error() string { return e.List.Sorted()[0].String() }

// PythonStarted returns the lines of a start of the module of handlers in Python to print, and the errors in its sources
// that have ended it, as Build does. err is the error of its activation, or nil. If it has another cause, wrong is nil.
func PythonStarted(dir string, log []python.Line, err error) (shown []python.Line, wrong *DiagnosticsError) {
	shown, list := python.Started(log, err)
	if list != nil {
		wrong = &DiagnosticsError{List: list, Sources: sources(dir, list)}
	}
	return shown, wrong
}

// ErrNothing means that the app has no sources to build.
var ErrNothing = errors.New("nothing to build: handlers/ has no *.ts, no *.js, no *.py, and no directory with " + markers())

type builder struct {
	options Options
	modules []*Module // built so far
	found   diag.List
}

// Build builds all modules of an app into its directory build. When the sources of a module
// have errors, the error is a *DiagnosticsError and the existing module is kept; warnings
// are about sources that were built. Modules that earlier builds made from deleted sources
// are removed, as by Clean.
func Build(ctx context.Context, o Options) (modules []*Module, warnings *DiagnosticsError, err error) {
	if err := o.clean(); err != nil {
		return nil, nil, err
	}
	found, err := find(o.Dir)
	if err != nil {
		return nil, nil, err
	}
	o.Schema = cmp.Or(o.Schema, &schema.Schema{})
	b := &builder{options: o}
	if o.wants("handlers") {
		if err := b.buildFiles(ctx, found); err != nil {
			return nil, nil, err
		}
	}
	if len(found.python) > 0 {
		found.directories = append(found.directories, source{
			language: &pythonFiles, name: schema.PythonModule, path: PythonSource, files: found.python,
		})
	}
	if err := oneName(found, o.Name); err != nil {
		return nil, nil, err
	}
	for _, s := range found.directories {
		if !o.wants(s.path) {
			continue
		}
		if err := b.build(ctx, s); err != nil {
			return nil, nil, err
		}
	}
	diagnostics := &DiagnosticsError{List: b.found, Sources: sources(o.Dir, b.found)}
	switch {
	case b.found.HasErrors():
		return b.modules, nil, diagnostics
	case len(b.found) > 0:
		return b.modules, diagnostics, nil
	}
	return b.modules, nil, nil
}

// buildFiles builds the module of the files in handlers/ itself, if there are any, and warns about
// sources that are not built.
func (b *builder) buildFiles(ctx context.Context, found contents) error {
	switch {
	case len(found.unreadable) > 0:
		b.found.Append(found.unreadable)
		return nil
	case len(found.files) > 0:
		if err := b.build(ctx, source{language: &typeScript, name: b.options.Name, path: "handlers", files: found.files}); err != nil {
			return err
		}
	}
	if !b.found.HasErrors() {
		b.warnUnused(found)
	}
	return nil
}

// build builds the module of a source, writes it and records its source. If the source has errors,
// they are added to the list, and the existing module is kept.
func (b *builder) build(ctx context.Context, s source) error {
	began := clock.Mark()
	m, err := s.language.compile(b, ctx, s)
	if err != nil || m == nil {
		return err
	}
	m.File = "build/" + s.name + ".wasm"
	if m.tree == nil && !b.loadable(s, m.File, m.wasm) { // a Python module was loaded before
		return nil
	}
	if len(m.debug) > symbols.MaxDebugBytes {
		b.found.Warnf("", diag.Span{File: s.path},
			"its debug information has %d MiB, and a debug file can have at most %d MiB: frames of failures will have no lines",
			len(m.debug)>>20, symbols.MaxDebugBytes>>20)
		m.debug = nil
	}
	if m.Sources == nil {
		m.Sources = []string{s.path}
	}
	m.Source = s.path
	m.Bytes, m.Took = len(m.wasm), time.Since(began)
	if err := m.write(b.options.Dir); err != nil {
		return err
	}
	removed, err := recordModule(b.options.Dir, s.path, b.options.Schema.Python, m)
	b.options.reportRemoved(removed)
	if err != nil {
		return err
	}
	b.modules = append(b.modules, m)
	if b.options.Built != nil {
		b.options.Built(m)
	}
	return nil
}

// write writes the module and its debug file, each as a whole or not at all. It writes the debug file first: the
// server ignores one that belongs to another build.
func (m *Module) write(dir string) error {
	if m.debug != nil {
		m.Debug = debugFile(m.File)
		if err := replaceFile(filepath.Join(dir, m.Debug), m.debug); err != nil {
			return fmt.Errorf("write the debug file: %w", err)
		}
	}
	path := filepath.Join(dir, m.File)
	if m.tree == nil || !m.tree.HasWasm {
		if err := replaceFile(path, m.wasm); err != nil {
			return fmt.Errorf("write the module: %w", err)
		}
	} else if err := os.Chtimes(path, clock.System(), clock.System()); err != nil { // Newer compares times
		return fmt.Errorf("set the time of the module: %w", err)
	}
	if m.tree != nil && !m.tree.HasFiles {
		if err := replaceTree(dir, m.tree); err != nil {
			return fmt.Errorf("write the files of the module: %w", err)
		}
	}
	return nil
}

// oneName returns an error if two sources would be built into the same module. app is the name of the module of the
// files in TypeScript and JavaScript.
func oneName(found contents, app string) error {
	names := map[string]string{}
	if len(found.files) > 0 {
		names[app] = "the files beside it"
	}
	for _, s := range found.directories {
		if first := names[s.name]; first != "" {
			return fmt.Errorf("%s and %s would both be built into build/%s.wasm: rename the directory, or the app", s.path, first, s.name)
		}
		names[s.name] = s.path
	}
	return nil
}

// debugFile returns the name of the debug file of a module.
func debugFile(module string) string { return strings.TrimSuffix(module, ".wasm") + ".debug" }

// loadable checks what can be checked in the file alone. A module that cannot be loaded
// must not replace one that can.
func (b *builder) loadable(s source, file string, module []byte) bool {
	about := diag.Span{File: s.path}
	limits := wasm.DefaultLimits()
	if s.path == "handlers" && len(module) > limits.ModuleBytes {
		b.found.Errorf("", about, "too much data at the top level of the handlers' files: the module has %d MiB, the limit is %d MiB: read the data in a request, or make it smaller", len(module)>>20, limits.ModuleBytes>>20)
		return false
	}
	m, err := wasm.Parse(module, limits)
	if err != nil {
		b.found.Errorf("", about, "its module %s %v", file, err)
		return false
	}
	var stub []string
	if block := b.options.Schema.Module(s.name); block != nil {
		stub = block.Stub
	}
	if err := sandbox.Inspect(m, stub); err != nil {
		b.found.Errorf("", about, "its module %s %s", file, s.language.explain(err))
		return false
	}
	memory := m.Memory()
	if b.options.MemoryBytes == 0 {
		return true
	}
	if needs := int64(memory.MinPages) * wasm.PageBytes; needs > b.options.MemoryBytes {
		what := "the module needs too much initial memory"
		if s.path == "handlers" {
			what = "too much data at the top level of the handlers' files"
		}
		b.found.Errorf("", about, "%s: %d MiB, and a request may have %d MiB: raise [sandbox] memory in runner.toml, or make it smaller", what, needs>>20, b.options.MemoryBytes>>20)
		return false
	}
	return true
}

// Exports returns the names of the functions that the modules in build/ export as handlers,
// including modules that were not built from handlers/. It is an error if two modules
// export one of the given handlers.
func Exports(dir string, handlers ...string) (names []string, err error) {
	names, _, err = ExportsAndPrograms(dir, handlers...)
	return names, err
}

// ExportsAndPrograms returns Exports, and those of them that are WASI programs.
func ExportsAndPrograms(dir string, handlers ...string) (names, programs []string, err error) {
	paths, err := filepath.Glob(filepath.Join(dir, "build", "*.wasm"))
	if err != nil {
		return nil, nil, fmt.Errorf("list the modules: %w", err)
	}
	made, exporters := readRecord(dir), map[string]string{}
	called := func(path string) string {
		name := "build/" + filepath.Base(path)
		if _, ours := made[filepath.Base(path)]; !ours {
			name += ", which is not built from a source here"
		}
		return name
	}
	var twice error
	for _, path := range paths {
		own, program, err := made.handlersOf(path, handlers)
		if err != nil {
			return nil, nil, fmt.Errorf("module build/%s %w", filepath.Base(path), err)
		}
		if program {
			programs = append(programs, own...)
		}
		for _, name := range own {
			if first := exporters[name]; first != "" && slices.Contains(handlers, name) {
				twice = errors.Join(twice, fmt.Errorf("handler %q is exported by %s and by %s: keep one of them", name, called(first), called(path)))
			}
			exporters[name] = path
		}
		names = append(names, own...)
	}
	return names, programs, twice
}

// handlersOf returns the handlers of one module. Those of a module in Python are in the record.
func (r record) handlersOf(path string, handlers []string) (names []string, program bool, err error) {
	if known := r[filepath.Base(path)].Handlers; known != nil {
		if sum, err := sumOf(path); err == nil && sum == r[filepath.Base(path)].SHA256 {
			return known, false, nil
		}
	}
	return exportsOf(path, handlers)
}

// exportsOf returns the handlers that one module exports. A component that answers requests is itself a handler, named after
// its file, and so is a WASI command that exports none of the given handlers.
func exportsOf(path string, handlers []string) (names []string, program bool, err error) {
	file, err := wasm.ReadFile(path, wasm.DefaultLimits().ModuleBytes)
	if err != nil {
		return nil, false, err
	}
	isComponent := component.IsComponent(file)
	if isComponent {
		if file, err = wasi.Link(file, wasm.DefaultLimits()); err != nil {
			return nil, false, err
		}
	}
	m, err := wasm.Parse(file, wasm.DefaultLimits())
	if err != nil {
		return nil, false, err
	}
	own, command, requests := strings.TrimSuffix(filepath.Base(path), ".wasm"), false, false
	for _, e := range m.Exports() {
		if e.Kind != wasm.FunctionKind || len(m.FunctionType(e.Index).Params)+len(m.FunctionType(e.Index).Results) > 0 {
			continue
		}
		if !strings.HasPrefix(e.Name, "_") && !strings.HasPrefix(e.Name, "runner_") {
			names = append(names, e.Name)
		}
		command = command || e.Name == "_start"
		requests = requests || e.Name == component.ExportRequest
	}
	named := func(name string) bool { return slices.Contains(handlers, name) }
	if isComponent {
		err = component.CheckNames(names, named)
		if requests && !slices.Contains(names, own) {
			names = append(names, own)
		}
		return names, false, err
	}
	if command && !slices.ContainsFunc(names, named) {
		return []string{own}, true, nil
	}
	return names, false, nil
}

// sources reads the files that the list names, so that Print can show their lines.
func sources(dir string, list diag.List) (all []diag.Source) {
	seen := map[string]bool{}
	for _, d := range list {
		if name := d.Span.File; name != "" && !seen[name] {
			seen[name] = true
			path := filepath.Join(dir, name)
			if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
				continue // reading a pipe could block
			}
			if text, err := os.ReadFile(path); err == nil { // otherwise the line is not shown
				all = append(all, diag.Source{Name: name, Text: text})
			}
		}
	}
	return all
}
