package wasm

// A loop counts fuel at its beginning. What it does without fuel comes after its code, and
// goes back to the beginning:
//
//	block
//	  loop
//	    block
//	      fuel -= cost; br_if 0 (fuel < 0)
//	      block code end
//	      br 2
//	    end
//	    more(cost)
//	    br 0
//	  end
//	end
//
// So the usual path through the loop has no call and no jump over one. The outer and the
// innermost block have the type of the loop, so that the code remains valid exactly if it
// was. A loop that takes parameters has the check within its code.

// openLoop appends the code before that of a loop.
func (w *rewriter) openLoop(b, blockType []byte, cost uint32) []byte {
	b = append(append(b, opBlock), blockType...)
	b = append(append(b, opLoop), blockType...)
	b = w.count(append(b, opBlock, blockEmpty), cost)
	w.blocks.pushLoop(cost)
	return append(append(b, opBlock), blockType...)
}

// closeLoop appends the code after that of a loop.
func (w *rewriter) closeLoop(b []byte, cost uint32) []byte {
	b = append(b, opEnd, opBr, 2, opEnd)
	b = appendSigned(append(b, opI32Const), int64(cost))
	b = appendU32(append(b, opCall), w.moreAt)
	return append(b, opBr, 0, opEnd, opEnd)
}

// takesNothing reports whether blocks of a type, as it is encoded, have no parameters.
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
	cost  uint32 // of a loop that openLoop began
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

func (o *blocks) pushLoop(cost uint32) {
	o.open = append(o.open, openBlock{o.depth + 1, cost})
	o.depth += 4
}

// pop ends a block. It returns the cost of a loop that openLoop began, or 0.
func (o *blocks) pop() uint32 {
	last := o.open[len(o.open)-1]
	o.open = o.open[:len(o.open)-1]
	if o.depth--; last.cost > 0 {
		o.depth -= 3
	}
	return last.cost
}

// same reports whether labels are what they were.
func (o *blocks) same() bool { return int(o.depth) == len(o.open) }

// label is what a label becomes.
func (o *blocks) label(label uint32) uint32 {
	return o.depth - 1 - o.open[len(o.open)-1-int(label)].depth
}
