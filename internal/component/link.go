package component

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"

	"runner.example/internal/wasm"
	"runner.example/internal/wasm/opcode"
)

// HostModule is the host module of what is not a function of an interface.
const HostModule = "component"

// ExportRequest is the export, of the module that a component becomes, that answers a request as
// wasi:http/incoming-handler or wasi:http/handler says.
const ExportRequest = "runner_request"

const (
	exportMemory = "memory"
	exportStart  = "_start" // that of a command
)

// Link returns the component as one core module. Its imports are functions of interfaces: the module is
// HostInterface of the interface, the name is that of the function, the type is the flattened one. The name of
// one that is called without waiting begins with AsyncCall. The host must have all that is used.
//
// A function of the host whose result has strings or lists writes it in steps: the module calls it, and
// then component.allocate. Its results are the alignments (high half) and sizes of the next blocks, and 0 after the last
// one. The module allocates them, and calls again with their addresses, until the first result is 0. For the request of
// a handler of runner:app, component.begin_handler has these results the first time.
func (p *Plan) Link(limits wasm.Limits, host *Host) ([]byte, error) {
	l, err := newLinker(p, host, isHandler)
	if err != nil {
		return nil, err
	}
	if err := l.export(); err != nil {
		return nil, err
	}
	l.addFlags(limits)
	return l.merge.Module(limits)
}

// newLinker returns a linker that has all instances. exported says which exports will be called.
func newLinker(p *Plan, host *Host, exported func(*Export) bool) (*linker, error) {
	l := &linker{plan: p, host: host, names: map[*Canon]string{}, imports: map[string]wasm.FuncType{}}
	l.merge.Names = map[string]wasm.Source{}
	l.merge.Memory = exportMemory
	for _, instance := range p.Instances {
		l.merge.Parts = append(l.merge.Parts, wasm.Part{Module: instance.Module.Parsed})
	}
	l.live = l.merge.LiveMemory()
	l.survey(exported)
	for i, instance := range p.Instances {
		for _, item := range instance.Imports {
			source, err := l.source(item)
			if err != nil {
				return nil, fmt.Errorf("core instance %d: %w", i, err)
			}
			l.merge.Parts[i].Imports = append(l.merge.Parts[i].Imports, source)
		}
	}
	return l, nil
}

// HostInterface is the name of an interface without the part of its version that compatible versions
// differ in (semver.org 2.0.0): wasi:io/poll@0.2 for wasi:io/poll@0.2.12.
func HostInterface(name string) string {
	base, version, ok := strings.Cut(name, "@")
	if !ok || strings.ContainsAny(version, "-+") {
		return name
	}
	numbers := strings.Split(version, ".")
	same := 1 + slices.IndexFunc(numbers, func(n string) bool { return n != "0" })
	if same == 0 || same > len(numbers) {
		return name
	}
	return base + "@" + strings.Join(numbers[:same], ".")
}

// linker makes a Merge of a plan.
type linker struct {
	plan    *Plan
	host    *Host
	merge   wasm.Merge
	names   map[*Canon]string // of the functions that were made for them
	imports map[string]wasm.FuncType
	realloc string // allocates what async functions write when they return; empty: none is there yet
	live    int    // the part whose memory has content, or wasm.NoPart
	isolation
	parts int // of the types of fused calls, together
}

// source is where a core item comes from.
func (l *linker) source(item CoreItem) (wasm.Source, error) {
	if item.Canon == nil {
		return wasm.Source{Part: item.Instance - 1, Name: item.Name}, nil
	}
	name, ok := l.names[item.Canon]
	if !ok {
		var err error
		if name, err = l.canon(item.Canon); err != nil {
			return wasm.Source{}, err
		}
		l.names[item.Canon] = name
	}
	return wasm.Source{Part: wasm.NoPart, Name: name}, nil
}

// hostFunction imports a function of the host, and returns its name in the merge.
func (l *linker) hostFunction(module, name string, t wasm.FuncType) (string, error) {
	full := module + "." + name
	have, ok := l.imports[full]
	switch {
	case ok && !sameFunc(have, t):
		return "", fmt.Errorf("imports %s with two types", full)
	case !ok:
		l.imports[full] = t
		l.merge.Imports = append(l.merge.Imports, wasm.Import{Module: module, Name: name, Type: t})
	}
	return full, nil
}

// canon returns the name of the function that a canonical definition becomes.
func (l *linker) canon(c *Canon) (string, error) {
	switch {
	case c.Op == Lower && c.Func.Import != nil:
		return l.lowerImport(c)
	case c.Op == Lower:
		return l.fuse(c)
	case c.Op == ResourceDrop && c.Resource.Identity().Import != nil:
		drop, err := l.hostResource(c.Resource.Identity().Import, "[resource-drop]", c.Core)
		if err != nil {
			return "", err
		}
		return l.guarded(c, drop), nil
	case c.Op == ResourceDrop, c.Op == ResourceNew, c.Op == ResourceRep:
		return l.ownResource(c)
	}
	return l.builtin(c)
}

// lowerImport returns the name of the core function that calls a function of the host.
func (l *linker) lowerImport(c *Canon) (string, error) {
	i := c.Func.Import
	full, name := i.Interface+"."+i.Name, i.Name
	if err := l.host.Check(i); err != nil {
		return "", err
	}
	if c.Options.Async {
		name = AsyncCall + name
	}
	if err := l.useMemory(c.Options); err != nil {
		return "", fmt.Errorf("%s: %w", full, err)
	}
	host, err := l.hostFunction(HostInterface(i.Interface), name, c.Core)
	switch {
	case err != nil:
		return "", err
	case c.Func.Type.Result == nil || !c.Func.Type.Result.HasPointers():
		return l.guarded(c, host), nil
	}
	return l.allocatingBy(c, host)
}

// useMemory refuses memories that the host does not use, and strings that are not UTF-8.
func (l *linker) useMemory(o Options) error {
	switch {
	case o.Encoding != UTF8:
		return errors.New("has strings in another encoding than UTF-8, which is not supported")
	case !o.Memory.IsZero() && !l.isLive(o.Memory):
		return errors.New("uses a memory without pages, and another memory has pages")
	}
	return nil
}

// isLive reports whether a memory is the one that has content.
func (l *linker) isLive(memory CoreItem) bool {
	for !memory.IsZero() {
		instance := l.plan.Instances[memory.Instance-1]
		i := slices.IndexFunc(instance.Module.Parsed.Externals(), func(x wasm.External) bool { return x.Kind == wasm.MemoryKind })
		if i < 0 {
			return memory.Instance-1 == l.live
		}
		memory = instance.Imports[i]
	}
	return false
}

// allocating adds a function that calls the host, and then the function whose name allocator returns when all are known;
// empty: nothing is allocated.
func (l *linker) allocating(owner int, t wasm.FuncType, host string, allocator func() string) (string, error) {
	name := fmt.Sprintf("lower %d %s", len(l.merge.Functions), host)
	begin, allow, allocate := l.prologue(owner), l.allow(owner), l.hostBuiltin("allocate", allocates)
	l.add(name, "", t, nil, func(a *assembler) {
		begin(a)
		for i := range t.Params {
			a.n(opcode.LocalGet, i)
		}
		a.call(host)
		if allocator() == "" {
			return
		}
		for range AllocatedAtOnce {
			a.i32(0)
		}
		a.call(allocate)
		allow(a, false)
		a.call(allocator())
		allow(a, true)
	})
	return name, nil
}

// AllocatedAtOnce is the number of blocks that a module allocates between two calls of component.allocate.
const AllocatedAtOnce = 8

// blocks are those that the host asks for, in the form of hostBuiltin, and allocates is the type of component.allocate.
var (
	blocks    = strings.Repeat("l", AllocatedAtOnce)
	allocates = strings.Repeat("i", AllocatedAtOnce) + ">" + blocks
)

// allocator returns the name of the function that allocates the blocks of what the host has to write, with realloc. It
// gets those that the host asks for first.
func (l *linker) allocator(realloc string) string {
	name := "allocate with " + realloc
	if slices.ContainsFunc(l.merge.Functions, func(f wasm.Function) bool { return f.Name == name }) {
		return name
	}
	const n = AllocatedAtOnce
	allocate := l.hostBuiltin("allocate", allocates)
	const block, address = 0, n // the first locals
	l.add(name, "", form{core: blocks + ">"}.signature(), slices.Repeat([]wasm.ValueType{wasm.I32}, n), func(a *assembler) {
		a.op(opcode.Loop, opcode.BlockEmpty)
		for i := range n { // each one within the one before
			a.n(opcode.LocalGet, block+i).op(opcode.I64Const, 0, opcode.I64Ne, opcode.If, opcode.BlockEmpty)
			a.i32(0).i32(0)
			a.n(opcode.LocalGet, block+i).op(opcode.I64Const, 32, opcode.I64ShrU, opcode.I32WrapI64)
			a.n(opcode.LocalGet, block+i).op(opcode.I32WrapI64)
			a.call(realloc).n(opcode.LocalSet, address+i)
		}
		for range n - 1 {
			a.op(opcode.End)
		}
		for i := range n {
			a.n(opcode.LocalGet, address+i)
		}
		a.call(allocate)
		for i := range n {
			a.n(opcode.LocalSet, block+n-1-i)
		}
		a.n(opcode.Br, 1).op(opcode.End, opcode.End)
	})
	return name
}

// named gives an export of a part a name that added functions can use.
func (l *linker) named(item CoreItem) (string, error) {
	source, err := l.source(item)
	if err != nil || source.Part == wasm.NoPart {
		return source.Name, err
	}
	name := fmt.Sprintf("%d %s", source.Part, source.Name)
	l.merge.Names[name] = source
	return name, nil
}

// add adds a function. Those without an export have a name.
func (l *linker) add(name, export string, t wasm.FuncType, locals []wasm.ValueType, write func(*assembler)) {
	l.merge.Functions = append(l.merge.Functions, wasm.Function{
		Name: name, Export: export, Type: t, Locals: locals,
		Code: func(index func(string) uint32) []byte {
			a := &assembler{index: index}
			write(a)
			return a.code
		},
	})
}

// assembler appends instructions.
type assembler struct {
	code  []byte
	index func(name string) uint32
}

func (a *assembler) op(code ...byte) *assembler {
	a.code = append(a.code, code...)
	return a
}

// n appends an instruction and its number, which WebAssembly writes as Go's varints.
func (a *assembler) n(op byte, n int) *assembler {
	a.code = binary.AppendUvarint(append(a.code, op), uint64(n))
	return a
}

// i32 pushes a constant.
func (a *assembler) i32(n uint32) *assembler {
	a.code = appendSigned(append(a.code, opcode.I32Const), int64(int32(n)))
	return a
}

func (a *assembler) i64(n int64) *assembler {
	a.code = appendSigned(append(a.code, opcode.I64Const), n)
	return a
}

// appendSigned appends a number as WebAssembly writes signed ones.
func appendSigned(b []byte, n int64) []byte {
	for n < -64 || n > 63 {
		b = append(b, byte(n)|0x80)
		n >>= 7
	}
	return append(b, byte(n)&0x7f)
}

func (a *assembler) call(name string) *assembler { return a.n(opcode.Call, int(a.index(name))) }

// AsyncCall begins the name of a function that is called without waiting for its result.
const AsyncCall = "[async]"

// The interfaces that a component answers requests by.
const (
	httpHandler  = "wasi:http/incoming-handler@0.2"
	asyncHandler = "wasi:http/handler@0.3"
)

// The interfaces of commands.
const (
	commandRun = "wasi:cli/run@0.2"
	asyncRun   = "wasi:cli/run@0.3"
)

// isHandler reports whether an export answers requests.
func isHandler(x *Export) bool { return x.Interface == "" || answersHTTP(x) || isCommand(x) }

// isCommand reports whether an export is that of a command.
func isCommand(x *Export) bool {
	of := HostInterface(x.Interface)
	return (of == commandRun || of == asyncRun) && x.Name == "run"
}

func answersHTTP(x *Export) bool {
	of := HostInterface(x.Interface)
	return (of == httpHandler || of == asyncHandler) && x.Name == "handle"
}

// export adds the functions that the runtime calls. A component that has both handlers of wasi:http answers by the newer
// one. Functions that are in no interface are handlers. They may be other ones in a component that answers requests.
func (l *linker) export() error {
	var requests, command *Export
	var found bool
	var others []string
	var wrong error // of the first function that is not a handler
	for _, x := range l.plan.Exports {
		if x.Func == nil {
			continue
		}
		name := strings.TrimPrefix(x.Interface+"."+x.Name, ".")
		switch {
		case answersHTTP(x):
			if requests == nil || HostInterface(x.Interface) == asyncHandler {
				requests = x
			}
			continue
		case isCommand(x):
			if command == nil || HostInterface(x.Interface) == asyncRun {
				command = x
			}
			continue
		case x.Interface != "":
			others = append(others, name)
			continue
		}
		if is := l.notHandler(x); is != nil {
			others, wrong = append(others, name), cmp.Or(wrong, is)
			continue
		}
		if err := l.exportHandler(x.Name, x.Func); err != nil {
			return fmt.Errorf("exports %s: %w", name, err)
		}
		found = true
	}
	switch {
	case wrong != nil && found && requests == nil:
		return wrong
	case !found && requests == nil && command != nil:
		if err := l.exportCommand(command); err != nil {
			return fmt.Errorf("exports %s.%s: %w", command.Interface, command.Name, err)
		}
		return nil
	case !found && requests == nil:
		return fmt.Errorf("is a component that does not export %s, %s or wasi:cli/run%s", httpHandler, asyncHandler, instead(others, wrong))
	case requests == nil:
		return nil
	}
	export := l.exportRequest
	if HostInterface(requests.Interface) == asyncHandler {
		export = l.exportAsync
	}
	if err := export(requests); err != nil {
		return fmt.Errorf("exports %s.%s: %w", requests.Interface, requests.Name, err)
	}
	return nil
}

// notHandler says why an export has not the type of a handler; nil: it has.
func (l *linker) notHandler(x *Export) error {
	if err := l.host.CheckHandler(x.Func.Type); err != nil {
		return fmt.Errorf("exports %s: %w", x.Name, err)
	}
	return nil
}

// instead lists what a component exports, and says what is wrong with a handler, to end an error.
func instead(names []string, wrong error) string {
	switch {
	case len(names) == 0:
		return ", and no handlers of runner:app"
	case len(names) > 3:
		names = append(slices.Clone(names[:3]), "…")
	}
	text := ", but " + strings.Join(names, ", ")
	if wrong != nil {
		text += ": " + wrong.Error()
	}
	return text
}

// lifted returns the name of the core function of an export.
func (l *linker) lifted(f *Func) (string, error) {
	if f.Lift == nil {
		return "", errors.New("is a function of the host")
	}
	if err := l.useMemory(f.Lift.Options); err != nil {
		return "", err
	}
	return l.named(f.Lift.Core)
}

// exportRequest adds the function that the runtime calls, for a handler of WASI 0.2.
func (l *linker) exportRequest(x *Export) error {
	if err := l.host.exports(x); err != nil {
		return err
	}
	handle, err := l.lifted(x.Func)
	if err != nil {
		return err
	}
	handles := wasm.FuncType{Results: []wasm.ValueType{wasm.I32}}
	begin, err := l.hostFunction(HostModule, "begin_http", handles)
	if err != nil {
		return err
	}
	end, err := l.hostFunction(HostModule, "end_http", wasm.FuncType{})
	if err != nil {
		return err
	}
	postReturn, err := l.postReturn(x.Func.Lift)
	if err != nil {
		return err
	}
	enter := l.prologue(x.Func.Lift.Owner)
	const request = 0 // the local with its handle; that of the response-outparam is the next number
	l.add("", ExportRequest, wasm.FuncType{}, handles.Results, func(a *assembler) {
		enter(a)
		a.call(begin).n(opcode.LocalTee, request)
		a.n(opcode.LocalGet, request).op(opcode.I32Const, 1, opcode.I32Add)
		a.call(handle)
		postReturn(a)
		a.call(end)
	})
	return nil
}
