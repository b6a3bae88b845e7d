package component

import (
	"encoding/binary"
	"fmt"

	"runner.example/internal/wasm"
	"runner.example/internal/wasm/opcode"
)

// isolation is what keeps the component instances of a file apart. The host has a table of handles for each. An
// instance with a realloc or post-return function has a flag, a global of the merged module. The flag is 0 while such
// a function runs, and calls out of the instance trap then.
type isolation struct {
	tables    map[int]int // numbers of tables by component instances
	flags     map[int]int // numbers of flags by component instances
	resources map[*Resource]int
}

// survey finds the component instances that need a table or a flag.
func (l *linker) survey(exported func(*Export) bool) {
	l.isolation = isolation{map[int]int{}, map[int]int{}, map[*Resource]int{}}
	for i, r := range l.plan.Resources {
		l.resources[r] = i
	}
	add := func(to map[int]int, owner int) {
		if _, ok := to[owner]; !ok {
			to[owner] = len(to)
		}
	}
	fuses, allocates := map[int]bool{}, map[int]bool{}
	for _, x := range l.plan.Exports {
		if x.Func != nil && x.Func.Lift != nil && exported(x) {
			allocates[x.Func.Lift.Owner] = true // for its parameters and events
			if x.Func.Type.hasHandles() {
				add(l.tables, x.Func.Lift.Owner)
			}
			if !x.Func.Lift.Options.PostReturn.IsZero() {
				add(l.flags, x.Func.Lift.Owner)
			}
		}
	}
	for _, c := range l.plan.Canons {
		switch c.Op {
		case Lower:
		case StreamRead, FutureRead, WaitableSetWait, WaitableSetPoll, ErrorContextDebugMessage:
			allocates[c.Owner] = true
			fallthrough
		default:
			add(l.tables, c.Owner)
			continue
		}
		f := c.Func
		if f.Type.hasHandles() {
			add(l.tables, c.Owner)
		}
		if f.Lift == nil {
			allocates[c.Owner] = allocates[c.Owner] || f.Type.Result != nil && f.Type.Result.pointers
			continue
		}
		fuses[c.Owner] = true
		if f.Type.hasHandles() {
			add(l.tables, f.Lift.Owner)
		}
		if !f.Lift.Options.PostReturn.IsZero() || c.Shape.ParamsInMemory || anyPointers(f.Type.Params) {
			add(l.flags, f.Lift.Owner)
		}
		if f.Type.Result != nil && f.Type.Result.pointers {
			add(l.flags, c.Owner)
		}
	}
	for _, c := range l.plan.Canons {
		if fuses[c.Owner] && allocates[c.Owner] { // the host sees only calls of its own functions
			add(l.flags, c.Owner)
		}
	}
}

// hasHandles reports whether values of the function's type are in tables of handles.
func (t *FuncType) hasHandles() bool {
	for _, f := range t.fields() {
		if f.Type.handles {
			return true
		}
	}
	return false
}

// addFlags adds the module with the flags.
func (l *linker) addFlags(limits wasm.Limits) {
	if len(l.flags) == 0 {
		return
	}
	globals, exports := binary.AppendUvarint(nil, uint64(len(l.flags))), binary.AppendUvarint(nil, uint64(len(l.flags)))
	for i := range len(l.flags) {
		globals = append(globals, byte(wasm.I32), 1, opcode.I32Const, 1, opcode.End)
		name := fmt.Sprint(i)
		exports = append(append(append(exports, byte(len(name))), name...), byte(wasm.GlobalKind))
		exports = binary.AppendUvarint(exports, uint64(i))
		l.merge.Names[flagName(i)] = wasm.Source{Part: len(l.merge.Parts), Name: name}
	}
	file := []byte("\x00asm\x01\x00\x00\x00")
	file = append(binary.AppendUvarint(append(file, 6), uint64(len(globals))), globals...)
	file = append(binary.AppendUvarint(append(file, 7), uint64(len(exports))), exports...)
	module, err := wasm.ParsePart(file, limits)
	if err != nil {
		panic("BUG: the module with flags: " + err.Error())
	}
	l.merge.Parts = append(l.merge.Parts, wasm.Part{Module: module})
}

func flagName(i int) string { return fmt.Sprint("may leave ", i) }

// trapIf ends the run if the value on the stack is not 0. The reason is a number that package wasi has a text for.
func (l *linker) trapIf(a *assembler, reason uint32) {
	a.op(opcode.If, opcode.BlockEmpty).i32(reason).call(l.hostBuiltin("trap", "i")).op(opcode.Unreachable, opcode.End)
}

// The reasons of trapIf.
const (
	mayNotLeave = 1 + iota
	notChar
	notCase
	outside
	tooLong
)

// hostBuiltin imports a function of HostModule and returns its name; core is its signature, as in form.core. All
// functions that generated code calls are imported before the code is written: see prologue and fuse.
func (l *linker) hostBuiltin(name, core string) string {
	name, err := l.hostFunction(HostModule, name, form{core: core}.signature())
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return name
}

// prologue is the code that begins a call from a component instance to the host: the instance must be permitted to
// call, and the host is told which one it is.
func (l *linker) prologue(owner int) func(*assembler) {
	check, tell := l.mayLeave(owner), l.several()
	if !tell {
		return check
	}
	instance := l.hostBuiltin("instance", "i>")
	return func(a *assembler) {
		check(a)
		a.i32(l.table(owner)).call(instance)
	}
}

// several reports whether there are handles of several component instances.
func (l *linker) several() bool { return len(l.tables) > 1 }

// table is the number of a component instance at the host.
func (l *linker) table(owner int) uint32 { return uint32(l.tables[owner]) }

// mayLeave is the code that traps unless an instance is permitted to call out.
func (l *linker) mayLeave(owner int) func(*assembler) {
	flag, ok := l.flags[owner]
	if !ok {
		return func(*assembler) {}
	}
	l.hostBuiltin("trap", "i")
	return func(a *assembler) {
		a.n(opcode.GlobalGet, int(a.index(flagName(flag)))).op(opcode.I32Eqz)
		l.trapIf(a, mayNotLeave)
	}
}

// allow is the code that permits an instance to call out, or forbids it.
func (l *linker) allow(owner int) func(*assembler, bool) {
	flag, ok := l.flags[owner]
	if !ok {
		return func(*assembler, bool) {}
	}
	return func(a *assembler, may bool) {
		value := uint32(0)
		if may {
			value = 1
		}
		a.i32(value).n(opcode.GlobalSet, int(a.index(flagName(flag))))
	}
}

// postReturn is the code that runs the post-return function of a function whose results are in locals.
func (l *linker) postReturn(lift *Lift) (func(a *assembler, results ...uint32), error) {
	if lift.Options.PostReturn.IsZero() {
		return func(*assembler, ...uint32) {}, nil
	}
	name, err := l.named(lift.Options.PostReturn)
	allow := l.allow(lift.Owner)
	return func(a *assembler, results ...uint32) {
		allow(a, false)
		for _, r := range results {
			a.n(opcode.LocalGet, int(r))
		}
		a.call(name)
		allow(a, true)
	}, err
}

// guarded returns the name of a function that runs the prologue and then calls a function of the host.
func (l *linker) guarded(c *Canon, host string) string {
	if _, flag := l.flags[c.Owner]; !flag && !l.several() {
		return host
	}
	begin := l.prologue(c.Owner)
	name := fmt.Sprintf("call %d %s", len(l.merge.Functions), host)
	l.add(name, "", c.Core, nil, func(a *assembler) {
		begin(a)
		for i := range c.Core.Params {
			a.n(opcode.LocalGet, i)
		}
		a.call(host)
	})
	return name
}

// hostResource imports a function of the host for one of its resources.
func (l *linker) hostResource(i *Import, prefix string, t wasm.FuncType) (string, error) {
	if err := l.host.Check(i); err != nil {
		return "", err
	}
	return l.hostFunction(HostInterface(i.Interface), prefix+i.Name, t)
}

// ownResource returns the name of the function that resource.new, resource.rep or resource.drop becomes, of a
// resource that the component defines. The destructor is called here, not by the host.
func (l *linker) ownResource(c *Canon) (string, error) {
	of := c.Resource.Identity()
	typ := uint32(l.resources[of])
	begin := l.mayLeave(c.Owner)
	var host, destructor string
	var locals []wasm.ValueType
	switch c.Op {
	case ResourceNew:
		host = l.hostBuiltin("resource_new", "iii>i")
	case ResourceRep:
		host = l.hostBuiltin("resource_rep", "iii>i")
		begin = func(*assembler) {}
	default:
		host = l.hostBuiltin("resource_drop", "iii>l")
		locals = []wasm.ValueType{wasm.I64}
		if !of.Destructor.IsZero() {
			var err error
			if destructor, err = l.named(of.Destructor); err != nil {
				return "", err
			}
		}
	}
	name := fmt.Sprintf("%s %d", c.Op, len(l.merge.Functions))
	const handle, dropped = 0, 1
	l.add(name, "", c.Core, locals, func(a *assembler) {
		begin(a)
		a.i32(l.table(c.Owner)).i32(typ).n(opcode.LocalGet, handle).call(host)
		switch {
		case c.Op != ResourceDrop:
		case destructor == "":
			a.op(opcode.Drop)
		default:
			a.n(opcode.LocalTee, dropped).i64(32).op(opcode.I64ShrU, opcode.I32WrapI64, opcode.If, opcode.BlockEmpty)
			a.n(opcode.LocalGet, dropped).op(opcode.I32WrapI64).call(destructor).op(opcode.End)
		}
	})
	return name, nil
}
