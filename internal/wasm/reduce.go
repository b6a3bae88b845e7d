package wasm

import (
	"encoding/binary"
	"slices"

	"runner.example/internal/wasm/opcode"
)

// Reduction describes how the code of some functions becomes shorter by what is known about
// the module's memory and about the functions that it calls.
type Reduction struct {
	// Functions are the functions whose code is reduced, by their indexes in the module.
	Functions []uint32
	// Clear are bits that no instance ever sets. Code that loads their byte, tests them, and only
	// runs if one is set, is removed.
	Clear []Bits
	// Constant are addresses of i32 words that no instance ever changes. A br_table whose index is
	// the word for a byte, less a constant, becomes a br_table of that byte. Each has 256 words.
	Constant []uint32
	// Inline names added functions whose code takes the place of calls.
	Inline []string
}

// Bits are bits of the byte that a load with an offset reads.
type Bits struct {
	Offset uint32
	Mask   byte
}

// reducer reduces the code of one function.
type reducer struct {
	*Reduction
	memory   []byte
	inlined  map[uint32]inlined // by the functions' new numbers
	out      []byte
	starts   []int // of the instructions in out since the last branch target
	locals   []ValueType
	next     uint32            // the first local that is added
	assigned map[uint32]uint32 // inlined functions' first locals
}

// inlined is a function whose code takes the place of calls.
type inlined struct {
	kind FuncType
	body []byte // locals, code, closing end
}

// reduce returns a function's reduced body, if there is something to reduce in it. Body has locals,
// code and the closing end, and is valid.
func (l *linker) reduce(body []byte, index uint32, params int) []byte {
	if !slices.Contains(l.Reduce.Functions, index) {
		return body
	}
	groups, pos := uleb32(body)
	first := pos
	r := &reducer{Reduction: &l.Reduce, memory: l.Memory, inlined: l.inlined, next: uint32(params), assigned: map[uint32]uint32{}}
	for range groups {
		n, size := uleb32(body[pos:])
		pos += size + 1
		r.next += n
	}
	declared := body[first:pos]
	r.code(body[pos:])
	b := appendU32(nil, groups+uint32(len(r.locals)))
	b = append(b, declared...)
	for _, t := range r.locals {
		b = append(b, 1, byte(t))
	}
	return append(b, r.out...)
}

// code reduces instructions to the end of src.
func (r *reducer) code(src []byte) {
	for pos := 0; pos < len(src); {
		at := pos
		pos = opcode.Skip(src, at)
		switch op := src[at]; op {
		case opcode.If:
			if end := plainIf(src, at); end > 0 && r.removeTest() {
				pos = end
				continue
			}
			r.starts = r.starts[:0]
		case opcode.BrTable:
			if table := r.direct(src[at+1 : pos]); table != nil {
				r.out = append(r.out, table...)
				continue
			}
			r.starts = r.starts[:0]
		case opcode.Call:
			callee, _ := uleb32(src[at+1:])
			if f, ok := r.inlined[callee]; ok {
				r.inline(callee, f)
				r.starts = r.starts[:0]
				continue
			}
		case opcode.Block, opcode.Loop, opcode.Else, opcode.End:
			r.starts = r.starts[:0]
		}
		r.starts = append(r.starts, len(r.out))
		r.out = append(r.out, src[at:pos]...)
	}
}

// plainIf returns the end of an if without else, results and blocks within it, or 0.
func plainIf(src []byte, at int) int {
	if src[at+1] != opcode.BlockEmpty {
		return 0
	}
	for pos := at + 2; ; {
		switch src[pos] {
		case opcode.End:
			return pos + 1
		case opcode.Else, opcode.Block, opcode.Loop, opcode.If:
			return 0
		}
		pos = opcode.Skip(src, pos)
	}
}

// last is the instruction n places before the end of what is written, or nothing.
func (r *reducer) last(n int) []byte {
	i := len(r.starts) - n
	switch {
	case i < 0:
		return []byte{opcode.Unreachable}
	case n == 1:
		return r.out[r.starts[i]:]
	}
	return r.out[r.starts[i]:r.starts[i+1]]
}

// drop removes the last instructions.
func (r *reducer) drop(n int) {
	i := len(r.starts) - n
	r.out = r.out[:r.starts[i]]
	r.starts = r.starts[:i]
}

// is reports whether an instruction is op with a number, and returns it.
func number(instruction []byte, op byte) (n int64, ok bool) {
	if instruction[0] != op {
		return 0, false
	}
	n, _ = sleb(instruction[1:], 32)
	return n, true
}

// offset returns the offset of a load or a store.
func offset(instruction []byte) uint32 {
	n, _ := uleb32(instruction[opcode.SkipNumber(instruction, 1):])
	return n
}

// removeTest removes the test of a clear bit at the end of what is written:
//
//	address · i32.load8_u · i32.const mask · i32.and
func (r *reducer) removeTest() bool {
	mask, ok := number(r.last(2), opcode.I32Const)
	load := r.last(3)
	if !ok || r.last(1)[0] != opcode.I32And || load[0] != opcode.I32Load8U ||
		!slices.ContainsFunc(r.Clear, func(b Bits) bool { return b.Offset == offset(load) && int64(b.Mask) == mask }) {
		return false
	}
	r.drop(3)
	// Addresses that have no effect are removed too: local · (i32.const · i32.add ·) i32.load
	n := 1
	if r.last(1)[0] == opcode.I32Load {
		n = 2
		if r.last(2)[0] == opcode.I32Add && r.last(3)[0] == opcode.I32Const {
			n = 4
		}
	}
	if r.last(n)[0] == opcode.LocalGet {
		r.drop(n)
	} else {
		r.starts = append(r.starts, len(r.out))
		r.out = append(r.out, opcode.Drop)
	}
	return true
}

// direct returns a br_table without the constant words that select its targets, or nil. They are
// read by
//
//	byte · i32.load8_u · local.tee · i32.const 2 · i32.shl · i32.load · i32.const least · i32.sub
//
// of which it removes what follows the byte and the local.
func (r *reducer) direct(targets []byte) []byte {
	shift, shifted := number(r.last(5), opcode.I32Const)
	least, less := number(r.last(2), opcode.I32Const)
	if !shifted || shift != 2 || !less || r.last(1)[0] != opcode.I32Sub || r.last(3)[0] != opcode.I32Load ||
		r.last(4)[0] != opcode.I32Shl || r.last(6)[0] != opcode.LocalTee || r.last(7)[0] != opcode.I32Load8U ||
		!slices.Contains(r.Constant, offset(r.last(3))) {
		return nil
	}
	words := r.memory[offset(r.last(3)):][:256*4]
	n, pos := uleb32(targets)
	labels := make([]uint32, n+1)
	for i := range labels {
		label, size := uleb32(targets[pos:])
		labels[i] = label
		pos += size
	}
	table := appendU32([]byte{opcode.BrTable}, 256)
	for i := range 256 {
		table = appendU32(table, labels[min(binary.LittleEndian.Uint32(words[4*i:])-uint32(least), n)])
	}
	r.drop(5)
	return appendU32(table, labels[n])
}

// inline writes a function's code in place of a call: its arguments go to locals of its own.
func (r *reducer) inline(number uint32, f inlined) {
	groups, pos := uleb32(f.body)
	kinds := slices.Clone(f.kind.Params)
	for range groups {
		n, size := uleb32(f.body[pos:])
		kinds = append(kinds, slices.Repeat([]ValueType{ValueType(f.body[pos+size])}, int(n))...)
		pos += size + 1
	}
	base, again := r.assigned[number]
	if !again {
		base = r.next
		r.assigned[number] = base
		r.locals = append(r.locals, kinds...)
		r.next += uint32(len(kinds))
	}
	for i := len(f.kind.Params); i > 0; i-- {
		r.out = appendU32(append(r.out, opcode.LocalSet), base+uint32(i-1))
	}
	for i := len(f.kind.Params); i < len(kinds); i++ {
		r.out = appendU32(append(append(r.out, zeroOf(kinds[i])...), opcode.LocalSet), base+uint32(i))
	}
	r.out = append(r.out, opcode.Block)
	if len(f.kind.Results) == 0 {
		r.out = append(r.out, opcode.BlockEmpty)
	} else {
		r.out = append(r.out, byte(f.kind.Results[0]))
	}
	depth := uint32(0)
	for code := f.body[pos:]; len(code) > 0; {
		size := opcode.Skip(code, 0)
		switch op := code[0]; op {
		case opcode.Block, opcode.Loop, opcode.If:
			depth++
		case opcode.End:
			depth--
		}
		switch op := code[0]; op {
		case opcode.LocalGet, opcode.LocalSet, opcode.LocalTee:
			local, _ := uleb32(code[1:])
			r.out = appendU32(append(r.out, op), base+local)
		case opcode.Return:
			r.out = appendU32(append(r.out, opcode.Br), depth)
		case opcode.ReturnCall, opcode.ReturnCallIndirect:
			r.out = append(append(r.out, op-opcode.ReturnCall+opcode.Call), code[1:size]...)
			r.out = appendU32(append(r.out, opcode.Br), depth)
		default:
			r.out = append(r.out, code[:size]...)
		}
		code = code[size:]
	}
}

// zeroOf pushes 0.
func zeroOf(t ValueType) []byte {
	switch t {
	case I32:
		return []byte{opcode.I32Const, 0}
	case I64:
		return []byte{opcode.I64Const, 0}
	case F32:
		return append([]byte{opcode.F32Const}, make([]byte, 4)...)
	}
	return append([]byte{opcode.F64Const}, make([]byte, 8)...)
}
