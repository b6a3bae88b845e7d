package canon

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"unicode/utf8"

	"runner.example/internal/component"
	"runner.example/internal/wasm"
)

// ErrBudget is the error of values that take more than a Lifter may read.
var ErrBudget = errors.New("the values have too many bytes")

// Lifter reads values of a guest. The bytes of a list<u8> are guest memory, valid until the guest runs
// again.
type Lifter struct {
	// Memory is the guest's.
	Memory []byte
	// Budget is how many bytes of strings and lists may still be read. An element of a list that is not
	// a byte counts as 16 at least, because Go takes that for it.
	Budget int
}

// elementBytes is the least that an element of a list counts.
const elementBytes = 16

// Params lifts the parameters of a function that a guest has called. shape is its Lowered shape, and
// core are its core parameters.
func (l *Lifter) Params(f *component.FuncType, shape component.CoreShape, core []uint64) ([]any, error) {
	all := make([]any, len(f.Params))
	if shape.ParamsInMemory {
		return all, l.loadParams(f.Params, uint32(core[0]), all)
	}
	var err error
	for i, p := range f.Params {
		if all[i], core, err = l.Flat(p.Type, core); err != nil {
			return nil, fmt.Errorf("parameter %s: %w", p.Name, err)
		}
	}
	return all, nil
}

func (l *Lifter) loadParams(params []component.Field, at uint32, all []any) (err error) {
	offsets, size, align := component.ParamsLayout(params)
	if err := l.check(at, uint64(size), align); err != nil {
		return fmt.Errorf("parameters: %w", err)
	}
	for i, p := range params {
		if all[i], err = l.load(p.Type, at+offsets[i]); err != nil {
			return fmt.Errorf("parameter %s: %w", p.Name, err)
		}
	}
	return nil
}

// Load reads a value from memory.
func (l *Lifter) Load(t *component.ValueType, at uint32) (any, error) {
	if err := l.check(at, uint64(t.Size()), t.Align()); err != nil {
		return nil, err
	}
	return l.load(t, at)
}

// check checks a pointer.
func (l *Lifter) check(at uint32, size uint64, align uint32) error {
	switch {
	case at&(align-1) != 0:
		return fmt.Errorf("pointer %#x is not aligned to %d bytes", at, align)
	case uint64(at)+size > uint64(len(l.Memory)):
		return fmt.Errorf("%d bytes at %#x are outside of memory", size, at)
	}
	return nil
}

// load reads a value whose bytes are within memory.
func (l *Lifter) load(t *component.ValueType, at uint32) (any, error) {
	switch t.Kind {
	case component.Record, component.Tuple:
		fields := make([]any, len(t.Fields))
		for i, f := range t.Fields {
			v, err := l.load(f.Type, at+t.Offset(i))
			if err != nil {
				return nil, err
			}
			fields[i] = v
		}
		return fields, nil
	case component.Variant, component.Enum, component.Option, component.Result:
		c, payload, err := caseOf(t, l.number(at, t.DiscriminantSize()))
		if err == nil && payload != nil {
			c.Value, err = l.load(payload, at+t.PayloadOffset())
		}
		return c, err
	case component.String, component.List, component.Map:
		return l.list(t, uint32(l.number(at, 4)), uint32(l.number(at+4, 4)))
	case component.FixedList:
		return l.elements(t, at, t.Length)
	}
	return scalar(t, l.number(at, t.Size()))
}

// number reads a number of 1, 2, 4 or 8 bytes.
func (l *Lifter) number(at, size uint32) uint64 {
	switch b := l.Memory[at:][:size]; size {
	case 1:
		return uint64(b[0])
	case 2:
		return uint64(binary.LittleEndian.Uint16(b))
	case 4:
		return uint64(binary.LittleEndian.Uint32(b))
	default:
		return binary.LittleEndian.Uint64(b)
	}
}

// Flat reads a value from core values, as a stack of wazero has them, and returns the rest of them.
func (l *Lifter) Flat(t *component.ValueType, core []uint64) (v any, rest []uint64, err error) {
	switch t.Kind {
	case component.Record, component.Tuple:
		fields := make([]any, len(t.Fields))
		for i, f := range t.Fields {
			if fields[i], core, err = l.Flat(f.Type, core); err != nil {
				return nil, nil, err
			}
		}
		return fields, core, nil
	case component.FixedList:
		elements := make([]any, t.Length)
		for i := range elements {
			if elements[i], core, err = l.Flat(t.Element, core); err != nil {
				return nil, nil, err
			}
		}
		return listOf(t, elements), core, nil
	case component.Variant, component.Enum, component.Option, component.Result:
		c, payload, err := caseOf(t, uint64(uint32(core[0])))
		if err == nil && payload != nil {
			c.Value, _, err = l.Flat(payload, core[1:])
		}
		flat, _ := t.Flat()
		return c, core[len(flat):], err
	case component.String, component.List, component.Map:
		v, err = l.list(t, uint32(core[0]), uint32(core[1]))
		return v, core[2:], err
	}
	number := core[0] // a slot that payloads share may be wider
	if flat, _ := t.Flat(); flat[0] == wasm.I32 || flat[0] == wasm.F32 {
		number = uint64(uint32(number))
	}
	v, err = scalar(t, number)
	return v, core[1:], err
}

// caseOf is the case of a number, and the type of its payload.
func caseOf(t *component.ValueType, index uint64) (Case, *component.ValueType, error) {
	if t.Kind == component.Option { // without a slice for the cases
		if index > 1 {
			return Case{}, nil, fmt.Errorf("case %d of an option", index)
		}
		if index == 0 {
			return Case{}, nil, nil
		}
		return Case{Index: 1}, t.Element, nil
	}
	if index >= uint64(len(t.Fields)) {
		return Case{}, nil, fmt.Errorf("case %d of a type that has %d", index, len(t.Fields))
	}
	return Case{Index: uint32(index)}, t.Fields[index].Type, nil
}

// scalar is the value of a type without parts whose bits are the lowest of a number.
func scalar(t *component.ValueType, bits uint64) (any, error) {
	switch t.Kind {
	case component.Bool:
		return bits != 0, nil
	case component.U8, component.U16, component.U32, component.U64:
		return bits << (64 - 8*t.Size()) >> (64 - 8*t.Size()), nil
	case component.S8, component.S16, component.S32, component.S64:
		return int64(bits) << (64 - 8*t.Size()) >> (64 - 8*t.Size()), nil
	case component.F32:
		return canonicalNaN(float64(math.Float32frombits(uint32(bits)))), nil
	case component.F64:
		return canonicalNaN(math.Float64frombits(bits)), nil
	case component.Char:
		if bits > utf8.MaxRune || !utf8.ValidRune(rune(bits)) {
			return nil, fmt.Errorf("%#x is not a char", bits)
		}
		return rune(bits), nil
	case component.Flags:
		return bits & (1<<len(t.Fields) - 1), nil
	}
	return uint32(bits), nil // a handle
}

// canonicalNaN makes all values that are not a number one: their bits could carry anything.
func canonicalNaN(f float64) float64 {
	if math.IsNaN(f) {
		return math.Float64frombits(0x7ff8000000000000)
	}
	return f
}

// list reads a string or a list of a length.
func (l *Lifter) list(t *component.ValueType, at, length uint32) (any, error) {
	if err := l.checkList(t, at, length); err != nil {
		return nil, err
	}
	if t.Kind != component.String {
		return l.elements(t, at, length)
	}
	return string(l.Memory[at:][:length]), nil
}

// checkList checks a string or a list of a length, and counts it.
func (l *Lifter) checkList(t *component.ValueType, at, length uint32) error {
	size, align, counted := uint64(1), uint32(1), uint64(1)
	if t.Kind != component.String {
		size, align = uint64(t.Element.Size()), t.Element.Align()
		if t.Element.Kind != component.U8 {
			counted = max(size, elementBytes)
		}
	}
	if uint64(length)*size > maxBytes {
		return fmt.Errorf("a %s of more than %d bytes", t.Kind, maxBytes)
	}
	if err := l.check(at, uint64(length)*size, align); err != nil {
		return fmt.Errorf("%s: %w", t.Kind, err)
	}
	if uint64(length)*counted > uint64(max(0, l.Budget)) {
		return ErrBudget
	}
	l.Budget -= int(uint64(length) * counted)
	if t.Kind == component.String && !utf8.Valid(l.Memory[at:][:length]) {
		return errors.New("a string that is not UTF-8")
	}
	return nil
}

// elements reads the elements of a list, which are within memory.
func (l *Lifter) elements(t *component.ValueType, at, length uint32) (any, error) {
	if t.Element.Kind == component.U8 {
		return l.Memory[at:][:length:length], nil
	}
	all := make([]any, length)
	for i := range all {
		v, err := l.load(t.Element, at+uint32(i)*t.Element.Size())
		if err != nil {
			return nil, err
		}
		all[i] = v
	}
	return all, nil
}

// listOf is a list of elements that were lifted one by one.
func listOf(t *component.ValueType, elements []any) any {
	if t.Element.Kind != component.U8 {
		return elements
	}
	all := make([]byte, len(elements))
	for i, e := range elements {
		all[i] = byte(e.(uint64))
	}
	return all
}
