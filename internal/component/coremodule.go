package component

import (
	"slices"

	"runner.example/internal/wasm"
)

// coreExtern is what a core module imports or exports, with its type.
type coreExtern struct {
	Module, Name string // the module is empty in exports
	Kind         wasm.Kind
	Func         wasm.FuncType // that of the kind is filled in
	Table        wasm.Table
	Memory       wasm.Memory
	Global       wasm.Global
}

// parse parses the module, and finds the types of what it imports and exports.
func (m *Module) parse(file []byte, limits wasm.Limits) (err error) {
	if m.Parsed, err = wasm.ParsePart(file, limits); err != nil {
		return err
	}
	for _, i := range m.Parsed.Externals() {
		m.imports = append(m.imports, m.extern(i.Module, i.Name, i.Kind, i.Index))
	}
	for _, e := range m.Parsed.Exports() {
		m.exports = append(m.exports, m.extern("", e.Name, e.Kind, e.Index))
	}
	return nil
}

func (m *Module) extern(module, name string, kind wasm.Kind, index uint32) coreExtern {
	e := coreExtern{Module: module, Name: name, Kind: kind}
	switch kind {
	case wasm.FunctionKind:
		e.Func = m.Parsed.FunctionType(index)
	case wasm.TableKind:
		e.Table = m.Parsed.Tables()[index]
	case wasm.MemoryKind:
		e.Memory = *m.Parsed.Memory()
	case wasm.GlobalKind:
		e.Global = m.Parsed.Globals()[index]
	}
	return e
}

// export returns the export of a name, or nil.
func (m *Module) export(name string) *coreExtern {
	if m.byName == nil {
		m.byName = make(map[string]int, len(m.exports))
		for i, e := range m.exports {
			m.byName[e.Name] = i
		}
	}
	if i, ok := m.byName[name]; ok {
		return &m.exports[i]
	}
	return nil
}

// fits reports whether an item can be where another type is expected.
func fits(have, want *coreExtern) bool {
	if have.Kind != want.Kind {
		return false
	}
	switch have.Kind {
	case wasm.FunctionKind:
		return sameFunc(have.Func, want.Func)
	case wasm.TableKind:
		h, w := have.Table, want.Table
		return h.Type == w.Type && fitsLimits(h.Min, h.Max, h.HasMax, w.Min, w.Max, w.HasMax)
	case wasm.MemoryKind:
		h, w := have.Memory, want.Memory
		return fitsLimits(h.MinPages, h.MaxPages, h.HasMax, w.MinPages, w.MaxPages, w.HasMax)
	}
	return have.Global.Type == want.Global.Type && have.Global.Mutable == want.Global.Mutable
}

func fitsLimits(haveMin, haveMax uint32, haveHas bool, wantMin, wantMax uint32, wantHas bool) bool {
	return haveMin >= wantMin && (!wantHas || haveHas && haveMax <= wantMax)
}

func sameFunc(a, b wasm.FuncType) bool {
	return slices.Equal(a.Params, b.Params) && slices.Equal(a.Results, b.Results)
}

// coreKinds are the kinds of items by their sort.
var coreKinds = map[sort]wasm.Kind{
	sortCoreFunc: wasm.FunctionKind, sortCoreTable: wasm.TableKind,
	sortCoreMemory: wasm.MemoryKind, sortCoreGlobal: wasm.GlobalKind,
}
