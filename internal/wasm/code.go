package wasm

import (
	"errors"
	"math"
	"slices"
	"time"

	"runner.example/internal/wasm/opcode"
)

// function is one function that the module defines.
type function struct {
	typeIndex  uint32
	start, end int    // of its body in the file: locals, code, closing end
	code       int    // where its code begins
	locals     int    // parameters included
	weight     uint32 // of the heaviest path through its code outside of loops
	plain      uint32 // weight of all its code, without what it calls
	frame      uint32 // bytes of native stack that a call of it takes at most
	branches   int64  // in tenths of an if: see addCompileTime
	edges      int64  // between basic blocks
	checks     int64  // instructions that may trap or call, which end a basic block
	calls      list   // in Module.calls: functions called directly, each once
	indirect   list   // in Module.indirect: types called through tables, each once
	hasCall    bool
	bulk       bool // it has bulk operations besides fill and copy that are charged by their length
	remainders remainders
	loopFirst  bool // it reaches a loop before anything that branches or calls
	resumes    bool // see FuelImport
	tables     bool // it names a table
}

type list struct{ from, to int }

// frame is an open block while code is read.
type frame struct {
	loop   int32  // in Module.loops, or -1
	level  int32  // in coder.levels: where its weight is added
	start  uint32 // of an if: the level's path at its condition
	path   uint32 // the heaviest path that branches to its end
	sets   int64  // that were seen when it began
	values int32  // that a branch to it passes
}

// level is the function or one of the loops around the code that is being read.
type level struct {
	path uint32 // weight of the heaviest path from the last check to here
	most uint32 // that path has weighed
}

// coder reads the code section.
type coder struct {
	*reader
	m       *Module
	frames  []frame
	seen    []uint32 // by function: 1 + the last function that was seen to call it
	seenBy  []uint32 // by type, the same for indirect calls
	arities []arity
	levels  []level
	to      int // the frame of the last branch
	native  native
	locals  int // of all functions so far
	compile time.Duration
	longest time.Duration // of the functions so far
}

type arity struct {
	params, results int32
	wide            bool // there are opcode.Vectors among them
}

// readCode reads the code section: u32 count · functions: u32 size · body.
func (m *Module) readCode(r *reader) {
	n := r.count("functions", m.limits.Functions, 3)
	if r.err == nil && n != len(m.functions) {
		r.fail("code for %d functions, of which %d are declared", n, len(m.functions))
	}
	if r.err != nil {
		return
	}
	c := &coder{
		reader: r, m: m,
		seen:    make([]uint32, m.functionCount()),
		seenBy:  make([]uint32, len(m.types)),
		arities: make([]arity, len(m.types)),
	}
	for i, t := range m.types {
		c.arities[i] = arity{
			int32(len(t.Params)), int32(len(t.Results)), slices.Contains(t.Params, V128) || slices.Contains(t.Results, V128),
		}
	}
	end := r.end
	for i := range m.functions {
		size := r.u32()
		switch {
		case r.err != nil:
		case int64(size) > int64(m.limits.BodyBytes):
			r.refuse("has a function of %d KiB (number %d), and one may have %d: split it",
				size>>10, len(m.imports)+i, m.limits.BodyBytes>>10)
		case uint64(size) > uint64(r.left()):
			r.fail("function %d ends outside the section", len(m.imports)+i)
		}
		if r.err != nil {
			return
		}
		r.end = r.pos + int(size)
		c.readFunction(i)
		if r.err == nil && r.pos != r.end {
			r.fail("function %d has %d bytes left over", len(m.imports)+i, r.left())
		}
		r.end = end
		if r.err != nil {
			return
		}
	}
}

func (c *coder) readFunction(i int) {
	f := &c.m.functions[i]
	r := c.reader
	f.start, f.end = r.pos, r.end
	total := int64(len(c.m.types[f.typeIndex].Params))
	c.native = native{wide: c.arities[f.typeIndex].wide}
	for range r.count("groups of locals", math.MaxInt32, 2) {
		total += int64(r.u32())
		c.native.wide = r.valueType() == V128 || c.native.wide
		if total > int64(c.m.limits.Locals) {
			r.refuse("has a function with more than %d locals (number %d): split it", c.m.limits.Locals, len(c.m.imports)+i)
		}
		if r.err != nil {
			return
		}
	}
	if c.locals += int(total); c.locals > c.m.limits.AllLocals {
		r.refuse("has more than %d locals in all its functions: build it with optimization", c.m.limits.AllLocals)
		return
	}
	f.locals = int(total)
	f.code = r.pos
	f.calls.from, f.indirect.from = len(c.m.calls), len(c.m.indirect)
	c.readInstructions(f, uint32(i)+1)
	if r.err == nil {
		c.addCompileTime(f, len(c.m.imports)+i)
		c.measureFrame(f, len(c.m.imports)+i)
	}
	f.calls.to, f.indirect.to = len(c.m.calls), len(c.m.indirect)
}

// selectsParameter reports whether the function has the type (i32) -> i32 and the br_table at a
// position selects by the parameter.
func (c *coder) selectsParameter(f *function, at int) bool {
	t := c.m.types[f.typeIndex]
	return len(t.Params) == 1 && t.Params[0] == I32 && len(t.Results) == 1 && t.Results[0] == I32 &&
		c.bytes[at-2] == opcode.LocalGet && c.bytes[at-1] == 0
}

// Weights of branches, in tenths of an if without else. Those of loops and bulk operations
// include the inserted checks. Compiled bulk operations are loops.
const (
	tenthsIf     = 10
	tenthsBlock  = 5
	tenthsBranch = 7
	tenthsTarget = 3
	tenthsLoop   = 50
	tenthsBulk   = 40
)

// The measured maximum costs of compiling (wazero v1.12, AMD EPYC, functions of one kind of
// instruction, in all sizes up to a minute).
const (
	timePair    = 20 * time.Nanosecond // for each pair of branches
	timeLocals  = time.Nanosecond      // for each branch and pair of locals
	timePassed  = 400 * time.Nanosecond
	timeCheck   = 25 * time.Microsecond
	timeByte    = time.Microsecond // of code
	bytesEdge   = 6 << 10
	bytesPassed = 110 // for each value of a local that an edge passes
	bytesCheck  = 8 << 10
	bytesByte   = 200 // for each byte of code
)

// ErrCompileTime is at the end of Parse's error for a module that exceeds Limits.Compile. It
// says what to do.
var ErrCompileTime = errors.New("split functions with many branches and locals")

// addCompileTime adds the cost of compiling a function.
func (c *coder) addCompileTime(f *function, index int) {
	ifs, locals := f.branches/10, int64(f.locals)
	took := time.Duration(ifs*ifs)*timePair + time.Duration(locals*locals*ifs)*timeLocals
	if c.compile += took; c.compile > c.m.limits.Compile {
		c.refuse("would take more than %s to compile (function %d alone %s): %w",
			c.m.limits.Compile, index, took.Round(time.Second/10), ErrCompileTime)
	}
	passed := f.edges * min(locals, c.native.sets) // each edge passes a value of each local that is set
	size := int64(f.end - f.code)
	took += time.Duration(ifs*ifs)*timePair + time.Duration(passed)*timePassed + time.Duration(f.checks)*timeCheck +
		time.Duration(size)*timeByte
	if took > c.longest {
		c.longest, c.m.cost.Heaviest = took, index
	}
	c.m.cost.Time += took
	c.m.cost.Memory = max(c.m.cost.Memory, f.edges*bytesEdge+passed*bytesPassed+f.checks*bytesCheck+size*bytesByte)
}

// Cost is an upper bound of the cost of compiling a module, estimated from its functions. For
// usual modules it is far too high.
type Cost struct {
	Time     time.Duration // of one processor
	Memory   int64         // bytes for each function that is compiled at a time
	Heaviest int           // the function that takes the longest
}

// CompileCost returns the cost of compiling the module.
func (m *Module) CompileCost() Cost { return m.cost }

// readInstructions decodes the code of a function to its closing end. stamp is
// the function's own number in seen.
func (c *coder) readInstructions(f *function, stamp uint32) {
	r, m := c.reader, c.m
	var (
		n        = &c.native
		values   = int64(0)
		straight = true      // nothing has branched or called yet
		last     = int64(-1) // the i32 constant just pushed, if not negative
	)
	results := c.arities[f.typeIndex].results
	c.frames = append(c.frames[:0], frame{loop: -1, values: results})
	c.levels = append(c.levels[:0], level{})
	for r.err == nil {
		if values > int64(m.limits.BlockValues) {
			r.refuse("has a function whose blocks, branches and calls pass more than %d values: split it", m.limits.BlockValues)
			return
		}
		at := r.pos
		op := r.byte()
		c.weigh(at, uint32(opcode.Weights[op]))
		f.plain += opcode.PlainWeight(op)
		n.values += int64(opcode.NativeValues[op])
		if opcode.MayTrap(op) {
			f.checks++
		}
		constant := last
		last = -1
		switch opcode.Immediates[op] {
		case opcode.ImmNone:
			switch op {
			case opcode.End:
				top := c.frames[len(c.frames)-1]
				c.frames = c.frames[:len(c.frames)-1]
				n.meet(f.locals, top)
				c.close(top)
				if len(c.frames) == 0 {
					f.weight = c.levels[0].most
					return
				}
			case opcode.Else:
				straight = false
				c.enterElse()
			case opcode.Return:
				straight = false
				values += int64(results)
				c.endPath()
			case opcode.Unreachable:
				c.endPath()
			case opcode.I32RemS, opcode.I32RemU:
				f.remainders.i32 = true
			case opcode.I64RemS, opcode.I64RemU:
				f.remainders.i64 = true
			default:
				m.used |= featureOf(op)
			}
		case opcode.ImmLocal:
			i := r.u32()
			if r.err == nil && uint64(i) >= uint64(f.locals) {
				r.failAt(at, "local %d of %d", i, f.locals)
			}
			if op != opcode.LocalGet {
				n.sets++
			}
		case opcode.ImmI32:
			last = r.signed(32)
		case opcode.ImmMemarg:
			c.memarg()
		case opcode.ImmLabel:
			f.branches += tenthsBranch
			f.edges++
			values += c.label()
			straight = false
			if op == opcode.Br {
				c.endPath()
			}
		case opcode.ImmBlock:
			params, results := c.blockType()
			values += int64(params) + int64(results)
			n.values += int64(params) + int64(results)
			fr := frame{
				loop: -1, level: int32(len(c.levels) - 1), start: c.levels[len(c.levels)-1].path, sets: n.sets,
				values: results,
			}
			switch op {
			case opcode.Loop:
				fr.loop, fr.level, fr.values = int32(len(m.loops)), int32(len(c.levels)), params
				m.loops = append(m.loops, 0)
				c.levels = append(c.levels, level{})
				f.branches += tenthsLoop
				f.loopFirst = f.loopFirst || straight
			case opcode.Block:
				f.branches += tenthsBlock
			case opcode.If:
				f.branches += tenthsIf
				straight = false
			}
			f.edges += 2
			c.frames = append(c.frames, fr)
			if len(c.frames) > m.limits.Nesting {
				r.refuse("has blocks nested more than %d deep: split the function", m.limits.Nesting)
			}
		case opcode.ImmFunction:
			callee := m.functionIndex(r)
			if r.err != nil {
				return
			}
			if op == opcode.RefFunc {
				m.used |= references
				m.addToTable(callee)
				break
			}
			if op == opcode.ReturnCall {
				m.jump(callee)
			}
			a := c.arities[m.typeOf(callee)]
			values += int64(a.params) + int64(a.results)
			n.call(a)
			if c.seen[callee] != stamp {
				c.seen[callee] = stamp
				m.calls = append(m.calls, callee)
			}
			f.hasCall, straight = true, false
			if op == opcode.ReturnCall {
				values += int64(results)
				c.endPath()
			}
		case opcode.ImmIndirect:
			t := m.typeIndex(r)
			c.tableIndex()
			if r.err != nil {
				return
			}
			if op == opcode.ReturnCallIndirect {
				m.jumpThrough(t)
			}
			f.tables = true
			values += int64(c.arities[t].params) + int64(c.arities[t].results)
			n.call(c.arities[t])
			if c.seenBy[t] != stamp {
				c.seenBy[t] = stamp
				m.indirect = append(m.indirect, t)
			}
			f.hasCall, straight = true, false
			if op == opcode.ReturnCallIndirect {
				values += int64(results)
				c.endPath()
			}
		case opcode.ImmTable:
			f.resumes = f.resumes || straight && c.selectsParameter(f, at)
			for range r.count("targets in one br_table", math.MaxInt32, 1) + 1 {
				f.branches += tenthsTarget
				f.edges++
				values += c.label()
				if r.err != nil {
					return
				}
			}
			straight = false
			c.endPath()
		case opcode.ImmGlobal:
			i := r.u32()
			switch {
			case r.err != nil:
			case uint64(i) >= uint64(len(m.globals)):
				r.failAt(at, "global %d of %d", i, len(m.globals))
			default:
				n.wide = n.wide || m.globals[i].Type == V128
			}
		case opcode.ImmTableIdx:
			c.tableIndex()
			f.tables = true
			m.used |= references
			if op == opcode.TableSet {
				m.uses |= usesTableSet
			}
		case opcode.ImmI64:
			r.signed(64)
		case opcode.ImmF32:
			r.take(4)
		case opcode.ImmF64:
			r.take(8)
		case opcode.ImmMemory:
			c.memory()
		case opcode.ImmRefType:
			if t := r.byte(); !ValueType(t).isReference() {
				r.refuseType(t)
			}
			m.used |= references
		case opcode.ImmTypes:
			m.used |= references
			if n := r.byte(); r.err == nil && n != 1 {
				r.failAt(at, "a select of %d types", n)
			}
			r.valueType()
		case opcode.ImmMisc:
			if r.pos < r.end {
				c.weigh(at, opcode.MiscWeight(r.bytes[r.pos]))
				f.plain += opcode.MiscWeight(r.bytes[r.pos])
				shift := bulkShift(r.bytes[r.pos])
				if isCharged(shift, constant) {
					switch r.bytes[r.pos] {
					case opcode.MiscMemoryFill:
						m.fills = true
					case opcode.MiscMemoryCopy:
						m.copies = true
					default:
						f.bulk = true
					}
				}
				if shift > 0 {
					f.branches += tenthsBulk
				}
				f.checks++
				f.tables = f.tables || r.bytes[r.pos] >= opcode.MiscTableInit
			}
			c.misc()
		case opcode.ImmVector:
			n.wide = true
			if r.pos < r.end {
				c.weigh(at, opcode.VectorWeight(r.bytes[r.pos]))
				f.plain += opcode.VectorWeight(r.bytes[r.pos])
			}
			f.checks++
			m.used |= vectors
			c.vector()
		case opcode.ImmAtomic:
			if r.pos < r.end {
				c.weigh(at, opcode.AtomicWeight(r.bytes[r.pos]))
				f.plain += opcode.AtomicWeight(r.bytes[r.pos])
			}
			f.checks += 2 // the bounds and the alignment
			m.used |= atomics
			c.atomic()
		default:
			if feature, ok := opcode.FeatureOf(op); ok {
				r.refuse("%s", refusal(feature))
			}
			r.failAt(at, "an unknown instruction (%#x)", op)
		}
	}
}

// label reads the target of a branch, and returns how many values it takes.
func (c *coder) label() int64 {
	depth := c.u32()
	if c.err != nil {
		return 0
	}
	if uint64(depth) >= uint64(len(c.frames)) {
		c.fail("a branch out of %d blocks, of %d", uint64(depth)+1, len(c.frames))
		return 0
	}
	c.to = len(c.frames) - 1 - int(depth)
	c.join()
	return 1 + int64(c.frames[c.to].values)
}

// join adds the current path to those that lead to the end of the block c.to.
func (c *coder) join() {
	to := &c.frames[c.to]
	to.path = max(to.path, c.levels[to.level].path)
}

// blockType reads a block's type: none, one result, or a function type's index.
func (c *coder) blockType() (params, results int32) {
	if c.err != nil || c.pos >= c.end {
		c.byte() // says that it ends too early
		return 0, 0
	}
	switch first := c.bytes[c.pos]; {
	case first == opcode.BlockEmpty:
		c.pos++
		return 0, 0
	case first < 0x80 && first&0x40 != 0: // negative: a type
		c.native.wide = c.valueType() == V128 || c.native.wide
		return 0, 1
	}
	i := c.signed(33)
	if c.err == nil && (i < 0 || i >= int64(len(c.m.types))) {
		c.fail("a block of type %d, and there are %d", i, len(c.m.types))
	}
	if c.err != nil {
		return 0, 0
	}
	c.m.typedBlocks = true
	c.m.used |= multipleValues
	c.native.wide = c.native.wide || c.arities[i].wide
	return c.arities[i].params, c.arities[i].results
}

func (c *coder) memarg() {
	at := c.pos
	align := c.u32()
	c.u32()
	switch {
	case c.err != nil:
	case align >= 64 && align < 128:
		c.refuse("%s", refusal(opcode.MultiMemory))
	case align > 4:
		c.failAt(at, "an alignment of 2^%d", align)
	case c.m.memory == nil:
		c.failAt(at, "an access to a memory that is not there")
	}
}

// memory reads the zero byte that stands for the one memory.
func (c *coder) memory() {
	if b := c.byte(); c.err == nil && b != 0 {
		c.refuse("%s", refusal(opcode.MultiMemory))
	}
	if c.err == nil && c.m.memory == nil {
		c.fail("an access to a memory that is not there")
	}
}

func (c *coder) tableIndex() {
	if t := c.u32(); c.err == nil && uint64(t) >= uint64(len(c.m.tables)) {
		c.fail("table %d of %d", t, len(c.m.tables))
	}
}

func (c *coder) elementIndex() {
	if e := c.u32(); c.err == nil && uint64(e) >= uint64(len(c.m.elements)) {
		c.fail("element segment %d of %d", e, len(c.m.elements))
	}
}

func (c *coder) dataIndex() {
	if d := c.u32(); c.err == nil && int64(d) >= c.m.dataCount {
		c.fail("data segment %d of %d declared", d, max(c.m.dataCount, 0))
	}
}

// misc reads what follows a 0xfc byte.
func (c *coder) misc() {
	sub := c.byte()
	m := c.m
	switch {
	case c.err != nil:
	case sub < opcode.MiscMemoryInit:
		m.used |= saturation
	case sub == opcode.MiscMemoryInit:
		m.uses |= usesMemoryInit
		c.dataIndex()
		c.memory()
	case sub == opcode.MiscDataDrop:
		m.uses |= usesDataDrop
		c.dataIndex()
	case sub == opcode.MiscMemoryCopy:
		c.memory()
		c.memory()
	case sub == opcode.MiscMemoryFill:
		c.memory()
	case sub == opcode.MiscTableInit:
		m.uses |= usesTableInit
		c.elementIndex()
		c.tableIndex()
	case sub == opcode.MiscElemDrop:
		m.uses |= usesElemDrop
		c.elementIndex()
	case sub == opcode.MiscTableCopy:
		m.uses |= usesTableCopy
		c.tableIndex()
		c.tableIndex()
	case sub == opcode.MiscTableGrow:
		m.uses |= usesTableGrow
		c.tableIndex()
	case sub == opcode.MiscTableSize:
		c.tableIndex()
	case sub == opcode.MiscTableFill:
		m.uses |= usesTableFill
		c.tableIndex()
	case sub >= 19 && sub <= 22:
		c.refuse("%s", refusal(opcode.WideArithmetic))
	case sub == 0x30, sub == 0x31:
		c.refuse("%s", refusal(opcode.HalfFloats))
	default:
		c.fail("an unknown instruction (0xfc %#x)", sub)
	}
	switch {
	case sub >= opcode.MiscTableGrow:
		m.used |= references
	case sub >= opcode.MiscMemoryInit:
		m.used |= bulkMemory
	}
}

// atomic reads what follows a 0xfe byte.
func (c *coder) atomic() {
	at := c.pos
	sub := c.byte()
	alignment, ok := opcode.AtomicAlignment(sub)
	switch {
	case c.err != nil:
	case ok:
		if align, size := uleb32(c.bytes[c.pos:c.end]); size > 0 && align < 64 && align != alignment {
			c.failAt(c.pos, "an atomic access with an alignment of 2^%d instead of 2^%d", align, alignment)
		}
		c.memarg()
	case sub == opcode.AtomicFence:
		if order := c.byte(); c.err == nil && order != 0 {
			c.fail("a fence of an unknown order (%#x)", order)
		}
	case sub >= 0x4f && sub < 0x80:
		c.refuse("%s", refusal(opcode.SharedAll))
	default:
		c.failAt(at, "an unknown instruction (0xfe %#x)", sub)
	}
}

// vector reads what follows a 0xfd byte. The instruction's number must be in its
// shortest form: some decoders read one byte of it only.
func (c *coder) vector() {
	at := c.pos
	sub := c.byte()
	if sub >= 0x80 {
		switch next := c.byte(); {
		case c.err != nil:
			return
		case next == 2 && sub <= 0x93:
			c.refuse("%s", refusal(opcode.RelaxedVectors))
		case next == 2:
			c.refuse("%s", refusal(opcode.HalfFloats))
		case next != 1:
			c.failAt(at, "an unknown instruction (0xfd %#x %#x)", sub, next)
		}
	}
	if c.err != nil {
		return
	}
	switch opcode.Vectors[sub] {
	case opcode.VecNone:
	case opcode.VecMemarg:
		c.memarg()
	case opcode.VecMemargLane:
		c.memarg()
		c.byte()
	case opcode.VecLane:
		c.byte()
	case opcode.Vec16:
		c.take(16)
	default:
		c.failAt(at, "an unknown instruction (0xfd %#x)", sub)
	}
}
