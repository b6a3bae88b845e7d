package wasm

import (
	"cmp"
	"fmt"
	"runtime"
	"slices"
	"strings"

	"runner.example/internal/wasm/opcode"
)

// Options of Rewrite. With the zero value the result is the same module in its shortest form,
// without names and debug information.
type Options struct {
	// Fuel counts the module's work, and calls a host function when the fuel is spent. nil:
	// nothing is counted.
	Fuel *FuelImport
	// MaxStack limits the native stack of all active calls, in bytes, at most 1 GiB; 0
	// leaves it to the engine. The size of a frame is not known before compilation. So the
	// module counts the largest possible frame of one function on each cycle of calls, and
	// of functions with a large frame, with their callees that are not counted. These take
	// at most 32 KiB. At the limit the module asks Stack, if given, and continues with its answer.
	// Otherwise, or if that is too much, it traps with unreachable, and only then the
	// exported depth is above MaxStack. After a trap the host must reset the depth to 0.
	MaxStack uint32
	Stack    *StackImport
	// MemoryMaxPages replaces the declared maximum of the memory; 0 keeps it. A caller that
	// raises it must refuse growth beyond the declared maximum.
	MemoryMaxPages uint32
	// Rename gives imports other names; nil: they keep theirs.
	Rename func(Import) (module, name string)
	// TableMax is the limit to which a table may grow, unless it is larger at first; 0 keeps
	// the declared one.
	TableMax uint32
	// Target is the GOARCH that the module is compiled for; empty: that of this program. For
	// arm64, remainders become divisions, which wazero 1.12.0 compiles correctly there. The
	// module means the same on every target, and takes the same fuel and stack.
	Target string
	// Prefix, if not empty, exports what a host needs to restore an instance, under names
	// that begin with it: every mutable global, fuel, depth. The module's own exports must
	// not begin with it.
	Prefix string
	// Detach removes the active data segments and the start function from the module. The
	// host applies them once, so instances that are restored to a later state are made
	// fast. It needs a Prefix.
	Detach bool
	// Alike removes what code does not depend on. Modules become equal that differ only in
	// their data, the names of their exports, the size of their memory and custom sections:
	// functions are exported as Prefix and a number, and the memory begins with no page. The
	// host grows it to Memory's size before any code runs. It needs Detach.
	Alike bool
	// Offsets asks for Rewritten.Offsets, and adds the debug information with which wazero
	// keeps the offsets of instructions. Modules become equal only if their maps are.
	Offsets bool
}

// FuelImport names the host function (i32) -> i32 that is called when the fuel is spent. It
// returns the fuel from then on (more than 0).
//
// Its parameter says where the guest is, in code of Go: functions of type (i32) -> i32 that begin
// with a br_table by their parameter. There it is the value of the parameter with which the loop
// or the function continues, or the lowest one with which it began before WithoutDispatch. In other
// code, and between these places, it is -1.
//
// A unit is a pass through a loop or a call of a function (also a tail call), and one more for every 64 ns that the
// heaviest path through it takes at worst, without inner loops. It is charged before the code runs.
// A small function may be charged with its call, and a jump forward within a loop is not charged as
// a pass. Long code is charged in parts, and a bulk operation one unit for every 128 bytes or 16
// table elements. So between two calls of the host there is at most a slice of units, and one part
// of code or one bulk operation. When the host function is called, the fuel is negative by what was
// used beyond the slice. The function is also called when memory grows, as new pages take time when
// they are written; the fuel is then what is left.
type FuelImport struct{ Module, Name string }

// StackImport names the host function () -> i32 that returns how many bytes of native stack
// are in use at its call, or the maximum if it does not know.
type StackImport struct{ Module, Name string }

// Rewritten is what Rewrite did. Only Data borrows from the bytes that were parsed.
type Rewritten struct {
	// Globals are the module's own mutable globals in order, with the names of their
	// exports.
	Globals []ExportedGlobal
	// Fuel and Depth are the names of the exported mutable i32 globals with the remaining
	// fuel and the stack in use; empty: there is none. Fuel begins with 0, so that the first
	// check asks for a slice.
	Fuel, Depth string
	// Start is the name of the export of the detached start function () -> (); empty: there
	// is none.
	Start string
	// Exports are the new names of exported functions by their old names; nil: they did not
	// change.
	Exports map[string]string
	// Data are the detached active data segments, to be written in this order. A segment
	// outside of the memory is a trap.
	Data []DataSegment
	// FuelChecks and StackChecks count the inserted checks.
	FuelChecks, StackChecks int
	// Offsets maps the new code to the module's; nil without Options.Offsets.
	Offsets *Offsets
}

// ExportedGlobal is a mutable global and the name of its export.
type ExportedGlobal struct {
	Name string
	Type ValueType
}

// DataSegment is part of a memory's initial content.
type DataSegment struct {
	Offset uint32
	Bytes  []byte
	// From and To are where the bytes are in the file.
	From, To int
}

// Rewrite returns a new module with the changes of the options, and otherwise with the same
// meaning. The bytes belong to the caller.
func (m *Module) Rewrite(o Options) ([]byte, *Rewritten, error) {
	if err := m.checkWhole(); err != nil {
		return nil, nil, err
	}
	o.MaxStack = min(o.MaxStack, 1<<30)
	arm64 := cmp.Or(o.Target, runtime.GOARCH) == "arm64"
	w := &rewriter{m: m, Options: o, done: &Rewritten{}, divides: arm64, callsIndirect: arm64 && !jumpsOnARM64}
	if err := w.prepare(); err != nil {
		return nil, nil, err
	}
	if o.Offsets {
		w.offsets = &Offsets{before: m.before}
		w.done.Offsets = w.offsets
		return w.offsets.debugSections(w.write()), w.done, nil
	}
	return w.write(), w.done, nil
}

type rewriter struct {
	Options
	m    *Module
	link *linker // only for Link
	done *Rewritten
	// divides: remainders become divisions.
	divides bool
	// callsIndirect: tail calls through tables become ordinary calls.
	callsIndirect bool

	addedIndexes
	added        []Import // functions
	helpers      []helper
	types        []FuncType
	exports      []Export
	charge       [2][]byte        // of a fuel check, around its cost
	needs        []need           // by defined function
	resultBlocks map[string]int64 // block types without parameters, by their results
	loop, split  int              // the next in m.loops and m.splits
	place        int              // the next in m.places
	blocks       blocks
	body         []byte
	offsets      *Offsets
}

// addedIndexes are the indexes of functions and globals that the rewriter adds.
type addedIndexes struct {
	refill, used                     uint32 // imports for fuel and stack
	moreAt, deeperAt, fillAt, copyAt uint32 // helpers
	fuel, depth                      uint32 // globals
}

// prepare assigns the indexes of all additions.
func (w *rewriter) prepare() error {
	m := w.m
	if err := w.checkNames(); err != nil {
		return err
	}
	globals := uint32(len(m.globals))
	if w.Fuel != nil {
		w.refill = w.addImport(w.Fuel.Module, w.Fuel.Name, I32)
		w.fuel = globals
		globals++
		w.charge = fuelCheck(w.fuel, w.refill)
	}
	if w.MaxStack > 0 && w.Stack != nil {
		w.used = w.addImport(w.Stack.Module, w.Stack.Name)
	}
	if w.MaxStack > 0 {
		w.depth = globals
	}
	if w.Fuel != nil || w.MaxStack > 0 {
		w.needs = m.needs()
		w.resultBlocks = map[string]int64{}
		for i, f := range m.functions {
			if results := m.types[f.typeIndex].Results; len(results) > 1 && (w.needs[i].charged || w.needs[i].asks) {
				w.resultBlocks[string(bytesOf(results))] = int64(w.typeIndex(FuncType{Results: results}))
			}
		}
	}
	w.addHelpers()
	if w.Detach {
		return w.detach()
	}
	return nil
}

// addHelpers comes after the imports, which number the functions.
func (w *rewriter) addHelpers() {
	if len(w.m.functions) == 0 {
		return
	}
	if w.MaxStack > 0 {
		w.deeperAt = w.addHelper(4, w.deeper())
	}
	if w.Fuel != nil {
		w.moreAt = w.addHelper(2, w.more())
	}
	if w.Fuel != nil && w.m.fills {
		w.fillAt = w.addHelper(3, w.fill())
	}
	if w.Fuel != nil && w.m.copies {
		w.copyAt = w.addHelper(3, w.copy())
	}
}

// addImport adds a function that returns an i32 to the imports, and returns its index.
func (w *rewriter) addImport(module, name string, params ...ValueType) uint32 {
	w.added = append(w.added, Import{
		Module: module, Name: name, typeIndex: uint32(w.typeIndex(FuncType{Params: params, Results: []ValueType{I32}})),
	})
	return uint32(len(w.m.imports) + len(w.added) - 1)
}

// captured is the export that keeps its name: the compiler gives the calls of such a module the form in which they
// can be captured.
const captured = "_start"

func (w *rewriter) checkNames() error {
	if w.Prefix == "" {
		if w.Detach {
			panic("BUG: Detach without a Prefix")
		}
		return nil
	}
	if w.Alike {
		w.done.Exports = map[string]string{}
		for i, e := range w.m.exports {
			if e.Kind == FunctionKind && e.Name != captured {
				w.done.Exports[e.Name] = fmt.Sprintf("%se%d", w.Prefix, i)
			}
		}
	}
	for _, e := range w.m.exports {
		if strings.HasPrefix(e.Name, w.Prefix) {
			return fmt.Errorf("exports %.100q, and names that begin with %q are the host's: rename it", e.Name, w.Prefix)
		}
	}
	for i, g := range w.m.globals {
		if g.Mutable {
			e := Export{fmt.Sprintf("%sg%d", w.Prefix, i), GlobalKind, uint32(i)}
			w.exports = append(w.exports, e)
			w.done.Globals = append(w.done.Globals, ExportedGlobal{e.Name, g.Type})
		}
	}
	next := uint32(len(w.m.globals))
	if w.Fuel != nil {
		w.done.Fuel = w.Prefix + "fuel"
		w.exports = append(w.exports, Export{w.done.Fuel, GlobalKind, next})
		next++
	}
	if w.MaxStack > 0 {
		w.done.Depth = w.Prefix + "depth"
		w.exports = append(w.exports, Export{w.done.Depth, GlobalKind, next})
	}
	return nil
}

// detach notes the data and the start function that are taken out.
func (w *rewriter) detach() error {
	m := w.m
	var err error
	if w.done.Data, err = m.Data(); err != nil {
		return err
	}
	if m.start >= 0 {
		w.done.Start = w.Prefix + "start"
		w.exports = append(w.exports, Export{w.done.Start, FunctionKind, uint32(m.start)})
	}
	return nil
}

// Data returns the active data segments in order. They borrow from the bytes that were parsed. An
// error says that an offset is not known before the module runs.
func (m *Module) Data() (all []DataSegment, err error) {
	for i, s := range m.data {
		if s.passive {
			continue
		}
		offset, ok := m.initialI32(s.offset)
		if !ok {
			return nil, fmt.Errorf(
				"has a data segment (number %d) whose offset is not an i32: build it with a current compiler", i)
		}
		all = append(all, DataSegment{offset, m.bytes[s.start:s.end:s.end], int(s.start), int(s.end)})
	}
	return all, nil
}

// initialI32 evaluates an initial value. Globals refer to earlier ones only, so
// it ends.
func (m *Module) initialI32(c constant) (uint32, bool) {
	for c.op == opcode.GlobalGet {
		c = m.globals[c.index].init
	}
	return uint32(c.value), c.op == opcode.I32Const
}

// typeIndex finds a type, or adds it.
func (w *rewriter) typeIndex(t FuncType) int {
	for i, have := range w.m.types {
		if have.equal(t) {
			return i
		}
	}
	for i, have := range w.types {
		if have.equal(t) {
			return len(w.m.types) + i
		}
	}
	w.types = append(w.types, t)
	return len(w.m.types) + len(w.types) - 1
}

// function is the new index of a function.
func (w *rewriter) function(index uint32) uint32 {
	if w.link != nil {
		return w.link.numbers[index]
	}
	if int(index) >= len(w.m.imports) {
		return index + uint32(len(w.added))
	}
	return index
}

// write puts the sections together. The code comes first, as the rest depends
// on nothing else.
func (w *rewriter) write() []byte {
	m := w.m
	out := make([]byte, 0, len(m.bytes)+len(m.bytes)/4+256)
	out = append(out, "\x00asm\x01\x00\x00\x00"...)
	out = w.customs(out, 0)
	for i, id := range sectionOrder {
		switch id {
		case sectionType:
			out = appendSection(out, id, w.typeSection())
		case sectionImport:
			out = appendSection(out, id, w.imports())
		case sectionFunction:
			out = appendSection(out, id, w.functionSection())
		case sectionTable:
			out = appendSection(out, id, w.tableSection())
		case sectionMemory:
			out = appendSection(out, id, w.memorySection())
		case sectionGlobal:
			out = appendSection(out, id, w.globalSection())
		case sectionExport:
			out = appendSection(out, id, w.exportSection())
		case sectionStart:
			out = appendSection(out, id, w.startSection())
		case sectionElement:
			out = appendSection(out, id, w.elementSection())
		case sectionCode:
			out = appendSection(out, id, w.codeSection())
		case sectionDataCount:
			out = appendSection(out, id, w.dataCountSection())
		case sectionData:
			out = appendSection(out, id, w.dataSection())
		default:
			out = appendSection(out, id, m.content(id))
		}
		out = w.customs(out, i+1)
	}
	return out
}

// content is a section as it was.
func (m *Module) content(id byte) []byte { return m.bytes[m.sections[id].start:m.sections[id].end] }

// entries is a section's vector as it was, without its count.
func (m *Module) entries(id byte) []byte {
	content := m.content(id)
	if len(content) == 0 {
		return nil
	}
	_, size := uleb32(content)
	return content[size:]
}

func (w *rewriter) customs(out []byte, after int) []byte {
	for _, c := range w.m.customs {
		switch {
		case c.after != after || w.Alike || c.name == "name" || isDebug(c.name): // names and addresses are wrong now
		case c.body == c.end: // at the end of a module the engine refuses it
		default:
			out = appendSection(out, sectionCustom, w.m.bytes[c.start:c.end])
		}
	}
	return out
}

func (w *rewriter) typeSection() []byte {
	if len(w.types) == 0 {
		return w.m.content(sectionType)
	}
	b := appendU32(nil, uint32(len(w.m.types)+len(w.types)))
	b = append(b, w.m.entries(sectionType)...)
	for _, t := range w.types {
		b = appendType(b, t)
	}
	return b
}

func (w *rewriter) imports() []byte {
	if w.link != nil {
		return w.link.importSection()
	}
	if len(w.added) == 0 && w.Rename == nil {
		return w.m.content(sectionImport)
	}
	b := appendU32(nil, uint32(len(w.m.imports)+len(w.added)))
	written := w.added
	if w.Rename == nil {
		b = append(b, w.m.entries(sectionImport)...)
	} else {
		renamed := slices.Clone(w.m.imports)
		for n := range renamed {
			renamed[n].Module, renamed[n].Name = w.Rename(renamed[n])
		}
		written = append(renamed, written...)
	}
	for _, i := range written {
		b = appendImport(b, i)
	}
	return b
}

func (w *rewriter) tableSection() []byte {
	if w.link != nil && len(w.link.Table) > 0 {
		return w.link.tableSection(w.m.tables[0])
	}
	if w.TableMax == 0 {
		return w.m.content(sectionTable)
	}
	if len(w.m.tables) == 0 {
		return nil
	}
	b := appendU32(nil, uint32(len(w.m.tables)))
	for _, t := range w.m.tables {
		most := max(w.TableMax, t.Min)
		if t.HasMax {
			most = min(most, t.Max)
		}
		b = appendTable(b, Table{t.Type, t.Min, most, true})
	}
	return b
}

func (w *rewriter) memorySection() []byte {
	memory := w.m.memory
	if w.link != nil {
		return w.link.memorySection(memory)
	}
	if memory == nil || w.MemoryMaxPages == 0 && !w.Alike {
		return w.m.content(sectionMemory)
	}
	least, most := memory.MinPages, memory.MaxPages
	if w.MemoryMaxPages > 0 {
		most = max(min(w.MemoryMaxPages, maxPages), least)
	}
	if w.Alike {
		least = 0
	}
	return appendLimits([]byte{1}, least, most, true)
}

func (w *rewriter) globalSection() []byte {
	m := w.m
	if w.link != nil {
		return w.link.globalSection(m.globals, w.constant)
	}
	added := 0
	if w.Fuel != nil {
		added++
	}
	if w.MaxStack > 0 {
		added++
	}
	if len(m.globals)+added == 0 {
		return m.content(sectionGlobal)
	}
	b := appendU32(nil, uint32(len(m.globals)+added))
	for _, g := range m.globals {
		b = w.constant(appendGlobalType(b, g), g.init)
	}
	for range added {
		b = append(appendGlobalType(b, Global{Type: I32, Mutable: true}), opcode.I32Const, 0, opcode.End)
	}
	return b
}

// constant appends an initial value.
func (w *rewriter) constant(b []byte, c constant) []byte {
	return w.m.appendConstant(b, c, w.function)
}

func (w *rewriter) exportSection() []byte {
	if w.link != nil {
		return w.link.exportSection(w.m.exports, w.exports)
	}
	all := append(w.m.exports[:len(w.m.exports):len(w.m.exports)], w.exports...)
	if len(all) == 0 {
		return w.m.content(sectionExport)
	}
	b := appendU32(nil, uint32(len(all)))
	for _, e := range all {
		if e.Kind == FunctionKind {
			e.Index = w.function(e.Index)
			if as, ok := w.done.Exports[e.Name]; ok {
				e.Name = as
			}
		}
		b = appendExport(b, e)
	}
	return b
}

func (w *rewriter) startSection() []byte {
	if w.m.start < 0 || w.Detach {
		return nil
	}
	return appendU32(nil, w.function(uint32(w.m.start)))
}

func (w *rewriter) elementSection() []byte {
	m := w.m
	fills := w.link != nil && len(w.link.Table) > 0
	if !fills && (w.link == nil && len(w.added) == 0 && !m.computes || len(m.elements) == 0) {
		return m.content(sectionElement)
	}
	b := make([]byte, 0, len(m.content(sectionElement))+len(m.content(sectionElement))/4+8)
	count := uint32(len(m.elements))
	if fills {
		count++
	}
	b = appendU32(b, count)
	for _, e := range m.elements {
		b = m.appendElement(b, e, w.constant, w.function)
	}
	if fills {
		b = w.link.element(b, m.tables[0].Min)
	}
	return b
}

// dropsData reports whether the data section can be removed: it is detached, and no code
// names a segment.
func (w *rewriter) dropsData() bool {
	return w.Detach && w.m.uses&(usesMemoryInit|usesDataDrop) == 0
}

func (w *rewriter) dataCountSection() []byte {
	if w.dropsData() || w.link != nil {
		return nil
	}
	return w.m.content(sectionDataCount)
}

// dataSection leaves an empty segment in the place of one that was detached:
// to the code it is like one that was dropped after use.
func (w *rewriter) dataSection() []byte {
	m := w.m
	switch {
	case w.link != nil:
		return w.link.dataSection()
	case w.dropsData():
		return nil
	case !w.Detach && !m.computes:
		return m.content(sectionData)
	}
	b := appendU32(nil, uint32(len(m.data)))
	for _, s := range m.data {
		switch {
		case s.passive:
			b = m.appendPassive(b, s)
		case w.Detach:
			b = append(b, 1, 0)
		default:
			b = appendSized(w.constant(append(b, 0), s.offset), m.bytes[s.start:s.end])
		}
	}
	return b
}
