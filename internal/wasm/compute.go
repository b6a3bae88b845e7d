package wasm

import "runner.example/internal/wasm/opcode"

// computed is the op of an initial value of several instructions.
const computed = opcode.End

// operand is an i32 or an i64.
type operand struct {
	kind  ValueType
	value int64
}

// compute reads a computed initial value with its closing end, and returns it as one instruction. It may
// refer to the first n globals, of which global returns the values.
func (m *Module) compute(r *reader, globals int, global func(uint32) int64) constant {
	var stack []operand
	for {
		at := r.pos
		op := r.byte()
		o := operand{kind: I32}
		switch op {
		case opcode.I32Const:
			o.value = r.signed(32)
		case opcode.I64Const:
			o = operand{I64, r.signed(64)}
		case opcode.GlobalGet:
			c := constant{op: op, index: r.u32()}
			if !m.part {
				r.refuse("computes an initial value with global %d, which it does not import: build it for WebAssembly 2.0", c.index)
			}
			if m.checkGlobal(r, c, globals); r.err == nil {
				o = operand{m.globals[c.index].Type, global(c.index)}
			}
		case opcode.End:
			if len(stack) == 1 && r.err == nil {
				return stack[0].constant()
			}
			r.failAt(at, "an initial value of %d values", len(stack))
		default:
			n := len(stack) - 2
			if n < 0 {
				r.failAt(at, "an initial value without an operand")
				break
			}
			if o = r.combine(op, stack[n], stack[n+1]); r.err == nil {
				stack = stack[:n]
			}
		}
		if r.err != nil {
			return constant{}
		}
		stack = append(stack, o)
	}
}

// combine computes one instruction.
func (r *reader) combine(op byte, a, b operand) operand {
	kind, value := I32, int64(0)
	switch op {
	case opcode.I32Add, opcode.I64Add:
		value = a.value + b.value
	case opcode.I32Sub, opcode.I64Sub:
		value = a.value - b.value
	case opcode.I32Mul, opcode.I64Mul:
		value = a.value * b.value
	default:
		r.fail("an initial value that is not a constant (%#x)", op)
	}
	if op >= opcode.I64Add {
		kind = I64
	} else {
		value = int64(int32(value))
	}
	if a.kind != kind || b.kind != kind {
		r.fail("an initial value is computed from %s and %s", a.kind, b.kind)
	}
	return operand{kind, value}
}

// constant is the instruction for a value. It is not in the file.
func (o operand) constant() constant {
	if o.kind == I64 {
		return constant{op: opcode.I64Const, value: o.value}
	}
	return constant{op: opcode.I32Const, value: o.value}
}
