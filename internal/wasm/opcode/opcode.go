package opcode

// Instructions that package wasm handles, by their bytes in the binary format.
const (
	Unreachable        = 0x00
	Nop                = 0x01
	Block              = 0x02
	Loop               = 0x03
	If                 = 0x04
	Else               = 0x05
	End                = 0x0b
	Br                 = 0x0c
	BrIf               = 0x0d
	BrTable            = 0x0e
	Return             = 0x0f
	Call               = 0x10
	CallIndirect       = 0x11
	ReturnCall         = 0x12
	ReturnCallIndirect = 0x13
	Drop               = 0x1a
	Select             = 0x1b
	SelectTyped        = 0x1c
	LocalGet           = 0x20
	LocalSet           = 0x21
	LocalTee           = 0x22
	GlobalGet          = 0x23
	GlobalSet          = 0x24
	TableGet           = 0x25
	TableSet           = 0x26
	I32Load            = 0x28
	I64Load            = 0x29
	F32Load            = 0x2a
	F64Load            = 0x2b
	I32Load8S          = 0x2c
	I32Load8U          = 0x2d
	I32Load16S         = 0x2e
	I32Load16U         = 0x2f
	I32Store           = 0x36
	F32Store           = 0x38
	F64Store           = 0x39
	I32Store8          = 0x3a
	I32Store16         = 0x3b
	MemorySize         = 0x3f
	MemoryGrow         = 0x40
	I32Const           = 0x41
	I64Const           = 0x42
	F32Const           = 0x43
	F64Const           = 0x44
	I64Store           = 0x37
	I32Eqz             = 0x45
	I32Eq              = 0x46
	I32Ne              = 0x47
	I32GeS             = 0x4e
	I32LtS             = 0x48
	I32GtS             = 0x4a
	I32GtU             = 0x4b
	I32LtU             = 0x49
	I32GeU             = 0x4f
	I32LeU             = 0x4d
	I64Eq              = 0x51
	I64Ne              = 0x52
	I64LeU             = 0x58
	I64GtU             = 0x56
	F32Eq              = 0x5b
	F64Eq              = 0x61
	I32Add             = 0x6a
	I32Sub             = 0x6b
	I32Mul             = 0x6c
	I32RemS            = 0x6f
	I32RemU            = 0x70
	I32And             = 0x71
	I32Or              = 0x72
	I32Shl             = 0x74
	I32ShrU            = 0x76
	I64Add             = 0x7c
	I64Sub             = 0x7d
	I64Mul             = 0x7e
	I64RemS            = 0x81
	I64RemU            = 0x82
	I64Shl             = 0x86
	I64ShrU            = 0x88
	I32WrapI64         = 0xa7
	I64ExtendU         = 0xad // of an i32
	I32FromF32         = 0xbc // by its bits, as the next ones
	I64FromF64         = 0xbd
	F32FromI32         = 0xbe
	F64FromI64         = 0xbf
	I32Extend8S        = 0xc0
	I32Extend16S       = 0xc1
	RefNull            = 0xd0
	RefFunc            = 0xd2
	Misc               = 0xfc
	Vector             = 0xfd
	Atomic             = 0xfe

	BlockEmpty = 0x40

	MiscMemoryInit = 8
	MiscDataDrop   = 9
	MiscMemoryCopy = 10
	MiscMemoryFill = 11
	MiscTableInit  = 12
	MiscElemDrop   = 13
	MiscTableCopy  = 14
	MiscTableGrow  = 15
	MiscTableSize  = 16
	MiscTableFill  = 17

	AtomicNotify = 0
	AtomicFence  = 3

	VecConst   = 12
	VecShuffle = 13
)

// Immediate is what follows an instruction's byte.
type Immediate byte

const (
	ImmUnknown Immediate = iota // not an instruction that modules can use
	ImmNone
	ImmBlock    // block type
	ImmLabel    // u32
	ImmTable    // br_table: u32 count, labels, a default label
	ImmFunction // u32
	ImmIndirect // u32 type, u32 table
	ImmTypes    // u32 count, types
	ImmLocal    // u32
	ImmGlobal   // u32
	ImmTableIdx // u32
	ImmMemarg   // u32 alignment, u32 offset
	ImmMemory   // a zero byte
	ImmI32
	ImmI64
	ImmF32
	ImmF64
	ImmRefType // a byte
	ImmMisc    // u32 and more
	ImmVector  // u32 and more
	ImmAtomic  // u32 and more
)

// Immediates are those of each instruction.
var Immediates = immediateTable()

func immediateTable() (t [256]Immediate) {
	set := func(i Immediate, from, to int) {
		for op := from; op <= to; op++ {
			t[op] = i
		}
	}
	set(ImmNone, Unreachable, Nop)
	set(ImmBlock, Block, If)
	set(ImmNone, Else, Else)
	set(ImmNone, End, End)
	set(ImmLabel, Br, BrIf)
	set(ImmTable, BrTable, BrTable)
	set(ImmNone, Return, Return)
	set(ImmFunction, Call, Call)
	set(ImmIndirect, CallIndirect, CallIndirect)
	set(ImmFunction, ReturnCall, ReturnCall)
	set(ImmIndirect, ReturnCallIndirect, ReturnCallIndirect)
	set(ImmNone, 0x1a, 0x1b) // drop, select
	set(ImmTypes, SelectTyped, SelectTyped)
	set(ImmLocal, LocalGet, LocalTee)
	set(ImmGlobal, GlobalGet, GlobalSet)
	set(ImmTableIdx, TableGet, TableSet)
	set(ImmMemarg, 0x28, 0x3e)
	set(ImmMemory, MemorySize, MemoryGrow)
	set(ImmI32, I32Const, I32Const)
	set(ImmI64, I64Const, I64Const)
	set(ImmF32, F32Const, F32Const)
	set(ImmF64, F64Const, F64Const)
	set(ImmNone, 0x45, 0xc4) // arithmetic, conversions, sign extension
	set(ImmRefType, RefNull, RefNull)
	set(ImmNone, 0xd1, 0xd1) // ref.is_null
	set(ImmFunction, RefFunc, RefFunc)
	set(ImmMisc, Misc, Misc)
	set(ImmVector, Vector, Vector)
	set(ImmAtomic, Atomic, Atomic)
	return t
}

// Vectors are the immediates of each vector instruction. Lane instructions have
// one byte; those that load or store a lane a memarg before it.
type VectorImmediate byte

const (
	VecUnknown VectorImmediate = iota
	VecNone
	VecMemarg
	VecMemargLane
	VecLane
	Vec16 // sixteen bytes
)

var Vectors = vectorTable()

func vectorTable() (t [256]VectorImmediate) {
	set := func(i VectorImmediate, from, to int) {
		for op := from; op <= to; op++ {
			t[op] = i
		}
	}
	set(VecNone, 0, 255)
	set(VecMemarg, 0, 11)
	set(Vec16, VecConst, VecShuffle)
	set(VecLane, 21, 34)
	set(VecMemargLane, 84, 91)
	set(VecMemarg, 92, 93)
	for _, gap := range []int{
		0x9a, 0xa2, 0xa5, 0xa6, 0xaf, 0xb0, 0xb2, 0xb3, 0xb4, 0xbb, 0xc2, 0xc5, 0xc6, 0xcf,
		0xd0, 0xd2, 0xd3, 0xd4, 0xe2, 0xee,
	} {
		t[gap] = VecUnknown
	}
	return t
}

// AtomicAlignment is the alignment of an atomic access, as a power of two. It must be that of its size. ok is false
// for the fence, which has none, and for bytes that are not an instruction.
func AtomicAlignment(sub byte) (alignment uint32, ok bool) {
	switch {
	case sub == AtomicNotify, sub == AtomicNotify+1: // and wait32
		return 2, true
	case sub == AtomicNotify+2: // wait64
		return 3, true
	case sub >= 0x10 && sub <= 0x4e: // load, store, add, sub, and, or, xor, xchg, cmpxchg
		return [...]uint32{2, 3, 0, 1, 0, 1, 2}[(sub-0x10)%7], true
	}
	return 0, false
}

// IsTailCall reports whether an instruction is a call that ends its function.
func IsTailCall(op byte) bool { return op == ReturnCall || op == ReturnCallIndirect }

// IsRemainder reports whether an instruction is a remainder of integers.
func IsRemainder(op byte) bool {
	return op == I32RemS || op == I32RemU || op == I64RemS || op == I64RemU
}

// MayTrap reports whether an instruction of one byte may trap. Calls may.
func MayTrap(op byte) bool {
	switch {
	case op >= Call && op <= ReturnCallIndirect, op == TableGet, op == TableSet, op == RefFunc, op == MemoryGrow:
		return true
	case op >= 0x28 && op <= 0x3e: // loads and stores
		return true
	case op >= 0x6d && op <= 0x70, op >= 0x7f && op <= 0x82: // i32 and i64: div, rem
		return true
	case op >= 0xa8 && op <= 0xab, op >= 0xae && op <= 0xb1: // truncations of floats
		return true
	}
	return false
}
