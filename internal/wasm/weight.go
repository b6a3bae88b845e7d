package wasm

// The weight of an instruction is about the number of nanoseconds that it takes at worst: a
// division of large numbers, a load that misses the caches, a mispredicted branch. A unit
// of fuel stands for 1<<unitShift of them. Typical code takes far less, so a slice of fuel
// ends sooner. That costs little: it is refilled more often.
//
// The entry of a function or of a loop is charged for the heaviest path through it up to
// another check, and one unit more. A path heavier than stretch gets further checks, each
// charged for a whole stretch after it. Functions that weigh at most leafWeight are not charged (see graph.isCharged): the
// call is.
const (
	unitShift  = 6
	stretch    = 4 << 10
	leafWeight = 256
)

// units is the fuel for a path of the given weight.
func units(weight uint32) uint32 { return 1 + weight>>unitShift }

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
