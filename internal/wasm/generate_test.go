package wasm_test

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"
)

// generator makes valid modules at random that use every class of instruction
// and always end: each call and each pass through a loop takes from a budget,
// without which they trap.
//
// Types are written as letters: i, l (i64), f, d (f64), v (v128), r (funcref),
// e (externref).
type generator struct {
	*rand.Rand
	types   []signature
	funcs   []int // types of all functions, imports first
	imports int
	globals string // their types; the first is the budget
	mutable []bool
	from    int  // the first global that is not imported
	base    int  // the imported global whose value is the offset of some segments, or -1
	bases   bool // it defines the base of others, the second global
	elems   int  // element segments, of which the first is for call_indirect
	datas   int

	code     []byte
	locals   string // types of parameters and locals
	result   string // of the function
	labels   []string
	leafOnly bool // the function calls nothing
	newer    bool // the module has tail calls, atomics and computed constants
	left     int  // instructions that the function may still have, roughly
}

type signature struct{ params, results string }

var typeBytes = map[rune]byte{'i': 0x7f, 'l': 0x7e, 'f': 0x7d, 'd': 0x7c, 'v': 0x7b, 'r': 0x70, 'e': 0x6f}

const (
	allTypes     = "ilfdvre"
	callable     = "ilfd" // what a test can pass in
	funcTable    = 0
	freeTable    = 1 // of funcref, changed by the code
	externTable  = 2
	memoryPages  = 1
	growthPages  = 3
	budgetGlobal = 0
)

// operation is a plain instruction: what it takes and gives, and its bytes. Lanes
// is how many lanes there are to choose from, if it names one.
type operation struct {
	params, result string
	bytes          []byte
	lanes          int
}

// operations are all plain instructions by their result.
var operations = plainOperations()

func plainOperations() map[string][]operation {
	all := map[string][]operation{}
	add := func(from, to int, params, result string) {
		for op := from; op <= to; op++ {
			all[result] = append(all[result], operation{params, result, []byte{byte(op)}, 0})
		}
	}
	add(0x45, 0x45, "i", "i")
	add(0x46, 0x4f, "ii", "i")
	add(0x50, 0x50, "l", "i")
	add(0x51, 0x5a, "ll", "i")
	add(0x5b, 0x60, "ff", "i")
	add(0x61, 0x66, "dd", "i")
	add(0x67, 0x69, "i", "i")
	add(0x6a, 0x78, "ii", "i")
	add(0x79, 0x7b, "l", "l")
	add(0x7c, 0x8a, "ll", "l")
	add(0x8b, 0x91, "f", "f")
	add(0x92, 0x98, "ff", "f")
	add(0x99, 0x9f, "d", "d")
	add(0xa0, 0xa6, "dd", "d")
	for op, s := range []string{
		"li", "fi", "fi", "di", "di", "il", "il", "fl", "fl", "dl", "dl", "if", "if", "lf", "lf", "df",
		"id", "id", "ld", "ld", "fd", "fi", "dl", "if", "ld", "ii", "ii", "ll", "ll", "ll",
	} {
		add(0xa7+op, 0xa7+op, s[:1], s[1:])
	}
	for op, s := range []string{"fi", "fi", "di", "di", "fl", "fl", "dl", "dl"} {
		all[s[1:]] = append(all[s[1:]], operation{s[:1], s[1:], []byte{0xfc, byte(op)}, 0})
	}
	vec := func(from, to int, params, result string, lanes int) {
		for op := from; op <= to; op++ {
			bytes := binary.AppendUvarint([]byte{0xfd}, uint64(op))
			all[result] = append(all[result], operation{params, result, bytes, lanes})
		}
	}
	vec(14, 14, "vv", "v", 0)
	vec(15, 17, "i", "v", 0)
	vec(18, 18, "l", "v", 0)
	vec(19, 19, "f", "v", 0)
	vec(20, 20, "d", "v", 0)
	vec(21, 22, "v", "i", 16)
	vec(23, 23, "vi", "v", 16)
	vec(24, 25, "v", "i", 8)
	vec(26, 26, "vi", "v", 8)
	vec(27, 27, "v", "i", 4)
	vec(28, 28, "vi", "v", 4)
	vec(29, 29, "v", "l", 2)
	vec(30, 30, "vl", "v", 2)
	vec(31, 31, "v", "f", 4)
	vec(32, 32, "vf", "v", 4)
	vec(33, 33, "v", "d", 2)
	vec(34, 34, "vd", "v", 2)
	vec(35, 76, "vv", "v", 0)
	vec(77, 77, "v", "v", 0)
	vec(78, 81, "vv", "v", 0)
	vec(82, 82, "vvv", "v", 0)
	vec(83, 83, "v", "i", 0)
	for _, r := range [][3]int{ // unary, to, 1; binary 2; shift 3; to i32 4
		{94, 98, 1}, {99, 100, 4}, {101, 102, 2}, {103, 106, 1}, {107, 109, 3}, {110, 115, 2}, {116, 117, 1},
		{118, 121, 2}, {122, 122, 1}, {123, 123, 2}, {124, 129, 1}, {130, 130, 2}, {131, 132, 4}, {133, 134, 2},
		{135, 138, 1}, {139, 141, 3}, {142, 147, 2}, {148, 148, 1}, {149, 153, 2}, {155, 159, 2}, {160, 161, 1},
		{163, 164, 4}, {167, 170, 1}, {171, 173, 3}, {174, 174, 2}, {177, 177, 2}, {181, 186, 2}, {188, 191, 2},
		{192, 193, 1}, {195, 196, 4}, {199, 202, 1}, {203, 205, 3}, {206, 206, 2}, {209, 209, 2}, {213, 223, 2},
		{224, 225, 1}, {227, 227, 1}, {228, 235, 2}, {236, 237, 1}, {239, 239, 1}, {240, 247, 2}, {248, 255, 1},
	} {
		kind := [][2]string{1: {"v", "v"}, 2: {"vv", "v"}, 3: {"vi", "v"}, 4: {"v", "i"}}[r[2]]
		vec(r[0], r[1], kind[0], kind[1], 0)
	}
	return all
}

// loads and stores by type: opcodes with their largest alignment.
var loads = map[rune][][]byte{
	'i': {{0x28, 2}, {0x2c, 0}, {0x2d, 0}, {0x2e, 1}, {0x2f, 1}},
	'l': {{0x29, 3}, {0x30, 0}, {0x31, 0}, {0x32, 1}, {0x33, 1}, {0x34, 2}, {0x35, 2}},
	'f': {{0x2a, 2}},
	'd': {{0x2b, 3}},
	'v': {
		{0xfd, 0, 4}, {0xfd, 1, 3}, {0xfd, 2, 3}, {0xfd, 3, 3}, {0xfd, 4, 3}, {0xfd, 5, 3}, {0xfd, 6, 3},
		{0xfd, 7, 0}, {0xfd, 8, 1}, {0xfd, 9, 2}, {0xfd, 10, 3}, {0xfd, 92, 2}, {0xfd, 93, 3},
	},
}

var stores = map[rune][][]byte{
	'i': {{0x36, 2}, {0x3a, 0}, {0x3b, 1}},
	'l': {{0x37, 3}, {0x3c, 0}, {0x3d, 1}, {0x3e, 2}},
	'f': {{0x38, 2}},
	'd': {{0x39, 3}},
	'v': {{0xfd, 11, 4}},
}

// generate makes the module of a seed.
func generate(seed uint64) []byte {
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 0x9e3779b97f4a7c15)), base: -1, newer: seed%2 == 0}
	return g.module()
}

func (g *generator) emit(b ...byte)  { g.code = append(g.code, b...) }
func (g *generator) number(n uint64) { g.code = binary.AppendUvarint(g.code, n) }
func (g *generator) signed(n int64)  { g.code = appendSigned(g.code, n) }
func (g *generator) op(op byte, n int) {
	g.emit(op)
	g.number(uint64(n))
}

func appendSigned(b []byte, n int64) []byte {
	for {
		c := byte(n) & 0x7f
		n >>= 7
		if n == 0 && c&0x40 == 0 || n == -1 && c&0x40 != 0 {
			return append(b, c)
		}
		b = append(b, c|0x80)
	}
}

func (g *generator) chance(percent int) bool { return g.IntN(100) < percent }

func pick[T any](g *generator, list []T) T { return list[g.IntN(len(list))] }

func (g *generator) randomTypes(from string, most int) string {
	b := make([]byte, g.IntN(most+1))
	for i := range b {
		b[i] = from[g.IntN(len(from))]
	}
	return string(b)
}

func (g *generator) module() []byte {
	g.types = []signature{{"i", "i"}, {"", ""}, {"il", "l"}}
	for range 3 + g.IntN(8) {
		from := allTypes
		if g.chance(50) {
			from = callable
		}
		g.types = append(g.types, signature{g.randomTypes(from, 4), g.randomTypes(from, 3)})
	}
	if g.newer { // the first fits into the registers of one architecture only, the second of none
		g.types = append(g.types, signature{"iiliiili", "i"}, signature{"iiiiiliiidddddddddd", "l"}, signature{"il", "iiiiiiliii"})
	}
	g.imports = g.IntN(3) // all of the first type
	for range g.imports {
		g.funcs = append(g.funcs, 0)
	}
	for i := range 4 + g.IntN(6) {
		if i < 3 {
			g.funcs = append(g.funcs, i)
		} else {
			g.funcs = append(g.funcs, g.IntN(len(g.types)))
		}
	}
	g.globals, g.mutable = "i", []bool{true}
	for range 2 + g.IntN(6) {
		g.globals += string(allTypes[g.IntN(len(allTypes))])
		g.mutable = append(g.mutable, g.chance(75))
	}
	g.elems, g.datas = 8, 3

	out := []byte("\x00asm\x01\x00\x00\x00")
	section := func(id byte, build func()) { out = g.section(out, id, build) }
	custom := func(name, body string) {
		section(0, func() { g.text(name); g.emit([]byte(body)...) })
	}
	custom("producers", "any")
	section(1, g.typeSection)
	if g.imports > 0 {
		section(2, func() {
			g.number(uint64(g.imports))
			for range g.imports {
				g.text("env")
				g.text("host")
				g.emit(0, 0)
			}
		})
	}
	section(3, g.functionSection)
	section(4, func() { g.emit(3, 0x70, 1, 16, 16, 0x70, 1, 8, 20, 0x6f, 1, 8, 20) })
	section(5, func() { g.emit(1, 1, memoryPages, growthPages) })
	section(6, g.globalSection)
	section(7, g.exportSection)
	if start := g.imports + 1; g.chance(30) { // of type () -> ()
		section(8, func() { g.number(uint64(start)) })
	}
	section(9, g.elementSection)
	custom("between", "sections")
	section(12, func() { g.number(uint64(g.datas)) })
	out = g.codeSection(out)
	section(11, func() {
		g.number(uint64(g.datas))
		g.emit(0, 0x41, 8, 0x0b)
		g.text("active data, written when the instance is made")
		g.emit(1)
		g.text("passive data")
		g.emit(2, 0, 0x41, 40, 0x0b)
		g.text("with its memory's index")
	})
	section(0, func() { // names of two functions and the locals of one
		g.text("name")
		g.emit(0, 4)
		g.text("gen")
		g.emit(1, 7, 2, 0, 1, 'a', 2, 1, 'b')
		g.emit(2, 7, 1, 1, 1, 0, 2, 'x', 'y')
	})
	return out
}

// section appends a section.
func (g *generator) section(out []byte, id byte, build func()) []byte {
	g.code = nil
	build()
	return append(binary.AppendUvarint(append(out, id), uint64(len(g.code))), g.code...)
}

func (g *generator) typeSection() {
	g.number(uint64(len(g.types)))
	for _, t := range g.types {
		g.emit(0x60)
		g.typeList(t.params)
		g.typeList(t.results)
	}
}

func (g *generator) functionSection() {
	g.number(uint64(len(g.funcs) - g.imports))
	for _, t := range g.funcs[g.imports:] {
		g.number(uint64(t))
	}
}

func (g *generator) codeSection(out []byte) []byte {
	bodies := make([][]byte, 0, len(g.funcs))
	for _, t := range g.funcs[g.imports:] {
		bodies = append(bodies, g.body(g.types[t]))
	}
	return g.section(out, 10, func() {
		g.number(uint64(len(bodies)))
		for _, b := range bodies {
			g.number(uint64(len(b)))
			g.emit(b...)
		}
	})
}

func (g *generator) text(s string) {
	g.number(uint64(len(s)))
	g.emit([]byte(s)...)
}

func (g *generator) typeList(types string) {
	g.number(uint64(len(types)))
	for _, t := range types {
		g.emit(typeBytes[t])
	}
}

func (g *generator) globalSection() {
	g.number(uint64(len(g.globals) - g.from))
	for i, t := range g.globals {
		if i < g.from {
			continue
		}
		g.globalType(i)
		switch copied := g.find(g.globals[:g.from], t, func(i int) bool { return !g.mutable[i] }); {
		case i == budgetGlobal:
			g.emit(0x41)
			g.signed(100)
		case g.bases && i == 1:
			g.emit(0x41, byte(g.IntN(3)))
		case copied >= 0 && g.chance(50):
			g.op(0x23, copied)
		case g.newer && (t == 'i' || t == 'l') && g.chance(50):
			g.computed(t)
		default:
			g.constant(t)
		}
		g.emit(0x0b)
	}
}

func (g *generator) globalType(i int) {
	g.emit(typeBytes[rune(g.globals[i])], 0)
	if g.mutable[i] {
		g.code[len(g.code)-1] = 1
	}
}

// offset writes where an active segment goes, or the base, which is less than 3, or their sum.
func (g *generator) offset(n byte) {
	if g.base >= 0 && g.chance(50) {
		g.op(0x23, g.base)
		if g.chance(50) {
			g.emit(0x41, n, 0x6a)
		}
	} else {
		g.emit(0x41, n)
		if g.newer {
			g.emit(0x41, 4, 0x6a, 0x41, 4, 0x6b)
		}
	}
	g.emit(0x0b)
}

func (g *generator) exportSection() {
	type export struct {
		name  string
		kind  byte
		index int
	}
	exports := []export{{"memory", 2, 0}, {"budget", 3, budgetGlobal}}
	for i := g.imports; i < len(g.funcs); i++ {
		exports = append(exports, export{"f" + string(rune('a'+i)), 0, i})
	}
	g.number(uint64(len(exports)))
	for _, e := range exports {
		g.text(e.name)
		g.op(e.kind, e.index)
	}
}

// elementSection has a segment of every form: the first fills the table of
// indirect calls, the last declares every function.
func (g *generator) elementSection() {
	n := len(g.funcs)
	function := func() { g.number(uint64(g.IntN(n))) }
	reference := func() {
		copied := g.find(g.globals[:g.from], 'r', func(i int) bool { return !g.mutable[i] })
		if copied >= 0 && g.chance(50) {
			g.op(0x23, copied)
			g.emit(0x0b)
		} else if g.chance(20) {
			g.emit(0xd0, 0x70, 0x0b)
		} else {
			g.emit(0xd2)
			function()
			g.emit(0x0b)
		}
	}
	g.number(uint64(g.elems))
	g.emit(0)
	g.offset(0)
	g.emit(14)
	for range 14 {
		function()
	}
	g.emit(1, 0, 2)
	function()
	function()
	g.emit(2, freeTable)
	g.offset(1)
	g.emit(0, 1)
	function()
	g.emit(4, 0x41, 14, 0x0b, 1)
	reference()
	g.emit(5, 0x70, 3)
	reference()
	reference()
	reference()
	g.emit(6, freeTable)
	g.offset(2)
	g.emit(0x70, 2)
	reference()
	reference()
	g.emit(7, 0x6f, 1, 0xd0, 0x6f, 0x0b)
	g.emit(3, 0)
	g.number(uint64(n))
	for i := range n {
		g.number(uint64(i))
	}
}

// body makes a function.
func (g *generator) body(t signature) []byte {
	g.code = nil
	g.locals = t.params
	g.result = t.results
	g.labels = []string{t.results}
	g.left = 150 + g.IntN(400)
	groups := allTypes + g.randomTypes(allTypes, 4) // one at least of each type
	g.number(uint64(len(groups)))
	for _, t := range groups {
		n := 1 + g.IntN(2)
		g.number(uint64(n))
		g.emit(typeBytes[t])
		for range n {
			g.locals += string(t)
		}
	}
	if g.leafOnly = g.chance(20); !g.leafOnly {
		g.spend()
	}
	for range 1 + g.IntN(4) {
		g.statement(3)
	}
	if g.newer && g.chance(30) && g.tailCall(3) {
		g.emit(0x0b)
		return g.code
	}
	g.values(t.results, 3)
	switch {
	case g.chance(10):
		g.emit(0x0f)
	case g.chance(10):
		g.op(0x0c, 0)
	}
	g.emit(0x0b)
	return g.code
}

// spend takes from the budget and traps without.
func (g *generator) spend() {
	g.emit(0x23, budgetGlobal, 0x45, 0x04, 0x40, 0x00, 0x0b)
	g.emit(0x23, budgetGlobal, 0x41, 1, 0x6b, 0x24, budgetGlobal)
}

// find returns a random index of something of the type, or -1.
func (g *generator) find(types string, t rune, ok func(int) bool) int {
	var found []int
	for i, have := range types {
		if have == t && (ok == nil || ok(i)) {
			found = append(found, i)
		}
	}
	if len(found) == 0 {
		return -1
	}
	return pick(g, found)
}

// computed writes an initial value as a sum, of an imported global if there is one.
func (g *generator) computed(t rune) {
	constant, sum := byte(0x41), byte(0x6a)
	if t == 'l' {
		constant, sum = 0x42, 0x7c
	}
	g.emit(constant)
	g.signed(int64(int32(g.Uint32())))
	if i := g.find(g.globals[:g.from], t, func(i int) bool { return !g.mutable[i] }); i >= 0 {
		g.op(0x23, i)
	} else {
		g.emit(constant, 3)
	}
	g.emit(sum+byte(g.IntN(3)), constant, 5, sum)
}

func (g *generator) constant(t rune) {
	switch t {
	case 'i':
		g.emit(0x41)
		g.signed(int64(int32(pick(g, []uint64{0, 1, 0xffffffff, uint64(g.IntN(100)), g.Uint64()}))))
	case 'l':
		g.emit(0x42)
		g.signed(int64(pick(g, []uint64{0, 1, math.MaxUint64, uint64(g.IntN(100)), g.Uint64()})))
	case 'f':
		g.emit(0x43)
		g.code = binary.LittleEndian.AppendUint32(g.code, math.Float32bits(float32(g.NormFloat64()*100)))
	case 'd':
		g.emit(0x44)
		g.code = binary.LittleEndian.AppendUint64(g.code, math.Float64bits(g.NormFloat64()*1e6))
	case 'v':
		g.emit(0xfd, 12)
		g.code = binary.LittleEndian.AppendUint64(g.code, g.Uint64())
		g.code = binary.LittleEndian.AppendUint64(g.code, g.Uint64()>>g.IntN(64))
	case 'r':
		if g.chance(70) {
			g.op(0xd2, g.IntN(len(g.funcs)))
		} else {
			g.emit(0xd0, 0x70)
		}
	case 'e':
		g.emit(0xd0, 0x6f)
	}
}

func (g *generator) values(types string, depth int) {
	for _, t := range types {
		g.value(t, depth)
	}
}

// value pushes one value.
func (g *generator) value(t rune, depth int) {
	g.left--
	if depth <= 0 || g.left < 0 || g.chance(15) {
		g.leaf(t)
		return
	}
	switch n := g.IntN(16); {
	case n < 6 && operations[string(t)] != nil:
		g.operation(pick(g, operations[string(t)]), depth)
	case n == 6:
		g.value(t, depth-1)
		g.op(0x22, g.find(g.locals, t, nil))
	case n == 7:
		g.nested(depth, string(t))
	case n == 8:
		g.call(depth, t)
	case n == 9:
		g.values(string([]rune{t, t, 'i'}), depth-1)
		if t == 'r' || t == 'e' || g.chance(30) {
			g.emit(0x1c, 1, typeBytes[t])
		} else {
			g.emit(0x1b)
		}
	case n == 10 && g.newer && (t == 'i' || t == 'l') && g.chance(70):
		g.atomic(t, depth)
	case n == 10 && loads[t] != nil:
		g.address(depth)
		load := pick(g, loads[t])
		g.emit(load[:len(load)-1]...)
		g.op(byte(g.IntN(int(load[len(load)-1])+1)), g.IntN(70))
	case n == 10 && t == 'v':
	case n == 11 && t == 'i':
		g.sizes(depth)
	case n == 11 && t == 'v':
		g.lanes(depth)
	case n == 11 && t == 'r':
		g.value('i', depth-1)
		g.emit(0x41, 7, 0x71)
		g.op(0x25, pick(g, []int{funcTable, freeTable}))
	case n == 11 && t == 'e':
		g.value('i', depth-1)
		g.emit(0x41, 7, 0x71)
		g.op(0x25, externTable)
	default:
		g.leaf(t)
	}
}

func (g *generator) leaf(t rune) {
	switch g.IntN(4) {
	case 0:
		g.constant(t)
	case 1:
		if i := g.find(g.globals, t, nil); i >= 0 {
			g.op(0x23, i)
			return
		}
		fallthrough
	default:
		g.op(0x20, g.find(g.locals, t, nil))
	}
}

func (g *generator) operation(o operation, depth int) {
	g.values(o.params, depth-1)
	if op := o.bytes[0]; len(o.bytes) == 1 && g.chance(95) {
		switch { // divisors that are not 0
		case op >= 0x6d && op <= 0x70:
			g.emit(0x41, 1, 0x72)
		case op >= 0x7f && op <= 0x82:
			g.emit(0x42, 1, 0x84)
		case op >= 0xa8 && op <= 0xab || op >= 0xae && op <= 0xb1: // numbers that fit
			g.emit(0x1a)
			g.constant([]rune(o.params)[0])
		}
	}
	g.emit(o.bytes...)
	if o.lanes > 0 {
		g.emit(byte(g.IntN(o.lanes)))
	}
}

// address pushes an address that is mostly good.
func (g *generator) address(depth int) {
	g.value('i', depth-1)
	if g.chance(97) {
		g.emit(0x41)
		g.signed(0x7fff)
		g.emit(0x71)
	}
}

// atomicSizes are the sizes of atomic accesses, as powers of two, in the order of their instructions.
var atomicSizes = []byte{2, 3, 0, 1, 0, 1, 2}

// atomicAccess writes an atomic instruction that is the which-th of its group, behind its operands.
func (g *generator) atomicAccess(first byte, which int) {
	g.emit(0xfe, first+byte(which), atomicSizes[which])
	g.number(uint64(g.IntN(10)) * 8)
}

// atomicAddress pushes an address that is mostly aligned.
func (g *generator) atomicAddress(depth int) {
	g.address(depth)
	if g.chance(95) {
		g.emit(0x41, 0x78, 0x71)
	}
}

// atomicOf is which instruction of a group has operands of the type.
func (g *generator) atomicOf(t rune) int {
	if t == 'i' {
		return pick(g, []int{0, 2, 3})
	}
	return pick(g, []int{1, 4, 5, 6})
}

// atomic pushes the result of an atomic access.
func (g *generator) atomic(t rune, depth int) {
	which := g.atomicOf(t)
	g.atomicAddress(depth)
	switch n := g.IntN(10); {
	case n < 2:
		g.atomicAccess(0x10, which)
	case n < 7:
		g.value(t, depth-1)
		g.atomicAccess(0x1e+7*byte(g.IntN(6)), which)
	case n < 9 || t == 'l':
		if g.chance(50) {
			g.constant(t)
		} else {
			g.value(t, depth-1)
		}
		g.value(t, depth-1)
		g.atomicAccess(0x48, which)
	case g.chance(95):
		g.value('i', depth-1)
		g.emit(0xfe, 0, 2, 8) // notify
	default:
		g.emit(0x42, 5, 0x42, 5, 0xfe, 2, 3, 16) // wait, which traps
	}
}

// sizes pushes an i32 about memory, tables and references.
func (g *generator) sizes(depth int) {
	switch g.IntN(6) {
	case 0:
		g.emit(0x3f, 0)
	case 1:
		g.value('i', depth-1)
		g.emit(0x41, 1, 0x71, 0x40, 0) // grow by 0 or 1
	case 2:
		g.emit(0xfc, 16, byte(g.IntN(3)))
	case 3:
		g.value('r', depth-1)
		g.value('i', depth-1)
		g.emit(0x41, 3, 0x71, 0xfc, 15, freeTable)
	case 4:
		g.value('e', depth-1)
		g.emit(0x41, 1, 0xfc, 15, externTable)
	default:
		g.value(pick(g, []rune{'r', 'e'}), depth-1)
		g.emit(0xd1)
	}
}

// lanes pushes a vector by the instructions with other immediates.
func (g *generator) lanes(depth int) {
	switch g.IntN(3) {
	case 0:
		g.values("vv", depth-1)
		g.emit(0xfd, 13)
		for range 16 {
			g.emit(byte(g.IntN(32)))
		}
	default:
		size := g.IntN(4)
		g.address(depth)
		g.value('v', depth-1)
		g.emit(0xfd, byte(84+size), byte(size), 3, byte(g.IntN(16>>size)))
	}
}

// call calls a function, directly or through a table, and keeps a result of the
// type, or a value if it has none.
func (g *generator) call(depth int, keep rune) {
	if g.leafOnly {
		g.keep("", keep, depth)
		return
	}
	f := g.IntN(len(g.funcs))
	t := g.funcs[f]
	if g.chance(30) {
		t = g.IntN(min(len(g.types), 4))
		g.values(g.types[t].params, depth-1)
		g.value('i', depth-1)
		g.emit(0x41, 15, 0x71)
		g.op(0x11, t)
		g.number(uint64(pick(g, []int{funcTable, funcTable, freeTable})))
	} else {
		g.values(g.types[t].params, depth-1)
		g.op(0x10, f)
	}
	g.keep(g.types[t].results, keep, depth)
}

// keep drops what is on the stack but for one value of the type.
func (g *generator) keep(results string, keep rune, depth int) {
	kept := -1
	for _, t := range slices.Backward([]rune(results)) {
		if t == keep && kept < 0 {
			kept = g.find(g.locals, t, nil)
			g.op(0x21, kept)
		} else {
			g.emit(0x1a)
		}
	}
	switch {
	case kept >= 0:
		g.op(0x20, kept)
	case keep != 0:
		g.value(keep, depth-1)
	}
}

// blockType writes a block's type, with parameters if it has an index, and
// returns them.
func (g *generator) blockType(results string) (params string) {
	for _, i := range g.Perm(len(g.types)) {
		if g.types[i].results == results {
			g.signed(int64(i))
			return g.types[i].params
		}
	}
	switch len(results) {
	case 0:
		g.emit(0x40)
	case 1:
		g.emit(typeBytes[[]rune(results)[0]])
	default:
		panic("no such type")
	}
	return ""
}

// openBlock pushes what a block takes and opens it.
func (g *generator) openBlock(op byte, results string, depth int) (params string) {
	at := len(g.code)
	params = g.blockType(results)
	block := append([]byte{op}, g.code[at:]...)
	g.code = g.code[:at]
	g.values(params, depth-1)
	if op == 0x04 {
		g.value('i', depth-1)
	}
	g.emit(block...)
	return params
}

// nested pushes results by a block, a loop or an if.
func (g *generator) nested(depth int, results string) {
	op := byte(0x02 + g.IntN(3))
	params := g.openBlock(op, results, depth)
	if op == 0x03 {
		g.labels = append(g.labels, params)
		g.spend()
	} else {
		g.labels = append(g.labels, results)
	}
	finish := func() {
		g.keep(params, 0, 0)
		for range g.IntN(3) {
			g.statement(depth - 1)
		}
		g.values(results, depth-1)
	}
	finish()
	if op == 0x04 && (len(results) > 0 || len(params) > 0 || g.chance(50)) {
		g.emit(0x05)
		finish()
	}
	g.emit(0x0b)
	g.labels = g.labels[:len(g.labels)-1]
}

// statement does something and leaves the stack as it is.
func (g *generator) statement(depth int) {
	g.left--
	if depth <= 0 || g.left < 0 {
		g.emit(0x01)
		return
	}
	t := []rune(allTypes)[g.IntN(len(allTypes))]
	switch g.IntN(17) {
	case 15, 16:
		g.dispatch(depth)
	case 0, 1:
		g.value(t, depth)
		g.op(0x21, g.find(g.locals, t, nil))
	case 2:
		if i := g.find(g.globals, t, func(i int) bool { return g.mutable[i] && i != budgetGlobal }); i >= 0 {
			g.value(t, depth)
			g.op(0x24, i)
		}
	case 3, 4:
		if g.newer && g.chance(20) {
			g.emit(0xfe, 3, 0) // fence
		}
		if g.newer && (t == 'i' || t == 'l') && g.chance(50) {
			g.atomicAddress(depth)
			g.value(t, depth-1)
			g.atomicAccess(0x17, g.atomicOf(t))
			return
		}
		if stores[t] == nil {
			t = 'v'
		}
		g.address(depth)
		g.value(t, depth-1)
		store := pick(g, stores[t])
		g.emit(store[:len(store)-1]...)
		g.op(byte(g.IntN(int(store[len(store)-1])+1)), g.IntN(70))
	case 5:
		size := g.IntN(4)
		g.address(depth)
		g.value('v', depth-1)
		g.emit(0xfd, byte(88+size), byte(size), 3, byte(g.IntN(16>>size)))
	case 6:
		g.nested(depth, "")
	case 7:
		t := g.IntN(len(g.types))
		g.nested(depth, g.types[t].results)
		g.keep(g.types[t].results, 0, 0)
	case 8:
		g.call(depth, 0)
	case 9:
		g.bulk(depth)
	case 10:
		g.tables(depth)
	case 11: // a branch that may be taken
		label := g.IntN(len(g.labels))
		types := g.labels[len(g.labels)-1-label]
		g.values(types, depth-1)
		g.value('i', depth-1)
		g.op(0x0d, label)
		g.keep(types, 0, 0)
	case 12: // one that is
		g.emit(0x02, 0x40)
		g.labels = append(g.labels, "")
		if g.chance(50) {
			g.value('i', depth-1)
			g.op(0x0d, 0)
		}
		g.leave(depth)
		if g.chance(20) {
			g.statement(depth - 1) // never run
		}
		g.emit(0x0b)
		g.labels = g.labels[:len(g.labels)-1]
	case 13:
		g.value(t, depth)
		g.emit(0x1a)
	case 14:
		if g.chance(5) {
			g.emit(0x00)
		} else {
			g.emit(0x01)
		}
	}
}

// dispatch is a loop that branches by a local to one of several parts, from which jumps go
// back to it, most of them with a constant in the local.
func (g *generator) dispatch(depth int) {
	selector := g.find(g.locals, 'i', nil)
	parts := 1 + g.IntN(5)
	g.emit(0x02, 0x40, 0x03, 0x40)
	g.labels = append(g.labels, "", "")
	for range parts {
		g.emit(0x02, 0x40)
		g.labels = append(g.labels, "")
	}
	if g.chance(10) {
		g.emit(0x01)
	}
	g.op(0x20, selector)
	n := g.IntN(parts + 2)
	g.op(0x0e, n)
	for range n + 1 {
		if label := g.IntN(parts + 1); label < parts {
			g.number(uint64(label))
		} else { // out of the loop: directly back to it would never end
			g.number(uint64(parts + 1))
		}
	}
	for left := parts - 1; left >= 0; left-- {
		g.emit(0x0b)
		g.labels = g.labels[:len(g.labels)-1]
		g.spend()
		for range g.IntN(3) {
			g.statement(depth - 1)
		}
		within := g.IntN(3)
		if within == 1 {
			g.value('i', depth-1)
			g.emit(0x04, 0x40)
		}
		if g.chance(90) {
			g.emit(0x41)
			g.signed(int64(g.IntN(n+3)) - 1)
		} else {
			g.labels = append(g.labels, slices.Repeat([]string{""}, within%2)...)
			g.value('i', depth-1)
			g.labels = g.labels[:len(g.labels)-within%2]
		}
		if set := g.find(g.locals, 'i', nil); g.chance(10) {
			g.op(0x21, set)
		} else {
			g.op(0x21, selector)
		}
		if g.chance(10) {
			g.emit(0x01)
		}
		if within > 0 {
			g.op(0x0c, left+within%2)
		}
		if within == 1 {
			g.emit(0x0b)
		}
	}
	g.emit(0x0b, 0x0b)
	g.labels = g.labels[:len(g.labels)-2]
}

// tailCall leaves by a call. It reports false if there is none.
func (g *generator) tailCall(depth int) bool {
	if g.leafOnly || !g.newer {
		return false
	}
	if g.chance(40) {
		for _, t := range g.Perm(min(len(g.types), 7)) {
			if g.types[t].results == g.result {
				g.values(g.types[t].params, depth-1)
				g.value('i', depth-1)
				g.emit(0x41, 15, 0x71)
				g.op(0x13, t)
				g.number(uint64(pick(g, []int{funcTable, funcTable, freeTable})))
				return true
			}
		}
	}
	for _, f := range g.Perm(len(g.funcs)) {
		if t := g.types[g.funcs[f]]; t.results == g.result {
			g.values(t.params, depth-1)
			g.op(0x12, f)
			return true
		}
	}
	return false
}

// leave branches away.
func (g *generator) leave(depth int) {
	if g.chance(50) && g.tailCall(depth) {
		return
	}
	switch g.IntN(3) {
	case 0:
		g.values(g.result, depth-1)
		g.emit(0x0f)
	case 1:
		label := g.IntN(len(g.labels))
		g.values(g.labels[len(g.labels)-1-label], depth-1)
		g.op(0x0c, label)
	case 2:
		first := g.IntN(len(g.labels))
		types := g.labels[len(g.labels)-1-first]
		targets := []int{first}
		for range g.IntN(5) {
			if i := g.IntN(len(g.labels)); g.labels[len(g.labels)-1-i] == types {
				targets = append(targets, i)
			}
		}
		g.values(types, depth-1)
		g.value('i', depth-1)
		g.emit(0x41, 7, 0x71)
		g.op(0x0e, len(targets)-1)
		for _, i := range targets {
			g.number(uint64(i))
		}
	}
}

// length pushes how much a bulk operation takes, sometimes a lot.
func (g *generator) length(depth int) {
	switch g.IntN(3) {
	case 0:
		g.emit(0x41)
		g.signed(int64(pick(g, []int{0, 1, 7, 100, 5000})))
	default:
		g.value('i', depth-1)
		g.emit(0x41)
		g.signed(int64(pick(g, []int{7, 63, 0x1fff})))
		g.emit(0x71)
	}
}

func (g *generator) bulk(depth int) {
	switch g.IntN(4) {
	case 0:
		g.address(depth)
		g.value('i', depth-1)
		g.length(depth)
		g.emit(0xfc, 11, 0)
	case 1:
		g.address(depth)
		g.address(depth)
		g.length(depth)
		g.emit(0xfc, 10, 0, 0)
	case 2:
		g.address(depth)
		g.emit(0x41, 2)
		g.emit(0x41, byte(g.IntN(12)))
		g.emit(0xfc, 8, 1, 0) // not of an active segment, which the engine does not drop as it should
	case 3:
		if g.chance(10) {
			g.emit(0xfc, 9, byte(g.IntN(g.datas)))
		}
	}
}

func (g *generator) tables(depth int) {
	index := func() {
		g.value('i', depth-1)
		g.emit(0x41, 7, 0x71)
	}
	few := func() { g.emit(0x41, byte(g.IntN(4))) }
	switch g.IntN(6) {
	case 0:
		index()
		g.value('r', depth-1)
		g.emit(0x26, freeTable)
	case 1:
		index()
		g.value('e', depth-1)
		g.emit(0x26, externTable)
	case 2:
		index()
		g.value('r', depth-1)
		few()
		g.emit(0xfc, 17, freeTable)
	case 3:
		index()
		index()
		few()
		g.emit(0xfc, 14, freeTable, byte(g.IntN(2)))
	case 4:
		index()
		g.emit(0x41, 0)
		few()
		g.emit(0xfc, 12, pick(g, []byte{1, 4, 4}), freeTable)
	case 5:
		if g.chance(10) {
			g.emit(0xfc, 13, byte(g.IntN(g.elems)))
		}
	}
}
