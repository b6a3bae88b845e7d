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
//
// Lower makes it of a Go value. Begin, Bytes and List make it part by part, without one. Both use the memory of the
// value before.
type Lowered struct {
	blocks  []block // the first one is the value's own bytes
	written int
	own     []byte // the bytes of blocks that are not those of a string or list<u8>
}

// block is a piece of the guest's memory.
type block struct {
	bytes []byte
	align uint32
	// in is the block that has the pointer to this one, at an offset.
	in, offset uint32
	address    uint32 // known when it is written
}

// Lower lowers a value for memory. The error says which part is too large for the canonical ABI. It
// panics if v is not a value of the type, as package documentation says.
func (l *Lowered) Lower(t *component.ValueType, v any) error {
	l.Begin(t)
	return l.store(t, v, 0, 0)
}

// Begin begins a value of a type: block 0 has its own bytes, which are 0.
func (l *Lowered) Begin(t *component.ValueType) {
	l.Reset()
	l.blocks = append(l.blocks, block{bytes: l.zeros(int(t.Size())), align: t.Align()})
}

// Reset lets go of the value. What it keeps for the next one is small.
func (l *Lowered) Reset() {
	clear(l.blocks)
	*l = Lowered{blocks: l.blocks[:0], own: l.own[:0]}
	if cap(l.blocks) > keptBlocks {
		*l = Lowered{}
	}
}

const (
	keptBlocks = 256
	keptBytes  = 4 << 10
)

// zeros are bytes for a block.
func (l *Lowered) zeros(n int) []byte {
	if n > keptBytes {
		return make([]byte, n)
	}
	if len(l.own)+n > cap(l.own) { // blocks keep what they have
		l.own = make([]byte, 0, keptBytes)
	}
	from := len(l.own)
	l.own = l.own[:from+n]
	clear(l.own[from:])
	return l.own[from:len(l.own):len(l.own)]
}

// Bytes puts a string, which is UTF-8, or a list<u8> where a block has its pointer.
func (l *Lowered) Bytes(to, at int, b []byte) error {
	if len(b) > maxBytes {
		return errTooLong
	}
	if l.pointer(to, at, len(b), 1) {
		l.blocks = append(l.blocks, block{bytes: b, align: 1, in: uint32(to), offset: uint32(at)})
	}
	return nil
}

// List puts a list where a block has its pointer, and returns the block with its elements, which are 0. An empty list
// has no block.
func (l *Lowered) List(to, at, length int, element *component.ValueType) (int, error) {
	if uint64(length)*uint64(element.Size()) > maxBytes {
		return 0, errTooLong
	}
	if l.pointer(to, at, length, element.Align()) {
		bytes := l.zeros(length * int(element.Size()))
		l.blocks = append(l.blocks, block{bytes: bytes, align: element.Align(), in: uint32(to), offset: uint32(at)})
	}
	return len(l.blocks) - 1, nil
}

var errTooLong = fmt.Errorf("a string or list of more than %d bytes", maxBytes)

// pointer writes the length of a list beside its pointer, and reports whether the list needs a block. The pointer of an
// empty one is its alignment.
func (l *Lowered) pointer(to, at, length int, align uint32) bool {
	own := l.blocks[to].bytes[at:]
	binary.LittleEndian.PutUint32(own[4:], uint32(length))
	if length == 0 {
		binary.LittleEndian.PutUint32(own, align)
	}
	return length > 0
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
		binary.LittleEndian.PutUint32(memory[holder.address+b.offset:], address)
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

// storeList writes pointer and length of a list, and adds a block for its elements.
func (l *Lowered) storeList(t *component.ValueType, v any, to, at int) error {
	switch list := v.(type) {
	case string:
		if !utf8.ValidString(list) {
			return errors.New("a string that is not UTF-8")
		}
		return l.Bytes(to, at, []byte(list))
	case []byte:
		return l.Bytes(to, at, list)
	case []any:
		b, err := l.List(to, at, len(list), t.Element)
		if err != nil || len(list) == 0 {
			return err
		}
		return l.storeElements(t, list, b, 0)
	case Part:
		return list(l, t, to, at)
	}
	panic(fmt.Sprintf("BUG: a %T for a %s", v, t.Kind))
}

// Part is a string or list of a type that puts itself, with Bytes or List, where a block has its pointer.
type Part func(l *Lowered, t *component.ValueType, to, at int) error
