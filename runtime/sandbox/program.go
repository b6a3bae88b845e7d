package sandbox

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tetratelabs/wazero/api"

	"runner.example/hostabi"
	"runner.example/hostabi/wasi"
	"runner.example/internal/component"
	"runner.example/internal/wasm"
	"runner.example/runtime/compile"
)

// Exports with a meaning. exportStart makes a module a command.
const (
	exportMemory     = "memory"
	exportInitialize = "_initialize"
	exportStart      = "_start"
	exportWarm       = "runner_warm"
	exportPrepare    = "runner_prepare"
	exportRandom     = "runner_random"
	exportReseed     = "runner_reseed"
	exportStopped    = "runner_stopped"
)

// exportPrefix begins the names of the exports that rewriting adds.
const exportPrefix = "\x00"

// maxTable is how many entries a table may grow to.
const maxTable = 1 << 16

// program is a module that is rewritten to be compiled, and what the engine knows of it.
type program struct {
	// Source is the rewritten module: it counts its fuel and its stack and exports its
	// mutable globals. It has no data, start function, names or memory size of its own, so
	// modules that differ only in these share their code.
	Source   compile.Source
	Handlers []string
	// Exports are the names that Source has for the module's functions.
	Exports map[string]string
	// Exported are the names of the functions that the module exports, by their indexes.
	Exported map[int]string
	// Command: it exports _start.
	Command bool
	// Component: it was a component. Requests: it answers requests as wasi:http/incoming-handler says.
	Component, Requests bool
	// Waits: it is a command that calls request_next.
	Waits bool
	// Stubs are the imports that the schema says to do without.
	Stubs []wasm.Import
	// First are the functions of the initialization, in order.
	First   []string
	Random  bool // it exports runner_random
	Reseeds bool
	Reports bool // it exports runner_stopped
	// Globals are the names of the module's mutable globals, Fuel and Depth those of the
	// added ones.
	Globals     []string
	Fuel, Depth string
	Data        []wasm.DataSegment
	// CodeStart is where the content of the code section begins in the file. Imports is how many
	// functions the module imports.
	CodeStart          int64
	Imports, Functions int
	Go                 bool               // it has the globals of Go's code
	Stack              *wasm.StackPointer // nil: there is none
	// MinPages and MaxPages are as the module declares them.
	MinPages, MaxPages uint32
	// Features are those that the module uses: see wasm.Module.Features.
	Features []string
	// Unrestorable says why an instance cannot be restored; empty if it can.
	Unrestorable []string
}

// link returns a component as one core module, and other modules as they are.
func link(file []byte) (binary []byte, isComponent bool, err error) {
	if !component.IsComponent(file) {
		return file, false, nil
	}
	if binary, err = wasi.Link(file, wasm.DefaultLimits()); err != nil {
		return nil, true, refuse("%v", err)
	}
	return binary, true, nil
}

// prepare checks, rewrites and compiles a module.
func (e *Engine) prepare(ctx context.Context, binary []byte, isComponent bool, stub []string) (*program, *compile.Code, error) {
	limits := wasm.DefaultLimits()
	limits.Compile, _ = e.compiler.Limits(len(binary))
	m, err := wasm.Parse(binary, limits)
	switch {
	case errors.Is(err, wasm.ErrCompileTime):
		return nil, nil, refuse("%v, or raise [sandbox] compile_timeout", err)
	case err != nil:
		return nil, nil, refuse("%v", err)
	}
	p, err := e.rewrite(m, isComponent, stub)
	if err != nil {
		return nil, nil, err
	}
	c, err := e.compiler.Code(ctx, p.Source)
	return p, c, err
}

// prepared returns what prepare would, if a loaded module has the same bytes; nil: none has. Reading and rewriting those
// of CPython takes as long as its start.
func (e *Engine) prepared(binary []byte, sum [sha256.Size]byte, fresh bool, stub []string) (*program, *compile.Code) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for m := range e.modules {
		// The data of Go is not that of the file, and a fresh module has fewer functions to call.
		if m.sum != sum || m.fresh != fresh || m.program.Go || !slices.Equal(m.stub, stub) {
			continue
		}
		p := *m.program
		p.Data = slices.Clone(p.Data)
		for i := range p.Data {
			p.Data[i].Bytes = binary[p.Data[i].From:p.Data[i].To]
		}
		e.compiler.Share(m.code)
		return &p, m.code
	}
	return nil, nil
}

// dropData forgets the bytes of the data.
func (p *program) dropData() {
	for i := range p.Data {
		p.Data[i].Bytes = nil
	}
}

func (e *Engine) rewrite(m *wasm.Module, isComponent bool, stub []string) (*program, error) {
	if err := checkImports(m, isComponent, stub); err != nil {
		return nil, refuse("%v", err)
	}
	limit := uint32(e.options.MemoryBytes / pageBytes)
	if err := m.CheckMemory(limit); err != nil {
		return nil, refuse("%v", err)
	}
	p := &program{
		Component: isComponent, Stubs: stubsOf(m, stub), Unrestorable: m.Eligibility(), CodeStart: int64(m.CodeStart()), Imports: len(m.Imports()),
		Functions: m.Functions(), Features: m.Features(),
	}
	if stack, ok := m.StackPointer(); ok {
		p.Stack = &stack
	}
	if err := p.readExports(m); err != nil {
		return nil, err
	}
	p.Waits = p.waits(m)
	memory := m.Memory()
	p.MinPages, p.MaxPages = memory.MinPages, memory.MaxPages
	if p.Go = isGo(m); p.Go {
		m = m.WithoutDispatch()
	}
	rewritten, done, err := m.Rewrite(wasm.Options{
		Fuel:     &wasm.FuelImport{Module: fuelModule, Name: fuelFunction},
		MaxStack: maxStack,
		Stack:    &wasm.StackImport{Module: fuelModule, Name: stackFunction},
		// The allocator refuses too much memory. Beyond the module's maximum wazero would
		// not call it, not even for sandbox.shrink.
		MemoryMaxPages: 1 << 16,
		TableMax:       maxTable,
		Prefix:         exportPrefix,
		Rename:         renameStubs(stub),
		Detach:         true,
		Alike:          true,
		Offsets:        true,
	})
	if err != nil {
		return nil, refuse("%v", err)
	}
	p.Source = compile.Source{Wasm: rewritten, Cost: m.CompileCost(), Offsets: done.Offsets}
	p.Data, p.Fuel, p.Depth, p.Exports = done.Data, done.Fuel, done.Depth, done.Exports
	for _, g := range done.Globals {
		p.Globals = append(p.Globals, g.Name)
	}
	if done.Start != "" {
		p.First = slices.Insert(p.First, 0, done.Start)
	}
	return p, nil
}

// readExports finds the handlers and the functions of the initialization.
func (p *program) readExports(m *wasm.Module) error {
	var memory, initialize, warm, prepare bool
	p.Exported = map[int]string{}
	for _, x := range m.Exports() {
		if x.Kind != wasm.FunctionKind {
			memory = memory || x.Kind == wasm.MemoryKind && x.Name == exportMemory
			continue
		}
		p.Exported[int(x.Index)] = x.Name
		t := m.FunctionType(x.Index)
		plain := len(t.Params) == 0 && len(t.Results) == 0 && int(x.Index) >= len(m.Imports())
		switch x.Name {
		case exportInitialize, exportWarm, exportPrepare, exportReseed, exportStopped:
			if !plain {
				return refuse("exports %s with parameters or results: it must have none", x.Name)
			}
			initialize = initialize || x.Name == exportInitialize
			warm = warm || x.Name == exportWarm
			prepare = prepare || x.Name == exportPrepare
			p.Reseeds = p.Reseeds || x.Name == exportReseed
			p.Reports = p.Reports || x.Name == exportStopped
		case exportRandom:
			if len(t.Params) > 0 || !slices.Equal(t.Results, []wasm.ValueType{wasm.I32}) || int(x.Index) < len(m.Imports()) {
				return refuse("exports %s as %s: it must be () -> i32", x.Name, signature(t))
			}
			p.Random = true
		case exportStart:
			p.Command = plain
		case component.ExportRequest:
			p.Requests = p.Component
		case exportMemory:
		default:
			if plain && x.Name != "" && !strings.HasPrefix(x.Name, "_") && !strings.HasPrefix(x.Name, "runner_") {
				p.Handlers = append(p.Handlers, x.Name)
			}
		}
	}
	slices.Sort(p.Handlers)
	if initialize {
		p.First = append(p.First, exportInitialize)
	}
	if warm {
		p.First = append(p.First, exportWarm)
	}
	if prepare {
		p.First = append(p.First, exportPrepare)
	}
	switch {
	case !memory:
		return refuse("does not export its memory: export it as %q", exportMemory)
	case len(p.Handlers) > 0 || p.Command || p.Requests:
		return nil
	}
	return refuse(
		"exports no handler: export a function () -> () for each, named as in the schema, or _start for a command")
}

func sameTypes(a []wasm.ValueType, b []api.ValueType) bool {
	return slices.EqualFunc(a, b, func(t wasm.ValueType, u api.ValueType) bool { return byte(t) == u })
}

func typeOf(f hostabi.Function) (t wasm.FuncType) {
	for _, p := range f.Params {
		t.Params = append(t.Params, wasm.ValueType(p))
	}
	for _, r := range f.Results {
		t.Results = append(t.Results, wasm.ValueType(r))
	}
	return t
}

// signature formats a type: "(i32, i32) -> (i32)".
func signature(t wasm.FuncType) string {
	list := func(types []wasm.ValueType) string {
		names := make([]string, len(types))
		for i, t := range types {
			names[i] = t.String()
		}
		return "(" + strings.Join(names, ", ") + ")"
	}
	return fmt.Sprintf("%s -> %s", list(t.Params), list(t.Results))
}

// shown is the name of a function of the initialization in messages.
func shown(name string) string {
	if strings.HasPrefix(name, exportPrefix) {
		return "its start function"
	}
	return name
}

// memoryBytes is the limit of the module's memory.
func (m *Module) memoryBytes() uint64 {
	return min(uint64(m.engine.options.MemoryBytes), uint64(m.program.MaxPages)*pageBytes)
}
