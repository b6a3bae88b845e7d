package wasm

// What an instruction weighs is about how many nanoseconds it takes at worst: a
// division of large numbers, a load that no cache holds, a jump that was not
// foreseen, a call of the host within. A unit of fuel pays for 1<<unitShift of
// them. What is typical takes far less, so a slice of fuel lasts less, which costs
// little: it is refilled more often.
//
// The entry of a function or of a loop pays for the heaviest way through it that
// meets no other check, and one unit more. Ways heavier than stretch get checks of
// their own, of which each pays for a whole stretch behind it. Functions that
// weigh no more than leafWeight and call nothing are not charged: the call to them
// pays for that.
const (
	unitShift  = 6
	stretch    = 4 << 10
	leafWeight = 256

	weightPlain     = 1
	weightMemory    = 128 // a load that misses
	weightStore     = 32  // stores need not be waited for
	weightBranch    = 8   // that is not foreseen
	weightCall      = 256 // and a function that is not charged
	weightIndirect  = 384
	weightHost      = 256 // what is done by the host's code
	weightReference = 128 // to a function, which is looked up there, too
	weightBulk      = 128
	weightVector    = 8
	weightRoot      = 16
)

// units is what a way of the given weight costs.
func units(weight uint32) uint32 { return 1 + weight>>unitShift }

// weights are those of all instructions of one byte; those that begin others have
// theirs in miscWeight and vectorWeight.
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

// miscWeight is that of a 0xfc instruction. A length that is not known, or large,
// is paid for when it is.
func miscWeight(sub byte) uint32 {
	switch {
	case sub < miscMemoryInit:
		return weightVector
	case sub == miscTableGrow:
		return weightHost
	}
	return weightBulk
}

// vectorWeight is that of a 0xfd instruction.
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

// weigh adds an instruction to the way that leads to it, with a check before it
// if the way would become too heavy.
func (c *coder) weigh(at int, weight uint32) {
	l := &c.levels[len(c.levels)-1]
	if l.way+weight > stretch {
		c.m.splits = append(c.m.splits, at)
		l.way = 0
	}
	l.way += weight
	l.most = max(l.most, l.way)
}

// leave ends a way: what follows is reached from elsewhere, or never.
func (c *coder) leave() { c.levels[len(c.levels)-1].way = 0 }

// turn goes from an if's first arm to its second.
func (c *coder) turn() {
	top, l := &c.frames[len(c.frames)-1], &c.levels[len(c.levels)-1]
	top.way = max(top.way, l.way)
	l.way, top.start = top.start, 0
}

// close ends a block, where ways come together; a loop is left by its end only,
// or by a branch to the end of another.
func (c *coder) close(top frame) {
	l := &c.levels[len(c.levels)-1]
	if top.loop >= 0 {
		c.m.loops[top.loop] = l.most
		c.levels = c.levels[:len(c.levels)-1]
		return
	}
	l.way = max(l.way, top.way, top.start)
}
