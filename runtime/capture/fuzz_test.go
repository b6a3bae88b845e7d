//go:build patched

package capture_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
)

// generator writes a random program: functions that call each other, with random values that live across the calls. Some
// call themselves, up to a depth that makes the stack grow. The last one calls next.
type generator struct {
	*rand.Rand
	text strings.Builder
}

var types = []string{"i32", "i64", "f32", "f64", "v128"}

func (g *generator) add(format string, args ...any) { fmt.Fprintf(&g.text, format+"\n", args...) }

func (g *generator) types(most int) (all []string) {
	for range g.IntN(most + 1) {
		all = append(all, types[g.IntN(len(types))])
	}
	return all
}

// function has parameters, and locals behind them. It returns an i64.
type function struct {
	params, locals []string
	depth          int // of its own recursion; its first parameter counts down
}

func (f function) local(i int) string {
	if i < len(f.params) {
		return f.params[i]
	}
	return f.locals[i-len(f.params)]
}

// number leaves a value of a type, of a local if it can.
func (g *generator) number(f function, typ string) string {
	var same []int
	for i := range len(f.params) + len(f.locals) {
		if f.local(i) == typ {
			same = append(same, i)
		}
	}
	if len(same) > 0 && g.IntN(4) > 0 {
		return fmt.Sprintf("(local.get %d)", same[g.IntN(len(same))])
	}
	address := fmt.Sprintf("(i32.and %s (i32.const 0x7ff8))", g.word(f))
	switch g.IntN(4) {
	case 0:
		return fmt.Sprintf("(%s.load offset=%d %s)", typ, 8*g.IntN(20), address)
	case 1:
		return g.convert("(global.get "+fmt.Sprint(g.IntN(3))+")", typ)
	}
	return g.constant(typ)
}

// convert makes a value of a type of an i64.
func (g *generator) convert(x, typ string) string {
	switch typ {
	case "i32":
		return fmt.Sprintf("(i32.wrap_i64 %s)", x)
	case "f32":
		return fmt.Sprintf("(f32.convert_i64_s %s)", x)
	case "f64":
		return fmt.Sprintf("(f64.convert_i64_u %s)", x)
	case "v128":
		return fmt.Sprintf("(i64x2.splat %s)", x)
	}
	return x
}

func (g *generator) constant(typ string) string {
	if typ == "v128" {
		return fmt.Sprintf("(v128.const i64x2 %d %d)", g.Uint64(), g.Uint64())
	}
	if g.IntN(3) == 0 {
		return fmt.Sprintf("(%s.const %d)", typ, g.IntN(300))
	}
	if typ == "i64" {
		return fmt.Sprintf("(i64.const %d)", g.Uint64())
	}
	return fmt.Sprintf("(%s.const %d)", typ, g.Uint32())
}

func (g *generator) word(f function) string {
	for i := range len(f.params) + len(f.locals) {
		if f.local(i) == "i32" && g.IntN(2) == 0 {
			return fmt.Sprintf("(local.get %d)", i)
		}
	}
	return fmt.Sprintf("(i32.const %d)", g.Uint32())
}

// change changes a local, or the memory.
func (g *generator) change(f function, first int) {
	i := first + g.IntN(max(1, len(f.params)+len(f.locals)-first))
	if i >= len(f.params)+len(f.locals) {
		return
	}
	typ := f.local(i)
	if g.IntN(4) == 0 {
		g.add("  (%s.store offset=%d (i32.and %s (i32.const 0x7ff8)) %s)", typ, 8*g.IntN(20), g.word(f), g.number(f, typ))
		return
	}
	if (typ == "i32" || typ == "i64") && g.IntN(5) == 0 {
		op := []string{"add", "xor", "xchg"}[g.IntN(3)]
		g.add("  (local.set %d (%s.atomic.rmw.%s offset=%d (i32.and %s (i32.const 0x7ff8)) %s))",
			i, typ, op, 8*g.IntN(20), g.word(f), g.number(f, typ))
		return
	}
	op := map[string][]string{
		"i32": {"i32.add", "i32.xor", "i32.mul"}, "i64": {"i64.sub", "i64.mul", "i64.rotl"}, "f32": {"f32.add", "f32.mul"},
		"f64": {"f64.sub", "f64.min"}, "v128": {"i64x2.add", "v128.xor", "f64x2.mul"},
	}[typ]
	g.add("  (local.set %d (%s %s %s))", i, op[g.IntN(len(op))], g.number(f, typ), g.number(f, typ))
}

// fold leaves an i64 of all locals.
func (g *generator) fold(f function) {
	g.add("  (i64.const 17)")
	for i := range len(f.params) + len(f.locals) {
		x := fmt.Sprintf("(local.get %d)", i)
		switch f.local(i) {
		case "i32":
			x = fmt.Sprintf("(i64.extend_i32_u %s)", x)
		case "f32":
			x = fmt.Sprintf("(i64.extend_i32_u (i32.reinterpret_f32 %s))", x)
		case "f64":
			x = fmt.Sprintf("(i64.reinterpret_f64 %s)", x)
		case "v128":
			x = fmt.Sprintf("(i64.xor (i64x2.extract_lane 0 %s) (i64x2.extract_lane 1 %s))", x, x)
		}
		g.add("  (i64.const 31) (i64.mul) %s (i64.add)", x)
	}
}

// program writes the functions of one program, and its entry.
func (g *generator) program(index int) {
	all := make([]function, 1+g.IntN(6))
	for i := range all {
		all[i] = function{params: append([]string{"i32"}, g.types(12)...), locals: g.types(40 >> g.IntN(6))}
		if g.IntN(4) == 0 {
			all[i].depth = 1 << g.IntN(8)
		}
	}
	call := func(f function, i int, tail string) {
		callee := all[i]
		for k, typ := range callee.params {
			switch {
			case k > 0:
				g.add("  %s", g.number(f, typ))
			case f.depth > 0:
				g.add("  (i32.const %d) (i32.add (i32.and %s (i32.const 3)))", callee.depth, g.word(f))
			default:
				g.add("  (i32.const %d)", callee.depth)
			}
		}
		switch g.IntN(3) {
		case 0:
			g.add("  (%scall_indirect (param %s) (result i64) (i32.const %d))", tail, strings.Join(callee.params, " "), index*8+i)
		default:
			g.add("  (%scall $f%d_%d)", tail, index, i)
		}
	}
	for i, f := range all {
		g.add("(elem (i32.const %d) $f%d_%d)", index*8+i, index, i)
		g.add("(func $f%d_%d (param %s) (result i64) (local %s)", index, i, strings.Join(f.params, " "), strings.Join(f.locals, " "))
		for range g.IntN(2 * (1 + len(f.locals))) {
			g.change(f, 1)
		}
		if f.depth > 0 { // calls itself, and then goes on as every one: at the bottom only, or at each level
			g.add("  (if (i32.gt_s (local.get 0) (i32.const 0)) (then")
			for k, typ := range f.params {
				if k == 0 {
					g.add("  (i32.sub (local.get 0) (i32.const 1))")
				} else {
					g.add("  %s", g.number(f, typ))
				}
			}
			if g.IntN(4) == 0 {
				g.add("  (return_call $f%d_%d)))", index, i)
			} else {
				g.add("  (call $f%d_%d) (global.set 0)", index, i)
				g.fold(f)
				g.add("  (global.get 0) (i64.add) (return)))")
			}
		}
		for range 1 + g.IntN(2) {
			if i+1 < len(all) {
				call(f, i+1, "")
				g.add("  (global.set %d)", g.IntN(3))
			} else {
				g.add("  (global.set %d (i64.extend_i32_u (call $next)))", g.IntN(3))
			}
			for range g.IntN(4) {
				g.change(f, 1)
			}
		}
		if g.IntN(8) == 0 {
			g.add("  (global.set 1 (i64.extend_i32_s (memory.grow (i32.const 1))))")
		}
		if g.IntN(8) == 0 {
			g.add("  (memory.copy (i32.const %d) (i32.const %d) (i32.const %d))", g.IntN(30000), g.IntN(30000), g.IntN(5000))
		}
		if i+1 < len(all) && g.IntN(4) == 0 {
			call(f, i+1, "return_")
			g.add(")")
			continue
		}
		g.fold(f)
		if g.IntN(20) == 0 { // may trap
			g.add("  (global.get 2) (i64.const 2) (i64.rem_u) (i64.div_u)")
		}
		g.add("  (global.get 2) (i64.add))")
	}
	g.add("(func (export \"p%d\") (local i32 i64 f64)", index)
	f := function{locals: []string{"i32", "i64", "f64"}}
	for range 1 + g.IntN(3) {
		call(f, 0, "")
		g.add("  (local.tee 1) (call $note)")
	}
	g.add(")")
}

// seen adds up what the programs of a test are like.
type seen struct{ programs, trapped, frames, replaced, dead, large int }

// continueRandom compares continued runs of random programs with uninterrupted ones.
func continueRandom(t *testing.T, seed uint64, guarded bool, programs int) (all seen) {
	t.Helper()
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 3))}
	g.add(`(memory (export "memory") 1 40) (table %d funcref) (func (export "_start"))`, programs*8)
	for i := range 3 {
		g.add(`(global (export "g%d") (mut i64) (i64.const %d))`, i, i)
	}
	g.add(`(data (i32.const 0) "%s")`, fmt.Sprintf("%x", seed*0x9e3779b97f4a7c15))
	for i := range programs {
		g.program(i)
	}
	defer func() {
		if t.Failed() {
			name := fmt.Sprintf("%s/%d.wat", os.TempDir(), seed)
			_ = os.WriteFile(name, []byte(imports+g.text.String()+")"), 0o600)
			t.Logf("seed %d, guarded %v: the module is in %s", seed, guarded, name)
		}
	}()
	p := compile(t, compiler, guarded, g.text.String())
	for i := range programs {
		export := fmt.Sprintf("p%d", i)
		whole := p.guest(t, export)
		err := whole.fn.CallWithStack(whole.context(), nil)
		if whole.nexts == 0 {
			continue // it trapped before
		}
		s, _ := p.check(t, export, g.IntN(min(whole.nexts, 50)))
		size := s.Size()
		all.programs++
		all.frames += size.Frames
		all.replaced += size.Replaced
		all.dead += size.Dead
		if err != nil {
			all.trapped++
		}
		if size.Stack > 10240 {
			all.large++
		}
	}
	return all
}

func TestRandomProgramsContinueAsIfUninterrupted(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("first seed %d", seed)
	n := 6
	if os.Getenv("RUNNER_SOAK") != "" {
		n *= 100
	}
	kinds(t, func(t *testing.T, guarded bool) {
		var all seen
		for i := range uint64(n) {
			more := continueRandom(t, seed+i, guarded, 25)
			all.programs += more.programs
			all.trapped += more.trapped
			all.frames += more.frames
			all.replaced += more.replaced
			all.dead += more.dead
			all.large += more.large
		}
		t.Logf("%+v", all)
		if all.programs < 10*n || all.trapped*200 < all.programs || all.dead < all.programs/20 || all.large*50 < all.programs {
			t.Error("the programs are one-sided")
		}
	})
}

func FuzzRandomPrograms(f *testing.F) {
	for seed := range uint64(4) {
		f.Add(seed, seed%2 == 0)
	}
	f.Fuzz(func(t *testing.T, seed uint64, guarded bool) { continueRandom(t, seed, guarded && guardable, 5) })
}
