package wasm

import (
	"slices"

	"runner.example/internal/wasm/opcode"
)

// This file gives functions of Go loops of their own. Go's compiler writes all basic blocks of a function into
// one loop, which continues with the block that the parameter selects:
//
//	block (unwind)
//	  loop
//	    block … block  local.get 0; br_table  end block 0 end block 1 … end
//	  end; unreachable
//	end; i32.const 1
//
// A jump is i32.const; local.set 0; br to the loop. A compiler has to assume that each jump goes to each block: it
// keeps the values of all locals for all of them, and moves them at each jump. The function's caller selects
// block 0, or, when a goroutine continues, a block that follows a call or calls runtime.deferreturn. All other
// blocks are reached by jumps alone, whose targets are known:
//
//	block (unwind)
//	  block … block  br_if block 0 (param = 0); br_table  end; unreachable
//	  end block 0
//	  end  loop  block … block  end block 1 … end block 4  end
//	  end block 5 …
//	end; i32.const 1
//
// A jump backward is a branch to a loop around the blocks from its target to itself. If a loop is entered at other
// blocks too, a local says at which, and the loop begins with a branch by it.

// WithoutDispatch returns the module with loops in place of the dispatch by which Go's compiler makes jumps, or the
// module itself if it has no such functions. The module must be from Go's compiler: a function that is called with
// a block at which Go continues no goroutine traps. Otherwise the result means the same. Rewrite of it keeps the
// map to the code of m, and the places that FuelImport describes.
func (m *Module) WithoutDispatch() *Module {
	if len(m.functions) == 0 {
		return m
	}
	w := &looper{m: m, offsets: &Offsets{}}
	code := appendU32(make([]byte, 0, len(m.content(sectionCode))), uint32(len(m.functions)))
	var changed []int
	for i := range m.functions {
		f := &m.functions[i]
		w.offsets.begin()
		if w.read(f) && w.findLoops() {
			changed = append(changed, i)
			w.write(f)
		} else {
			w.body = w.body[:0]
			w.copy(f.start, f.end)
		}
		code = appendU32(code, uint32(len(w.body)))
		for _, p := range w.places {
			w.all = append(w.all, place{len(code) + p.at, p.block})
		}
		w.places = w.places[:0]
		w.offsets.finish(len(code), len(code)+len(w.body))
		code = append(code, w.body...)
	}
	if len(changed) == 0 {
		return m
	}
	// Parsing can fail, because of limits. Then the module is run as it is.
	n, err := Parse(m.withCode(code), m.limits)
	if err != nil {
		return m
	}
	n.before, n.places = w.offsets, w.all
	for i := range n.places {
		n.places[i].at += n.CodeStart()
	}
	for _, i := range changed {
		n.functions[i].resumes = true
	}
	return n
}

// withCode returns the module's file with another code section.
func (m *Module) withCode(code []byte) []byte {
	out := make([]byte, 0, len(m.bytes)-len(m.content(sectionCode))+len(code)+8)
	out = append(out, m.bytes[:8]...)
	customs := func(after int) {
		for _, c := range m.customs {
			if c.after == after {
				out = appendSection(out, sectionCustom, m.bytes[c.start:c.end])
			}
		}
	}
	customs(0)
	for i, id := range sectionOrder {
		if id == sectionCode {
			out = appendSection(out, id, code)
		} else {
			out = appendSection(out, id, m.content(id))
		}
		customs(i + 1)
	}
	return out
}

// place is a loop of code from Go, and the block that it begins with, as FuelImport counts them.
type place struct {
	at    int // of the loop
	block int32
}

// looper rewrites functions, one after the other.
type looper struct {
	m       *Module
	offsets *Offsets
	all     []place // of all functions, in the code section

	code  []instruction // of the function
	loop  int           // the index of the loop that dispatches
	outer int           // blocks around the loop: 0 or 1
	tail  int           // the index of what follows the loop
	table []int         // basic blocks by what selects them; the default is the last
	jumps []blockJump
	basic []basicBlock
	loops []blockLoop
	enter uint32 // the local that says at which block a loop is entered
	many  bool   // there is such a loop

	body   []byte
	places []place // in the body
	open   int     // blocks around the code that is written
}

// instruction is an instruction with its number, if it is of a constant, local, label or block.
type instruction struct {
	at, end int
	op      byte
	n       int64
}

// basicBlock is one of the blocks that the dispatch selects.
type basicBlock struct {
	from, to int // instructions
	resumes  bool
	loop     int // innermost loop around it, or -1
	heads    int // the loop that begins with it, or -1
	entry    int // its number among the blocks at which loops are entered, or -1
	label    int // how many blocks are around the one whose end it follows, if that is open
}

// blockJump is a jump between basic blocks.
type blockJump struct{ from, to int }

// blockLoop is a loop around basic blocks.
type blockLoop struct {
	from, to int
	around   int   // the loop around it, or -1
	entries  []int // the blocks beside the first one at which it is entered
	label    int   // how many blocks are around it, while it is open
}

// emptyBlock is the type of blocks without values, as decode gives it.
const emptyBlock = -64

func decode(src []byte, pos int) instruction {
	in := instruction{at: pos, op: src[pos]}
	pos++
	number := func(n int64, size int) { in.n, pos = n, pos+size }
	switch opcode.Immediates[in.op] {
	case opcode.ImmLocal, opcode.ImmLabel:
		n, size := uleb32(src[pos:])
		number(int64(n), size)
	case opcode.ImmI32:
		number(sleb(src[pos:], 32))
	case opcode.ImmBlock:
		number(sleb(src[pos:], 33))
	case opcode.ImmFunction, opcode.ImmGlobal, opcode.ImmTableIdx, opcode.ImmI64:
		pos = opcode.SkipNumber(src, pos)
	case opcode.ImmMemarg, opcode.ImmIndirect:
		pos = opcode.SkipNumber(src, opcode.SkipNumber(src, pos))
	case opcode.ImmTable:
		n, size := uleb32(src[pos:])
		pos += size
		for range uint64(n) + 1 {
			pos = opcode.SkipNumber(src, pos)
		}
	case opcode.ImmF32:
		pos += 4
	case opcode.ImmF64:
		pos += 8
	case opcode.ImmMemory, opcode.ImmRefType:
		pos++
	case opcode.ImmTypes:
		pos += 2
	case opcode.ImmMisc:
		pos = opcode.SkipMisc(src, pos)
	case opcode.ImmVector:
		pos = opcode.SkipVector(src, pos)
	case opcode.ImmAtomic:
		pos = opcode.SkipAtomic(src, pos)
	}
	in.end = pos
	return in
}

// read reports whether a function has Go's form and jumps, and reads its blocks.
func (w *looper) read(f *function) bool {
	t := w.m.types[f.typeIndex]
	if !t.equal(FuncType{[]ValueType{I32}, []ValueType{I32}}) {
		return false
	}
	pos := f.code
	next := func() instruction {
		in := decode(w.m.bytes, pos)
		pos = in.end
		w.code = append(w.code, in)
		return in
	}
	w.code = w.code[:0]
	in := next()
	for in.op == opcode.GlobalGet || in.op == opcode.LocalSet {
		in = next()
	}
	w.outer = 0
	if in.op == opcode.Block && in.n == emptyBlock {
		w.outer = 1
		in = next()
	}
	if in.op != opcode.Loop || in.n != emptyBlock {
		return false
	}
	w.loop = len(w.code) - 1
	blocks := 0
	for in = next(); in.op == opcode.Block && in.n == emptyBlock; in = next() {
		blocks++
	}
	if in.op != opcode.LocalGet || in.n != 0 || blocks == 0 {
		return false
	}
	if in = next(); in.op != opcode.BrTable || !w.readTable(in, blocks) || next().op != opcode.End {
		return false
	}
	first := len(w.code)
	for pos < f.end {
		next()
	}
	return w.readBlocks(first, blocks) && len(w.jumps) > 0
}

// labels calls f with the labels of a br_table, until it returns false.
func (w *looper) labels(in instruction, f func(label uint32) bool) bool {
	pos := in.at + 1
	n, size := uleb32(w.m.bytes[pos:])
	pos += size
	for range uint64(n) + 1 {
		label, size := uleb32(w.m.bytes[pos:])
		pos += size
		if !f(label) {
			return false
		}
	}
	return true
}

func (w *looper) readTable(in instruction, blocks int) bool {
	w.table = w.table[:0]
	return w.labels(in, func(label uint32) bool {
		w.table = append(w.table, int(label))
		return int(label) < blocks
	})
}

// selected is the block that a constant selects.
func (w *looper) selected(n int64) int { return w.table[min(n, int64(len(w.table)-1))] }

// readBlocks reads the basic blocks from an instruction on, whose number is known.
func (w *looper) readBlocks(first, blocks int) bool {
	w.basic, w.jumps = w.basic[:0], w.jumps[:0]
	depth := 0
	from := first
	for i := first; i < len(w.code); i++ {
		in := w.code[i]
		k := len(w.basic)
		switch in.op {
		case opcode.Block, opcode.Loop, opcode.If:
			depth++
		case opcode.End:
			if depth--; depth >= 0 {
				break
			}
			depth = 0
			w.basic = append(w.basic, basicBlock{from: from, to: i, resumes: w.resumes(k, from, i), loop: -1, heads: -1, entry: -1})
			from = i + 1
			if len(w.basic) == blocks {
				w.tail = i + 1
				return true
			}
		case opcode.Br, opcode.BrIf:
			around := int(in.n) - depth // the function's blocks that it leaves
			switch toLoop := blocks - 1 - k; {
			case around < 0 || around > toLoop && around <= toLoop+1+w.outer:
			case around == toLoop && in.op == opcode.Br && w.isJump(from, i):
				w.jumps = append(w.jumps, blockJump{k, w.selected(w.code[i-2].n)})
			default:
				return false
			}
		case opcode.BrTable:
			if !w.labels(in, func(label uint32) bool { return int(label) < depth }) {
				return false
			}
		case opcode.LocalGet, opcode.LocalTee:
			// Calls through the table use the parameter for what was just put there.
			if in.n == 0 && (i < from+2 || in.op == opcode.LocalTee || w.code[i-1].op != opcode.I32Const ||
				w.code[i-2].op != opcode.LocalSet || w.code[i-2].n != 0) {
				return false
			}
		}
	}
	return false
}

// isJump reports whether a br follows i32.const; local.set 0 in its block.
func (w *looper) isJump(from, i int) bool {
	return i >= from+2 && w.code[i-1].op == opcode.LocalSet && w.code[i-1].n == 0 &&
		w.code[i-2].op == opcode.I32Const && w.code[i-2].n >= 0
}

// resumes reports whether a goroutine can continue with the k-th block, which is between two instructions: it is
// the first one, or the one before ends with a call, or it begins with a call like that of deferreturn. All that
// is before such a call is that SP is moved and the return address is stored.
func (w *looper) resumes(k, from, to int) bool {
	if k == 0 {
		return true
	}
	if before := w.basic[k-1]; before.to > before.from && w.code[before.to-1].op == opcode.BrIf {
		return true
	}
	stores := 0
	for _, in := range w.code[from:to] {
		switch in.op {
		case opcode.Nop, opcode.LocalGet, opcode.LocalTee, opcode.LocalSet, opcode.GlobalGet, opcode.GlobalSet,
			opcode.I32Const, opcode.I32Sub, opcode.I64Const:
		case opcode.I64Store:
			stores++
		case opcode.Call, opcode.CallIndirect:
			return stores == 1
		default:
			return false
		}
	}
	return false
}

// findLoops finds the loops around the jumps backward. Loops that overlap are extended, so that one is in
// the other. It reports false for a function whose loops nest or are entered so often that the result would be
// many times as large; Go's compiler makes none.
func (w *looper) findLoops() bool {
	last := map[int]int{} // by the first block
	var heads []int
	for _, j := range w.jumps {
		if j.to <= j.from {
			if _, ok := last[j.to]; !ok {
				heads = append(heads, j.to)
			}
			last[j.to] = max(last[j.to], j.from)
		}
	}
	slices.Sort(heads)
	w.loops = w.loops[:0]
	around := -1
	for _, head := range heads {
		for around >= 0 && w.loops[around].to < head {
			around = w.loops[around].around
		}
		to := last[head]
		for i := around; i >= 0 && w.loops[i].to < to; i = w.loops[i].around {
			w.loops[i].to = to
		}
		w.loops = append(w.loops, blockLoop{from: head, to: to, around: around})
		around = len(w.loops) - 1
	}
	inside := 0 // how many blocks all loops have
	for _, l := range w.loops {
		if inside += l.to - l.from + 1; inside > 4096+64*len(w.basic) {
			return false
		}
	}
	for i, l := range w.loops { // the inner ones come later
		w.basic[l.from].heads = i
		for k := l.from; k <= l.to; k++ {
			w.basic[k].loop = i
		}
	}
	return w.findEntries()
}

// findEntries finds the blocks at which loops are entered, and numbers them. It reports false if there are too many.
func (w *looper) findEntries() bool {
	found := 0
	enter := func(from, to int) {
		for i := w.basic[to].loop; i >= 0; i = w.loops[i].around {
			l := &w.loops[i]
			if l.from <= from && from <= l.to {
				return
			}
			if to != l.from {
				if found++; found > 4096+4*len(w.basic) {
					return
				}
				l.entries = append(l.entries, to)
			}
		}
	}
	for k, b := range w.basic {
		if b.resumes {
			enter(-1, k)
		}
	}
	for _, j := range w.jumps {
		enter(j.from, j.to)
	}
	if found > 4096+4*len(w.basic) {
		return false
	}
	w.many = false
	for i := range w.loops {
		l := &w.loops[i]
		if len(l.entries) == 0 {
			continue
		}
		slices.Sort(l.entries)
		l.entries = slices.Compact(l.entries)
		w.many = true
		w.basic[l.from].entry = 0
		for _, k := range l.entries {
			w.basic[k].entry = 0
		}
	}
	entries := 0
	for k := range w.basic {
		if w.basic[k].entry == 0 {
			w.basic[k].entry = entries
			entries++
		}
	}
	return true
}

// write writes the function that was read.
func (w *looper) write(f *function) {
	src := w.m.bytes
	groups, size := uleb32(src[f.start:f.code])
	w.enter = uint32(f.locals)
	if w.many {
		groups++
	}
	w.body = appendU32(w.body[:0], groups)
	w.body = append(w.body, src[f.start+size:f.code]...)
	if w.many {
		w.body = append(w.body, 1, byte(I32))
	}
	w.copy(f.code, w.code[w.loop].at)
	w.inserted(w.loop)
	w.open = w.outer
	parts := w.parts(0, len(w.basic)-1, -1)
	w.openParts(parts)
	w.writeEntry()
	w.writeParts(parts, -1)
	w.copy(w.code[w.tail].at, f.end)
}

// writeEntry writes the branch to the block that the caller selects. A block within a loop that has entries is
// reached by code that says which it is.
func (w *looper) writeEntry() {
	var within []int
	for k, b := range w.basic {
		if b.resumes && w.entersLoop(k, -1) {
			within = append(within, k)
		}
	}
	w.block(len(within) + 1) // the last one is for blocks that no caller selects
	label := func(k int) uint32 {
		if !w.basic[k].resumes {
			return 0
		}
		if i, ok := slices.BinarySearch(within, k); ok {
			return uint32(i + 1)
		}
		return w.label(w.basic[k].label)
	}
	w.op(opcode.LocalGet, 0, opcode.I32Eqz)
	w.number(opcode.BrIf, label(w.table[0]))
	last := len(w.table) - 1
	other := label(w.table[last])
	for last > 0 && label(w.table[last-1]) == other {
		last--
	}
	w.op(opcode.LocalGet, 0)
	w.number(opcode.BrTable, uint32(last))
	for _, k := range w.table[:last] {
		w.body = appendU32(w.body, label(k))
	}
	w.body = appendU32(w.body, other)
	w.end()
	w.op(opcode.Unreachable)
	for _, k := range within {
		w.end()
		w.jump(k, -1, 0)
	}
}

// parts are the first blocks of what the blocks between two consist of: single blocks, and loops within a loop.
func (w *looper) parts(from, to, loop int) (parts []int) {
	for k := from; k <= to; k++ {
		parts = append(parts, k)
		if inner := w.basic[k].heads; inner >= 0 && inner != loop {
			k = w.loops[inner].to
		}
	}
	return parts
}

// openParts opens a block for each part, at whose end it is.
func (w *looper) openParts(parts []int) {
	for _, k := range slices.Backward(parts) {
		w.basic[k].label = w.open
		w.block(1)
	}
}

// writeParts writes the parts of a loop, or those of the function if it is -1.
func (w *looper) writeParts(parts []int, loop int) {
	for _, k := range parts {
		inner := w.basic[k].heads
		if inner == loop {
			inner = -1
		}
		if inner >= 0 && len(w.loops[inner].entries) > 0 { // the code before continues there
			w.sayEntry(k)
		}
		w.end()
		if inner >= 0 {
			w.writeLoop(inner)
		} else {
			w.writeBlock(k)
		}
	}
}

func (w *looper) writeLoop(loop int) {
	l := &w.loops[loop]
	l.label = w.open
	w.inserted(w.basic[l.from].from)
	w.places = append(w.places, place{len(w.body), int32(slices.Index(w.table, l.from))})
	w.op(opcode.Loop, opcode.BlockEmpty)
	w.open++
	parts := w.parts(l.from, l.to, loop)
	if len(l.entries) == 0 {
		w.openParts(parts[1:])
		w.writeBlock(l.from)
		w.writeParts(parts[1:], loop)
	} else {
		w.openParts(parts)
		w.writeLoopEntry(l, parts)
		w.writeParts(parts, loop)
	}
	w.end()
}

// writeLoopEntry writes the branch to the block at which a loop is entered.
func (w *looper) writeLoopEntry(l *blockLoop, parts []int) {
	part := func(k int) uint32 { // the innermost block is that of the first part
		i, ok := slices.BinarySearch(parts, k)
		if !ok {
			i--
		}
		return uint32(i)
	}
	w.number(opcode.LocalGet, w.enter)
	w.i32(w.basic[l.from].entry)
	w.op(opcode.I32Eq)
	w.number(opcode.BrIf, 0)
	first, last := l.entries[0], l.entries[len(l.entries)-1]
	if first == last {
		w.number(opcode.Br, part(first))
		return
	}
	w.number(opcode.LocalGet, w.enter)
	w.i32(w.basic[first].entry)
	w.op(opcode.I32Sub)
	w.number(opcode.BrTable, uint32(w.basic[last].entry-w.basic[first].entry))
	for k := first; k < last; k++ {
		if w.basic[k].entry < 0 {
			continue
		}
		if _, ok := slices.BinarySearch(l.entries, k); ok {
			w.body = appendU32(w.body, part(k))
		} else { // only inner loops are entered there
			w.body = appendU32(w.body, part(last))
		}
	}
	w.body = appendU32(w.body, part(last))
}

// writeBlock writes the code of a basic block.
func (w *looper) writeBlock(k int) {
	b := w.basic[k]
	if b.from == b.to {
		return
	}
	depth := 0
	copied := w.code[b.from].at
	for i := b.from; i < b.to; i++ {
		in := w.code[i]
		switch in.op {
		case opcode.Block, opcode.Loop, opcode.If:
			depth++
		case opcode.End:
			depth--
		case opcode.Br, opcode.BrIf:
			around := int(in.n) - depth
			switch toLoop := len(w.basic) - 1 - k; {
			case around < 0:
			case around == toLoop:
				w.copy(copied, w.code[i-2].at)
				copied = in.end
				w.inserted(i)
				w.jump(w.selected(w.code[i-2].n), k, depth)
			default: // out of the function's loop
				w.copy(copied, in.at)
				copied = in.end
				w.inserted(i)
				w.number(in.op, uint32(around-toLoop-1+w.open-w.outer+depth))
			}
		}
	}
	w.copy(copied, w.code[b.to-1].end)
	w.inserted(b.to)
}

// target finds where a jump from a block, or from the entry if it is -1, leads: to the beginning of a loop around
// the block, or to the part of the innermost loop around both that has the target.
func (w *looper) target(to, from int) (label int, loop int) {
	around := -1
	if from >= 0 {
		around = w.basic[from].loop
		for around >= 0 && (to < w.loops[around].from || w.loops[around].to < to) {
			around = w.loops[around].around
		}
	}
	if around >= 0 && w.loops[around].from == to {
		return w.loops[around].label, around
	}
	part, loop := to, -1
	for i := w.basic[to].loop; i != around; i = w.loops[i].around {
		part, loop = w.loops[i].from, i
	}
	return w.basic[part].label, loop
}

// entersLoop reports whether a jump leads to a loop that is entered at several blocks.
func (w *looper) entersLoop(to, from int) bool {
	_, loop := w.target(to, from)
	return loop >= 0 && len(w.loops[loop].entries) > 0
}

// jump writes a jump to a block, within some blocks of the code itself.
func (w *looper) jump(to, from, depth int) {
	if w.entersLoop(to, from) {
		w.sayEntry(to)
	}
	label, _ := w.target(to, from)
	w.number(opcode.Br, w.label(label)+uint32(depth))
}

// sayEntry sets at which block a loop is entered.
func (w *looper) sayEntry(k int) {
	w.i32(w.basic[k].entry)
	w.number(opcode.LocalSet, w.enter)
}

// label is the label of the block that has so many around it.
func (w *looper) label(around int) uint32 { return uint32(w.open - 1 - around) }

func (w *looper) block(n int) {
	for range n {
		w.op(opcode.Block, opcode.BlockEmpty)
	}
	w.open += n
}

func (w *looper) end() {
	w.op(opcode.End)
	w.open--
}

func (w *looper) op(bytes ...byte) { w.body = append(w.body, bytes...) }

func (w *looper) number(op byte, n uint32) { w.body = appendU32(append(w.body, op), n) }

func (w *looper) i32(n int) { w.body = appendSigned(append(w.body, opcode.I32Const), int64(n)) }

// copy appends code as it is.
func (w *looper) copy(from, to int) {
	if from < to {
		w.offsets.add(piece{uint32(len(w.body)), uint32(from-w.m.CodeStart()) << 1})
		w.body = append(w.body, w.m.bytes[from:to]...)
	}
}

// inserted says which instruction the code belongs to that follows.
func (w *looper) inserted(instruction int) {
	w.offsets.add(piece{uint32(len(w.body)), uint32(w.code[instruction].at-w.m.CodeStart())<<1 | 1})
}
