package wasm

import "runner.example/internal/wasm/opcode"

// A tail call ends its function before the callee begins: a compiler jumps to the callee. wazero does that if all
// parameters and results are in registers, and otherwise makes an ordinary call. So that a module takes the same stack
// on every architecture, the rewriter makes ordinary calls of those that do not fit into the registers of each, and of
// calls of the host. The others remain; but wazero 1.12.0 loses the address of a callee in a table on arm64, so these are
// ordinary calls there too, unless it is patched (tail-calls-arm64.patch).
//
// A function that asks for native stack gives it back before it jumps. So each function that is jumped to asks, also if
// its callers would have paid for it: they are gone.

// Registers of wazero 1.12.0, the fewest of amd64 and arm64. Two of the parameters are its own.
const (
	intParams  = 6
	intResults = 8
	floats     = 8
)

// inRegisters reports whether all parameters and results of a function are passed in registers.
func (t FuncType) inRegisters() bool {
	fit := func(types []ValueType, most int) bool {
		wide := 0
		for _, v := range types {
			if v == F32 || v == F64 || v == V128 {
				wide++
			}
		}
		return wide <= floats && len(types)-wide <= most
	}
	return fit(t.Params, intParams) && fit(t.Results, intResults)
}

// jump notes a tail call of a function.
func (m *Module) jump(callee uint32) {
	m.used |= tailCalls
	if m.jumped == nil {
		m.jumped = make([]bool, m.functionCount())
	}
	m.jumped[callee] = true
}

// jumpThrough notes a tail call through a table.
func (m *Module) jumpThrough(t uint32) {
	m.used |= tailCalls
	if m.jumpedTypes == nil {
		m.jumpedTypes = make([]bool, len(m.types))
	}
	m.jumpedTypes[t] = true
}

// jumps reports whether a tail call remains one: of a function, or through a table, of a type.
func (w *rewriter) jumps(op byte, index uint32) bool {
	if op == opcode.ReturnCallIndirect {
		return !w.callsIndirect && w.m.types[index].inRegisters()
	}
	return int(index) >= len(w.m.imports) && w.m.types[w.m.typeOf(index)].inRegisters()
}

// isJumpedTo reports, by defined function, whether a tail call may go there.
func (g *graph) isJumpedTo() []bool {
	if g.jumped == nil && g.jumpedTypes == nil {
		return nil
	}
	types := make([]bool, len(g.types)) // by the first type that is equal
	for t, jumped := range g.jumpedTypes {
		types[g.canon[t]] = types[g.canon[t]] || jumped
	}
	all := make([]bool, len(g.functions))
	for i := range all {
		index := uint32(len(g.imports) + i)
		all[i] = g.jumped != nil && g.jumped[index] ||
			g.inTable != nil && g.inTable[index] && types[g.canon[g.typeOf(index)]]
	}
	return all
}
