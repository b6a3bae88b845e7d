package wasm

import "slices"

// helper is a function that is added after the module's own.
type helper struct {
	typeIndex uint32
	body      []byte // locals, code, closing end
}

// addHelper adds a function of i32 parameters without results, and returns its
// index.
func (w *rewriter) addHelper(params int, code []byte) uint32 {
	t := FuncType{Params: slices.Repeat([]ValueType{I32}, params)}
	body := append(append([]byte{0}, code...), opEnd)
	w.helpers = append(w.helpers, helper{uint32(w.typeIndex(t)), body})
	return uint32(w.m.functionCount() + len(w.added) + len(w.helpers) - 1)
}

func (w *rewriter) functionSection() []byte {
	if len(w.helpers) == 0 {
		return w.m.content(sectionFunction)
	}
	b := appendU32(nil, uint32(len(w.m.functions)+len(w.helpers)))
	b = append(b, w.m.entries(sectionFunction)...)
	for _, h := range w.helpers {
		b = appendU32(b, h.typeIndex)
	}
	return b
}

// more is called where a check found no fuel, before the check is made again. It takes the
// cost, which is charged again:
//
//	fuel = refill() + cost
func (w *rewriter) more() []byte {
	var a assembler
	return *a.number(opCall, w.refill).get(0).op(opI32Add).number(opGlobalSet, w.fuel)
}

// deeper is called where a check found no fuel or stack, before the check is made again. It
// takes what the check added to the depth, the part of it that is needed for callees, and
// what it took of the fuel, and undoes it:
//
//	if fuel < 0 { fuel = refill() }
//	fuel += cost
//	if depth > most {
//		depth = used() + below; if depth > most { trap }
//	}
//	depth -= bytes
//
// Without Options.Stack it traps instead of calling used.
func (w *rewriter) deeper() []byte {
	const bytes, below, cost = 0, 1, 2
	var a assembler
	if w.Fuel != nil {
		a.number(opGlobalGet, w.fuel).i32(0).op(opI32LtS, opIf, blockEmpty)
		a.number(opCall, w.refill).number(opGlobalSet, w.fuel).op(opEnd)
		a.number(opGlobalGet, w.fuel).get(cost).op(opI32Add).number(opGlobalSet, w.fuel)
	}
	above := func() { a.number(opGlobalGet, w.depth).i32(int64(w.MaxStack)).op(opI32GtU, opIf, blockEmpty) }
	above()
	if w.Stack != nil {
		a.number(opCall, w.used).get(below).op(opI32Add).number(opGlobalSet, w.depth)
		above()
	}
	a.op(opUnreachable, opEnd)
	if w.Stack != nil {
		a.op(opEnd)
	}
	a.number(opGlobalGet, w.depth).get(bytes).op(opI32Sub)
	return *a.number(opGlobalSet, w.depth)
}

// chunkBytes is how much of memory is filled or copied at a time.
const chunkBytes = 16 << 10

// Parameters of fill and copy: where to, what or where from, how many bytes.
const (
	bulkTo     = 0
	bulkFrom   = 1
	bulkLength = 2
)

// fill is memory.fill in parts, each of which is paid for:
//
//	if length > 1<<bytesShift {
//		if length > chunk && to+length is in memory {
//			do { pay; fill a chunk; to += chunk; length -= chunk } while length > chunk
//		}
//		pay
//	}
//	fill the rest
func (w *rewriter) fill() []byte {
	var a assembler
	a.long()
	a.large().inMemory(bulkTo).op(opI32And, opIf, blockEmpty)
	a.op(opLoop, blockEmpty)
	a.pay(w, chunkBytes)
	a.get(bulkTo, bulkFrom).i32(chunkBytes).op(opMisc, miscMemoryFill, 0)
	a.add(bulkTo, chunkBytes).add(bulkLength, -chunkBytes)
	a.large().op(opBrIf, 0, opEnd, opEnd)
	a.payRest(w).op(opEnd)
	return *a.get(bulkTo, bulkFrom, bulkLength).op(opMisc, miscMemoryFill, 0)
}

// copy is memory.copy in parts, from the first to the last, or the other way if
// the last ones would be overwritten before they are copied.
func (w *rewriter) copy() []byte {
	var a assembler
	a.long()
	a.large().inMemory(bulkTo).op(opI32And).inMemory(bulkFrom).op(opI32And, opIf, blockEmpty)
	a.get(bulkTo, bulkFrom).op(opI32LeU, opIf, blockEmpty)
	a.op(opLoop, blockEmpty)
	a.pay(w, chunkBytes)
	a.get(bulkTo, bulkFrom).i32(chunkBytes).op(opMisc, miscMemoryCopy, 0, 0)
	a.add(bulkTo, chunkBytes).add(bulkFrom, chunkBytes).add(bulkLength, -chunkBytes)
	a.large().op(opBrIf, 0, opEnd)
	a.op(opElse, opLoop, blockEmpty)
	a.pay(w, chunkBytes)
	a.add(bulkLength, -chunkBytes)
	a.get(bulkTo, bulkLength).op(opI32Add).get(bulkFrom, bulkLength).op(opI32Add)
	a.i32(chunkBytes).op(opMisc, miscMemoryCopy, 0, 0)
	a.large().op(opBrIf, 0, opEnd, opEnd, opEnd)
	a.payRest(w).op(opEnd)
	return *a.get(bulkTo, bulkFrom, bulkLength).op(opMisc, miscMemoryCopy, 0, 0)
}

// assembler appends instructions.
type assembler []byte

func (a *assembler) op(bytes ...byte) *assembler {
	*a = append(*a, bytes...)
	return a
}

func (a *assembler) number(op byte, n uint32) *assembler {
	*a = appendU32(append(*a, op), n)
	return a
}

func (a *assembler) i32(n int64) *assembler {
	*a = appendSigned(append(*a, opI32Const), n)
	return a
}

// get pushes locals.
func (a *assembler) get(locals ...uint32) *assembler {
	for _, l := range locals {
		a.number(opLocalGet, l)
	}
	return a
}

func (a *assembler) add(local uint32, n int64) *assembler {
	return a.number(opLocalGet, local).i32(n).op(opI32Add).number(opLocalSet, local)
}

// long opens the block for lengths that are paid for.
func (a *assembler) long() {
	a.get(bulkLength).i32(1<<bytesShift).op(opI32GtU, opIf, blockEmpty)
}

// large pushes whether there is more than a chunk left.
func (a *assembler) large() *assembler {
	return a.get(bulkLength).i32(chunkBytes).op(opI32GtU)
}

// inMemory pushes whether all from the given place on is in memory.
func (a *assembler) inMemory(from uint32) *assembler {
	a.get(from).op(opI64ExtendU).get(bulkLength).op(opI64ExtendU, opI64Add)
	a.op(opMemorySize, 0, opI64ExtendU, opI64Const, 16, opI64Shl)
	return a.op(opI64LeU)
}

func (a *assembler) pay(w *rewriter, bytes uint32) {
	*a = around(*a, w.charge, bytes>>bytesShift)
}

func (a *assembler) payRest(w *rewriter) *assembler {
	a.op(w.charge[0]...)
	return a.get(bulkLength).i32(bytesShift).op(opI32ShrU).op(w.charge[1]...)
}
