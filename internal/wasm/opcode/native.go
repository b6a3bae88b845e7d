package opcode

// NativeValues is the number of values that each instruction makes. Calls and blocks have
// types and are counted by them.
var NativeValues = nativeTable()

func nativeTable() (t [256]uint8) {
	for op := range t {
		switch Immediates[op] {
		case ImmMemarg, ImmGlobal:
			t[op] = 2 // the address, too
		case ImmI32, ImmI64, ImmF32, ImmF64, ImmRefType, ImmTypes:
			t[op] = 1
		case ImmMemory, ImmTableIdx, ImmIndirect, ImmFunction:
			t[op] = 4
		case ImmMisc:
			t[op] = 8
		case ImmVector:
			t[op] = 3
		case ImmAtomic:
			t[op] = 8
		case ImmNone:
			if op >= 0x1b {
				t[op] = 1
			}
			switch op { // they may be replaced
			case I32RemS, I64RemS:
				t[op] = 7
			case I32RemU, I64RemU:
				t[op] = 3
			}
		}
	}
	return t
}
