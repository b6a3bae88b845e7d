package sandbox

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"runner.example/hostabi/abi"
	"runner.example/internal/fault"
)

// Module is one compiled module. It is safe for concurrent use.
type Module struct {
	name     string
	engine   *Engine
	compiled wazero.CompiledModule
	handlers []string

	running sync.RWMutex // read-locked by every run
	closed  bool
}

// Load checks and compiles a module. name is its file, for messages; every
// refusal is one line that begins with it and says what to do.
func (e *Engine) Load(ctx context.Context, name string, wasm []byte) (*Module, error) {
	prepared, err := prepare(wasm, e.options.MemoryBytes)
	if err != nil {
		return nil, in(name, err)
	}
	compiled, err := e.runtime.CompileModule(ctx, prepared)
	if err != nil {
		text, _, _ := strings.Cut(err.Error(), "\n")
		return nil, in(name, refuse("is not a valid WebAssembly module: %s", text))
	}
	m := &Module{name: name, engine: e, compiled: compiled, handlers: handlersOf(compiled)}
	if err := m.check(); err != nil {
		_ = compiled.Close(ctx) // the refusal is what matters
		return nil, in(name, err)
	}
	return m, nil
}

func in(name string, err error) error {
	f := fault.Of(err)
	return fault.Wrap(f.Cause, f.Code, "%s: %s", name, f.Detail)
}

// handlersOf are the exports that can be handlers.
func handlersOf(compiled wazero.CompiledModule) []string {
	var names []string
	for name, f := range compiled.ExportedFunctions() {
		reserved := name == "memory" || strings.HasPrefix(name, "_") || strings.HasPrefix(name, "runner_")
		if !reserved && isPlain(f) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// isPlain reports whether f is () -> ().
func isPlain(f api.FunctionDefinition) bool {
	return len(f.ParamTypes()) == 0 && len(f.ResultTypes()) == 0
}

func (m *Module) check() error {
	if err := m.checkImports(); err != nil {
		return err
	}
	exports := m.compiled.ExportedFunctions()
	if _, ok := m.compiled.ExportedMemories()["memory"]; !ok {
		return refuse("does not export its memory: export it as \"memory\"")
	}
	if f, ok := exports["_initialize"]; ok && !isPlain(f) {
		return refuse("exports _initialize with parameters or results: it must have none")
	}
	if len(m.handlers) > 0 {
		return nil
	}
	if _, ok := exports["_start"]; ok {
		return refuse("is a command (it exports _start and no handler): build it as a reactor that exports a function () -> () for each handler")
	}
	return refuse("exports no handler: export a function () -> () for each, named as in the schema")
}

// checkImports names every import that guests cannot have.
func (m *Module) checkImports() error {
	var unknown []string
	for _, f := range m.compiled.ImportedFunctions() {
		module, name, _ := f.Import()
		offered, ok := m.engine.offered[module][name]
		switch {
		case !ok:
			unknown = append(unknown, module+"."+name)
		case !slices.Equal(f.ParamTypes(), offered.ParamTypes()) || !slices.Equal(f.ResultTypes(), offered.ResultTypes()):
			return refuse("imports %s.%s as %s, which is %s in guest ABI %d: build it with an SDK for that version",
				module, name, signature(f), signature(offered), abi.Version)
		}
	}
	if len(unknown) > 0 {
		return refuse("imports %s, which guest ABI %d does not have: build it with an SDK for that version",
			strings.Join(unknown, ", "), abi.Version)
	}
	return nil
}

func signature(f api.FunctionDefinition) string {
	types := func(list []api.ValueType) string {
		names := make([]string, len(list))
		for i, t := range list {
			names[i] = api.ValueTypeName(t)
		}
		return "(" + strings.Join(names, ", ") + ")"
	}
	return types(f.ParamTypes()) + " -> " + types(f.ResultTypes())
}

// Name is the module's file as it was given to Load.
func (m *Module) Name() string { return m.name }

// Handlers returns the names of the exports that can be handlers, sorted. The
// slice is the Module's.
func (m *Module) Handlers() []string { return m.handlers }

// Close frees the compiled code. It waits for the runs that are under way and
// refuses those that come later.
func (m *Module) Close(ctx context.Context) error {
	m.running.Lock()
	defer m.running.Unlock()
	if m.closed {
		return nil
	}
	m.closed = true
	if err := m.compiled.Close(ctx); err != nil {
		return fmt.Errorf("close module %s: %w", m.name, err)
	}
	return nil
}
