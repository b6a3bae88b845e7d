package wasm

// Instructions that are looked at, by their bytes in the binary format.
const (
	opUnreachable  = 0x00
	opNop          = 0x01
	opBlock        = 0x02
	opLoop         = 0x03
	opIf           = 0x04
	opElse         = 0x05
	opEnd          = 0x0b
	opBr           = 0x0c
	opBrIf         = 0x0d
	opBrTable      = 0x0e
	opReturn       = 0x0f
	opCall         = 0x10
	opCallIndirect = 0x11
	opSelectTyped  = 0x1c
	opLocalGet     = 0x20
	opLocalSet     = 0x21
	opLocalTee     = 0x22
	opGlobalGet    = 0x23
	opGlobalSet    = 0x24
	opTableGet     = 0x25
	opTableSet     = 0x26
	opMemorySize   = 0x3f
	opMemoryGrow   = 0x40
	opI32Const     = 0x41
	opI64Const     = 0x42
	opF32Const     = 0x43
	opF64Const     = 0x44
	opI32GeS       = 0x4e
	opI32LtS       = 0x48
	opI32GtS       = 0x4a
	opI32GtU       = 0x4b
	opI32LeU       = 0x4d
	opI64LeU       = 0x58
	opI32Add       = 0x6a
	opI32Sub       = 0x6b
	opI32And       = 0x71
	opI32Or        = 0x72
	opI32ShrU      = 0x76
	opI64Add       = 0x7c
	opI64Shl       = 0x86
	opI64ExtendU   = 0xad // of an i32
	opRefNull      = 0xd0
	opRefFunc      = 0xd2
	opMisc         = 0xfc
	opVector       = 0xfd

	blockEmpty = 0x40

	miscMemoryInit = 8
	miscDataDrop   = 9
	miscMemoryCopy = 10
	miscMemoryFill = 11
	miscTableInit  = 12
	miscElemDrop   = 13
	miscTableCopy  = 14
	miscTableGrow  = 15
	miscTableSize  = 16
	miscTableFill  = 17

	vecConst   = 12
	vecShuffle = 13
)

// immediate is what follows an instruction's byte.
type immediate byte

const (
	immUnknown immediate = iota // no instruction of Core 2.0
	immNone
	immBlock    // block type
	immLabel    // u32
	immTable    // br_table: u32 count, labels, a default label
	immFunction // u32
	immIndirect // u32 type, u32 table
	immTypes    // u32 count, types
	immLocal    // u32
	immGlobal   // u32
	immTableIdx // u32
	immMemarg   // u32 alignment, u32 offset
	immMemory   // a zero byte
	immI32
	immI64
	immF32
	immF64
	immRefType // a byte
	immMisc    // u32 and more
	immVector  // u32 and more
)

// immediates are those of each instruction.
var immediates = immediateTable()

func immediateTable() (t [256]immediate) {
	set := func(i immediate, from, to int) {
		for op := from; op <= to; op++ {
			t[op] = i
		}
	}
	set(immNone, opUnreachable, opNop)
	set(immBlock, opBlock, opIf)
	set(immNone, opElse, opElse)
	set(immNone, opEnd, opEnd)
	set(immLabel, opBr, opBrIf)
	set(immTable, opBrTable, opBrTable)
	set(immNone, opReturn, opReturn)
	set(immFunction, opCall, opCall)
	set(immIndirect, opCallIndirect, opCallIndirect)
	set(immNone, 0x1a, 0x1b) // drop, select
	set(immTypes, opSelectTyped, opSelectTyped)
	set(immLocal, opLocalGet, opLocalTee)
	set(immGlobal, opGlobalGet, opGlobalSet)
	set(immTableIdx, opTableGet, opTableSet)
	set(immMemarg, 0x28, 0x3e)
	set(immMemory, opMemorySize, opMemoryGrow)
	set(immI32, opI32Const, opI32Const)
	set(immI64, opI64Const, opI64Const)
	set(immF32, opF32Const, opF32Const)
	set(immF64, opF64Const, opF64Const)
	set(immNone, 0x45, 0xc4) // arithmetic, conversions, sign extension
	set(immRefType, opRefNull, opRefNull)
	set(immNone, 0xd1, 0xd1) // ref.is_null
	set(immFunction, opRefFunc, opRefFunc)
	set(immMisc, opMisc, opMisc)
	set(immVector, opVector, opVector)
	return t
}

// vectors are the immediates of each vector instruction: lane instructions have
// one byte, and those that load or store a lane a memarg before it.
type vectorImmediate byte

const (
	vecUnknown vectorImmediate = iota
	vecNone
	vecMemarg
	vecMemargLane
	vecLane
	vec16 // sixteen bytes
)

var vectors = vectorTable()

func vectorTable() (t [256]vectorImmediate) {
	set := func(i vectorImmediate, from, to int) {
		for op := from; op <= to; op++ {
			t[op] = i
		}
	}
	set(vecNone, 0, 255)
	set(vecMemarg, 0, 11)
	set(vec16, vecConst, vecShuffle)
	set(vecLane, 21, 34)
	set(vecMemargLane, 84, 91)
	set(vecMemarg, 92, 93)
	for _, gap := range []int{
		0x9a, 0xa2, 0xa5, 0xa6, 0xaf, 0xb0, 0xb2, 0xb3, 0xb4, 0xbb, 0xc2, 0xc5, 0xc6, 0xcf,
		0xd0, 0xd2, 0xd3, 0xd4, 0xe2, 0xee,
	} {
		t[gap] = vecUnknown
	}
	return t
}
