package sandbox

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"runner.example/hostabi"
	"runner.example/hostabi/abi"
	"runner.example/internal/fault"
	"runner.example/internal/wasm"
)

// Exports with a meaning of their own. exportStart is what makes a module a
// command.
const (
	exportMemory     = "memory"
	exportInitialize = "_initialize"
	exportStart      = "_start"
	exportWarm       = "runner_warm"
	exportReseed     = "runner_reseed"
)

// exportPrefix begins the names of what a rewritten module exports for us.
const exportPrefix = "\x00"

// maxTable is how many entries a table may grow to.
const maxTable = 1 << 16

// program is a module made ready to be compiled, and what there is to know about
// it. It can be kept in a file.
type program struct {
	// Wasm is the rewritten module: it counts its fuel and its stack, exports its
	// mutable globals, and has neither data nor a start function.
	Wasm     []byte
	Handlers []string
	// First are the functions to run before the first request, in order.
	First   []string
	Reseeds bool
	// Globals are the names of the mutable globals, Fuel and Depth those that
	// were added.
	Globals     []string
	Fuel, Depth string
	Data        []wasm.DataSegment
	// MinPages and MaxPages are as the module declares them.
	MinPages, MaxPages uint32
	// Unfit says why an instance cannot be restored; empty if it can.
	Unfit []string
}

// prepare checks a module, rewrites and compiles it, unless that was done
// before.
func (e *Engine) prepare(ctx context.Context, binary []byte) (*program, wazero.CompiledModule, error) {
	parse := func() (*program, error) {
		m, err := wasm.Parse(binary, wasm.DefaultLimits())
		if err != nil {
			return nil, fault.Wrap(nil, fault.Invalid, "%v", err)
		}
		return e.rewrite(m)
	}
	if e.cache != nil {
		return e.cache.make(ctx, e.cache.key(binary, e.options.MemoryBytes), parse, e.compile)
	}
	p, err := parse()
	if err != nil {
		return nil, nil, err
	}
	compiled, err := e.compile(ctx, p.Wasm)
	return p, compiled, err
}

func (e *Engine) rewrite(m *wasm.Module) (*program, error) {
	if err := e.checkImports(m); err != nil {
		return nil, err
	}
	limit := uint32(e.options.MemoryBytes / pageBytes)
	if err := m.CheckMemory(limit); err != nil {
		return nil, refuse("%v", err)
	}
	p := &program{Unfit: m.Eligibility()}
	if err := p.readExports(m); err != nil {
		return nil, err
	}
	memory := m.Memory()
	p.MinPages, p.MaxPages = memory.MinPages, memory.MaxPages
	rewritten, done, err := m.Rewrite(wasm.Options{
		Fuel:     &wasm.FuelImport{Module: fuelModule, Name: fuelFunction},
		MaxStack: maxStack,
		Stack:    &wasm.StackImport{Module: fuelModule, Name: stackFunction},
		// The allocator refuses what is too much; beyond the maximum it would not
		// be asked, not even by sandbox.shrink.
		MemoryMaxPages: 1 << 16,
		TableMax:       maxTable,
		Prefix:         exportPrefix,
		Detach:         true,
	})
	if err != nil {
		return nil, refuse("%v", err)
	}
	p.Wasm, p.Data, p.Fuel, p.Depth = rewritten, done.Data, done.Fuel, done.Depth
	for _, g := range done.Globals {
		p.Globals = append(p.Globals, g.Name)
	}
	if done.Start != "" {
		p.First = slices.Insert(p.First, 0, done.Start)
	}
	return p, nil
}

// readExports finds the handlers and what runs before them.
func (p *program) readExports(m *wasm.Module) error {
	var memory, command, initialize, warm bool
	for _, x := range m.Exports() {
		if x.Kind != wasm.FunctionKind {
			memory = memory || x.Kind == wasm.MemoryKind && x.Name == exportMemory
			continue
		}
		t := m.FunctionType(x.Index)
		plain := len(t.Params) == 0 && len(t.Results) == 0 && int(x.Index) >= len(m.Imports())
		switch x.Name {
		case exportInitialize, exportWarm, exportReseed:
			if !plain {
				return refuse("exports %s with parameters or results: it must have none", x.Name)
			}
			initialize = initialize || x.Name == exportInitialize
			warm = warm || x.Name == exportWarm
			p.Reseeds = p.Reseeds || x.Name == exportReseed
		case exportStart:
			command = true
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
	switch {
	case !memory:
		return refuse("does not export its memory: export it as %q", exportMemory)
	case len(p.Handlers) > 0:
		return nil
	case command:
		return refuse("is a command (it exports _start and no handler): build it as a reactor that exports a function () -> () for each handler")
	}
	return refuse("exports no handler: export a function () -> () for each, named as in the schema")
}

// checkImports names every import that guests cannot have.
func (e *Engine) checkImports(m *wasm.Module) error {
	var unknown []string
	for _, i := range m.Imports() {
		f, ok := e.offered[i.Module][i.Name]
		switch {
		case !ok:
			unknown = append(unknown, i.Module+"."+i.Name)
		case !sameTypes(i.Type.Params, f.Params) || !sameTypes(i.Type.Results, f.Results):
			return refuse("imports %s.%s as %s, which is %s in guest ABI %d: build it with an SDK for that version",
				i.Module, i.Name, signature(i.Type), signature(typeOf(f)), abi.Version)
		}
	}
	if len(unknown) > 0 {
		return refuse("imports %s, which guest ABI %d does not have: build it with an SDK for that version",
			strings.Join(unknown, ", "), abi.Version)
	}
	return nil
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

// signature shows a type: "(i32, i32) -> (i32)".
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

// shown is how messages call a function that runs before the first request.
func shown(name string) string {
	if strings.HasPrefix(name, exportPrefix) {
		return "its start function"
	}
	return name
}

// memoryBytes is the most that the module's memory may have.
func (m *Module) memoryBytes() uint64 {
	return min(uint64(m.engine.options.MemoryBytes), uint64(m.program.MaxPages)*pageBytes)
}
