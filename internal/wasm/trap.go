package wasm

import (
	"fmt"

	"runner.example/internal/wasm/opcode"
)

// StackPointer is the global that points to the end of the stack that compilers such as LLVM
// keep in linear memory.
type StackPointer struct {
	Global int    // among the mutable globals
	Lowest uint32 // address that the stack may reach; below are data, or nothing
}

// StackPointer finds the module's stack pointer, which LLVM's linker makes the first global: an
// i32 that begins at a multiple of 16. The stack grows downwards from there, to the data below
// it or to address 0. ok is false if the module has no such global.
func (m *Module) StackPointer() (p StackPointer, ok bool) {
	for _, g := range m.globals {
		if !g.Mutable {
			continue
		}
		top, isConstant := m.initialI32(g.init)
		if g.Type != I32 || !isConstant || top == 0 || top%16 != 0 {
			return p, false
		}
		for _, s := range m.data {
			if at, known := m.initialI32(s.offset); known && !s.passive {
				if end := uint64(at) + uint64(s.end-s.start); end <= uint64(top) {
					p.Lowest = max(p.Lowest, uint32(end))
				}
			}
		}
		return p, true
	}
	return p, false
}

// Access describes the instruction at the beginning of code if it accesses memory or a table:
// "i32.load, offset 16", "memory.copy", "call_indirect". Otherwise it is empty. code is of a
// module that was parsed.
func Access(code []byte) string {
	if len(code) == 0 {
		return ""
	}
	op := code[0]
	switch {
	case op == opcode.CallIndirect:
		return "call_indirect"
	case op == opcode.ReturnCallIndirect:
		return "return_call_indirect"
	case op == opcode.Atomic && len(code) > 1 && code[1] != opcode.AtomicFence:
		return access("an atomic access", code[2:])
	case op == opcode.TableGet:
		return "table.get"
	case op == opcode.TableSet:
		return "table.set"
	case op >= firstAccess && int(op-firstAccess) < len(accesses):
		return access(accesses[op-firstAccess], code[1:])
	case op == opcode.Misc && len(code) > 1:
		return bulkOperations[code[1]]
	case op == opcode.Vector && len(code) > 2:
		switch opcode.Vectors[code[1]] {
		case opcode.VecMemarg, opcode.VecMemargLane:
			return access("a load or store of v128", code[2:])
		}
	}
	return ""
}

// access adds the offset of a memarg, which is u32 alignment · u32 offset.
func access(name string, memarg []byte) string {
	_, size := uleb32(memarg)
	offset, more := uleb32(memarg[max(size, 0):])
	if size <= 0 || more <= 0 {
		return name
	}
	return fmt.Sprintf("%s, offset %d", name, offset)
}

// accesses are the loads and stores by their opcodes from firstAccess on.
var accesses = [...]string{
	"i32.load", "i64.load", "f32.load", "f64.load", "i32.load8_s", "i32.load8_u", "i32.load16_s", "i32.load16_u",
	"i64.load8_s", "i64.load8_u", "i64.load16_s", "i64.load16_u", "i64.load32_s", "i64.load32_u",
	"i32.store", "i64.store", "f32.store", "f64.store", "i32.store8", "i32.store16", "i64.store8", "i64.store16",
	"i64.store32",
}

const firstAccess = 0x28

// bulkOperations are the 0xfc instructions that can trap for an address or an index.
var bulkOperations = map[byte]string{
	opcode.MiscMemoryInit: "memory.init",
	opcode.MiscMemoryCopy: "memory.copy",
	opcode.MiscMemoryFill: "memory.fill",
	opcode.MiscTableInit:  "table.init",
	opcode.MiscTableCopy:  "table.copy",
	opcode.MiscTableFill:  "table.fill",
}
