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
