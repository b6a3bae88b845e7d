package wasm

import "runner.example/internal/wasm/opcode"

// boot makes the start function, which does what happens when instances are made one after the other:
// for each part its active segments in order, first the elements, and then its start function.
//
// A segment stays active, and so comes before all code, if no code can tell. Otherwise it becomes a
// passive one and a step of the start function. So does one that may not fit: wazero ignores active
// elements outside of their table.
type boot struct {
	*merger
	code   assembler
	calls  []uint32 // of start functions
	last   int      // the last part whose start function has run, or -1
	tables bool     // a start function that has run may have used a table
	seen   []bool   // functions that mayUseTables has followed
}

// addStart decides what becomes of segments and start functions.
func (w *merger) addStart() {
	b := &boot{merger: w, last: -1, seen: make([]bool, len(w.functions))}
	steps := 0
	for at, p := range w.parts {
		for i, e := range p.Module.elements {
			late := e.active() && !b.keepElement(p, e)
			p.elementSteps = append(p.elementSteps, late)
			if late {
				steps++
				b.element(p, uint32(i), e)
			}
		}
		for i, s := range p.Module.data {
			late := !s.passive && !b.keepData(p, s)
			p.dataSteps = append(p.dataSteps, late)
			if late {
				steps++
				b.segment(p, uint32(i), s)
			}
		}
		if p.start >= 0 {
			function := p.function(uint32(p.start))
			b.code.number(opcode.Call, function)
			b.calls = append(b.calls, function)
			b.last, b.tables = at, b.tables || b.mayUseTables(function)
		}
	}
	switch w.start = -1; {
	case len(b.code) == 0:
	case steps == 0 && len(b.calls) == 1 && int(b.calls[0]) >= len(w.Imports):
		w.start = int64(b.calls[0])
	default:
		w.start = int64(w.addHelper(FuncType{}, b.code))
	}
}

// keepElement reports whether an element segment can come before all code.
func (b *boot) keepElement(p *part, e element) bool {
	t := b.merger.tables[p.to.tables[e.table]]
	return b.fits(p, e.offset, e.count, uint64(t.Min)) && (t.owner > b.last || !b.tables)
}

// keepData is keepElement for a data segment. That of an empty memory is a step: it traps.
func (b *boot) keepData(p *part, s segment) bool {
	if p.to.empty {
		return b.fits(p, s.offset, s.end-s.start, 0)
	}
	live := b.memories[b.live]
	return b.fits(p, s.offset, s.end-s.start, uint64(live.MinPages)*PageBytes) && (b.last < 0 || live.owner > b.last)
}

// fits reports whether a segment is surely within what has the given size.
func (b *boot) fits(p *part, offset constant, size int, limit uint64) bool {
	_, c := b.value(p, offset)
	return c.op == opcode.I32Const && uint64(uint32(c.value))+uint64(size) <= limit
}

// element is the step for an element segment. It is dropped only if the part's code can tell.
func (b *boot) element(p *part, i uint32, e element) {
	b.operands(p, e.offset, e.count)
	b.code.op(opcode.Misc).number(opcode.MiscTableInit, p.to.elements[i])
	b.code = appendU32(b.code, p.to.tables[e.table])
	if p.uses&usesTableInit != 0 {
		b.code.op(opcode.Misc).number(opcode.MiscElemDrop, p.to.elements[i])
	}
}

// segment is the step for a data segment.
func (b *boot) segment(p *part, i uint32, s segment) {
	if p.to.empty {
		b.code = trapOutside(b.code)
		return
	}
	b.operands(p, s.offset, s.end-s.start)
	b.code.op(opcode.Misc).number(opcode.MiscMemoryInit, p.to.data[i]).op(0)
	if p.uses&usesMemoryInit != 0 {
		b.code.op(opcode.Misc).number(opcode.MiscDataDrop, p.to.data[i])
	}
}

// operands pushes where a whole segment goes.
func (b *boot) operands(p *part, offset constant, size int) {
	b.code = b.constant(b.code, p, offset)
	b.code = b.code[:len(b.code)-1] // without the end
	b.code.i32(0).i32(int64(size))
}

// mayUseTables reports whether a function may read or write a table, by itself or by what it calls.
// Code of added functions is not read: they may.
func (b *boot) mayUseTables(function uint32) bool {
	for open := []uint32{function}; len(open) > 0; {
		at := open[len(open)-1]
		open = open[:len(open)-1]
		switch {
		case b.seen[at] || int(at) < len(b.Imports):
			continue
		case b.functions[at].part < 0:
			return true
		}
		b.seen[at] = true
		p := b.parts[b.functions[at].part]
		f := p.Module.functions[at-p.first]
		if f.tables {
			return true
		}
		for _, callee := range p.calls[f.calls.from:f.calls.to] {
			open = append(open, p.to.functions[callee])
		}
	}
	return false
}
