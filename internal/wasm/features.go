package wasm

// features are parts of WebAssembly that were added to its first version.
type features uint16

const (
	signExtension features = 1 << iota
	saturation
	multipleValues
	bulkMemory
	references
	vectors
	extendedConstants
	tailCalls
	atomics
)

var featureNames = [...]struct {
	feature features
	name    string
}{
	{signExtension, "sign extension"},
	{saturation, "saturating conversions"},
	{multipleValues, "multiple values"},
	{bulkMemory, "bulk memory"},
	{references, "reference types"},
	{vectors, "SIMD"},
	{extendedConstants, "extended constant expressions"},
	{tailCalls, "tail calls"},
	{atomics, "atomics"},
}

// Features names the parts of WebAssembly that the module uses and that its first version did not have, in the order
// in which they were added.
func (m *Module) Features() []string {
	used := m.used
	for _, t := range m.types {
		if len(t.Results) > 1 {
			used |= multipleValues
		}
		for _, v := range append(t.Params[:len(t.Params):len(t.Params)], t.Results...) {
			used |= featureOfType(v)
		}
	}
	for _, g := range m.globals {
		used |= featureOfType(g.Type)
	}
	if len(m.tables) > 1 {
		used |= references
	}
	for _, t := range m.tables {
		if t.Type != FuncRef {
			used |= references
		}
	}
	if m.dataCount >= 0 {
		used |= bulkMemory
	}
	for _, s := range m.data {
		if s.passive {
			used |= bulkMemory
		}
	}
	names := []string{}
	for _, f := range featureNames {
		if used&f.feature != 0 {
			names = append(names, f.name)
		}
	}
	return names
}

// featureOf is the feature that an instruction without immediates belongs to.
func featureOf(op byte) features {
	switch {
	case op >= 0xc0 && op <= 0xc4:
		return signExtension
	case op == 0xd1: // ref.is_null
		return references
	}
	return 0
}

func featureOfType(t ValueType) features {
	switch {
	case t == V128:
		return vectors
	case t.isReference():
		return references
	}
	return 0
}
