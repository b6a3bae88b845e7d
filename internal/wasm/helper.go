package wasm

import (
	"slices"

	"runner.example/internal/wasm/opcode"
)

// helper is a function that is added after the module's own.
type helper struct {
	typeIndex uint32
	body      []byte // locals, code, closing end
}

// addHelper adds a function of i32 parameters without results, and returns its
// index.
func (w *rewriter) addHelper(params int, code []byte) uint32 {
	t := FuncType{Params: slices.Repeat([]ValueType{I32}, params)}
	body := append(append([]byte{0}, code...), opcode.End)
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
// cost, which is charged again, and the place for refill:
//
//	fuel = refill(place) + cost
func (w *rewriter) more() []byte {
	var a assembler
	const cost, place = 0, 1
	return *a.get(place).number(opcode.Call, w.refill).get(cost).op(opcode.I32Add).number(opcode.GlobalSet, w.fuel)
}

// deeper is called where a check found no fuel or stack, before the check is made again. It
// takes what the check added to the depth, the part of it that is needed for callees, and
// what it took of the fuel, and undoes it, and the place for refill:
//
//	if fuel < 0 { fuel = refill(place) }
//	fuel += cost
//	if depth > most {
//		depth = used() + below; if depth > most { trap }
//	}
//	depth -= bytes
//
// Without Options.Stack it traps instead of calling used.
func (w *rewriter) deeper() []byte {
	const bytes, below, cost, place = 0, 1, 2, 3
	var a assembler
	if w.Fuel != nil {
		a.number(opcode.GlobalGet, w.fuel).i32(0).op(opcode.I32LtS, opcode.If, opcode.BlockEmpty)
		a.get(place).number(opcode.Call, w.refill).number(opcode.GlobalSet, w.fuel).op(opcode.End)
		a.number(opcode.GlobalGet, w.fuel).get(cost).op(opcode.I32Add).number(opcode.GlobalSet, w.fuel)
	}
	above := func() {
		a.number(opcode.GlobalGet, w.depth).i32(int64(w.MaxStack)).op(opcode.I32GtU, opcode.If, opcode.BlockEmpty)
	}
	above()
	if w.Stack != nil {
		a.number(opcode.Call, w.used).get(below).op(opcode.I32Add).number(opcode.GlobalSet, w.depth)
		above()
	}
	a.op(opcode.Unreachable, opcode.End)
	if w.Stack != nil {
		a.op(opcode.End)
	}
	a.number(opcode.GlobalGet, w.depth).get(bytes).op(opcode.I32Sub)
	return *a.number(opcode.GlobalSet, w.depth)
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
	a.large().inMemory(bulkTo).op(opcode.I32And, opcode.If, opcode.BlockEmpty)
	a.op(opcode.Loop, opcode.BlockEmpty)
	a.pay(w, chunkBytes)
	a.get(bulkTo, bulkFrom).i32(chunkBytes).op(opcode.Misc, opcode.MiscMemoryFill, 0)
	a.add(bulkTo, chunkBytes).add(bulkLength, -chunkBytes)
	a.large().op(opcode.BrIf, 0, opcode.End, opcode.End)
	a.payRest(w).op(opcode.End)
	return *a.get(bulkTo, bulkFrom, bulkLength).op(opcode.Misc, opcode.MiscMemoryFill, 0)
}

// copy is memory.copy in parts, from the first to the last, or the other way if
// the last ones would be overwritten before they are copied.
func (w *rewriter) copy() []byte {
	var a assembler
	a.long()
	a.large().inMemory(bulkTo).op(opcode.I32And).inMemory(bulkFrom).op(opcode.I32And, opcode.If, opcode.BlockEmpty)
	a.get(bulkTo, bulkFrom).op(opcode.I32LeU, opcode.If, opcode.BlockEmpty)
	a.op(opcode.Loop, opcode.BlockEmpty)
	a.pay(w, chunkBytes)
	a.get(bulkTo, bulkFrom).i32(chunkBytes).op(opcode.Misc, opcode.MiscMemoryCopy, 0, 0)
	a.add(bulkTo, chunkBytes).add(bulkFrom, chunkBytes).add(bulkLength, -chunkBytes)
	a.large().op(opcode.BrIf, 0, opcode.End)
	a.op(opcode.Else, opcode.Loop, opcode.BlockEmpty)
	a.pay(w, chunkBytes)
	a.add(bulkLength, -chunkBytes)
	a.get(bulkTo, bulkLength).op(opcode.I32Add).get(bulkFrom, bulkLength).op(opcode.I32Add)
	a.i32(chunkBytes).op(opcode.Misc, opcode.MiscMemoryCopy, 0, 0)
	a.large().op(opcode.BrIf, 0, opcode.End, opcode.End, opcode.End)
	a.payRest(w).op(opcode.End)
	return *a.get(bulkTo, bulkFrom, bulkLength).op(opcode.Misc, opcode.MiscMemoryCopy, 0, 0)
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
	*a = appendSigned(append(*a, opcode.I32Const), n)
	return a
}

// get pushes locals.
func (a *assembler) get(locals ...uint32) *assembler {
	for _, l := range locals {
		a.number(opcode.LocalGet, l)
	}
	return a
}

func (a *assembler) add(local uint32, n int64) *assembler {
	return a.number(opcode.LocalGet, local).i32(n).op(opcode.I32Add).number(opcode.LocalSet, local)
}

// long opens the block for lengths that are paid for.
func (a *assembler) long() {
	a.get(bulkLength).i32(1<<bytesShift).op(opcode.I32GtU, opcode.If, opcode.BlockEmpty)
}

// large pushes whether there is more than a chunk left.
func (a *assembler) large() *assembler {
	return a.get(bulkLength).i32(chunkBytes).op(opcode.I32GtU)
}

// inMemory pushes whether all from the given place on is in memory.
func (a *assembler) inMemory(from uint32) *assembler {
	a.get(from).op(opcode.I64ExtendU).get(bulkLength).op(opcode.I64ExtendU, opcode.I64Add)
	a.op(opcode.MemorySize, 0, opcode.I64ExtendU, opcode.I64Const, 16, opcode.I64Shl)
	return a.op(opcode.I64LeU)
}

func (a *assembler) pay(w *rewriter, bytes uint32) {
	*a = around(*a, w.charge, bytes>>bytesShift)
}

func (a *assembler) payRest(w *rewriter) *assembler {
	a.op(w.charge[0]...)
	return a.get(bulkLength).i32(bytesShift).op(opcode.I32ShrU).op(w.charge[1]...)
}
