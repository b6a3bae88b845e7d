package opcode

// Weights of instructions; see package wasm.
const (
	WeightPlain     = 1
	WeightMemory    = 128 // a load that misses
	WeightStore     = 32  // the processor does not wait for stores
	WeightBranch    = 8   // mispredicted
	WeightCall      = 256 // and a function that is not charged
	WeightIndirect  = 384
	WeightHost      = 256 // in the code of the host
	WeightReference = 128 // to a function, with its lookup by the host
	WeightBulk      = 128
	WeightAtomic    = 160 // a miss that nothing overlaps
	WeightVector    = 8
	WeightRoot      = 16
)

// Weights are those of the instructions of one byte. MiscWeight, VectorWeight and AtomicWeight
// have those of longer instructions.
var Weights = weightTable()

func weightTable() (t [256]uint16) {
	set := func(weight uint16, from, to int) {
		for op := from; op <= to; op++ {
			t[op] = weight
		}
	}
	set(WeightPlain, Unreachable, 0xd2)
	for _, op := range []int{Nop, Block, Loop, Else, End, Misc, Vector, Atomic} {
		t[op] = 0
	}
	set(WeightBranch, If, If)
	set(WeightBranch, Br, Return)
	set(WeightCall, Call, Call)
	set(WeightIndirect, CallIndirect, CallIndirect)
	set(WeightCall, ReturnCall, ReturnCall)
	set(WeightIndirect, ReturnCallIndirect, ReturnCallIndirect)
	set(WeightMemory, TableGet, TableGet)
	set(2*WeightMemory, TableSet, TableSet)
	set(2, GlobalGet, GlobalSet)
	set(WeightMemory, 0x28, 0x35)
	set(WeightStore, 0x36, 0x3e)
	set(4, MemorySize, MemorySize)
	set(WeightHost, MemoryGrow, MemoryGrow)
	set(16, 0x6d, 0x70)                                // i32.div, rem
	set(48, 0x7f, 0x82)                                // i64.div, rem
	for _, op := range []int{0x91, 0x95, 0x9f, 0xa3} { // f32 and f64: sqrt, div
		t[op] = WeightRoot
	}
	for _, first := range []int{0x8b, 0x99} { // other floats: rounding, min, max
		for op := first; op < first+14; op++ {
			t[op] = max(t[op], 4)
		}
	}
	set(8, 0xa8, 0xab) // conversions
	set(8, 0xae, 0xba)
	set(WeightReference, RefFunc, RefFunc)
	return t
}

// PlainWeight is the weight of an instruction without what it calls.
func PlainWeight(op byte) uint32 {
	if op == Call || op == ReturnCall {
		return WeightBranch
	}
	return uint32(Weights[op])
}

// MiscWeight is the weight of a 0xfc instruction. A length that is large or not constant is
// charged when the instruction runs.
func MiscWeight(sub byte) uint32 {
	switch {
	case sub < MiscMemoryInit:
		return WeightVector
	case sub == MiscTableGrow:
		return WeightHost
	}
	return WeightBulk
}

// AtomicWeight is the weight of a 0xfe instruction.
func AtomicWeight(sub byte) uint32 {
	if sub == AtomicNotify {
		return WeightHost + WeightAtomic
	}
	return WeightAtomic
}

// VectorWeight is the weight of a 0xfd instruction.
func VectorWeight(sub byte) uint32 {
	switch sub {
	case 0xe3, 0xe7, 0xef, 0xf3: // sqrt, div
		return 2 * WeightRoot
	}
	switch Vectors[sub] {
	case VecMemarg, VecMemargLane:
		return WeightMemory
	}
	return WeightVector
}
