package wasm

import "runner.example/internal/wasm/opcode"

// A bulk operation costs a unit for each 1<<bytesShift bytes or 1<<elementsShift table
// elements. A smaller one counts as an instruction.
const (
	bytesShift    = 7
	elementsShift = 4
)

// noPlace pushes that a function has no parameter that says where its code continues.
var noPlace = []byte{opcode.I32Const, 0x7f}

// parameterPlace pushes the parameter that says where a function of Go continues.
var parameterPlace = []byte{opcode.LocalGet, 0}

// place pushes where the function continues, see FuelImport.
func (f *function) place() []byte {
	if f.resumes {
		return parameterPlace
	}
	return noPlace
}

// fuelCheck is the code that counts fuel and refills it:
//
//	fuel -= cost; if fuel < 0 { fuel = refill(-1) }
//
// in two parts, around the instruction that pushes the cost.
func fuelCheck(fuel, refill uint32) (parts [2][]byte) {
	get := appendU32([]byte{opcode.GlobalGet}, fuel)
	set := appendU32([]byte{opcode.GlobalSet}, fuel)
	after := append([]byte{opcode.I32Sub}, set...)
	after = append(after, get...)
	after = append(after, opcode.I32Const, 0, opcode.I32GeS, opcode.If, opcode.BlockEmpty, opcode.Else)
	after = append(after, noPlace...)
	after = append(appendU32(append(after, opcode.Call), refill), set...)
	return [2][]byte{get, append(after, opcode.End)}
}

// refillNow appends the code after a growth of memory:
//
//	fuel = refill(-1)
func (w *rewriter) refillNow(b []byte) []byte {
	b = appendU32(append(append(b, noPlace...), opcode.Call), w.refill)
	return appendU32(append(b, opcode.GlobalSet), w.fuel)
}

func (w *rewriter) giveStackBack(b []byte, local uint32) []byte {
	b = appendU32(append(b, opcode.LocalGet), local)
	return appendU32(append(b, opcode.GlobalSet), w.depth)
}

func around(b []byte, parts [2][]byte, n uint32) []byte {
	b = append(b, parts[0]...)
	b = appendSigned(append(b, opcode.I32Const), int64(int32(n)))
	return append(b, parts[1]...)
}

// codeSection writes the code anew.
func (w *rewriter) codeSection() []byte {
	m := w.m
	if w.link == nil && w.Fuel == nil && w.MaxStack == 0 && !w.divides && !w.Offsets && m.used&tailCalls == 0 || len(m.functions) == 0 {
		return m.content(sectionCode)
	}
	size := len(m.content(sectionCode))
	out := appendU32(make([]byte, 0, size+size/4+64), uint32(len(m.functions)+len(w.helpers)))
	for i := range m.functions {
		w.offsets.begin()
		w.body = w.emitFunction(w.body[:0], i)
		if w.link != nil {
			w.body = w.link.reduce(w.body, uint32(len(m.imports)+i), len(m.types[m.functions[i].typeIndex].Params))
		}
		out = appendSized(out, w.body)
		w.offsets.finish(len(out)-len(w.body), len(out))
	}
	for _, h := range w.helpers {
		out = appendSized(out, h.body)
	}
	return out
}

func (w *rewriter) emitFunction(b []byte, i int) []byte {
	m := w.m
	f := &m.functions[i]
	n := w.checks(i)
	b, added := w.locals(b, f, n.asks)
	b = w.copyThen(b, f.code, f.code, f.code)
	if !n.charged && !n.asks {
		return append(w.code(b, f, false, added), opcode.End)
	}
	c := check{need: n, place: f.place()}
	if n.charged {
		c.cost = units(f.weight)
		w.done.FuelChecks++
	}
	if n.asks {
		w.done.StackChecks++
		b = appendU32(append(b, opcode.GlobalGet), w.depth)
		b = appendU32(append(b, opcode.LocalSet), added.depth)
	}
	blockType := w.blockType(m.types[f.typeIndex].Results)
	b = w.openCheck(b, blockType, c)
	b = append(w.code(b, f, n.asks, added), opcode.End)
	b = w.copyThen(b, f.code, f.code, f.code)
	if n.asks {
		b = w.giveStackBack(b, added.depth)
	}
	b = append(b, opcode.Return)
	return append(w.closeCheck(b, c), opcode.End)
}

// checks is what a function checks when it is called.
func (w *rewriter) checks(i int) (n need) {
	if w.needs != nil {
		n = w.needs[i]
	}
	n.charged = n.charged && w.Fuel != nil
	n.asks = n.asks && w.MaxStack > 0
	return n
}

// addedLocals are the indexes of a function's added locals.
type addedLocals struct {
	bulk       uint32 // i32: what its bulk operations need twice
	depth      uint32 // i32
	i32s, i64s uint32 // the first of two for remainders
}

// locals writes a function's locals, and those that are added.
func (w *rewriter) locals(b []byte, f *function, asks bool) (_ []byte, l addedLocals) {
	groups, size := uleb32(w.m.bytes[f.start:f.code])
	var added []byte
	next := uint32(f.locals)
	add := func(needed bool, n byte, t ValueType) uint32 {
		if !needed {
			return 0
		}
		added = append(added, n, byte(t))
		groups, next = groups+1, next+uint32(n)
		return next - uint32(n)
	}
	l.bulk = add(w.Fuel != nil && f.bulk, 1, I32)
	l.depth = add(asks, 1, I32)
	l.i32s = add(w.divides && f.remainders.i32, 2, I32)
	l.i64s = add(w.divides && f.remainders.i64, 2, I64)
	b = append(appendU32(b, groups), w.m.bytes[f.start+size:f.code]...)
	return append(b, added...), l
}

// blockType is the type of the block that a function's code becomes, so that whatever
// leaves it comes by its end.
func (w *rewriter) blockType(results []ValueType) []byte {
	switch len(results) {
	case 0:
		return []byte{opcode.BlockEmpty}
	case 1:
		return []byte{byte(results[0])}
	}
	return appendSigned(nil, w.resultBlocks[string(bytesOf(results))])
}

// code writes a function's code without its closing end. What was checked when
// it was read is taken for granted.
func (w *rewriter) code(b []byte, f *function, asks bool, added addedLocals) []byte {
	m, src := w.m, w.m.bytes[:f.end]
	var (
		pos    = f.code
		copied = pos       // all before it is written
		last   = int64(-1) // the i32 constant just pushed, if not negative
	)
	w.blocks.reset()
	for {
		at := pos
		if w.split < len(m.splits) && m.splits[w.split] == at {
			w.split++
			if w.Fuel != nil {
				b = w.copyThen(b, copied, at, at)
				copied = at
				b = around(b, w.charge, units(stretch))
				w.done.FuelChecks++
			}
		}
		op := src[pos]
		pos++
		constant := last
		last = -1
		switch opcode.Immediates[op] {
		case opcode.ImmNone:
			switch {
			case op == opcode.End && len(w.blocks.open) == 1:
				return w.copyThen(b, copied, at, at)
			case op == opcode.End:
				if loop := w.blocks.pop(); loop.check.cost > 0 {
					b = w.copyThen(b, copied, at, loop.at)
					b = append(b, opcode.End, opcode.Br, 2)
					b = append(w.closeCheck(b, loop.check), opcode.End)
					copied = pos
				}
			case op == opcode.Return && asks:
				b = w.leave(w.copyThen(b, copied, at, at), asks)
				copied = pos
			case w.divides && opcode.IsRemainder(op):
				b = remainder(w.copyThen(b, copied, at, at), op, added)
				copied = pos
			}
		case opcode.ImmLocal, opcode.ImmGlobal, opcode.ImmTableIdx:
			pos = opcode.SkipNumber(src, pos)
		case opcode.ImmLabel:
			label, size := uleb32(src[pos:])
			pos += size
			if goes := w.blocks.label(label); goes != label {
				b = w.copyCode(b, copied, at+1)
				b = appendU32(b, goes)
				copied = pos
			}
		case opcode.ImmI32:
			n, size := sleb(src[pos:], 32)
			last = n
			pos += size
		case opcode.ImmI64:
			pos = opcode.SkipNumber(src, pos)
		case opcode.ImmMemarg:
			pos = opcode.SkipNumber(src, opcode.SkipNumber(src, pos))
		case opcode.ImmIndirect:
			t, size := uleb32(src[pos:])
			numbers := pos
			pos = opcode.SkipNumber(src, pos+size)
			switch {
			case op != opcode.ReturnCallIndirect:
			case w.jumps(op, t):
				if asks {
					b = w.giveStackBack(w.copyThen(b, copied, at, at), added.depth)
					copied = at
				}
			default:
				b = append(w.copyThen(b, copied, at, at), opcode.CallIndirect)
				b = w.leave(append(b, src[numbers:pos]...), asks)
				copied = pos
			}
		case opcode.ImmBlock:
			pos = opcode.SkipNumber(src, pos)
			if op != opcode.Loop || w.Fuel == nil {
				w.blocks.push()
				break
			}
			cost := units(m.loops[w.loop])
			w.loop++
			w.done.FuelChecks++
			c := check{need{charged: true}, cost, f.place()}
			if w.place < len(m.places) && m.places[w.place].at == at {
				c.place = appendSigned([]byte{opcode.I32Const}, int64(m.places[w.place].block))
				w.place++
			}
			if blockType := src[at+1 : pos]; w.takesNothing(blockType) {
				b = w.copyThen(b, copied, at, at)
				b = append(append(b, opcode.Block), blockType...)
				b = w.openCheck(b, blockType, c)
				w.blocks.pushLoop(c, at)
			} else {
				w.blocks.push()
				b = w.copyThen(b, copied, pos, at)
				b = around(b, w.charge, cost)
			}
			copied = pos
		case opcode.ImmFunction:
			callee, size := uleb32(src[pos:])
			pos += size
			if op == opcode.ReturnCall {
				if !w.jumps(op, callee) {
					b = appendU32(append(w.copyThen(b, copied, at, at), opcode.Call), w.function(callee))
					b = w.leave(b, asks)
					copied = pos
					break
				}
				if asks {
					b = w.giveStackBack(w.copyThen(b, copied, at, at), added.depth)
					copied = at
				}
			}
			if shifted := w.function(callee); shifted != callee {
				b = w.copyCode(b, copied, at+1)
				b = appendU32(b, shifted)
				copied = pos
			}
		case opcode.ImmTable:
			n, size := uleb32(src[pos:])
			pos += size
			if w.blocks.same() {
				for range uint64(n) + 1 {
					pos = opcode.SkipNumber(src, pos)
				}
				break
			}
			b = w.copyCode(b, copied, pos)
			for range uint64(n) + 1 {
				label, size := uleb32(src[pos:])
				pos += size
				b = appendU32(b, w.blocks.label(label))
			}
			copied = pos
		case opcode.ImmF32:
			pos += 4
		case opcode.ImmF64:
			pos += 8
		case opcode.ImmMemory, opcode.ImmRefType:
			pos++
			if op == opcode.MemoryGrow && w.Fuel != nil {
				b = w.copyThen(b, copied, pos, at)
				copied = pos
				b = w.refillNow(b)
				w.done.FuelChecks++
			}
		case opcode.ImmTypes:
			pos += 2
		case opcode.ImmMisc:
			sub := src[pos]
			pos = opcode.SkipMisc(src, pos)
			if shift := bulkShift(sub); w.Fuel != nil && isCharged(shift, constant) {
				b = w.copyThen(b, copied, at, at)
				copied = pos
				switch sub {
				case opcode.MiscMemoryFill:
					b = appendU32(append(b, opcode.Call), w.fillAt)
				case opcode.MiscMemoryCopy:
					b = appendU32(append(b, opcode.Call), w.copyAt)
				default:
					copied = at
					b = w.bulk(b, added.bulk, shift)
				}
				w.done.FuelChecks++
			}
		case opcode.ImmVector:
			pos = opcode.SkipVector(src, pos)
		case opcode.ImmAtomic:
			pos = opcode.SkipAtomic(src, pos)
		}
	}
}

// leave appends a return of the function, which comes by its end if it has asked for stack.
func (w *rewriter) leave(b []byte, asks bool) []byte {
	if !asks {
		return append(b, opcode.Return)
	}
	return appendU32(append(b, opcode.Br), w.blocks.label(uint32(len(w.blocks.open)-1)))
}

// bulk charges a bulk operation whose length is on the stack:
//
//	if length > 1<<shift { fuel -= length >> shift; if fuel < 0 { fuel = refill(-1) } }
func (w *rewriter) bulk(b []byte, local uint32, shift int64) []byte {
	b = appendU32(append(b, opcode.LocalTee), local)
	b = appendU32(append(b, opcode.LocalGet), local)
	b = appendSigned(append(b, opcode.I32Const), 1<<shift)
	b = append(b, opcode.I32GtU, opcode.If, opcode.BlockEmpty)
	b = append(b, w.charge[0]...)
	b = appendU32(append(b, opcode.LocalGet), local)
	b = appendSigned(append(b, opcode.I32Const), shift)
	b = append(b, opcode.I32ShrU)
	b = append(b, w.charge[1]...)
	return append(b, opcode.End)
}

// bulkShift returns how the length of a 0xfc instruction is charged, 0 if it has
// none.
func bulkShift(sub byte) int64 {
	switch sub {
	case opcode.MiscMemoryInit, opcode.MiscMemoryCopy, opcode.MiscMemoryFill:
		return bytesShift
	case opcode.MiscTableInit, opcode.MiscTableCopy, opcode.MiscTableGrow, opcode.MiscTableFill:
		return elementsShift
	}
	return 0
}

// isCharged reports whether a length may be charged; constant is what
// it is, if it is not negative.
func isCharged(shift, constant int64) bool {
	return shift > 0 && (constant < 0 || constant > 1<<shift)
}
