package wasm

import "runner.example/internal/wasm/opcode"

// This file does jump threading. Some compilers compile the jumps of a function into one loop
// that branches by a local:
//
//	loop block … block  local.get p; br_table  end … end … end
//
// A jump is then i32.const; local.set p; br to the loop. If its target is the end of a
// block around it, the branch goes there directly instead. So it takes no fuel check and no
// table. These branches to the loop remain: jumps backward, computed jumps, and jumps at
// the end of a path that is too expensive to continue without a check. Code of Go has no such
// loop after WithoutDispatch.

// thread is a branch that is changed: where it is, and the new label.
type thread struct {
	at    int
	label uint32
}

// threading finds such loops and branches in the function that is read.
type threading struct {
	blocks  int32 // that began
	tables  []dispatch
	targets []target

	// What the last instruction was part of, in the beginning of a loop: its frame, or -1.
	loop     int
	selected bool       // and the local that selects was pushed
	selector uint32     // the local
	last     assignment // by the last instruction, if it was one of a constant
	// The loop before the current instruction.
	loopNow     int
	selectedNow bool
}

// dispatch is what a loop does at its beginning.
type dispatch struct {
	local    uint32
	from, to int // in threading.targets
}

// target is a block that a br_table names. A later block may have the same frame.
type target struct {
	frame int
	id    int32
}

// assignment is a local and the constant that it was set to.
type assignment struct {
	set   bool
	local uint32
	value int64
}

func (t *threading) reset() {
	t.blocks, t.tables, t.targets = 0, t.tables[:0], t.targets[:0]
	t.loop, t.last = -1, assignment{}
}

// next goes to the next instruction, and returns the assignment before it.
func (t *threading) next() assignment {
	before := t.last
	t.loopNow, t.selectedNow = t.loop, t.selected
	t.loop, t.selected, t.last = -1, false, assignment{}
	return before
}

// local is called for an instruction of a local, with the constant before it if it is not
// negative.
func (t *threading) local(op byte, local uint32, constant int64) {
	switch {
	case op == opcode.LocalSet && constant >= 0:
		t.last = assignment{true, local, constant}
	case op == opcode.LocalGet && t.loopNow >= 0 && !t.selectedNow:
		t.loop, t.selected, t.selector = t.loopNow, true, local
	}
}

// block is called for a block that begins, before its frame is added. It returns its
// number in the function.
func (c *coder) block(op byte, params int32) int32 {
	switch {
	case params > 0 || op == opcode.If || c.selectedNow:
	case op == opcode.Loop:
		c.loop = len(c.frames)
	case c.loopNow >= 0:
		c.loop = c.loopNow
	}
	c.blocks++
	return c.blocks
}

// beginTable is called for a br_table. It returns the frame of the loop that it begins, or
// -1.
func (c *coder) beginTable() int {
	if !c.selectedNow {
		return -1
	}
	c.frames[c.loopNow].table = int32(len(c.tables))
	c.tables = append(c.tables, dispatch{c.selector, len(c.targets), len(c.targets)})
	return c.loopNow
}

// selectsParameter reports whether the function has the type (i32) -> i32 and the br_table at a
// position selects by the parameter.
func (c *coder) selectsParameter(f *function, at int) bool {
	t := c.m.types[f.typeIndex]
	return len(t.Params) == 1 && t.Params[0] == I32 && len(t.Results) == 1 && t.Results[0] == I32 &&
		c.bytes[at-2] == opcode.LocalGet && c.bytes[at-1] == 0
}

// addTarget adds the last label to the table that was begun.
func (c *coder) addTarget() {
	c.targets = append(c.targets, target{c.to, c.frames[c.to].id})
	c.tables[len(c.tables)-1].to = len(c.targets)
}

// thread changes a branch, after its label was read, if it is to such a loop and the
// selected target is ahead.
func (c *coder) thread(at int, known assignment) {
	if c.err != nil || !known.set || c.frames[c.to].table < 0 {
		return
	}
	d := c.tables[c.frames[c.to].table]
	if d.local != known.local {
		return
	}
	t := c.targets[d.from+int(min(known.value, int64(d.to-d.from-1)))]
	if t.frame >= len(c.frames) || c.frames[t.frame].id != t.id {
		return // it is behind
	}
	to := c.frames[t.frame]
	if to.loop >= 0 || to.values > 0 || c.levels[to.level].path > threadWeight {
		return
	}
	c.to = t.frame
	c.join()
	c.m.threads = append(c.m.threads, thread{at, uint32(len(c.frames) - 1 - t.frame)})
}
