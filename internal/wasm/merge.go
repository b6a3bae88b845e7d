package wasm

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"runner.example/internal/wasm/opcode"
)

// Merge describes how several modules become one, which behaves as their instances do when an engine
// instantiates and links them in the order of Parts (Core 2.0, section 4.5.4).
//
// One memory may have more than 0 pages. It becomes the memory of the new module. If there is none, the
// first one that may grow does. All other memories stay empty: accesses trap, and they do not grow.
type Merge struct {
	// Parts may have the same module several times.
	Parts []Part
	// Imports are the functions of the host, of which no two have the same names. All are imported.
	Imports []Import
	// Functions are added after those of the parts. They have no Replaces. Code's index takes the name of
	// an added function, "module.name" of one of Imports, or one of Names.
	Functions []Function
	// Names are exports of parts that added functions use: functions, and also tables and globals.
	Names map[string]Source
	// Exports are those of the new module, besides the added functions that have an Export.
	Exports []MergedExport
	// Memory is the export name of the memory; empty: it is not exported. If there is no memory an empty one is
	// added.
	Memory string
}

// Part is a module that is instantiated once.
type Part struct {
	// Module was parsed by Parse or ParsePart.
	Module *Module
	// Imports are what the module imports, in the order of Module.Externals: functions, and exports of
	// earlier parts.
	Imports []Source
}

// Source is something that a part exports. With NoPart it is a function: an added one by its name, or one
// of Merge.Imports as "module.name".
type Source struct {
	Part int // in Merge.Parts
	Name string
}

// NoPart is the Part of functions that are not of a part.
const NoPart = -1

// MergedExport is an export of the new module.
type MergedExport struct {
	Name   string
	Source Source
}

// Module returns the new module. It has the names of all functions, and no other custom sections. A trap
// at the instantiation of a part becomes one at that of the module. The result is to be parsed: the limits
// here are those for the parts together. An error continues the name of the file that the parts are in. The
// bytes belong to the caller.
func (m Merge) Module(limits Limits) ([]byte, error) {
	m.Imports = slices.Clone(m.Imports)
	w := &merger{Merge: m, typeNumbers: map[string]uint32{}, names: map[string]Export{}, live: -1}
	if err := w.checkSize(limits); err != nil {
		return nil, err
	}
	if err := w.numberFunctions(); err != nil {
		return nil, err
	}
	for i := range w.parts {
		if err := w.place(i); err != nil {
			return nil, fmt.Errorf("has a module (instance %d) that %w", i, err)
		}
	}
	if err := w.chooseMemory(); err != nil {
		return nil, err
	}
	if err := w.addFunctions(); err != nil {
		return nil, err
	}
	w.addStart()
	return w.write(), nil
}

// merger is the state of a Merge.
type merger struct {
	Merge
	parts       []*part
	types       []FuncType
	typeNumbers map[string]uint32 // by FuncType.key
	names       map[string]Export // what added functions can use, with new numbers

	// By their new numbers:
	functions []mergedFunction
	tables    []mergedTable
	globals   []mergedGlobal

	memories []mergedMemory
	live     int // in memories; -1: there is none
	exports  []Export
	helpers  []helper
	start    int64 // function, or -1
	elements int
	data     int
}

// part is a part with the new numbers of what it has.
type part struct {
	*Module
	index        int
	imports      []Source
	to           numbers
	memory       int               // in merger.memories, or -1
	first        uint32            // new number of its first function
	exports      map[string]Export // with new numbers
	elementSteps []bool            // segments that become steps of the start function
	dataSteps    []bool
}

type mergedFunction struct {
	typeIndex uint32
	part      int32 // -1: it is imported or added
}

type mergedTable struct {
	Table
	owner int // the part that defines it
}

type mergedMemory struct {
	Memory
	owner int
}

// mergedGlobal has an initial value that is not that of another global.
type mergedGlobal struct {
	Global
	from *part // of the initial value
}

// checkSize limits the parts together, of which each was within the limits of Parse.
func (w *merger) checkSize(limits Limits) error {
	if len(w.Parts) > limits.Parts {
		return fmt.Errorf("has %d instances of modules, and may have %d", len(w.Parts), limits.Parts)
	}
	bytes, functions := 0, len(w.Functions)
	for _, p := range w.Parts {
		bytes += len(p.Module.bytes)
		functions += len(p.Module.functions)
	}
	switch {
	case bytes > limits.ModuleBytes:
		return fmt.Errorf("has modules of %d bytes in all instances, and may have %d", bytes, limits.ModuleBytes)
	case functions > limits.Functions:
		return fmt.Errorf("has %d functions in all instances of modules, and may have %d", functions, limits.Functions)
	}
	return nil
}

// typeNumber finds a type, or adds it.
func (w *merger) typeNumber(t FuncType) uint32 {
	key := t.key()
	n, ok := w.typeNumbers[key]
	if !ok {
		n = uint32(len(w.types))
		w.types = append(w.types, t)
		w.typeNumbers[key] = n
	}
	return n
}

// numberFunctions assigns the new numbers of types and functions:
//
//	imports · those of each part · added ones
func (w *merger) numberFunctions() error {
	name := func(name string) error {
		if _, taken := w.names[name]; taken {
			return fmt.Errorf("needs two functions of the name %.100q", name)
		}
		w.names[name] = Export{name, FunctionKind, uint32(len(w.functions))}
		return nil
	}
	for i, f := range w.Imports {
		if err := name(qualified(f)); err != nil {
			return err
		}
		w.Imports[i].typeIndex = w.typeNumber(f.Type)
		w.functions = append(w.functions, mergedFunction{w.Imports[i].typeIndex, -1})
	}
	for i, x := range w.Parts {
		p := &part{Module: x.Module, index: i, imports: x.Imports, memory: -1, first: uint32(len(w.functions))}
		w.parts = append(w.parts, p)
		p.to.types = make([]uint32, len(p.Module.types))
		for t := range p.to.types {
			p.to.types[t] = w.typeNumber(p.Module.types[t])
		}
		for _, f := range p.Module.functions {
			w.functions = append(w.functions, mergedFunction{p.to.types[f.typeIndex], int32(i)})
		}
	}
	for _, f := range w.Functions {
		if f.Name != "" {
			if err := name(f.Name); err != nil {
				return err
			}
		}
		if f.Export != "" {
			w.exports = append(w.exports, Export{f.Export, FunctionKind, uint32(len(w.functions))})
		}
		w.functions = append(w.functions, mergedFunction{w.typeNumber(f.Type), -1})
	}
	return nil
}

// place resolves the imports of a part, and assigns the new numbers of what it defines.
func (w *merger) place(at int) error {
	p := w.parts[at]
	m := p.Module
	if len(p.imports) != len(m.externals) {
		return fmt.Errorf("has %d imports, and %d are given", len(m.externals), len(p.imports))
	}
	for i, x := range m.externals {
		if err := w.resolve(p, x, p.imports[i]); err != nil {
			return fmt.Errorf("imports %.100q %w", x.Module+"."+x.Name, err)
		}
	}
	for i := range m.functions {
		p.to.functions = append(p.to.functions, p.first+uint32(i))
	}
	for _, t := range m.tables[len(p.to.tables):] {
		p.to.tables = append(p.to.tables, uint32(len(w.tables)))
		w.tables = append(w.tables, mergedTable{t, at})
	}
	if m.memory != nil && p.memory < 0 {
		p.memory = len(w.memories)
		w.memories = append(w.memories, mergedMemory{*m.memory, at})
	}
	for _, g := range m.globals[len(p.to.globals):] {
		from, init := w.value(p, g.init)
		g.init = init
		p.to.globals = append(p.to.globals, uint32(len(w.globals)))
		w.globals = append(w.globals, mergedGlobal{g, from})
	}
	for range m.elements {
		p.to.elements = append(p.to.elements, uint32(w.elements))
		w.elements++
	}
	for range m.data {
		p.to.data = append(p.to.data, uint32(w.data))
		w.data++
	}
	p.exports = make(map[string]Export, len(m.exports))
	for _, e := range m.exports {
		e.Index = p.number(e.Kind, e.Index)
		p.exports[e.Name] = e
	}
	return nil
}

// number is the new number of something. That of a memory is its place in merger.memories.
func (p *part) number(k Kind, index uint32) uint32 {
	switch k {
	case FunctionKind:
		return p.to.functions[index]
	case TableKind:
		return p.to.tables[index]
	case GlobalKind:
		return p.to.globals[index]
	}
	return uint32(p.memory)
}

func (p *part) function(index uint32) uint32 { return p.to.functions[index] }

// find returns what a source is, with its new number. It must not be of the given part or later.
func (w *merger) find(s Source, before int) (Export, error) {
	e, ok := w.names[s.Name]
	if s.Part != NoPart {
		if s.Part < 0 || s.Part >= before {
			return e, fmt.Errorf("from instance %d, which is not an earlier one", s.Part)
		}
		e, ok = w.parts[s.Part].exports[s.Name]
	}
	switch {
	case ok:
		return e, nil
	case s.Part == NoPart:
		return e, fmt.Errorf("as the function %.100q, which is not there", s.Name)
	}
	return e, fmt.Errorf("from instance %d, which does not export %.100q", s.Part, s.Name)
}

// resolve gives an import its new number, if the types match (Core 2.0, section 3.4).
func (w *merger) resolve(p *part, i External, s Source) error {
	e, err := w.find(s, p.index)
	if err != nil {
		return err
	}
	if e.Kind != i.Kind {
		return fmt.Errorf("as a %s, and gets a %s", i.Kind, e.Kind)
	}
	m, ok := p.Module, false
	switch i.Kind {
	case FunctionKind:
		ok = w.functions[e.Index].typeIndex == p.to.types[m.imports[i.Index].typeIndex]
		p.to.functions = append(p.to.functions, e.Index)
	case TableKind:
		want, t := m.tables[i.Index], w.tables[e.Index]
		ok = want.Type == t.Type && within(t.Min, t.Max, t.HasMax, want.Min, want.Max, want.HasMax)
		p.to.tables = append(p.to.tables, e.Index)
	case MemoryKind:
		want, t := m.memory, w.memories[e.Index]
		ok = within(t.MinPages, t.MaxPages, t.HasMax, want.MinPages, want.MaxPages, want.HasMax)
		p.memory = int(e.Index)
	case GlobalKind:
		want, g := m.globals[i.Index], w.globals[e.Index]
		ok = want.Type == g.Type && want.Mutable == g.Mutable
		p.to.globals = append(p.to.globals, e.Index)
	}
	if !ok {
		return fmt.Errorf("as a %s of another type", i.Kind)
	}
	return nil
}

// within reports whether limits match those of an import.
func within(least, most uint32, hasMax bool, wantLeast, wantMost uint32, wantMax bool) bool {
	return least >= wantLeast && (!wantMax || hasMax && most <= wantMost)
}

// value returns an initial value as one instruction that does not refer to a global, and the part that it is of.
func (w *merger) value(p *part, c constant) (*part, constant) {
	global := func(index uint32) mergedGlobal { return w.globals[p.to.globals[index]] }
	switch c.op {
	case opcode.GlobalGet:
		g := global(c.index)
		return g.from, g.init
	case computed:
		r := &reader{bytes: p.bytes, pos: c.start, end: c.end}
		return p, p.compute(r, len(p.to.globals), func(index uint32) int64 { return global(index).init.value })
	}
	return p, c
}

// LiveMemory is the part whose memory becomes that of the new module, or NoPart.
func (m Merge) LiveMemory() int {
	live, best := NoPart, 0
	for i, p := range m.Parts {
		if rank := p.Module.definesMemory(); rank > best {
			live, best = i, rank
		}
	}
	return live
}

// definesMemory is 0 if the module defines no memory, and else more the more a memory can have.
func (m *Module) definesMemory() int {
	switch {
	case m.memory == nil || slices.ContainsFunc(m.externals, func(x External) bool { return x.Kind == MemoryKind }):
		return 0
	case m.memory.MinPages > 0:
		return 3
	case m.memory.MaxPages > 0:
		return 2
	}
	return 1
}

// chooseMemory finds the memory that may have pages.
func (w *merger) chooseMemory() error {
	if len(w.memories) == 0 && w.Memory != "" {
		w.memories = append(w.memories, mergedMemory{Memory{HasMax: true}, NoPart})
		w.live = 0
	}
	part := w.LiveMemory()
	for i, m := range w.memories {
		switch {
		case m.owner == part:
			w.live = i
		case m.MinPages > 0 && w.live >= 0 && w.memories[w.live].MinPages > 0:
			return fmt.Errorf("has several memories (of instances %d and %d), and only one can have more than 0 pages",
				w.memories[w.live].owner, m.owner)
		}
	}
	if len(w.memories) < 2 {
		return nil
	}
	// Accesses to the empty ones go to the last bytes of the address space, which are outside of it.
	live := &w.memories[w.live]
	if live.MinPages == maxPages {
		return errors.New("has several memories, and one of 4 GiB: build it with less")
	}
	live.MaxPages, live.HasMax = min(live.MaxPages, maxPages-1), true
	return nil
}

// addFunctions adds the functions of the Merge, and then those for empty memories.
func (w *merger) addFunctions() error {
	for _, name := range slices.Sorted(maps.Keys(w.Names)) {
		s := w.Names[name]
		e, err := w.find(s, len(w.parts))
		switch {
		case err != nil:
			return fmt.Errorf("needs %.100q %w", name, err)
		case s.Part == NoPart:
			return fmt.Errorf("needs %.100q, which no instance exports", name)
		}
		if _, taken := w.names[name]; taken {
			return fmt.Errorf("needs two functions of the name %.100q", name)
		}
		w.names[name] = e
	}
	for _, f := range w.Functions {
		var missing error
		body := f.body(func(name string) uint32 {
			e, ok := w.names[name]
			if !ok && missing == nil {
				missing = fmt.Errorf("has no function %.100q, which %.100q calls", name, f.Name)
			}
			return e.Index
		})
		if missing != nil {
			return missing
		}
		w.helpers = append(w.helpers, helper{w.typeNumber(f.Type), body})
	}
	for _, x := range w.Exports {
		e, err := w.find(x.Source, len(w.parts))
		if err != nil {
			return fmt.Errorf("exports %.100q %w", x.Name, err)
		}
		if e.Kind == MemoryKind {
			if int(e.Index) != w.live {
				return fmt.Errorf("exports %.100q, which is an empty memory, and there is another one", x.Name)
			}
			e.Index = 0
		}
		w.exports = append(w.exports, Export{x.Name, e.Kind, e.Index})
	}
	if w.Memory != "" {
		w.exports = append(w.exports, Export{w.Memory, MemoryKind, 0})
	}
	w.addChecks()
	return nil
}

// addHelper adds a function that the Merge does not name, and returns its number.
func (w *merger) addHelper(t FuncType, code []byte) uint32 {
	n := w.typeNumber(t)
	w.helpers = append(w.helpers, helper{n, append(append([]byte{0}, code...), opcode.End)})
	w.functions = append(w.functions, mergedFunction{n, -1})
	return uint32(len(w.functions) - 1)
}
