package build

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"runner.example/internal/diag"
	"runner.example/internal/wasm"
)

// Options say what is to be built.
type Options struct {
	// Dir is the app's folder.
	Dir string
	// Name is the app's; the TypeScript module is build/<Name>.wasm.
	Name string
	// Handlers are the names that the schema's routes call. A module exports
	// every function that its files export, but of these it must be clear which
	// one is meant.
	Handlers []string
	// CacheDir keeps the compiled JavaScript engine from one build to the next,
	// which makes builds several times as fast. It is made if it is not there, and
	// not used unless it is this user's alone. Empty: the engine is interpreted.
	CacheDir string
	// Only tells whether a source is to be built: "handlers" for all files of
	// TypeScript and JavaScript, handlers/<name> for a folder. nil: everything is.
	Only func(source string) bool
	// Log gets what the handlers' files log while they are evaluated, a line at a
	// time; nil drops it.
	Log func(text string)
	// MemoryBytes is how much memory a request may have: a module that has more to
	// begin with is a mistake. 0: it is not asked.
	MemoryBytes int64
	// Built is told each module as soon as it is there; may be nil.
	Built func(*Module)
	// Removed is told each module that was removed because its source is gone, or
	// has become a module of another name; may be nil.
	Removed func(file string)
}

func (o *Options) tellRemoved(files []string) {
	for _, file := range files {
		if o.Removed != nil {
			o.Removed(file)
		}
	}
}

func (o *Options) clean() error {
	removed, err := Clean(o.Dir)
	o.tellRemoved(removed)
	return err
}

// console passes on what is logged, without its level.
func (o *Options) console() func(int, string) {
	return func(_ int, text string) {
		if o.Log != nil {
			o.Log(text)
		}
	}
}

func (o *Options) wants(source string) bool { return o.Only == nil || o.Only(source) }

// Module is a module that was built.
type Module struct {
	// File is where it was put, relative to the app's folder.
	File string
	// Sources are the files or the folder that it was made of, relative to the
	// app's folder.
	Sources []string
	// Handlers are what it exports, for TypeScript; of other languages' modules
	// it is not known here.
	Handlers []string
	Bytes    int
	Took     time.Duration

	wasm []byte
}

// MistakesError is what is wrong with the sources.
type MistakesError struct {
	// List holds at least one error.
	List diag.List
	// Sources are the files that it names, as far as they could be read.
	Sources []diag.Source
}

func (e *MistakesError) Error() string { return e.List.Sorted()[0].String() }

// ErrNothing says that there is nothing to build.
var ErrNothing = errors.New("there is nothing to build: handlers/ holds no *.ts, no *.js and no folder with " + signs())

type builder struct {
	options Options
	found   diag.List
}

// Build makes all modules of an app and puts them into its folder build. What is
// there stays as it is where a module has mistakes, which are a *MistakesError;
// warnings are doubts about sources that were built all the same. Modules that
// earlier builds have made of what is gone are removed, as Clean does.
func Build(ctx context.Context, o Options) (modules []*Module, warnings *MistakesError, err error) {
	if err := o.clean(); err != nil {
		return nil, nil, err
	}
	found, err := find(o.Dir)
	if err != nil {
		return nil, nil, err
	}
	b := &builder{options: o}
	add := func(source string, m *Module, err error) error {
		if err != nil || m == nil {
			return err
		}
		if err := m.write(o.Dir); err != nil {
			return err
		}
		removed, err := recordModule(o.Dir, source, m)
		o.tellRemoved(removed)
		if err != nil {
			return err
		}
		modules = append(modules, m)
		if o.Built != nil {
			o.Built(m)
		}
		return nil
	}
	if o.wants("handlers") {
		if len(found.files) > 0 && slices.Contains(found.folders, o.Name) {
			return nil, nil, fmt.Errorf("handlers/%[1]s and the files beside it would both become build/%[1]s.wasm: rename the folder", o.Name)
		}
		m, err := b.ownModule(ctx, found)
		if err := add("handlers", m, err); err != nil {
			return nil, nil, err
		}
	}
	for _, folder := range found.folders {
		source := "handlers/" + folder
		if !o.wants(source) {
			continue
		}
		m, err := toolchainOf(filepath.Join(o.Dir, source)).module(b, ctx, folder)
		if err := add(source, m, err); err != nil {
			return nil, nil, err
		}
	}
	told := &MistakesError{List: b.found, Sources: sources(o.Dir, b.found)}
	switch {
	case b.found.HasErrors():
		return modules, nil, told
	case len(b.found) > 0:
		return modules, told, nil
	}
	return modules, nil, nil
}

// ownModule makes the module of the files in handlers/ itself, if there are any.
func (b *builder) ownModule(ctx context.Context, found contents) (m *Module, err error) {
	var used []string
	switch {
	case len(found.odd) > 0:
		b.found.Append(found.odd)
		return nil, nil
	case len(found.files) > 0:
		if m, used, err = b.typeScript(ctx, found.files); err != nil {
			return nil, err
		}
	}
	if !b.found.HasErrors() {
		b.doubtStrays(found, used)
	}
	return m, nil
}

// write puts the module where it belongs, whole or not at all.
func (m *Module) write(dir string) error {
	if m.wasm == nil {
		return nil // the toolchain has put it there
	}
	if err := replaceFile(filepath.Join(dir, m.File), m.wasm); err != nil {
		return fmt.Errorf("write the module: %w", err)
	}
	return nil
}

// fits tells what would keep a module from being loaded, of all that can be told of
// the file alone: one that does not fit had better not take the place of one that
// does.
func (b *builder) fits(source, file string, module []byte) bool {
	about := diag.Span{File: source}
	limits := wasm.DefaultLimits()
	if source == "handlers" && len(module) > limits.ModuleBytes {
		b.found.Errorf("", about, "there is too much data at the top level of the handlers' files: %d MiB of %d MiB that a module may have: read it in a request, or make it smaller", len(module)>>20, limits.ModuleBytes>>20)
		return false
	}
	if err := wasm.Foreign(module); err != nil {
		b.found.Errorf("", about, "its module %s %v", file, err)
		return false
	}
	m, err := wasm.Parse(module, limits)
	if err != nil {
		b.found.Errorf("", about, "its module %s %v", file, err)
		return false
	}
	memory := m.Memory()
	if memory == nil || b.options.MemoryBytes == 0 {
		return true
	}
	if needs := int64(memory.MinPages) * wasm.PageBytes; needs > b.options.MemoryBytes {
		what := "its module needs too much memory to begin with"
		if source == "handlers" {
			what = "there is too much data at the top level of the handlers' files"
		}
		b.found.Errorf("", about, "%s: %d MiB of %d MiB that a request may have: raise [sandbox] memory in runner.toml, or make it smaller", what, needs>>20, b.options.MemoryBytes>>20)
		return false
	}
	return true
}

// Exports gives the names of the functions that the modules in the folder build of
// an app export as handlers do, whoever has built them. It is an error that two
// modules export one of the handlers that are named.
func Exports(dir string, handlers ...string) (names []string, err error) {
	paths, err := filepath.Glob(filepath.Join(dir, "build", "*.wasm"))
	if err != nil {
		return nil, fmt.Errorf("list the modules: %w", err)
	}
	made, exporters := readRecord(dir), map[string]string{}
	called := func(path string) string {
		name := "build/" + filepath.Base(path)
		if _, ours := made[filepath.Base(path)]; !ours {
			name += ", which no source here becomes"
		}
		return name
	}
	var twice error
	for _, path := range paths {
		own, err := exportsOf(path, handlers)
		if err != nil {
			return nil, fmt.Errorf("module build/%s %w", filepath.Base(path), err)
		}
		for _, name := range own {
			if first := exporters[name]; first != "" && slices.Contains(handlers, name) {
				twice = errors.Join(twice, fmt.Errorf("handler %q is exported by %s and by %s: keep one of them", name, called(first), called(path)))
			}
			exporters[name] = path
		}
		names = append(names, own...)
	}
	return names, twice
}

// exportsOf reads what one module exports as handlers do. A command of which no
// function is one of the handlers is called like its file.
func exportsOf(path string, handlers []string) (names []string, err error) {
	file, err := wasm.ReadFile(path, wasm.DefaultLimits().ModuleBytes)
	if err != nil {
		return nil, err
	}
	if err := wasm.Foreign(file); err != nil {
		return nil, err
	}
	m, err := wasm.Parse(file, wasm.DefaultLimits())
	if err != nil {
		return nil, err
	}
	command := false
	for _, e := range m.Exports() {
		if e.Kind != wasm.FunctionKind || len(m.FunctionType(e.Index).Params)+len(m.FunctionType(e.Index).Results) > 0 {
			continue
		}
		if !strings.HasPrefix(e.Name, "_") {
			names = append(names, e.Name)
		}
		command = command || e.Name == "_start"
	}
	if command && !slices.ContainsFunc(names, func(name string) bool { return slices.Contains(handlers, name) }) {
		return []string{strings.TrimSuffix(filepath.Base(path), ".wasm")}, nil
	}
	return names, nil
}
