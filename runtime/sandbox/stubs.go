package sandbox

import (
	"context"
	"errors"
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

// stubName is the host module of a stub: one for each name and type, because two programs may import one name with
// different types. Programs with the same stub share it, as their code may be the same.
func stubName(i wasm.Import) string {
	return fmt.Sprintf("stub %q %q %s", i.Module, i.Name, signature(i.Type))
}

// stubsOf returns the imports that are stubs.
func stubsOf(m *wasm.Module, stub []string) []wasm.Import {
	return slices.DeleteFunc(slices.Clone(m.Imports()), func(i wasm.Import) bool { return !isStub(i, stub) })
}

// renameStubs returns a function that says where a module finds its imports; nil: under their own names.
func renameStubs(stub []string) func(wasm.Import) (module, name string) {
	if len(stub) == 0 {
		return nil
	}
	return func(i wasm.Import) (module, name string) {
		if isStub(i, stub) {
			return stubName(i), i.Name
		}
		return i.Module, i.Name
	}
}

// useStubs provides the stubs of the module, until releaseStubs.
func (m *Module) useStubs(ctx context.Context) error {
	e := m.engine
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, i := range m.program.Stubs {
		name := stubName(i)
		if e.stubs[name] == 0 {
			if err := e.provideStub(ctx, name, i); err != nil {
				return err
			}
		}
		e.stubs[name]++
		m.stubs = append(m.stubs, name)
	}
	return nil
}

// releaseStubs ends the module's use of its stubs. The last one closes a stub.
func (m *Module) releaseStubs(ctx context.Context) (err error) {
	e := m.engine
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, name := range m.stubs {
		if e.stubs[name]--; e.stubs[name] == 0 {
			delete(e.stubs, name)
			err = errors.Join(err, e.compiler.Runtime.Module(name).Close(ctx))
		}
	}
	return err
}

// provideStub makes the function.
func (e *Engine) provideStub(ctx context.Context, module string, i wasm.Import) error {
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
