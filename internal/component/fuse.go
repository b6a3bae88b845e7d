package component

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"runner.example/internal/wasm"
	"runner.example/internal/wasm/opcode"
)

// maxFusedParts limits the parts of types in all calls between component instances: code is generated for each part.
const maxFusedParts = 100_000

// maxListBytes is the canonical ABI's bound of the length of a string or list.
const maxListBytes = 1<<28 - 1

// fuse returns the name of the function by which one component instance calls another. It lifts the arguments from the
// caller and lowers them for the callee, part by part, calls it, and does the same with the result.
func (l *linker) fuse(c *Canon) (string, error) {
	lift, t := c.Func.Lift, c.Func.Type
	switch {
	case c.Options.Async || lift.Options.Async:
		return "", errors.New("calls an async function of another component in the file, which is not supported")
	case c.Options.Encoding != UTF8 || lift.Options.Encoding != UTF8:
		return "", errors.New("has strings in another encoding than UTF-8, which is not supported")
	}
	for _, f := range t.fields() {
		if what := unsupported(f.Type); what != "" {
			return "", fmt.Errorf("passes a %s to another component in the file, which is not supported", what)
		}
		if l.parts += f.Type.nodes; l.parts > maxFusedParts {
			return "", fmt.Errorf("has calls between components with types of more than %d parts (maxFusedParts)", maxFusedParts)
		}
	}
	f := &fuser{linker: l, canon: c}
	var err error
	if f.from, err = f.side(c.Owner, c.Options); err != nil {
		return "", err
	}
	if f.to, err = f.side(lift.Owner, lift.Options); err != nil {
		return "", err
	}
	if f.callee, err = l.named(lift.Core); err != nil {
		return "", err
	}
	if f.postReturn, err = l.postReturn(lift); err != nil {
		return "", err
	}
	f.begin = l.mayLeave(c.Owner)
	// The code is written twice. This first time finds the locals and imports that it needs, and errors.
	f.write(&assembler{index: func(string) uint32 { return 0 }})
	if f.err != nil {
		return "", f.err
	}
	name := fmt.Sprintf("fuse %d", len(l.merge.Functions))
	l.add(name, "", c.Core, slices.Clone(f.locals), func(a *assembler) { f.write(a) })
	return name, nil
}

// unsupported returns the kind of the first part of t that calls between instances cannot pass; empty: none.
func unsupported(t *ValueType) string {
	switch {
	case t == nil:
		return ""
	case t.Kind == Stream || t.Kind == Future || t.Kind == ErrorContext:
		return t.Kind.String()
	}
	for _, f := range t.Fields {
		if what := unsupported(f.Type); what != "" {
			return what
		}
	}
	return unsupported(t.Element)
}

// fuser writes the code of a fused call.
type fuser struct {
	*linker
	canon      *Canon
	from, to   side // of the values that are passed at the moment
	callee     string
	begin      func(*assembler)
	postReturn func(*assembler, ...uint32)
	locals     []wasm.ValueType // without the parameters
	err        error

	*assembler
}

// side is a component instance that takes part in a call.
type side struct {
	owner   int
	live    bool // its memory has content; false: it has no memory, or one without pages
	realloc string
	allow   func(*assembler, bool)
}

func (f *fuser) side(owner int, o Options) (s side, err error) {
	s = side{owner: owner, live: f.isLive(o.Memory), allow: f.allow(owner)}
	if !o.Realloc.IsZero() {
		s.realloc, err = f.named(o.Realloc)
	}
	return s, err
}

// slot is a local and its type. In a variant, it may hold the bits of a value of another type.
type slot struct {
	local uint32
	typ   wasm.ValueType
}

func (f *fuser) local(t wasm.ValueType) uint32 {
	f.locals = append(f.locals, t)
	return uint32(len(f.canon.Core.Params) + len(f.locals) - 1)
}

func (f *fuser) get(local uint32) *assembler { return f.n(opcode.LocalGet, int(local)) }
func (f *fuser) set(local uint32) *assembler { return f.n(opcode.LocalSet, int(local)) }

func (f *fuser) write(a *assembler) {
	f.assembler, f.locals = a, nil
	t, lift := f.canon.Func.Type, f.canon.Func.Lift
	borrows := slices.ContainsFunc(t.Params, func(p Field) bool { return p.Type.borrows })
	f.begin(a)
	if borrows {
		f.call(f.hostBuiltin("begin_call", ">"))
	}
	for _, s := range f.params(t, lift.Shape.ParamsInMemory) {
		f.get(s.local)
	}
	f.call(f.callee)
	var results []uint32
	if len(lift.Shape.Results) > 0 {
		results = []uint32{f.local(lift.Shape.Results[0])}
		f.set(results[0])
	}
	if borrows {
		f.call(f.hostBuiltin("end_call", ">"))
	}
	var passed []slot
	if t.Result != nil {
		f.from, f.to = f.to, f.from
		if lift.Shape.ResultInMemory {
			to := uint32(len(f.canon.Core.Params) - 1)
			f.check(f.from, results[0], t.Result.align, f.constant(t.Result.size))
			f.check(f.to, to, t.Result.align, f.constant(t.Result.size))
			f.copy(t.Result, place{results[0], 0}, place{to, 0})
		} else {
			passed = f.convert(t.Result, []slot{{results[0], lift.Shape.Results[0]}})
		}
		f.from, f.to = f.to, f.from
	}
	f.postReturn(a, results...)
	for _, s := range passed {
		f.get(s.local)
	}
}

// params passes the parameters, and returns the core values for the callee.
func (f *fuser) params(t *FuncType, inMemory bool) (passed []slot) {
	if inMemory {
		offsets, size, align := ParamsLayout(t.Params)
		f.check(f.from, 0, align, f.constant(size))
		to := f.allocate(align, f.constant(size))
		for i, p := range t.Params {
			f.copy(p.Type, place{0, offsets[i]}, place{to, offsets[i]})
		}
		return []slot{{to, wasm.I32}}
	}
	at := 0
	for _, p := range t.Params {
		var in []slot
		for _, flat := range p.Type.flat {
			in = append(in, slot{uint32(at), flat})
			at++
		}
		passed = append(passed, f.convert(p.Type, in)...)
	}
	return passed
}

// convert passes a value that is in slots, and returns the new slots.
func (f *fuser) convert(t *ValueType, in []slot) (out []slot) {
	for _, flat := range t.flat {
		out = append(out, slot{f.local(flat), flat})
	}
	f.pass(t, in, out)
	return out
}

// pass does what convert does, into existing slots, which are 0.
func (f *fuser) pass(t *ValueType, in, out []slot) {
	switch t.Kind {
	case Record, Tuple:
		for _, field := range t.Fields {
			n := len(field.Type.flat)
			f.pass(field.Type, in[:n], out[:n])
			in, out = in[n:], out[n:]
		}
	case FixedList:
		for range t.Length {
			n := len(t.Element.flat)
			f.pass(t.Element, in[:n], out[:n])
			in, out = in[n:], out[n:]
		}
	case Variant, Enum, Option, Result:
		index := f.local(wasm.I32)
		f.load(in[0], wasm.I32)
		f.set(index)
		f.checkCase(t, index)
		f.get(index)
		f.store(wasm.I32, out[0])
		f.cases(t, index, func(payload *ValueType) {
			n := len(payload.flat)
			f.pass(payload, in[1:1+n], out[1:1+n])
		})
	case String, List, Map:
		at, length := f.local(wasm.I32), f.local(wasm.I32)
		f.load(in[0], wasm.I32)
		f.set(at)
		f.load(in[1], wasm.I32)
		f.set(length)
		f.get(f.list(t, at, length))
		f.store(wasm.I32, out[0])
		f.get(length)
		f.store(wasm.I32, out[1])
	default:
		f.load(in[0], t.flat[0])
		f.normalize(t)
		f.store(t.flat[0], out[0])
	}
}

// load pushes the value of a slot.
func (f *fuser) load(s slot, want wasm.ValueType) {
	f.get(s.local)
	if s.typ == wasm.I64 && (want == wasm.I32 || want == wasm.F32) {
		f.op(opcode.I32WrapI64)
	}
	switch {
	case want == wasm.F32 && s.typ != wasm.F32:
		f.op(opcode.F32FromI32)
	case want == wasm.F64 && s.typ != wasm.F64:
		f.op(opcode.F64FromI64)
	}
}

// store pops a value into a slot.
func (f *fuser) store(have wasm.ValueType, s slot) {
	switch {
	case have == wasm.F32 && s.typ != wasm.F32:
		f.op(opcode.I32FromF32)
	case have == wasm.F64 && s.typ != wasm.F64:
		f.op(opcode.I64FromF64)
	}
	if s.typ == wasm.I64 && (have == wasm.I32 || have == wasm.F32) {
		f.op(opcode.I64ExtendU)
	}
	f.set(s.local)
}

// checkCase traps unless a local is the number of a case.
func (f *fuser) checkCase(t *ValueType, index uint32) {
	f.get(index).i32(uint32(len(t.Cases()))).op(opcode.I32GeU)
	f.trapIf(f.assembler, notCase)
}

// cases writes code for each case with a payload.
func (f *fuser) cases(t *ValueType, index uint32, write func(payload *ValueType)) {
	for i, c := range t.Cases() {
		if c.Type != nil {
			f.get(index).i32(uint32(i)).op(opcode.I32Eq, opcode.If, opcode.BlockEmpty)
			write(c.Type)
			f.op(opcode.End)
		}
	}
}

// normalize passes the value on the stack, which has no parts. It clears bits that the type does not have, and replaces
// a handle by the handle of the other side.
func (f *fuser) normalize(t *ValueType) {
	switch t.Kind {
	case Bool:
		f.i32(0).op(opcode.I32Ne)
	case U8:
		f.i32(1<<8 - 1).op(opcode.I32And)
	case U16:
		f.i32(1<<16 - 1).op(opcode.I32And)
	case S8:
		f.op(opcode.I32Extend8S)
	case S16:
		f.op(opcode.I32Extend16S)
	case Flags:
		f.i32(uint32(1<<len(t.Fields) - 1)).op(opcode.I32And)
	case F32:
		f.number(wasm.F32, opcode.F32Const, 4, 0x7fc00000, opcode.F32Eq)
	case F64:
		f.number(wasm.F64, opcode.F64Const, 8, 0x7ff8000000000000, opcode.F64Eq)
	case Char:
		c := f.local(wasm.I32)
		f.n(opcode.LocalTee, int(c)).i32(0x110000).op(opcode.I32GeU)
		f.get(c).i32(0xd800).op(opcode.I32Sub).i32(0x800).op(opcode.I32LtU, opcode.I32Or)
		f.trapIf(f.assembler, notChar)
		f.get(c)
	case Own, Borrow:
		f.handle(t)
	}
}

// number replaces each NaN by the canonical NaN.
func (f *fuser) number(t wasm.ValueType, constant byte, size int, nan uint64, equal byte) {
	x := f.local(t)
	f.n(opcode.LocalTee, int(x)).op(constant)
	f.op(binary.LittleEndian.AppendUint64(nil, nan)[:size]...)
	f.get(x)
	f.get(x).op(equal, opcode.Select)
}

// handle passes a handle. A borrowed one of a resource that the callee defines becomes the representation.
func (f *fuser) handle(t *ValueType) {
	of := t.Resource.Identity()
	op, to := "move", f.table(f.to.owner)
	if t.Kind == Borrow {
		op = "lend"
	}
	h := f.local(wasm.I32)
	f.set(h)
	if of.Import != nil {
		name, err := f.hostResource(of.Import, "[resource-"+op+"]", form{core: "iii>i"}.signature())
		f.err = cmpError(f.err, err)
		f.i32(f.table(f.from.owner)).i32(to)
		f.get(h)
		if err == nil {
			f.call(name)
		}
		return
	}
	if t.Kind == Borrow && of.Owner == f.to.owner {
		to = 1<<32 - 1
	}
	f.i32(f.table(f.from.owner)).i32(to).i32(uint32(f.resources[of]))
	f.get(h).call(f.hostBuiltin("resource_"+op, "iiii>i"))
}

func cmpError(first, second error) error {
	if first != nil {
		return first
	}
	return second
}

// constant pushes a size.
func (f *fuser) constant(n uint32) func() { return func() { f.i32(n) } }

// check traps unless a local is a pointer to as many bytes of a side's memory as size pushes.
func (f *fuser) check(s side, at, align uint32, size func()) {
	if align > 1 {
		f.get(at).i32(align - 1).op(opcode.I32And)
		f.trapIf(f.assembler, outside)
	}
	f.get(at).op(opcode.I64ExtendU)
	size()
	f.op(opcode.I64ExtendU, opcode.I64Add)
	if s.live {
		f.op(opcode.MemorySize, 0, opcode.I64ExtendU).i64(16).op(opcode.I64Shl)
	} else {
		f.i64(0)
	}
	f.op(opcode.I64GtU)
	f.trapIf(f.assembler, outside)
}

// allocate allocates memory of the receiving side; size pushes the number of bytes. It returns the local with the
// address.
func (f *fuser) allocate(align uint32, size func()) uint32 {
	at := f.local(wasm.I32)
	f.to.allow(f.assembler, false)
	f.i32(0).i32(0).i32(align)
	size()
	f.call(f.to.realloc).n(opcode.LocalSet, int(at))
	f.to.allow(f.assembler, true)
	f.check(f.to, at, align, size)
	return at
}

// list passes the content of a string or list, and returns the local with its new address.
func (f *fuser) list(t *ValueType, at, length uint32) uint32 {
	size, align := uint32(1), uint32(1)
	if t.Kind != String {
		size, align = t.Element.size, t.Element.align
	}
	f.get(length).i32(maxListBytes / size).op(opcode.I32GtU)
	f.trapIf(f.assembler, tooLong)
	bytes := f.local(wasm.I32)
	f.get(length).i32(size).op(opcode.I32Mul)
	f.set(bytes)
	push := func() { f.get(bytes) }
	f.check(f.from, at, align, push)
	to := f.allocate(align, push)
	switch {
	case !f.from.live || !f.to.live: // it is empty
	case t.Kind == String:
		f.get(at)
		f.get(bytes).call(f.hostBuiltin("utf8", "ii>"))
		f.copyBytes(at, to, bytes)
	case t.Element.isPlain():
		f.copyBytes(at, to, bytes)
	default:
		f.elements(t.Element, place{at, 0}, place{to, 0}, push)
	}
	return to
}

// isPlain reports whether every bit pattern in memory is a valid value of the type.
func (t *ValueType) isPlain() bool {
	switch t.Kind {
	case U8, S8, U16, S16, U32, S32, U64, S64, F32, F64:
		return true
	}
	return false
}

func (f *fuser) copyBytes(from, to, bytes uint32) {
	f.get(to)
	f.get(from)
	f.get(bytes).op(opcode.Misc, opcode.MiscMemoryCopy, 0, 0)
}

// elements passes values that are adjacent in memory; size pushes their number of bytes.
func (f *fuser) elements(t *ValueType, from, to place, size func()) {
	in, out, end := f.local(wasm.I32), f.local(wasm.I32), f.local(wasm.I32)
	f.get(from.local).i32(from.offset).op(opcode.I32Add)
	f.n(opcode.LocalTee, int(in))
	size()
	f.op(opcode.I32Add)
	f.set(end)
	f.get(to.local).i32(to.offset).op(opcode.I32Add)
	f.set(out)
	f.op(opcode.Loop, opcode.BlockEmpty)
	f.get(in)
	f.get(end).op(opcode.I32Ne, opcode.If, opcode.BlockEmpty)
	f.copy(t, place{in, 0}, place{out, 0})
	for _, local := range []uint32{in, out} {
		f.get(local).i32(t.size).op(opcode.I32Add)
		f.set(local)
	}
	f.n(opcode.Br, 1).op(opcode.End, opcode.End)
}

// place is where a value is in memory.
type place struct{ local, offset uint32 }

func (p place) plus(n uint32) place { return place{p.local, p.offset + n} }

// copy passes a value from memory to memory. Both places were checked; sides without pages have trapped there.
func (f *fuser) copy(t *ValueType, from, to place) {
	if !f.from.live || !f.to.live {
		return
	}
	switch t.Kind {
	case Record, Tuple:
		for i, field := range t.Fields {
			f.copy(field.Type, from.plus(t.offsets[i]), to.plus(t.offsets[i]))
		}
	case FixedList:
		f.elements(t.Element, from, to, f.constant(t.size))
	case Variant, Enum, Option, Result:
		index := f.local(wasm.I32)
		access := accesses[[2]uint32{t.DiscriminantSize(), 0}]
		f.get(from.local).n(access.load, 0).offset(from)
		f.set(index)
		f.checkCase(t, index)
		f.get(to.local)
		f.get(index).n(access.store, 0).offset(to)
		f.cases(t, index, func(payload *ValueType) {
			f.copy(payload, from.plus(t.PayloadOffset()), to.plus(t.PayloadOffset()))
		})
	case String, List, Map:
		at, length := f.local(wasm.I32), f.local(wasm.I32)
		f.get(from.local).n(opcode.I32Load, 0).offset(from)
		f.set(at)
		f.get(from.local).n(opcode.I32Load, 0).offset(from.plus(4))
		f.set(length)
		new := f.list(t, at, length)
		f.get(to.local)
		f.get(new).n(opcode.I32Store, 0).offset(to)
		f.get(to.local)
		f.get(length).n(opcode.I32Store, 0).offset(to.plus(4))
	default:
		access := accesses[[2]uint32{t.size, uint32(t.flat[0])}]
		if access.load == 0 {
			access = accesses[[2]uint32{t.size, 0}]
		}
		f.get(to.local)
		f.get(from.local).n(access.load, 0).offset(from)
		f.normalize(t)
		f.n(access.store, 0).offset(to)
	}
}

// offset appends what follows the alignment of an access to memory.
func (a *assembler) offset(p place) { a.code = binary.AppendUvarint(a.code, uint64(p.offset)) }

type access struct{ load, store byte }

// accesses are the instructions for values by their size and, of floats, core type.
var accesses = map[[2]uint32]access{
	{1, 0}: {opcode.I32Load8U, opcode.I32Store8}, {2, 0}: {opcode.I32Load16U, opcode.I32Store16},
	{4, 0}: {opcode.I32Load, opcode.I32Store}, {8, 0}: {opcode.I64Load, opcode.I64Store},
	{4, uint32(wasm.F32)}: {opcode.F32Load, opcode.F32Store}, {8, uint32(wasm.F64)}: {opcode.F64Load, opcode.F64Store},
}
