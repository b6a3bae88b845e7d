package wasm

import (
	"slices"

	"runner.example/internal/wasm/opcode"
)

// Interruptible returns the module's file with a loop without content at the beginning of each function that calls
// others. wazero looks at the beginning of loops whether a call is to end, and nowhere else: tail calls without end and
// trees of calls would not be ended. Functions and names are as before.
func (m *Module) Interruptible() []byte {
	if len(m.functions) == 0 {
		return m.bytes
	}
	code := appendU32(make([]byte, 0, len(m.content(sectionCode))+3*len(m.functions)), uint32(len(m.functions)))
	for _, f := range m.functions {
		var loop []byte
		if f.hasCall {
			loop = []byte{opcode.Loop, opcode.BlockEmpty, opcode.End}
		}
		code = appendSized(code, slices.Concat(m.bytes[f.start:f.code], loop, m.bytes[f.code:f.end]))
	}
	return m.withCode(code)
}
