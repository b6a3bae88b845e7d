package wasm

import "runner.example/internal/wasm/opcode"

// A check counts fuel, and at the entry of some functions native stack. It is at the
// beginning of a loop; a function that checks becomes one. What is done when the check fails
// comes after the code, and goes back to the check:
//
//	loop
//	  block
//	    fuel -= cost; depth += bytes; br_if 0 (fuel < 0 or depth > most)
//	    block code end
//	    (return, or a branch to a block around the loop)
//	  end
//	  more(cost, place), or deeper(bytes, below, cost, place)
//	  br 0
//	end
//
// So the usual path has no call, before which the compiler would move all registers to the
// stack, and no jump over one. The innermost block has the type of the loop or function, so
// that the code is valid exactly if it was.
type check struct {
	need
	cost  uint32 // of fuel; 0: it counts none
	place []byte // pushes where the code after the check continues, see FuelImport
}

// openCheck appends what is before the code.
func (w *rewriter) openCheck(b, blockType []byte, c check) []byte {
	b = append(append(b, opcode.Loop), blockType...)
	b = append(b, opcode.Block, opcode.BlockEmpty)
	if c.asks {
		b = appendU32(append(b, opcode.GlobalGet), w.depth)
		b = appendSigned(append(b, opcode.I32Const), int64(c.bytes))
		b = appendU32(append(b, opcode.I32Add, opcode.GlobalSet), w.depth)
	}
	if c.charged {
		b = appendU32(append(b, opcode.GlobalGet), w.fuel)
		b = appendSigned(append(b, opcode.I32Const), int64(c.cost))
		b = appendU32(append(b, opcode.I32Sub, opcode.GlobalSet), w.fuel)
		b = appendU32(append(b, opcode.GlobalGet), w.fuel)
	}
	if c.asks { // the rest of the stack is negative if the depth exceeds the maximum
		b = appendSigned(append(b, opcode.I32Const), int64(w.MaxStack))
		b = appendU32(append(b, opcode.GlobalGet), w.depth)
		b = append(b, opcode.I32Sub)
	}
	if c.asks && c.charged {
		b = append(b, opcode.I32Or)
	}
	b = append(b, opcode.I32Const, 0, opcode.I32LtS, opcode.BrIf, 0)
	return append(append(b, opcode.Block), blockType...)
}

// closeCheck appends what is after the code and what leaves it.
func (w *rewriter) closeCheck(b []byte, c check) []byte {
	b = append(b, opcode.End)
	if c.asks {
		b = appendSigned(append(b, opcode.I32Const), int64(c.bytes))
		b = appendSigned(append(b, opcode.I32Const), int64(c.below))
	}
	b = appendSigned(append(b, opcode.I32Const), int64(c.cost))
	b = append(b, c.place...)
	if c.asks {
		b = appendU32(append(b, opcode.Call), w.deeperAt)
	} else {
		b = appendU32(append(b, opcode.Call), w.moreAt)
	}
	return append(b, opcode.Br, 0, opcode.End)
}

// takesNothing reports whether blocks of an encoded type have no parameters.
func (w *rewriter) takesNothing(blockType []byte) bool {
	i, _ := sleb(blockType, 33)
	return i < 0 || len(w.m.types[i].Params) == 0
}

// blocks are those around the code that is written, of which some are added.
type blocks struct {
	open  []openBlock
	depth uint32 // of all blocks
}

type openBlock struct {
	depth uint32 // of the block that branches name
	check check  // of a loop; its cost is 0 if it has none
	at    int    // where such a loop is in the file
}

// reset begins a function.
func (o *blocks) reset() {
	o.open, o.depth = o.open[:0], 0
	o.push()
}

func (o *blocks) push() {
	o.open = append(o.open, openBlock{depth: o.depth})
	o.depth++
}

// pushLoop begins a loop with a check, whose code is within four blocks.
func (o *blocks) pushLoop(c check, at int) {
	o.open = append(o.open, openBlock{o.depth + 1, c, at})
	o.depth += 4
}

// pop ends a block, and returns it.
func (o *blocks) pop() openBlock {
	last := o.open[len(o.open)-1]
	o.open = o.open[:len(o.open)-1]
	if o.depth--; last.check.cost > 0 {
		o.depth -= 3
	}
	return last
}

// same reports whether labels are unchanged.
func (o *blocks) same() bool { return int(o.depth) == len(o.open) }

// label returns the new label for a label of the module.
func (o *blocks) label(label uint32) uint32 {
	return o.depth - 1 - o.open[len(o.open)-1-int(label)].depth
}
