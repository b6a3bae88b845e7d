package wasm

import "runner.example/internal/wasm/opcode"

// wazero 1.12.0 compiles a remainder on arm64 to a division and a multiplication that both
// write the register of the result. If it moves this value to the stack meanwhile, it stores
// the second result only, and the second instruction reads what was on the stack before. So
// for arm64 the rewriter replaces remainders.

// remainders are the types of which a function has remainders.
type remainders struct{ i32, i64 bool }

// locals is how many locals the remainders of a function need.
func (r remainders) locals() (n int64) {
	if r.i32 {
		n += 2
	}
	if r.i64 {
		n += 2
	}
	return n
}

// remainder appends x - x/y*y for the operands on the stack, which traps as the remainder
// does. The smallest number divided by -1 is an overflow, and its remainder is 0, as that of
// every number divided by -1 or 1. So a signed remainder divides by 1 instead of -1.
func remainder(b []byte, op byte, l addedLocals) []byte {
	x, eq, mul, sub, constant := l.i32s, byte(opcode.I32Eq), byte(opcode.I32Mul), byte(opcode.I32Sub),
		byte(opcode.I32Const)
	if op == opcode.I64RemS || op == opcode.I64RemU {
		x, eq, mul, sub, constant = l.i64s, opcode.I64Eq, opcode.I64Mul, opcode.I64Sub, opcode.I64Const
	}
	y, div := x+1, op-2
	a := assembler(b)
	a.number(opcode.LocalSet, y).number(opcode.LocalTee, x).get(x)
	if op == opcode.I32RemS || op == opcode.I64RemS {
		const minusOne = 0x7f // as LEB128
		a.op(constant, 1).get(y, y).op(constant, minusOne, eq, opcode.Select).number(opcode.LocalTee, y)
	} else {
		a.get(y)
	}
	return *a.op(div).get(y).op(mul, sub)
}
