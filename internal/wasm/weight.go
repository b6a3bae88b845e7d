package wasm

// The weight of an instruction is about the number of nanoseconds that it takes at worst: a
// division of large numbers, a load that misses the caches, a mispredicted branch. A unit
// of fuel stands for 1<<unitShift of them. Typical code takes far less, so a slice of fuel
// ends sooner. That costs little: it is refilled more often.
//
// The entry of a function or of a loop is charged for the heaviest path through it up to
// another check, and one unit more. A path heavier than stretch gets further checks, each
// charged for a whole stretch after it. A branch that would continue a path heavier than
// threadWeight is not changed (see thread), as the further checks would cost more than it
// saves. Functions that weigh at most leafWeight are not charged (see graph.isCharged): the
// call is.
const (
	unitShift    = 6
	stretch      = 4 << 10
	threadWeight = stretch * 3 / 4
	leafWeight   = 256

	weightPlain     = 1
	weightMemory    = 128 // a load that misses
	weightStore     = 32  // the processor does not wait for stores
	weightBranch    = 8   // mispredicted
	weightCall      = 256 // and a function that is not charged
	weightIndirect  = 384
	weightHost      = 256 // in the code of the host
	weightReference = 128 // to a function, with its lookup by the host
	weightBulk      = 128
	weightVector    = 8
	weightRoot      = 16
)

// units is the fuel for a path of the given weight.
func units(weight uint32) uint32 { return 1 + weight>>unitShift }

// weights are those of the instructions of one byte. miscWeight and vectorWeight have those
// of longer instructions.
var weights = weightTable()

func weightTable() (t [256]uint16) {
	set := func(weight uint16, from, to int) {
		for op := from; op <= to; op++ {
			t[op] = weight
		}
	}
	set(weightPlain, opUnreachable, 0xd2)
	for _, op := range []int{opNop, opBlock, opLoop, opElse, opEnd, opMisc, opVector} {
		t[op] = 0
	}
	set(weightBranch, opIf, opIf)
	set(weightBranch, opBr, opReturn)
	set(weightCall, opCall, opCall)
	set(weightIndirect, opCallIndirect, opCallIndirect)
	set(weightMemory, opTableGet, opTableGet)
	set(2*weightMemory, opTableSet, opTableSet)
	set(2, opGlobalGet, opGlobalSet)
	set(weightMemory, 0x28, 0x35)
	set(weightStore, 0x36, 0x3e)
	set(4, opMemorySize, opMemorySize)
	set(weightHost, opMemoryGrow, opMemoryGrow)
	set(16, 0x6d, 0x70)                                // i32.div, rem
	set(48, 0x7f, 0x82)                                // i64.div, rem
	for _, op := range []int{0x91, 0x95, 0x9f, 0xa3} { // f32 and f64: sqrt, div
		t[op] = weightRoot
	}
	for _, first := range []int{0x8b, 0x99} { // other floats: rounding, min, max
		for op := first; op < first+14; op++ {
			t[op] = max(t[op], 4)
		}
	}
	set(8, 0xa8, 0xab) // conversions
	set(8, 0xae, 0xba)
	set(weightReference, opRefFunc, opRefFunc)
	return t
}

// plainWeight is the weight of an instruction without what it calls.
func plainWeight(op byte) uint32 {
	if op == opCall {
		return weightBranch
	}
	return uint32(weights[op])
}

// miscWeight is the weight of a 0xfc instruction. A length that is large or not constant is
// charged when the instruction runs.
func miscWeight(sub byte) uint32 {
	switch {
	case sub < miscMemoryInit:
		return weightVector
	case sub == miscTableGrow:
		return weightHost
	}
	return weightBulk
}

// vectorWeight is the weight of a 0xfd instruction.
func vectorWeight(sub byte) uint32 {
	switch sub {
	case 0xe3, 0xe7, 0xef, 0xf3: // sqrt, div
		return 2 * weightRoot
	}
	switch vectors[sub] {
	case vecMemarg, vecMemargLane:
		return weightMemory
	}
	return weightVector
}

// weigh adds an instruction to the current path, with a check before it if the path would
// become too heavy.
func (c *coder) weigh(at int, weight uint32) {
	l := &c.levels[len(c.levels)-1]
	if l.path+weight > stretch {
		c.m.splits = append(c.m.splits, at)
		l.path = 0
	}
	l.path += weight
	l.most = max(l.most, l.path)
}

// endPath ends the current path: the next instruction is reached by a branch, or never.
func (c *coder) endPath() { c.levels[len(c.levels)-1].path = 0 }

// enterElse goes from an if's first arm to its second.
func (c *coder) enterElse() {
	top, l := &c.frames[len(c.frames)-1], &c.levels[len(c.levels)-1]
	top.path = max(top.path, l.path)
	l.path, top.start = top.start, 0
}

// close ends a block, where paths join. Branches to a loop go to its beginning.
func (c *coder) close(top frame) {
	l := &c.levels[len(c.levels)-1]
	if top.loop >= 0 {
		c.m.loops[top.loop] = l.most
		c.levels = c.levels[:len(c.levels)-1]
		return
	}
	l.path = max(l.path, top.path, top.start)
}
