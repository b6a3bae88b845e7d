package canontest

import (
	"encoding/binary"
	"math"
	"testing"

	"runner.example/internal/component"
	"runner.example/internal/component/canon"
)

// Heap is a guest's memory, with its allocator, which never frees.
type Heap struct {
	Memory []byte
	Free   uint32 // where free memory begins
}

// Realloc allocates memory, with a gap before it.
func (h *Heap) Realloc(size, align uint32) uint32 {
	at := (h.Free + align) &^ (align - 1)
	h.Free = at + size
	return at
}

// Place allocates and writes all blocks of a value that are left, and returns where the first one is.
func (h *Heap) Place(t testing.TB, lowered *canon.Lowered) (first uint32) {
	t.Helper()
	first = math.MaxUint32
	for size, align, ok := lowered.Next(0); ok; size, align, ok = lowered.Next(0) {
		at := h.Realloc(size, align)
		first = min(first, at)
		if err := lowered.Write(h.Memory, at); err != nil {
			t.Fatal(err)
		}
	}
	return first
}

// Store writes a value, and returns where it is.
func (h *Heap) Store(t testing.TB, typ *component.ValueType, v any) uint32 {
	t.Helper()
	var lowered canon.Lowered
	if err := lowered.Lower(typ, v); err != nil {
		t.Fatalf("%s: %v", typ, err)
	}
	return h.Place(t, &lowered)
}

// Params lowers arguments of a function, as a guest that calls it does.
func (h *Heap) Params(t testing.TB, f *component.FuncType, values ...any) (core []uint64) {
	t.Helper()
	if f.Lowered(false).ParamsInMemory {
		fields := component.ValueType{Kind: component.Tuple, Fields: f.Params}
		tuple, err := component.New(fields)
		if err != nil {
			t.Fatal(err)
		}
		return []uint64{uint64(h.Store(t, tuple, values))}
	}
	for i, p := range f.Params {
		core = append(core, h.Flat(t, p.Type, values[i])...)
	}
	return core
}

// Flat lowers a value to core values, as lower_flat of CanonicalABI.md does. A bool that is true is
// another number than 1.
func (h *Heap) Flat(t testing.TB, typ *component.ValueType, v any) (core []uint64) {
	t.Helper()
	switch typ.Kind {
	case component.Record, component.Tuple:
		for i, f := range typ.Fields {
			core = append(core, h.Flat(t, f.Type, v.([]any)[i])...)
		}
		return core
	case component.FixedList:
		for i := range int(typ.Length) {
			if b, ok := v.([]byte); ok {
				core = append(core, uint64(b[i]))
				continue
			}
			core = append(core, h.Flat(t, typ.Element, v.([]any)[i])...)
		}
		return core
	case component.Variant, component.Enum, component.Option, component.Result:
		c := v.(canon.Case)
		core = append(core, uint64(c.Index))
		if payload := typ.Cases()[c.Index].Type; payload != nil {
			core = append(core, h.Flat(t, payload, c.Value)...)
		}
		flat, _ := typ.Flat()
		return append(core, make([]uint64, len(flat)-len(core))...)
	case component.String, component.List, component.Map:
		at := h.Store(t, typ, v)
		return append(core, uint64(binary.LittleEndian.Uint32(h.Memory[at:])),
			uint64(binary.LittleEndian.Uint32(h.Memory[at+4:])))
	}
	return append(core, bits(typ, v))
}

func bits(typ *component.ValueType, v any) uint64 {
	switch v := v.(type) {
	case bool:
		if v {
			return 0xabcd
		}
		return 0
	case int64:
		if typ.Kind != component.S64 {
			return uint64(uint32(v))
		}
		return uint64(v)
	case float64:
		if typ.Kind == component.F32 {
			return uint64(math.Float32bits(float32(v)))
		}
		return math.Float64bits(v)
	case rune:
		return uint64(v)
	case uint32:
		return uint64(v)
	}
	return v.(uint64)
}
