package wasi

import (
	_ "embed"
	"io"
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
// export: handlers of wasi:http, and wasi:cli/run. It must not be changed.
var World = sync.OnceValue(func() *component.Plan {
	plan, err := component.Read(worldFile, wasm.DefaultLimits())
	if err != nil {
		panic("BUG: wasi.wasm: " + err.Error())
	}
	return plan
})

// host is what the interfaces offer to components.
var host = sync.OnceValue(func() *component.Host { return component.NewHost(exports, World(), App()) })

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
			last.Functions = append(last.Functions, dropper(i.Name), mover(i.Name), lender(i.Name))
			continue
		}
		last.Functions = append(last.Functions, bind(i, implementationOf(module, i.Name))...)
	}
	return all
}

// exports are the interfaces of World that components export, and that of the handler of App.
var exports = map[string]bool{"wasi:http/incoming-handler": true, "wasi:http/handler": true, "wasi:cli/run": true, "": true}

// function implements a function of an interface. Its arguments and its result are values of package
// canon; nil: the function has no result. The result of an async function may be a later instead.
type function func(r *run, a []any) any

// implementations are by host module and function.
var implementations = map[string]map[string]function{
	"wasi:io/poll@0.2":                   pollFunctions,
	"wasi:io/error@0.2":                  errorFunctions,
	"wasi:io/streams@0.2":                streamFunctions,
	"wasi:http/types@0.2":                httpFunctions,
	"wasi:http/outgoing-handler@0.2":     outgoingFunctions,
	"wasi:clocks/monotonic-clock@0.2":    monotonicFunctions,
	"wasi:clocks/wall-clock@0.2":         wallClockFunctions,
	"wasi:clocks/timezone@0.2":           timezoneFunctions,
	"wasi:random/random@0.2":             randomFunctions,
	"wasi:random/insecure@0.2":           insecureFunctions,
	"wasi:random/insecure-seed@0.2":      seedFunctions,
	"wasi:cli/environment@0.2":           merged(environmentFunctions, map[string]function{"initial-cwd": constant(none)}),
	"wasi:cli/exit@0.2":                  exitFunctions,
	"wasi:cli/stdin@0.2":                 {"get-stdin": func(r *run, _ []any) any { return r.add(&inputStream{rest: r.call.Stdin()}, 0) }},
	"wasi:cli/stdout@0.2":                {"get-stdout": func(r *run, _ []any) any { return r.add(&outputStream{to: stdout{r.call}}, 0) }},
	"wasi:cli/stderr@0.2":                {"get-stderr": func(r *run, _ []any) any { return r.add(&outputStream{to: stderr{r.call}}, 0) }},
	"wasi:cli/terminal-stdin@0.2":        {"get-terminal-stdin": constant(none)},
	"wasi:cli/terminal-stdout@0.2":       {"get-terminal-stdout": constant(none)},
	"wasi:cli/terminal-stderr@0.2":       {"get-terminal-stderr": constant(none)},
	"wasi:filesystem/types@0.2":          fileFunctions,
	"wasi:filesystem/preopens@0.2":       {"get-directories": preopens},
	"wasi:sockets/network@0.2":           {"network-error-code": constant(none)},
	"wasi:sockets/instance-network@0.2":  {"instance-network": func(r *run, _ []any) any { return r.add(&network{}, 0) }},
	"wasi:sockets/tcp-create-socket@0.2": {"create-tcp-socket": refuseSocket},
	"wasi:sockets/udp-create-socket@0.2": {"create-udp-socket": refuseSocket},
	"wasi:sockets/ip-name-lookup@0.2":    {"resolve-addresses": refuseLookup},

	"wasi:http/types@0.3":             messageFunctions,
	"wasi:http/client@0.3":            {"send": send},
	"wasi:clocks/monotonic-clock@0.3": asyncClockFunctions,
	"wasi:clocks/system-clock@0.3":    systemClockFunctions,
	"wasi:clocks/timezone@0.3":        asyncTimezoneFunctions,
	"wasi:random/random@0.3":          randomFunctions,
	"wasi:random/insecure@0.3":        insecureFunctions,
	"wasi:random/insecure-seed@0.3":   {"get-insecure-seed": seedFunctions["insecure-seed"]},
	"wasi:cli/environment@0.3":        asyncEnvironmentFunctions,
	"wasi:cli/exit@0.3":               exitFunctions,
	"wasi:cli/stdin@0.3":              {"read-via-stream": readStdin},
	"wasi:cli/stdout@0.3":             {"write-via-stream": writeLog(func(c *hostabi.Call) io.Writer { return c.Stdout() })},
	"wasi:cli/stderr@0.3":             {"write-via-stream": writeLog(func(c *hostabi.Call) io.Writer { return c.Stderr() })},
	"wasi:cli/terminal-stdin@0.3":     {"get-terminal-stdin": constant(none)},
	"wasi:cli/terminal-stdout@0.3":    {"get-terminal-stdout": constant(none)},
	"wasi:cli/terminal-stderr@0.3":    {"get-terminal-stderr": constant(none)},
	"wasi:filesystem/types@0.3":       asyncFileFunctions,
	"wasi:filesystem/preopens@0.3":    {"get-directories": preopens},
	"wasi:sockets/types@0.3":          {"[static]tcp-socket.create": refused, "[static]udp-socket.create": refused},
	"wasi:sockets/ip-name-lookup@0.3": {"resolve-addresses": refused},
}

// implementationOf returns the function of an interface. What is not in the table is a method of a
// resource that there is none of, as of a socket.
func implementationOf(of, name string) function {
	if in, ok := strings.CutPrefix(of, abi.WITPackage+"/"); ok {
		in, _, _ = strings.Cut(in, "@")
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

// bind makes the function of an import core functions: one that waits for the result, and for an async function one
// that does not.
func bind(i *component.Import, run function) []hostabi.Function {
	f := &boundFunction{name: i.Name, typ: i.Func, shape: i.Func.Lowered(false), async: i.Func.Lowered(true), run: run}
	f.counts = strings.HasPrefix(i.Interface, abi.WITPackage+"/")
	all := []hostabi.Function{{
		Name: i.Name, Params: coreTypes(f.shape.Params), Results: coreTypes(f.shape.Results),
		Fn: hostabi.Bind(f.counts || isFree(i.Func), f.call),
	}}
	if i.Func.Async {
		all = append(all, hostabi.Function{
			Name: component.AsyncCall + i.Name, Params: coreTypes(f.async.Params), Results: coreTypes(f.async.Results),
			Fn: hostabi.Bind(false, f.start),
		})
	}
	return all
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
	return t.Kind == component.Own || t.Kind == component.Stream || t.Kind == component.Future || makesHandle(t.Element) || slices.ContainsFunc(t.Fields, of)
}

func coreTypes(of []wasm.ValueType) (all []api.ValueType) {
	for _, t := range of {
		all = append(all, api.ValueType(t))
	}
	return all
}

// boundFunction is a function with its type, and how modules see it: shape waits for the result, async does not.
type boundFunction struct {
	name         string
	typ          *component.FuncType
	shape, async component.CoreShape
	run          function
	// counts: it is of runner:app, and counts by itself what it moves.
	counts bool
}

// call lifts the arguments, runs the function and lowers its result.
func (f *boundFunction) call(c *hostabi.Call, m api.Memory, core []uint64) {
	r := runOf(c)
	r.enter(m)
	result := f.run(r, r.lift(f, f.shape, core))
	if l, ok := result.(later); ok {
		result = r.finished(l)
	}
	switch {
	case f.typ.Result == nil:
	case f.shape.ResultInMemory:
		r.write("result of "+f.name, f.typ.Result, uint32(core[len(f.shape.Params)-1]), result, !f.counts)
	default:
		core[0] = canon.LowerFlat(f.typ.Result, result)
	}
}

// start is call without waiting for the result. It returns the state of the call, and the handle of its subtask.
func (f *boundFunction) start(c *hostabi.Call, m api.Memory, core []uint64) {
	r := runOf(c)
	r.enter(m)
	s := &subtask{function: f}
	if f.async.ResultInMemory {
		s.at = uint32(core[len(f.async.Params)-1])
	}
	result := f.run(r, r.lift(f, f.async, core))
	s.later, _ = result.(later)
	switch {
	case s.later == nil:
		s.write(r, result)
		core[0] = subtaskReturned
		return
	case s.isReady(r):
		s.event(r)
		core[0] = subtaskReturned
		return
	}
	core[0] = subtaskStarted | uint64(r.add(s, 0))<<4
}

// lift lifts the arguments of a function.
func (r *run) lift(f *boundFunction, shape component.CoreShape, core []uint64) []any {
	budget := r.call.MovedLeft()
	if f.counts {
		budget = maxText
	}
	lifter := canon.Lifter{Memory: whole(r.memory), Budget: budget}
	args, err := lifter.Params(f.typ, shape, core)
	if err != nil {
		r.call.Trap("%s: %v", f.name, err)
	}
	if !f.counts {
		r.call.CountMoved(budget - lifter.Budget)
	}
	return args
}

// whole is all of a guest's memory.
func whole(m api.Memory) []byte {
	all, _ := m.Read(0, m.Size()) // it is within the memory
	return all
}

// write writes a value where the guest wants it, and may count its bytes. What it points to follows in calls of
// allocate.
func (r *run) write(what string, t *component.ValueType, at uint32, value any, counts bool) {
	r.place(what, at, r.result.Lower(t, value), counts)
}

// place writes r.result, unless there is an error, where the guest wants it.
func (r *run) place(what string, at uint32, err error, counts bool) {
	if err == nil {
		if counts {
			r.call.CountMoved(r.result.Size())
		}
		err = r.result.Write(whole(r.memory), at)
	}
	if err != nil {
		r.result.Reset()
		r.call.Trap("%s: %v", what, err)
	}
}

// dropper is the function that drops handles of a resource.
func dropper(resource string) hostabi.Function {
	return hostabi.Function{
		Name: "[resource-drop]" + resource, Params: []api.ValueType{api.ValueTypeI32},
		Fn: hostabi.Bind(true, func(c *hostabi.Call, m api.Memory, core []uint64) {
			r := runOf(c)
			r.enter(m)
			if r.dropBorrowed(uint32(core[0]), r.entry(uint32(core[0]), resource)) {
				return
			}
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
