package wasm

import "math"

// native counts the values that a compiler may keep on the native stack for a function. It
// gives each such value a slot that no other value uses later (as wazero v1.12 does). So
// all values count, not only those that live at once:
//
//	each local, and each result of an instruction, a block or a call
//	each local again wherever paths with different values of it join: at the end of
//	a block or the beginning of a loop that sets it
type native struct {
	values int64
	sets   int64 // instructions that set a local, so far
	area   int64 // parameters and results of the call that has most
	wide   bool  // there are opcode.Vectors: a slot has 16 bytes
}

// Bytes of native stack.
const (
	nativeFixed = 128 // saved registers and addresses
	nativeSlot  = 8
)

// call counts a call: its results, and the space that passes them.
func (n *native) call(a arity) {
	n.values += int64(a.results)
	n.area = max(n.area, int64(a.params)+int64(a.results))
	n.wide = n.wide || a.wide
}

// meet counts the values that differ after the paths through a block.
func (n *native) meet(locals int, block frame) {
	differ := min(int64(locals), n.sets-block.sets)
	if block.loop >= 0 { // they differ at its beginning and behind the check of its fuel
		differ *= 2
	}
	n.values += differ + 2
}

// measureFrame notes how much native stack a call of the function takes.
func (c *coder) measureFrame(f *function, index int) {
	n := &c.native
	slot := int64(nativeSlot)
	if n.wide {
		slot *= 2
	}
	bytes := nativeFixed + slot*(int64(f.locals)+f.remainders.locals()+n.values+n.area)
	if bytes > int64(c.m.limits.FrameBytes) {
		c.refuse("has a function that may take %d KiB of stack for one call (number %d), and one may take %d: split it",
			bytes>>10, index, c.m.limits.FrameBytes>>10)
	}
	f.frame = uint32(min(bytes, math.MaxInt32))
}
