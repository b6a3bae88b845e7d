package wasm

import (
	"encoding/binary"
	"fmt"
)

// Freeze writes the module anew so that it begins where an instance of it is:
// mutable globals have the given values (as api.Global gives them, all of the
// module's in order), the memory has the given pages, which the host fills, and
// neither data segments nor the start function are applied again. Tables begin
// as they always do, so the instance must not have changed them, nor dropped a
// passive segment: see Eligibility, which also names the globals that cannot be
// frozen. The bytes are the caller's.
func (m *Module) Freeze(globals []uint64, memoryPages uint32) ([]byte, error) {
	mutable := 0
	for i, g := range m.globals {
		if !g.Mutable {
			continue
		}
		mutable++
		if g.Type == V128 || g.Type.isReference() {
			return nil, fmt.Errorf("has a mutable global of type %s (number %d), which cannot be frozen", g.Type, i)
		}
	}
	switch {
	case len(globals) != mutable:
		return nil, fmt.Errorf("has %d mutable globals, and %d values are given", mutable, len(globals))
	case m.memory == nil && memoryPages > 0:
		return nil, fmt.Errorf("has no memory, and %d pages of it are given", memoryPages)
	case m.memory != nil && (memoryPages < m.memory.MinPages || memoryPages > m.memory.MaxPages):
		return nil, fmt.Errorf("has a memory of %d to %d pages, and %d are given", m.memory.MinPages, m.memory.MaxPages, memoryPages)
	}
	w := &rewriter{m: m, done: &Rewritten{}, detached: true, frozen: &frozen{globals, memoryPages}}
	return w.write(), nil
}

// frozen is the state that a module is to begin with.
type frozen struct {
	globals []uint64 // the mutable ones; taken from the front
	pages   uint32
}

// constant appends the next mutable global's value.
func (f *frozen) constant(b []byte, t ValueType) []byte {
	value := f.globals[0]
	f.globals = f.globals[1:]
	switch t {
	case I32:
		b = appendSigned(append(b, opI32Const), int64(int32(value)))
	case I64:
		b = appendSigned(append(b, opI64Const), int64(value))
	case F32:
		b = binary.LittleEndian.AppendUint32(append(b, opF32Const), uint32(value))
	case F64:
		b = binary.LittleEndian.AppendUint64(append(b, opF64Const), value)
	default:
		panic("BUG: a global of type " + t.String() + " is frozen")
	}
	return append(b, opEnd)
}
