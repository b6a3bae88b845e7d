package wasm_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"runner.example/internal/wasm"
)

// member is a generated module that imports from earlier ones of its set, and exports all that it has.
type member struct {
	bytes   []byte
	sources []wasm.Source
	module  int // the member that it is another instance of, or itself
	funcs   []signature
	globals string
	mutable []bool
	origins []string // of the globals: where each is defined
	empty   bool     // its memory has no pages
}

// generateSet makes modules of which one has a memory with pages. All use the budget of the first.
func generateSet(seed uint64) []*member {
	random := rand.New(rand.NewPCG(seed, 0x2545f4914f6cdd1d))
	live := random.IntN(2)
	set := make([]*member, 2+random.IntN(4))
	for i := range set {
		if i > 1 && random.IntN(5) == 0 { // no copy of the one that has the memory
			if again := random.IntN(i-1) + 1; again != live && set[again].module == again {
				m := *set[again]
				m.origins = nil
				for g, origin := range set[again].origins {
					if strings.HasPrefix(origin, exportName(again, "")) {
						origin = exportName(i, fmt.Sprint("g", g))
					}
					m.origins = append(m.origins, origin)
				}
				set[i] = &m
				continue
			}
		}
		g := &generator{Rand: random, base: -1, newer: random.IntN(2) == 0}
		set[i] = g.member(set[:i], i == live)
	}
	return set
}

func memberName(part int) string {
	if part == wasm.NoPart {
		return "env"
	}
	return fmt.Sprint("p", part)
}

func (g *generator) member(earlier []*member, live bool) *member {
	m := &member{module: len(earlier)}
	g.types = []signature{{"i", "i"}, {"", ""}, {"il", "l"}}
	for range 3 + g.IntN(5) {
		g.types = append(g.types, signature{g.randomTypes(allTypes, 3), g.randomTypes(allTypes, 3)})
	}
	imports := []byte{}
	count := 0
	add := func(part int, name string, kind byte, kindOf func()) {
		g.code = nil
		g.text(memberName(part))
		g.text(name)
		g.emit(kind)
		kindOf()
		imports = append(imports, g.code...)
		count++
		if part == wasm.NoPart {
			name = "env." + name
		}
		m.sources = append(m.sources, wasm.Source{Part: part, Name: name})
	}
	other := func() int { return g.IntN(len(earlier)) }
	m.origins = g.importGlobals(earlier, add)
	ownMemory := true
	if len(earlier) > 0 && !live && g.chance(80) {
		from := other()
		for i, e := range earlier {
			if !e.empty && g.chance(80) {
				from = i
			}
		}
		ownMemory, m.empty = false, earlier[from].empty
		add(from, "memory", 2, func() {
			if m.empty {
				g.emit(0, 0)
			} else {
				g.emit(pick(g, [][]byte{{0, 0}, {0, 1}, {1, 1, growthPages}, {1, 0, 9}})...)
			}
		})
	} else {
		m.empty = !live
	}
	for range g.IntN(3) {
		g.funcs = append(g.funcs, 0)
		add(wasm.NoPart, "host", 0, func() { g.emit(0) })
	}
	tables := 0
	if len(earlier) > 0 {
		for range g.IntN(4) {
			from := other()
			f := g.IntN(len(earlier[from].funcs))
			g.types = append(g.types, earlier[from].funcs[f])
			g.funcs = append(g.funcs, len(g.types)-1)
			add(from, functionName(f), 0, func() { g.number(uint64(len(g.types) - 1)) })
		}
		tables = g.IntN(4)
	}
	for i := range tables {
		add(other(), fmt.Sprint("t", i), 1, func() {
			g.emit([]byte{0x70, 0x70, 0x6f}[i])
			g.emit(pick(g, [][]byte{{0, 0}, {0, 8}, {1, 8, 20}, {1, 2, 100}})...)
		})
	}
	g.imports = len(g.funcs)
	for i := range 4 + g.IntN(4) {
		if i > 2 {
			i = g.IntN(len(g.types))
		}
		g.funcs = append(g.funcs, i)
	}
	for range 1 + g.IntN(5) {
		g.globals += string(allTypes[g.IntN(len(allTypes))])
		g.mutable = append(g.mutable, g.chance(60))
	}
	g.elems, g.datas = 8, 3
	m.bytes = g.write(count, imports, tables, ownMemory, m.empty)
	m.globals, m.mutable = g.globals, g.mutable
	for i := len(m.origins); i < len(m.globals); i++ {
		m.origins = append(m.origins, exportName(m.module, fmt.Sprint("g", i)))
	}
	for _, f := range g.funcs {
		m.funcs = append(m.funcs, g.types[f])
	}
	return m
}

// importGlobals imports the budget, the base and others. The first member defines them. None is imported
// twice: the engine's compiler does not see that two are the same.
func (g *generator) importGlobals(earlier []*member, add func(int, string, byte, func())) (origins []string) {
	if len(earlier) == 0 {
		g.globals, g.mutable, g.bases = "ii", []bool{true, false}, true
		return nil
	}
	with := func(part, global int) {
		origin := earlier[part].origins[global]
		if slices.Contains(origins, origin) {
			return
		}
		origins = append(origins, origin)
		g.globals += earlier[part].globals[global : global+1]
		g.mutable = append(g.mutable, earlier[part].mutable[global])
		add(part, fmt.Sprint("g", global), 3, func() { g.globalType(len(g.globals) - 1) })
	}
	with(0, budgetGlobal)
	if g.chance(70) {
		g.base = 1
		with(0, 1)
	}
	for range g.IntN(4) {
		part := g.IntN(len(earlier))
		with(part, g.IntN(len(earlier[part].globals)))
	}
	g.from = len(g.globals)
	return origins
}

func functionName(i int) string { return "f" + string(rune('a'+i)) }

// write puts the sections of a member together.
func (g *generator) write(count int, imports []byte, tables int, ownMemory, empty bool) []byte {
	out := []byte("\x00asm\x01\x00\x00\x00")
	section := func(id byte, build func()) { out = g.section(out, id, build) }
	section(1, g.typeSection)
	section(2, func() { g.number(uint64(count)); g.emit(imports...) })
	section(3, g.functionSection)
	section(4, func() {
		g.number(uint64(3 - tables))
		for i := tables; i < 3; i++ {
			g.emit([][]byte{{0x70, 1, 16, 16}, {0x70, 1, 8, 20}, {0x6f, 1, 8, 20}}[i]...)
		}
	})
	if ownMemory && empty {
		section(5, func() { g.emit(1, 1, 0, 0) })
	} else if ownMemory {
		section(5, func() { g.emit(1, 1, memoryPages, growthPages) })
	}
	section(6, g.globalSection)
	section(7, func() {
		g.number(uint64(len(g.funcs) + len(g.globals) + 3 + 1))
		for i := range g.funcs {
			g.text(functionName(i))
			g.op(0, i)
		}
		for i := range g.globals {
			g.text(fmt.Sprint("g", i))
			g.op(3, i)
		}
		for i := range 3 {
			g.text(fmt.Sprint("t", i))
			g.op(1, i)
		}
		g.text("memory")
		g.op(2, 0)
	})
	if start := g.imports + 1; g.chance(20) {
		section(8, func() { g.number(uint64(start)) })
	}
	section(9, g.elementSection)
	section(12, func() { g.number(uint64(g.datas)) })
	out = g.codeSection(out)
	section(11, func() {
		g.number(uint64(g.datas))
		g.segment("active data, written when the instance is made", 8, empty)
		g.emit(1)
		g.text("passive data")
		g.segment("other data", 40, empty)
	})
	return out
}

// segment is an active data segment, which rarely is outside of memory.
func (g *generator) segment(s string, at byte, empty bool) {
	g.emit(0)
	switch {
	case g.chance(1):
		g.emit(0x41)
		g.signed(10 << 16)
		g.emit(0x0b)
	case empty:
		g.emit(0x41, 0, 0x0b)
		s = ""
	default:
		g.offset(at)
	}
	g.text(s)
}
