package component

import (
	"fmt"
	"slices"

	"runner.example/internal/wasm"
)

// Bounds of the canonical ABI on flattened values; what has more is passed in memory.
const (
	MaxFlatParams      = 16
	MaxFlatAsyncParams = 4
	MaxFlatResults     = 1
)

// layout is what the canonical ABI says of a type, for pointers of 32 bits.
type layout struct {
	size, align uint32
	flat        []wasm.ValueType // cut off after MaxFlatParams+1
	offsets     []uint32         // of the fields of records and tuples
	nodes       int              // types in this one, itself included
	depth       int
	borrows     bool // contains borrowed handles
	resources   bool // contains handles of resources
	pointers    bool // contains strings or lists, which lie elsewhere in memory
	handles     bool // contains handles of any kind
}

// Size is how many bytes of memory a value takes, without what it points to.
func (t *ValueType) Size() uint32 { return t.size }

// Align is the alignment of a value in memory.
func (t *ValueType) Align() uint32 { return t.align }

// Flat are the core values that a value is passed as, and whether they are at most
// MaxFlatParams; else the value is passed in memory. The slice is the type's.
func (t *ValueType) Flat() ([]wasm.ValueType, bool) {
	if len(t.flat) > MaxFlatParams {
		return nil, false
	}
	return t.flat, true
}

// Offset is where in memory the field i of a record or tuple begins.
func (t *ValueType) Offset(i int) uint32 { return t.offsets[i] }

// HasPointers reports whether a value contains strings or lists, so that it is passed with
// memory of its own.
func (t *ValueType) HasPointers() bool { return t.pointers }

// HasBorrows reports whether a value contains borrowed handles.
func (t *ValueType) HasBorrows() bool { return t.borrows }

// Cases are those of a variant, enum, option or result, as those of a variant; nil for other types.
func (t *ValueType) Cases() []Field {
	switch t.Kind {
	case Variant, Enum, Result:
		return t.Fields
	case Option:
		return []Field{{Name: "none"}, {Name: "some", Type: t.Element}}
	}
	return nil
}

// DiscriminantSize is how many bytes the number of a case takes.
func (t *ValueType) DiscriminantSize() uint32 { return discriminantSize(len(t.Cases())) }

func discriminantSize(cases int) uint32 {
	switch {
	case cases <= 1<<8:
		return 1
	case cases <= 1<<16:
		return 2
	}
	return 4
}

// PayloadOffset is where in memory the payload of a variant, enum, option or result begins.
func (t *ValueType) PayloadOffset() uint32 {
	align := uint32(1)
	for _, c := range t.Cases() {
		if c.Type != nil {
			align = max(align, c.Type.align)
		}
	}
	return alignTo(t.DiscriminantSize(), align)
}

func alignTo(n, align uint32) uint32 { return (n + align - 1) &^ (align - 1) }

// primitiveLayouts are the layouts of types without parts: bytes, and the flat type.
var primitiveLayouts = [ErrorContext + 1]struct {
	size uint32
	flat wasm.ValueType
}{
	Bool: {1, wasm.I32}, S8: {1, wasm.I32}, U8: {1, wasm.I32}, S16: {2, wasm.I32}, U16: {2, wasm.I32},
	S32: {4, wasm.I32}, U32: {4, wasm.I32}, S64: {8, wasm.I64}, U64: {8, wasm.I64},
	F32: {4, wasm.F32}, F64: {8, wasm.F64}, Char: {4, wasm.I32}, ErrorContext: {4, wasm.I32},
}

var pointerAndLength = []wasm.ValueType{wasm.I32, wasm.I32}

// computeLayout fills in the layout, from those of the parts.
func (t *ValueType) computeLayout() error {
	if err := t.countParts(); err != nil {
		return err
	}
	size := uint64(4) // of a handle
	t.align, t.flat = 4, pointerAndLength[:1]
	switch t.Kind {
	case String, List, Map:
		size, t.flat, t.pointers = 8, pointerAndLength, true
	case Record, Tuple:
		size = t.layFields()
	case FixedList:
		size = uint64(t.Length) * uint64(t.Element.size)
		t.align, t.flat = t.Element.align, nil
		for i := uint32(0); i < t.Length && len(t.flat) <= MaxFlatParams; i++ {
			t.appendFlat(t.Element.flat)
		}
	case Flags:
		size = uint64(flagsSize(len(t.Fields)))
		t.align = uint32(size)
	case Variant, Enum, Option, Result:
		size = t.layCases()
	case Own, Borrow, Stream, Future:
	default:
		p := primitiveLayouts[t.Kind]
		size, t.align, t.flat = uint64(p.size), p.size, []wasm.ValueType{p.flat}
	}
	if size > maxValueBytes {
		return fmt.Errorf("a value of type %s takes more than %d bytes (maxValueBytes)", t, maxValueBytes)
	}
	t.size = uint32(size)
	return nil
}

func flagsSize(n int) int {
	switch {
	case n <= 8:
		return 1
	case n <= 16:
		return 2
	}
	return 4
}

// countParts computes what holds of all parts, whatever the kind.
func (t *ValueType) countParts() error {
	t.nodes, t.depth = 1, 1
	t.borrows = t.Kind == Borrow
	t.resources = t.Resource != nil
	t.handles = t.resources || t.Kind == Stream || t.Kind == Future || t.Kind == ErrorContext
	add := func(part *ValueType) {
		t.nodes = t.nodes + part.nodes
		t.depth = max(t.depth, part.depth+1)
		t.borrows = t.borrows || part.borrows
		t.resources = t.resources || part.resources
		t.pointers = t.pointers || part.pointers
		t.handles = t.handles || part.handles
	}
	for _, f := range t.Fields {
		if f.Type != nil {
			add(f.Type)
		} else {
			t.nodes++
		}
	}
	if t.Element != nil {
		add(t.Element)
	}
	if t.Kind == Stream || t.Kind == Future {
		t.pointers = false // the value is a handle
	}
	switch {
	case t.nodes > maxTypeSize:
		return fmt.Errorf("a %s of %d types, and it may have %d (maxTypeSize)", t.Kind, t.nodes, maxTypeSize)
	case t.depth > maxTypeDepth:
		return fmt.Errorf("a %s of types that are nested more than %d deep (maxTypeDepth)", t.Kind, maxTypeDepth)
	}
	return nil
}

// layFields lays out the fields of a record or tuple one after the other, and returns the size.
func (t *ValueType) layFields() uint64 {
	t.align, t.flat = 1, nil
	t.offsets = make([]uint32, len(t.Fields))
	size := uint64(0)
	for i, f := range t.Fields {
		mask := uint64(f.Type.align) - 1
		size = (size + mask) &^ mask
		t.offsets[i] = uint32(size)
		size += uint64(f.Type.size)
		t.align = max(t.align, f.Type.align)
		t.appendFlat(f.Type.flat)
	}
	mask := uint64(t.align) - 1
	return (size + mask) &^ mask
}

func (t *ValueType) appendFlat(flat []wasm.ValueType) {
	t.flat = append(slices.Clip(t.flat), flat[:min(len(flat), MaxFlatParams+1-len(t.flat))]...)
}

// layCases lays out the discriminant and the payloads over each other, and returns the size.
func (t *ValueType) layCases() uint64 {
	cases := t.Cases()
	t.align = discriminantSize(len(cases))
	t.flat = []wasm.ValueType{wasm.I32}
	payload := uint64(0)
	for _, c := range cases {
		if c.Type == nil {
			continue
		}
		t.align = max(t.align, c.Type.align)
		payload = max(payload, uint64(c.Type.size))
		for i, flat := range c.Type.flat {
			switch {
			case i+1 > MaxFlatParams:
			case i+1 == len(t.flat):
				t.flat = append(t.flat, flat)
			default:
				t.flat[i+1] = join(t.flat[i+1], flat)
			}
		}
	}
	mask := uint64(t.align) - 1
	return (uint64(t.PayloadOffset()) + payload + mask) &^ mask
}

// join is the core type that values of both types are passed as, by their bits.
func join(a, b wasm.ValueType) wasm.ValueType {
	switch {
	case a == b:
		return a
	case (a == wasm.I32 || a == wasm.F32) && (b == wasm.I32 || b == wasm.F32):
		return wasm.I32
	}
	return wasm.I64
}

// flatten returns the core values of fields one after the other. If there are more than limit
// they are passed in memory, by a pointer.
func flatten(fields []Field, limit int) (flat []wasm.ValueType, inMemory bool) {
	for _, f := range fields {
		if flat = append(flat, f.Type.flat...); len(flat) > limit {
			return pointerAndLength[:1:1], true
		}
	}
	return flat, false
}

// CoreShape is how a function looks to core modules.
type CoreShape struct {
	wasm.FuncType
	ParamsInMemory bool // the only parameter (of those) points to them
	ResultInMemory bool // a pointer to the result is the core result (lift) or the last parameter (lower)
}

// Lifted is how the core function of `canon lift` looks. In async functions the core result is
// the code of what to do next if there is a callback, and else there is none.
func (t *FuncType) Lifted(async, callback bool) (s CoreShape) {
	s.Params, s.ParamsInMemory = flatten(t.Params, MaxFlatParams)
	switch {
	case async && callback:
		s.Results = []wasm.ValueType{wasm.I32}
	case !async && t.Result != nil:
		s.Results, s.ResultInMemory = flatten([]Field{{Type: t.Result}}, MaxFlatResults)
	}
	return s
}

// Lowered is how the core function of `canon lower` looks. The core result of async ones is
// the state of the call, and the subtask's handle.
func (t *FuncType) Lowered(async bool) (s CoreShape) {
	limit := MaxFlatParams
	if async {
		limit = MaxFlatAsyncParams
	}
	s.Params, s.ParamsInMemory = flatten(t.Params, limit)
	s.Params = slices.Clip(s.Params)
	if t.Result != nil {
		s.Results, s.ResultInMemory = flatten([]Field{{Type: t.Result}}, MaxFlatResults)
		if s.ResultInMemory = s.ResultInMemory || async; s.ResultInMemory {
			s.Params, s.Results = append(s.Params, wasm.I32), nil
		}
	}
	if async {
		s.Results = []wasm.ValueType{wasm.I32}
	}
	return s
}

// Returned is how the core function of `task.return` looks for a result, or nil.
func Returned(result *ValueType) (s CoreShape) {
	if result != nil {
		s.Params, s.ParamsInMemory = flatten([]Field{{Type: result}}, MaxFlatParams)
	}
	return s
}

// ParamsLayout is how parameters in memory are laid out: as a tuple. The offsets are of the fields.
func ParamsLayout(params []Field) (offsets []uint32, size, align uint32) {
	t := ValueType{Kind: Tuple, Fields: params}
	size = uint32(t.layFields())
	return t.offsets, size, t.align
}
