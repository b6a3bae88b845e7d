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
// wasi:http/incoming-handler says.
const ExportRequest = "runner_request"

const exportMemory = "memory"

// Link returns the component as one core module. Its imports are functions of interfaces: the module is
// HostInterface of the interface, the name is that of the function, the type is the flattened one. The host
// checks what is used of it.
//
// A function of the host whose result has strings or lists writes it in steps: the module calls it, and
// then component.allocate with 0. The answer is 0, or the alignment (high half) and size of a block that
// the module allocates; it calls again with the block's address.
func (p *Plan) Link(limits wasm.Limits, host *Host) ([]byte, error) {
	l := &linker{plan: p, host: host, names: map[*Canon]string{}, imports: map[string]wasm.FuncType{}}
	l.merge.Names = map[string]wasm.Source{}
	for i, instance := range p.Instances {
		part := wasm.Part{Module: instance.Module.Parsed}
		for _, item := range instance.Imports {
			source, err := l.source(item)
			if err != nil {
				return nil, fmt.Errorf("core instance %d: %w", i, err)
			}
			part.Imports = append(part.Imports, source)
		}
		l.merge.Parts = append(l.merge.Parts, part)
	}
	if err := l.export(limits); err != nil {
		return nil, err
	}
	return l.merge.Module(limits)
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
	memory  CoreItem // a memory that canonical functions use
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
		return "", fmt.Errorf("calls a function of another component in the file, which is not supported")
	case c.Op == ResourceDrop && c.Resource.Identity().Import != nil:
		i := c.Resource.Identity().Import
		if err := l.host.Check(i); err != nil {
			return "", err
		}
		return l.hostFunction(HostInterface(i.Interface), "[resource-drop]"+i.Name, c.Core)
	case c.Op == ResourceDrop, c.Op == ResourceNew, c.Op == ResourceRep:
		return "", fmt.Errorf("defines a resource (%s), which is not supported", c.Op)
	}
	return "", fmt.Errorf("uses %s of WASI 0.3, which is not supported", c.Op)
}

// lowerImport returns the name of the core function that calls a function of the host.
func (l *linker) lowerImport(c *Canon) (string, error) {
	i := c.Func.Import
	full := i.Interface + "." + i.Name
	if err := l.host.Check(i); err != nil {
		return "", err
	}
	if c.Options.Async {
		return "", fmt.Errorf("calls %s as an async function, which is not supported", full)
	}
	if err := l.useMemory(c.Options); err != nil {
		return "", fmt.Errorf("%s: %w", full, err)
	}
	host, err := l.hostFunction(HostInterface(i.Interface), i.Name, c.Shape.FuncType)
	if err != nil || c.Func.Type.Result == nil || !c.Func.Type.Result.HasPointers() {
		return host, err
	}
	return l.allocating(c, host)
}

// useMemory notes the memory of a canonical definition, and refuses strings that are not UTF-8.
func (l *linker) useMemory(o Options) error {
	if o.Encoding != UTF8 {
		return fmt.Errorf("has strings in another encoding than UTF-8, which is not supported")
	}
	if l.memory.IsZero() {
		l.memory = o.Memory
	}
	return nil
}

// allocating adds a function that calls the host, and then allocates the blocks of the result.
func (l *linker) allocating(c *Canon, host string) (string, error) {
	allocate, realloc, err := l.allocators(c.Options)
	if err != nil {
		return "", err
	}
	name := fmt.Sprintf("lower %d %s", len(l.merge.Functions), host)
	params := len(c.Shape.Params)
	block, address := params, params+1
	l.add(name, "", c.Shape.FuncType, []wasm.ValueType{wasm.I64, wasm.I32}, func(a *assembler) {
		for i := range params {
			a.n(opcode.LocalGet, i)
		}
		a.call(host)
		a.allocate(allocate, realloc, block, address)
	})
	return name, nil
}

// allocate appends the loop that allocates blocks. It has two locals.
func (a *assembler) allocate(allocate, realloc string, block, address int) {
	a.op(opcode.Loop, opcode.BlockEmpty).n(opcode.LocalGet, address).call(allocate).n(opcode.LocalTee, block)
	a.op(opcode.I64Const, 0, opcode.I64Ne, opcode.If, opcode.BlockEmpty)
	a.op(opcode.I32Const, 0, opcode.I32Const, 0)
	a.n(opcode.LocalGet, block).op(opcode.I64Const, 32, opcode.I64ShrU, opcode.I32WrapI64)
	a.n(opcode.LocalGet, block).op(opcode.I32WrapI64)
	a.call(realloc).n(opcode.LocalSet, address)
	a.n(opcode.Br, 1).op(opcode.End, opcode.End)
}

// allocators returns the names of the functions that assembler.allocate calls.
func (l *linker) allocators(o Options) (allocate, realloc string, err error) {
	allocate, err = l.hostFunction(HostModule, "allocate", wasm.FuncType{
		Params: []wasm.ValueType{wasm.I32}, Results: []wasm.ValueType{wasm.I64},
	})
	if err != nil {
		return "", "", err
	}
	realloc, err = l.named(o.Realloc)
	return allocate, realloc, err
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

// constant appends an instruction for a number, whose highest bit is its sign.
func (a *assembler) constant(n uint32) *assembler {
	a.n(opcode.I32Const, int(n))
	if last := len(a.code) - 1; a.code[last]&0x40 != 0 {
		a.code[last] |= 0x80
		a.code = append(a.code, 0)
	}
	return a
}

func (a *assembler) call(name string) *assembler { return a.n(opcode.Call, int(a.index(name))) }

// The interface that a component answers requests by, and that of its types.
const (
	httpHandler = "wasi:http/incoming-handler@0.2"
	httpTypes   = "wasi:http/types@0.2"
)

// export adds the functions that the runtime calls, and exports the memory. Functions that are in no interface are
// handlers. They may be other ones in a component that answers requests.
func (l *linker) export(limits wasm.Limits) error {
	var found, requests bool
	var others []string
	var wrong error // of the first function that is not a handler
	for _, x := range l.plan.Exports {
		if x.Func == nil {
			continue
		}
		name := strings.TrimPrefix(x.Interface+"."+x.Name, ".")
		var err error
		switch {
		case HostInterface(x.Interface) == httpHandler && x.Name == "handle":
			err, requests = l.exportRequest(x.Func), true
		case x.Interface != "":
			others = append(others, name)
			continue
		default:
			if is := l.notHandler(x); is != nil {
				others, wrong = append(others, name), cmp.Or(wrong, is)
				continue
			}
			err = l.exportHandler(x.Name, x.Func)
		}
		if err != nil {
			return fmt.Errorf("exports %s: %w", name, err)
		}
		found = true
	}
	switch {
	case wrong != nil && found && !requests:
		return wrong
	case !found:
		return fmt.Errorf("is a component that does not export %s%s", httpHandler, instead(others, wrong))
	}
	return l.exportMemory(limits)
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

// lifted returns the name of the core function of an export, which has no result in memory.
func (l *linker) lifted(f *Func) (string, error) {
	switch {
	case f.Lift == nil:
		return "", errors.New("is a function of the host")
	case f.Lift.Options.Async:
		return "", errors.New("is an async function, which is not supported")
	}
	if err := l.useMemory(f.Lift.Options); err != nil {
		return "", err
	}
	return l.named(f.Lift.Core)
}

func (l *linker) exportRequest(f *Func) error {
	handle, err := l.lifted(f)
	if err != nil {
		return err
	}
	if !owns(f.Type.Params, "incoming-request", "response-outparam") || f.Type.Result != nil {
		return errors.New("has another type than that of the interface")
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
	const request = 0 // the local with its handle; that of the response-outparam is the next number
	l.add("", ExportRequest, wasm.FuncType{}, handles.Results, func(a *assembler) {
		a.call(begin).n(opcode.LocalTee, request)
		a.n(opcode.LocalGet, request).op(opcode.I32Const, 1, opcode.I32Add)
		a.call(handle).call(end)
	})
	return nil
}

// owns reports whether parameters are owned handles of resources of wasi:http/types.
func owns(params []Field, names ...string) bool {
	return slices.EqualFunc(params, names, func(p Field, name string) bool {
		if p.Type.Kind != Own {
			return false
		}
		i := p.Type.Resource.Identity().Import
		return i != nil && HostInterface(i.Interface) == httpTypes && i.Name == name
	})
}

// exportMemory exports the memory that the canonical functions use, or an empty one.
func (l *linker) exportMemory(limits wasm.Limits) error {
	if l.memory.IsZero() {
		empty, err := wasm.ParsePart([]byte("\x00asm\x01\x00\x00\x00\x05\x03\x01\x00\x00\x07\x0a\x01\x06memory\x02\x00"), limits)
		if err != nil {
			panic("BUG: the module with an empty memory: " + err.Error())
		}
		l.merge.Parts = append(l.merge.Parts, wasm.Part{Module: empty})
		l.memory = CoreItem{Instance: len(l.merge.Parts), Name: exportMemory}
	}
	source, err := l.source(l.memory)
	if err != nil {
		return err
	}
	l.merge.Exports = append(l.merge.Exports, wasm.MergedExport{Name: exportMemory, Source: source})
	return nil
}
