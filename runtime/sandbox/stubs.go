package sandbox

import (
	"context"
	"fmt"
	"slices"

	"github.com/tetratelabs/wazero/api"

	"runner.example/hostabi"
	"runner.example/hostabi/abi"
	"runner.example/internal/wasm"
)

// A program that was built for another host may import functions that this runner does not have. The schema names
// their modules in stub. Each of these functions ends the run when it is called.

// isStub reports whether an import is of one of the modules, which cannot be the runner's own.
func isStub(i wasm.Import, stub []string) bool {
	return slices.Contains(stub, i.Module) && i.Module != abi.Module && i.Module != hostabi.WASIModule
}

// stubs provides the functions, and returns their names: a module of its own for each name and type, because
// two programs may import one name with different types. nil: there are none.
func (e *Engine) stubs(
	ctx context.Context, m *wasm.Module, stub []string) (func(wasm.Import) (module, name string), error) {
	names := map[string]string{} // modules by names and types
	for _, i := range m.Imports() {
		if !isStub(i, stub) {
			continue
		}
		key := fmt.Sprintf("%q %q %s", i.Module, i.Name, signature(i.Type))
		names[key] = "stub " + key
		if err := e.provideStub(ctx, names[key], i); err != nil {
			return nil, err
		}
	}
	if len(names) == 0 {
		return nil, nil
	}
	return func(i wasm.Import) (module, name string) {
		if as, ok := names[fmt.Sprintf("%q %q %s", i.Module, i.Name, signature(i.Type))]; ok {
			return as, i.Name
		}
		return i.Module, i.Name
	}, nil
}

// provideStub makes the function, unless it exists.
func (e *Engine) provideStub(ctx context.Context, module string, i wasm.Import) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.compiler.Runtime.Module(module) != nil {
		return nil
	}
	called := fmt.Errorf("called %s, which the schema names in stub: it is not implemented", qualified(i))
	f := hostabi.Function{Name: i.Name, Fn: func(context.Context, api.Module, []uint64) { panic(called) }}
	for _, t := range i.Type.Params {
		f.Params = append(f.Params, api.ValueType(t))
	}
	for _, t := range i.Type.Results {
		f.Results = append(f.Results, api.ValueType(t))
	}
	return e.provide(ctx, module, []hostabi.Function{f})
}
