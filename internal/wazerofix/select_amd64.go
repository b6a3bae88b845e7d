package wazerofix

import (
	_ "unsafe" // for go:linkname

	_ "github.com/tetratelabs/wazero" // has what the names are linked to
)

// useKinds says for each kind of instruction which of its operands it reads.
//
//go:linkname useKinds github.com/tetratelabs/wazero/internal/engine/wazevo/backend/isa/amd64.useKinds
var useKinds [59]byte

// kindName returns the name of a kind of instruction.
//
//go:linkname kindName github.com/tetratelabs/wazero/internal/engine/wazevo/backend/isa/amd64.instructionKind.String
func kindName(kind byte) string

// Kinds of instructions: the conditional moves.
const (
	cmove   = 20 // of integers
	xmmCMov = 51 // of floats and vectors
)

// Values of useKinds.
const (
	firstOperand = 2
	bothOperands = 3
)

func init() {
	if kindName(cmove) != "cmove" || kindName(xmmCMov) != "xmmCMov" ||
		useKinds[cmove] != bothOperands || useKinds[xmmCMov] != firstOperand {
		panic("this is not wazero 1.12.0: remove internal/wazerofix if its tests pass without it")
	}
	useKinds[xmmCMov] = bothOperands
}
