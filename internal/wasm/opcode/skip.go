package opcode

// SkipNumber is the position after a LEB128 number.
func SkipNumber(b []byte, pos int) int {
	for b[pos] >= 0x80 {
		pos++
	}
	return pos + 1
}

// SkipMisc is the position after a 0xfc instruction, whose first byte was before pos.
func SkipMisc(b []byte, pos int) int {
	sub := b[pos]
	pos++
	switch sub {
	case MiscMemoryInit, MiscMemoryCopy, MiscTableInit, MiscTableCopy:
		return SkipNumber(b, SkipNumber(b, pos))
	case MiscDataDrop, MiscMemoryFill, MiscElemDrop, MiscTableGrow, MiscTableSize, MiscTableFill:
		return SkipNumber(b, pos)
	}
	return pos
}

// SkipVector is the position after a 0xfd instruction, whose first byte was before pos.
func SkipVector(b []byte, pos int) int {
	sub := b[pos]
	pos = SkipNumber(b, pos)
	switch Vectors[sub] {
	case VecMemarg:
		pos = SkipNumber(b, SkipNumber(b, pos))
	case VecMemargLane:
		pos = SkipNumber(b, SkipNumber(b, pos)) + 1
	case VecLane:
		pos++
	case Vec16:
		pos += 16
	}
	return pos
}

// SkipAtomic is the position after a 0xfe instruction, whose first byte was before pos.
func SkipAtomic(b []byte, pos int) int {
	if b[pos] == AtomicFence {
		return pos + 2
	}
	return SkipNumber(b, SkipNumber(b, pos+1))
}

// Skip is the position after the instruction at pos.
func Skip(b []byte, pos int) int {
	op := b[pos]
	pos++
	switch Immediates[op] {
	case ImmBlock, ImmLabel, ImmFunction, ImmLocal, ImmGlobal, ImmTableIdx, ImmI32, ImmI64:
		return SkipNumber(b, pos)
	case ImmMemarg, ImmIndirect:
		return SkipNumber(b, SkipNumber(b, pos))
	case ImmTable:
		n := pos
		pos = SkipNumber(b, pos)
		for count := number(b[n:pos]) + 1; count > 0; count-- {
			pos = SkipNumber(b, pos)
		}
		return pos
	case ImmMemory, ImmRefType:
		return pos + 1
	case ImmTypes:
		return pos + 2
	case ImmF32:
		return pos + 4
	case ImmF64:
		return pos + 8
	case ImmMisc:
		return SkipMisc(b, pos)
	case ImmVector:
		return SkipVector(b, pos)
	case ImmAtomic:
		return SkipAtomic(b, pos)
	}
	return pos
}

// number is an unsigned LEB128 number of 32 bits.
func number(b []byte) (n uint64) {
	for i, c := range b {
		n |= uint64(c&0x7f) << (7 * i)
	}
	return n
}
