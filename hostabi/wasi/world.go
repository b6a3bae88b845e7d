package wasi

import (
	_ "embed"
	"slices"
	"strings"
	"sync"

	"github.com/tetratelabs/wazero/api"

	"runner.example/hostabi"
	"runner.example/hostabi/abi"
	"runner.example/internal/component"
	"runner.example/internal/component/canon"
	"runner.example/internal/wasm"
)

//go:embed wasi.wasm
var worldFile []byte

// World is a component that imports all interfaces that components can import, and those that they can
// export: wasi:http/incoming-handler and wasi:cli/run. It must not be changed.
var World = sync.OnceValue(func() *component.Plan {
	plan, err := component.Read(worldFile, wasm.DefaultLimits())
	if err != nil {
		panic("BUG: wasi.wasm: " + err.Error())
	}
	return plan
})

// host is what the interfaces offer to components.
var host = sync.OnceValue(func() *component.Host { return component.NewHost(World(), App()) })

// Link checks a component and returns it as one core module, whose imports are functions of Modules. The limits are
// those of component.Read and Plan.Link. An error continues the name of the file.
func Link(file []byte, limits wasm.Limits) ([]byte, error) {
	plan, err := component.Read(file, limits)
	if err != nil {
		return nil, err
	}
	return plan.Link(limits, host())
}

// Module is a host module, for modules that are made of components.
type Module struct {
	Name      string
	Functions []hostabi.Function
}

// Modules returns a host module for each interface, with the part of the version that counts in its
// name, such as "wasi:http/types@0.2", and the module "component". The functions must be called under
// a *hostabi.Guest whose Call was passed to Begin.
func Modules() []Module {
	all := []Module{{"component", protocol()}}
	for _, i := range slices.Concat(World().Imports, App().Imports) {
		name, _, _ := strings.Cut(i.Interface, "@")
		if exports[name] {
			continue
		}
		module := component.HostInterface(i.Interface)
		if last := &all[len(all)-1]; last.Name != module {
			all = append(all, Module{Name: module})
		}
		last := &all[len(all)-1]
		if i.Resource != nil {
			last.Functions = append(last.Functions, dropper(i.Name))
			continue
		}
		last.Functions = append(last.Functions, bind(i, implementationOf(name, i.Name)))
	}
	return all
}

// exports are the interfaces of World that components export, and that of the handler of App.
var exports = map[string]bool{"wasi:http/incoming-handler": true, "wasi:cli/run": true, "": true}

// function implements a function of an interface. Its arguments and its result are values of package
// canon; nil: the function has no result.
type function func(r *run, a []any) any

// implementations are by interface and function.
var implementations = map[string]map[string]function{
	"wasi:io/poll":                   pollFunctions,
	"wasi:io/error":                  errorFunctions,
	"wasi:io/streams":                streamFunctions,
	"wasi:http/types":                httpFunctions,
	"wasi:http/outgoing-handler":     outgoingFunctions,
	"wasi:clocks/monotonic-clock":    monotonicFunctions,
	"wasi:clocks/wall-clock":         wallClockFunctions,
	"wasi:clocks/timezone":           timezoneFunctions,
	"wasi:random/random":             randomFunctions,
	"wasi:random/insecure":           insecureFunctions,
	"wasi:random/insecure-seed":      seedFunctions,
	"wasi:cli/environment":           environmentFunctions,
	"wasi:cli/exit":                  exitFunctions,
	"wasi:cli/stdin":                 {"get-stdin": func(r *run, _ []any) any { return r.add(&inputStream{}, 0) }},
	"wasi:cli/stdout":                {"get-stdout": func(r *run, _ []any) any { return r.add(&outputStream{to: stdout{r.call}}, 0) }},
	"wasi:cli/stderr":                {"get-stderr": func(r *run, _ []any) any { return r.add(&outputStream{to: stderr{r.call}}, 0) }},
	"wasi:cli/terminal-stdin":        {"get-terminal-stdin": constant(none)},
	"wasi:cli/terminal-stdout":       {"get-terminal-stdout": constant(none)},
	"wasi:cli/terminal-stderr":       {"get-terminal-stderr": constant(none)},
	"wasi:filesystem/types":          fileFunctions,
	"wasi:filesystem/preopens":       {"get-directories": preopens},
	"wasi:sockets/network":           {"network-error-code": constant(none)},
	"wasi:sockets/instance-network":  {"instance-network": func(r *run, _ []any) any { return r.add(&network{}, 0) }},
	"wasi:sockets/tcp-create-socket": {"create-tcp-socket": refuseSocket},
	"wasi:sockets/udp-create-socket": {"create-udp-socket": refuseSocket},
	"wasi:sockets/ip-name-lookup":    {"resolve-addresses": refuseLookup},
}

// implementationOf returns the function of an interface. What is not in the table is a method of a
// resource that there is none of, as of a socket.
func implementationOf(of, name string) function {
	if in, ok := strings.CutPrefix(of, abi.WITPackage+"/"); ok {
		return appFunctions[in][name]
	}
	if f, ok := implementations[of][name]; ok {
		return f
	}
	return func(r *run, a []any) any {
		r.call.Trap("handle %d is unknown: the host has no such resource", a[0])
		return nil
	}
}

// bind makes the function of an import a core function.
func bind(i *component.Import, run function) hostabi.Function {
	f := boundFunction{name: i.Name, typ: i.Func, shape: i.Func.Lowered(false), run: run}
	b := hostabi.Function{Name: i.Name, Params: coreTypes(f.shape.Params), Results: coreTypes(f.shape.Results)}
	f.counts = strings.HasPrefix(i.Interface, abi.WITPackage+"/")
	b.Fn = hostabi.Bind(f.counts || isFree(i.Func), f.call)
	return b
}

// isFree reports whether a function does not count as a host call: it passes only numbers and handles that
// are there. Engines of languages read the clock more often than a request may call the host.
func isFree(f *component.FuncType) bool {
	for _, p := range f.Params {
		if p.Type.HasPointers() {
			return false
		}
	}
	return f.Result == nil || !f.Result.HasPointers() && !makesHandle(f.Result)
}

// makesHandle reports whether a result has a handle that the guest owns.
func makesHandle(t *component.ValueType) bool {
	if t == nil {
		return false
	}
	of := func(f component.Field) bool { return makesHandle(f.Type) }
	return t.Kind == component.Own || makesHandle(t.Element) || slices.ContainsFunc(t.Fields, of)
}

func coreTypes(of []wasm.ValueType) (all []api.ValueType) {
	for _, t := range of {
		all = append(all, api.ValueType(t))
	}
	return all
}

// boundFunction is a function with its type.
type boundFunction struct {
	name  string
	typ   *component.FuncType
	shape component.CoreShape
	run   function
	// counts: it is of runner:app, and counts by itself what it moves.
	counts bool
}

// call lifts the arguments, runs the function and lowers its result.
func (f *boundFunction) call(c *hostabi.Call, m api.Memory, core []uint64) {
	r := runOf(c)
	r.leave()
	budget := c.MovedLeft()
	if f.counts {
		budget = maxText
	}
	lifter := canon.Lifter{Memory: whole(m), Budget: budget}
	args, err := lifter.Params(f.typ, f.shape, core)
	if err != nil {
		c.Trap("%s: %v", f.name, err)
	}
	if !f.counts {
		c.CountMoved(budget - lifter.Budget)
	}
	result := f.run(r, args)
	switch {
	case f.typ.Result == nil:
	case f.shape.ResultInMemory:
		r.write("result of "+f.name, f.typ.Result, m, uint32(core[len(f.shape.Params)-1]), result, !f.counts)
	default:
		core[0] = canon.LowerFlat(f.typ.Result, result)
	}
}

// whole is all of a guest's memory.
func whole(m api.Memory) []byte {
	all, _ := m.Read(0, m.Size()) // it is within the memory
	return all
}

// write writes a value where the guest wants it, and may count its bytes. What it points to follows in calls of
// allocate.
func (r *run) write(what string, t *component.ValueType, m api.Memory, at uint32, value any, counts bool) {
	lowered, err := canon.Lower(t, value)
	if err == nil {
		if counts {
			r.call.CountMoved(lowered.Size())
		}
		err = lowered.Write(whole(m), at)
	}
	if err != nil {
		r.call.Trap("%s: %v", what, err)
	}
	if _, _, more := lowered.Next(); more {
		r.result = lowered
	}
}

// dropper is the function that drops handles of a resource.
func dropper(resource string) hostabi.Function {
	return hostabi.Function{
		Name: "[resource-drop]" + resource, Params: []api.ValueType{api.ValueTypeI32},
		Fn: hostabi.Bind(true, func(c *hostabi.Call, _ api.Memory, core []uint64) {
			r := runOf(c)
			r.leave()
			if d, ok := r.remove(uint32(core[0]), resource).(interface{ drop() }); ok {
				d.drop()
			}
		}),
	}
}

// The cases of types that many functions have.
var none = canon.Case{}

func some(v any) canon.Case { return canon.Case{Index: 1, Value: v} }
func ok(v any) canon.Case   { return canon.Case{Value: v} }
func fail(v any) canon.Case { return canon.Case{Index: 1, Value: v} }

// constant is a function that always returns the same.
func constant(v any) function { return func(*run, []any) any { return v } }

// codes are the numbers of the cases that a function of World may return as its option.
func codes(of, name string) func() map[string]uint32 {
	return sync.OnceValue(func() map[string]uint32 {
		all := map[string]uint32{}
		for _, i := range World().Imports {
			if i.Name == name && strings.HasPrefix(i.Interface, of+"@") {
				for n, c := range i.Func.Result.Element.Cases() {
					all[c.Name] = uint32(n)
				}
			}
		}
		return all
	})
}
