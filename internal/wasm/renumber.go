package wasm

import (
	"math"
	"slices"

	"runner.example/internal/wasm/opcode"
)

// numbers are the new numbers of what a part's code names, by the old ones.
type numbers struct {
	functions, types, tables, globals, elements, data []uint32

	// empty: the part has a memory that stays without pages.
	empty             bool
	checkAt, checkTwo uint32 // see merger.addChecks
}

// code appends code with the new numbers.
func (n *numbers) code(b, src []byte) []byte {
	copied := 0
	// put writes the number at a position anew, and returns the position behind it.
	put := func(at int, list []uint32) int {
		old, size := uleb32(src[at:])
		if list[old] != old {
			b = appendU32(append(b, src[copied:at]...), list[old])
			copied = at + size
		}
		return at + size
	}
	for pos := 0; pos < len(src); {
		at := pos
		pos = opcode.Skip(src, at)
		switch opcode.Immediates[src[at]] {
		case opcode.ImmBlock:
			if t, _ := sleb(src[at+1:], 33); t >= 0 && n.types[t] != uint32(t) {
				b = appendSigned(append(b, src[copied:at+1]...), int64(n.types[t]))
				copied = pos
			}
		case opcode.ImmFunction:
			put(at+1, n.functions)
		case opcode.ImmIndirect:
			put(put(at+1, n.types), n.tables)
		case opcode.ImmGlobal:
			put(at+1, n.globals)
		case opcode.ImmTableIdx:
			put(at+1, n.tables)
		case opcode.ImmMisc:
			switch src[at+1] {
			case opcode.MiscMemoryInit, opcode.MiscDataDrop:
				put(at+2, n.data)
			case opcode.MiscTableInit:
				put(put(at+2, n.elements), n.tables)
			case opcode.MiscElemDrop:
				put(at+2, n.elements)
			case opcode.MiscTableCopy:
				put(put(at+2, n.tables), n.tables)
			case opcode.MiscTableGrow, opcode.MiscTableSize, opcode.MiscTableFill:
				put(at+2, n.tables)
			}
		}
	}
	return append(b, src[copied:]...)
}

// outside is an offset from which each access is outside of a memory of less than 4 GiB.
const outside = math.MaxUint32

// withoutMemory changes code for a memory that stays without pages: there is another one.
func (n *numbers) withoutMemory(src []byte) []byte {
	var b []byte
	copied := 0
	for pos := 0; pos < len(src); {
		at := pos
		pos = opcode.Skip(src, at)
		offset := 0 // where that of an access is
		var instead []byte
		switch opcode.Immediates[src[at]] {
		case opcode.ImmMemarg:
			offset = opcode.SkipNumber(src, at+1)
		case opcode.ImmAtomic:
			if src[at+1] != opcode.AtomicFence {
				offset = opcode.SkipNumber(src, at+2)
			}
		case opcode.ImmVector:
			switch opcode.Vectors[src[at+1]] {
			case opcode.VecMemarg, opcode.VecMemargLane:
				offset = opcode.SkipNumber(src, opcode.SkipNumber(src, at+1))
			}
		case opcode.ImmMemory:
			instead = []byte{opcode.I32Const, 0} // of memory.size
			if src[at] == opcode.MemoryGrow {    // 0 for no page, else -1
				instead = []byte{opcode.I32Eqz, opcode.I32Const, 1, opcode.I32Sub}
			}
		case opcode.ImmMisc:
			switch src[at+1] {
			case opcode.MiscMemoryInit, opcode.MiscMemoryFill:
				instead = slices.Concat(appendU32([]byte{opcode.Call}, n.checkAt), src[at:pos])
			case opcode.MiscMemoryCopy:
				instead = slices.Concat(appendU32([]byte{opcode.Call}, n.checkTwo), src[at:pos])
			}
		}
		switch {
		case offset > 0:
			b = appendU32(append(b, src[copied:offset]...), outside)
			copied = opcode.SkipNumber(src, offset)
		case instead != nil:
			b = append(append(b, src[copied:at]...), instead...)
			copied = pos
		}
	}
	return append(b, src[copied:]...)
}

// addChecks adds the functions that code calls before bulk operations on empty memories. They take the
// operands and return them: (to, from or value, length). Where a place or the length is not 0 they trap.
// With zeros an operation has the same effect on every memory: it traps for the segment, or does nothing.
func (w *merger) addChecks() {
	check := func(places ...uint32) uint32 {
		var a assembler
		a.get(bulkLength)
		for _, p := range places {
			a.get(p).op(opcode.I32Or)
		}
		a.op(opcode.If, opcode.BlockEmpty)
		a = trapOutside(a)
		a.op(opcode.End).get(bulkTo, bulkFrom, bulkLength)
		three := []ValueType{I32, I32, I32}
		return w.addHelper(FuncType{Params: three, Results: three}, a)
	}
	var at, two uint32
	for _, p := range w.parts {
		if p.memory < 0 || p.memory == w.live {
			continue
		}
		if at == 0 {
			at, two = check(bulkTo), check(bulkTo, bulkFrom)
		}
		p.to.empty, p.to.checkAt, p.to.checkTwo = true, at, two
	}
}

// trapOutside appends an access outside of memory.
func trapOutside(b []byte) []byte {
	b = append(b, opcode.I32Const, 0, opcode.I32Load8U, 0)
	return append(appendU32(b, outside), opcode.Drop)
}
