package wasm

import (
	"fmt"
	"slices"

	"runner.example/internal/wasm/opcode"
)

// Link describes how a module that has run becomes a new module, which begins with the state
// of the first one.
type Link struct {
	// Imports are functions that the added functions call by the names "module.name".
	Imports []Import
	// Internal names functions that the module does not export, by index.
	Internal map[string]uint32
	// Functions are added after the module's own.
	Functions []Function
	// Table names added functions that are appended to the module's one table, where code
	// can call them by number.
	Table []string
	// Memory is the content of the memory, in whole pages. It replaces the data segments.
	Memory []byte
	// Globals are the values of the module's mutable globals in order. All must be i32.
	Globals []uint32
	// Reduce makes code of the module shorter.
	Reduce Reduction
}

// Function is a function that Link adds.
type Function struct {
	// Name is how Code refers to it.
	Name string
	// Replaces is what it replaces in all calls and tables of the module: an import,
	// "module.name", or a function of Internal, which added functions can still call.
	Replaces string
	// Export is the name of its export; empty: it is not exported. Of the module's own
	// exports only the memory stays.
	Export string
	Type   FuncType
	// Locals are the locals without the parameters.
	Locals []ValueType
	// Code returns the instructions without the closing end. index returns the number of a
	// function: an added one by its name, an import by "module.name", one of the module's
	// own by the name of its export or by Internal. If it does not exist, Link fails.
	Code func(index func(name string) uint32) []byte
}

// Link returns the new module. It is an error if the module has state that l does not
// describe: written tables, dropped segments, globals of other types. The bytes belong to
// the caller.
func (m *Module) Link(l Link) ([]byte, error) {
	if err := m.checkLink(l); err != nil {
		return nil, err
	}
	w := &rewriter{m: m, link: &linker{Link: l}, done: &Rewritten{}}
	if err := w.resolve(); err != nil {
		return nil, err
	}
	return w.write(), nil
}

// linker is the state of a rewriter that links.
type linker struct {
	Link
	kept    []Import // of the module's imports
	numbers []uint32 // the new number of each function
	entries []uint32 // the new numbers of Table
	inlined map[uint32]inlined
}

func (m *Module) checkLink(l Link) error {
	if err := m.checkWhole(); err != nil {
		return err
	}
	mutable := 0
	for _, g := range m.globals {
		if g.Mutable {
			mutable++
			if g.Type != I32 {
				return fmt.Errorf("has a mutable global of %s, and only those of i32 can be carried over", g.Type)
			}
		}
	}
	switch {
	case m.uses != 0:
		return fmt.Errorf("writes to tables or names segments, which cannot be carried over")
	case m.start >= 0:
		return fmt.Errorf("has a start function, which would run again")
	case mutable != len(l.Globals):
		return fmt.Errorf("has %d mutable globals, and %d values are given", mutable, len(l.Globals))
	case m.memory == nil || len(l.Memory)%PageBytes != 0 || len(l.Memory) < int(m.memory.MinPages)*PageBytes:
		return fmt.Errorf("has no memory of %d bytes", len(l.Memory))
	case len(l.Table) > 0 && (len(m.tables) != 1 || m.tables[0].Type != FuncRef):
		return fmt.Errorf("has no table of functions to add to")
	case slices.ContainsFunc(m.data, func(s segment) bool { return s.passive }):
		return fmt.Errorf("has passive data segments, which cannot be carried over")
	}
	return nil
}

// resolve assigns the new number of each function:
//
//	imports that stay · added imports · the module's own · added functions
func (w *rewriter) resolve() error {
	m, l := w.m, w.link
	replaced := map[string]int{}
	for i, f := range l.Functions {
		if f.Replaces != "" {
			replaced[f.Replaces] = i
		}
	}
	names := map[string]uint32{}
	for _, i := range m.imports {
		if _, ok := replaced[qualified(i)]; !ok {
			names[qualified(i)] = uint32(len(l.kept))
			l.kept = append(l.kept, i)
		}
	}
	imports := uint32(len(l.kept) + len(l.Imports))
	for n, i := range l.Imports {
		names[qualified(i)] = uint32(len(l.kept) + n)
	}
	first := imports + uint32(len(m.functions)) // of the added functions
	for n, f := range l.Functions {
		if f.Name != "" {
			names[f.Name] = first + uint32(n)
		}
	}
	for _, i := range m.imports {
		number, ok := names[qualified(i)]
		if at, gone := replaced[qualified(i)]; gone {
			if !i.Type.equal(l.Functions[at].Type) {
				return fmt.Errorf("imports %s with another type", qualified(i))
			}
			number, ok = first+uint32(at), true
			delete(replaced, qualified(i))
		}
		if !ok {
			panic("BUG: an import is neither kept nor replaced")
		}
		l.numbers = append(l.numbers, number)
	}
	for name, index := range l.Internal {
		if int(index) < len(m.imports) || int(index) >= m.functionCount() {
			return fmt.Errorf("has no function %d, which is given the name %s", index, name)
		}
		names[name] = imports + index - uint32(len(m.imports))
	}
	for i := range m.functions {
		l.numbers = append(l.numbers, imports+uint32(i))
	}
	for name, at := range replaced {
		index, ok := l.Internal[name]
		if !ok {
			return fmt.Errorf("does not import %s", name)
		}
		if f := l.Functions[at]; !m.FunctionType(index).equal(f.Type) {
			return fmt.Errorf("has a function %s of another type", name)
		}
		l.numbers[index] = first + uint32(at)
	}
	for _, e := range m.exports {
		if e.Kind == FunctionKind {
			if _, taken := names[e.Name]; !taken {
				names[e.Name] = l.numbers[e.Index]
			}
		}
	}
	return w.addFunctions(names, first)
}

func (w *rewriter) addFunctions(names map[string]uint32, first uint32) (err error) {
	for n, f := range w.link.Functions {
		body := f.body(func(name string) uint32 {
			number, ok := names[name]
			if !ok && err == nil {
				err = fmt.Errorf("exports no function %s", name)
			}
			return number
		})
		w.helpers = append(w.helpers, helper{uint32(w.typeIndex(f.Type)), body})
		if f.Export != "" {
			w.exports = append(w.exports, Export{f.Export, FunctionKind, first + uint32(n)})
		}
	}
	w.link.inlined = map[uint32]inlined{}
	for _, name := range w.link.Reduce.Inline {
		n := slices.IndexFunc(w.link.Functions, func(f Function) bool { return f.Name == name })
		if n < 0 {
			return fmt.Errorf("cannot inline %s, which is not added", name)
		}
		w.link.inlined[first+uint32(n)] = inlined{w.link.Functions[n].Type, w.helpers[n].body}
	}
	for _, name := range w.link.Table {
		number, ok := names[name]
		if !ok && err == nil {
			err = fmt.Errorf("exports no function %s", name)
		}
		w.link.entries = append(w.link.entries, number)
	}
	for i := range w.link.Imports {
		w.link.Imports[i].typeIndex = uint32(w.typeIndex(w.link.Imports[i].Type))
	}
	return err
}

func qualified(i Import) string { return i.Module + "." + i.Name }

func (l *linker) importSection() []byte {
	b := appendU32(nil, uint32(len(l.kept)+len(l.Imports)))
	for _, i := range append(l.kept[:len(l.kept):len(l.kept)], l.Imports...) {
		b = appendImport(b, i)
	}
	return b
}

// tableSection makes the table longer by the added entries.
func (l *linker) tableSection(t Table) []byte {
	added := uint32(len(l.entries))
	return appendTable([]byte{1}, Table{t.Type, t.Min + added, t.Max + added, t.HasMax})
}

// element appends the segment that fills the added entries.
func (l *linker) element(b []byte, at uint32) []byte {
	b = appendSigned(append(b, 0, opcode.I32Const), int64(int32(at)))
	b = appendU32(append(b, opcode.End), uint32(len(l.entries)))
	for _, number := range l.entries {
		b = appendU32(b, number)
	}
	return b
}

func (l *linker) memorySection(old *Memory) []byte {
	pages := uint32(len(l.Memory) / PageBytes)
	return appendLimits([]byte{1}, pages, max(pages, old.MaxPages), old.HasMax)
}

func (l *linker) globalSection(globals []Global, constant func([]byte, constant) []byte) []byte {
	b := appendU32(nil, uint32(len(globals)))
	next := 0
	for _, g := range globals {
		b = appendGlobalType(b, g)
		if !g.Mutable {
			b = constant(b, g.init)
			continue
		}
		b = append(appendSigned(append(b, opcode.I32Const), int64(int32(l.Globals[next]))), opcode.End)
		next++
	}
	return b
}

func (l *linker) exportSection(old, added []Export) []byte {
	var all []Export
	for _, e := range old {
		if e.Kind == MemoryKind {
			all = append(all, e)
		}
	}
	all = append(all, added...)
	b := appendU32(nil, uint32(len(all)))
	for _, e := range all {
		b = appendExport(b, e)
	}
	return b
}

// gap is how many zero bytes cost no more than another segment.
const gap = 8

// dataSection writes the bytes that are not zero.
func (l *linker) dataSection() []byte {
	count := uint32(0)
	var b []byte
	memory := l.Memory
	for at := 0; at < len(memory); {
		if memory[at] == 0 {
			at++
			continue
		}
		end, zeros := at+1, 0 // end is after the last byte that is not zero
		for i := end; i < len(memory) && zeros <= gap; i++ {
			if memory[i] == 0 {
				zeros++
			} else {
				end, zeros = i+1, 0
			}
		}
		b = append(appendSigned(append(b, 0, opcode.I32Const), int64(int32(at))), opcode.End)
		b = append(appendU32(b, uint32(end-at)), memory[at:end]...)
		count++
		at = end
	}
	return append(appendU32(nil, count), b...)
}

// Parts returns the functions of a module for Link, which adds them to another one. The name
// of a function is that of its export, or else the prefix and its number. Calls of imported
// functions use the import's name without its module. The stack pointer must be the only
// global of the module, and the first one of the other module.
func (m *Module) Parts(prefix string) ([]Function, error) {
	switch {
	case len(m.globals) > 1 || len(m.globals) == 1 && (m.globals[0].Type != I32 || !m.globals[0].Mutable):
		return nil, fmt.Errorf("has other globals than a stack pointer, and cannot be part of another module")
	case len(m.data)+len(m.elements)+len(m.indirect) > 0 || m.uses != 0 || m.start >= 0:
		return nil, fmt.Errorf("has data, table elements or a start function, and cannot be part of another module")
	case m.typedBlocks:
		return nil, fmt.Errorf(
			"has blocks with parameters or several results, and cannot be part of another module: build it without multiple values")
	}
	names := make([]string, 0, m.functionCount())
	for _, i := range m.imports {
		names = append(names, i.Name)
	}
	for i := range m.functions {
		names = append(names, fmt.Sprint(prefix, i))
	}
	for _, e := range m.exports {
		if e.Kind == FunctionKind {
			names[e.Index] = e.Name
		}
	}
	all := make([]Function, len(m.functions))
	for i := range m.functions {
		f := &m.functions[i]
		all[i] = Function{
			Name: names[len(m.imports)+i], Type: m.types[f.typeIndex], Locals: m.localsOf(f),
			Code: func(index func(string) uint32) []byte {
				l := &linker{}
				for _, name := range names {
					l.numbers = append(l.numbers, index(name))
				}
				return (&rewriter{m: m, link: l}).code(nil, f, false, addedLocals{})
			},
		}
	}
	return all, nil
}

// localsOf returns the types of a function's locals without its parameters.
func (m *Module) localsOf(f *function) (types []ValueType) {
	r := &reader{bytes: m.bytes, pos: f.start, end: f.code}
	for range r.u32() {
		n := r.u32()
		types = append(types, slices.Repeat([]ValueType{r.valueType()}, int(n))...)
	}
	return types
}
