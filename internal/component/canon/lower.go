package canon

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"unicode/utf8"

	"runner.example/internal/component"
)

// Lowered is a value that is written to a guest's memory: first its own bytes where the guest wants
// them, then a block for each string and list in it. The guest allocates the blocks, outer ones first.
// The value must not change before the last one is written.
type Lowered struct {
	blocks  []block // the first one is the value's own bytes
	written int
}

// block is a piece of the guest's memory.
type block struct {
	bytes []byte
	align uint32
	// in is the block that has the pointer to this one, at an offset.
	in, offset int
	address    uint32 // known when it is written
}

// Lower lowers a value for memory. The error says which part is too large for the canonical ABI. It
// panics if v is not a value of the type, as package documentation says.
func Lower(t *component.ValueType, v any) (*Lowered, error) {
	l := &Lowered{blocks: []block{{bytes: make([]byte, t.Size()), align: t.Align()}}}
	return l, l.store(t, v, 0, 0)
}

// Next is the size and alignment of the block that is written after the next n ones. ok is false if there is none.
func (l *Lowered) Next(n int) (size, align uint32, ok bool) {
	if l.written+n >= len(l.blocks) {
		return 0, 0, false
	}
	b := &l.blocks[l.written+n]
	return uint32(len(b.bytes)), b.align, true
}

// Write writes the next block to memory at an address, and the address where its pointer is. It is an
// error if that does not fit. The memory must be that of the blocks before, which may have grown.
func (l *Lowered) Write(memory []byte, address uint32) error {
	b := &l.blocks[l.written]
	holder := &l.blocks[b.in]
	if err := (&Lifter{Memory: memory}).check(address, uint64(len(b.bytes)), b.align); err != nil {
		return err
	}
	if l.written > 0 {
		binary.LittleEndian.PutUint32(memory[holder.address+uint32(b.offset):], address)
	}
	copy(memory[address:], b.bytes)
	b.address = address
	l.written++
	return nil
}

// Size is the size of all blocks.
func (l *Lowered) Size() (n int) {
	for i := range l.blocks {
		n += len(l.blocks[i].bytes)
	}
	return n
}

// LowerFlat lowers a value whose type is passed as one core value.
func LowerFlat(t *component.ValueType, v any) uint64 {
	switch t.Kind {
	case component.Record, component.Tuple: // of one field
		return LowerFlat(t.Fields[0].Type, v.([]any)[0])
	case component.Variant, component.Enum, component.Result: // without payloads
		return uint64(v.(Case).Index)
	case component.FixedList: // of length 1
		if b, ok := v.([]byte); ok {
			return uint64(b[0])
		}
		return LowerFlat(t.Element, v.([]any)[0])
	case component.S8, component.S16, component.S32:
		return uint64(uint32(v.(int64)))
	}
	return bitsOf(t, v)
}

// bitsOf are the bits of a value without parts.
func bitsOf(t *component.ValueType, v any) uint64 {
	switch t.Kind {
	case component.Bool:
		if v.(bool) {
			return 1
		}
		return 0
	case component.S8, component.S16, component.S32, component.S64:
		return uint64(v.(int64))
	case component.F32:
		if f := v.(float64); !math.IsNaN(f) {
			return uint64(math.Float32bits(float32(f)))
		}
		return 0x7fc00000
	case component.F64:
		return math.Float64bits(canonicalNaN(v.(float64)))
	case component.Char:
		return uint64(v.(rune))
	case component.U8, component.U16, component.U32, component.U64, component.Flags:
		return v.(uint64)
	}
	return uint64(v.(uint32)) // a handle
}

// store writes a value to a block, and adds blocks for the strings and lists in it.
func (l *Lowered) store(t *component.ValueType, v any, to, at int) error {
	switch t.Kind {
	case component.Record, component.Tuple:
		fields := v.([]any)
		for i, f := range t.Fields {
			if err := l.store(f.Type, fields[i], to, at+int(t.Offset(i))); err != nil {
				return err
			}
		}
	case component.Variant, component.Enum, component.Option, component.Result:
		c := v.(Case)
		l.put(to, at, t.DiscriminantSize(), uint64(c.Index))
		if payload := t.Cases()[c.Index].Type; payload != nil {
			return l.store(payload, c.Value, to, at+int(t.PayloadOffset()))
		}
	case component.FixedList:
		return l.storeElements(t, v, to, at)
	case component.String, component.List, component.Map:
		return l.storeList(t, v, to, at)
	default:
		l.put(to, at, t.Size(), bitsOf(t, v))
	}
	return nil
}

// put writes a number of 1, 2, 4 or 8 bytes to a block.
func (l *Lowered) put(to, at int, size uint32, n uint64) {
	var bytes [8]byte
	binary.LittleEndian.PutUint64(bytes[:], n)
	copy(l.blocks[to].bytes[at:], bytes[:size])
}

// storeElements writes the elements of a list one after the other.
func (l *Lowered) storeElements(t *component.ValueType, v any, to, at int) error {
	if b, ok := v.([]byte); ok {
		copy(l.blocks[to].bytes[at:], b)
		return nil
	}
	for i, e := range v.([]any) {
		if err := l.store(t.Element, e, to, at+i*int(t.Element.Size())); err != nil {
			return err
		}
	}
	return nil
}

// storeList writes pointer and length of a list, and adds a block for its elements. The pointer of an
// empty one is its alignment.
func (l *Lowered) storeList(t *component.ValueType, v any, to, at int) error {
	b := block{align: 1, in: to, offset: at}
	length := 0
	switch list := v.(type) {
	case string:
		if !utf8.ValidString(list) {
			return errors.New("a string that is not UTF-8")
		}
		b.bytes, length = []byte(list), len(list)
	case []byte:
		b.bytes, length = list, len(list)
	case []any:
		length, b.align = len(list), t.Element.Align()
		if uint64(length)*uint64(t.Element.Size()) <= maxBytes {
			b.bytes = make([]byte, length*int(t.Element.Size()))
		}
	default:
		panic(fmt.Sprintf("BUG: a %T for a %s", v, t.Kind))
	}
	if length > maxBytes || length > 0 && len(b.bytes) == 0 {
		return fmt.Errorf("a %s of more than %d bytes", t.Kind, maxBytes)
	}
	l.put(to, at+4, 4, uint64(length))
	if length == 0 {
		l.put(to, at, 4, uint64(b.align))
		return nil
	}
	l.blocks = append(l.blocks, b)
	if elements, ok := v.([]any); ok {
		return l.storeElements(t, elements, len(l.blocks)-1, 0)
	}
	return nil
}
