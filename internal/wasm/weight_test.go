package wasm_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// stretch is the most that is paid for at once, in units: see the package.
const stretch = 65

// heavy is code without loops and calls: instructions of one kind, each of which depends
// on the one before, with their weight and their number.
var heavy = []struct {
	name, before, each, after string
	weight                    int // of the instruction that gives the name
}{
	{"i32.add", "(local.get $i)", "(i32.add (local.get $i))", "(global.set $g)", 2},
	{"i32.div_u", "(i32.const -1)", "(i32.div_u (i32.or (local.get $i) (i32.const 1)))", "(global.set $g)", 16},
	{"i32.rem_s", "(i32.const -2)", "(i32.rem_s (i32.or (local.get $i) (i32.const 3)))", "(global.set $g)", 16},
	{"i64.div_s", "(i64.const 0x7fffffffffffffff)", "(i64.div_s (i64.or (local.get $l) (i64.const 1)))", "(global.set $l)", 48},
	{"i64.rem_u", "(i64.const -1)", "(i64.rem_u (i64.const 0x7fffffffff)) (i64.or (i64.const 0x7ffffffffffffff0))", "(global.set $l)", 48},
	{"f64.sqrt", "(f64.const 1e300)", "f64.sqrt", "(global.set $d)", 16},
	{"f64.div", "(f64.const 1e300)", "(f64.div (f64.const 1.0000001))", "(global.set $d)", 16},
	{"f32.sqrt", "(f32.const 1e30)", "f32.sqrt", "(global.set $f)", 16},
	{"f64.nearest", "(f64.const 1e3)", "f64.nearest", "(global.set $d)", 4},
	{"f64.min", "(f64.const 1e3)", "(f64.min (local.get $d))", "(global.set $d)", 4},
	{"i64.trunc_sat_f64_u", "(f64.const 1e3)", "i64.trunc_sat_f64_u f64.convert_i64_u", "(global.set $d)", 16},
	{"i64.popcnt", "(i64.const 77)", "i64.popcnt", "(global.set $l)", 1},
	{"f64x2.sqrt", "(v128.const f64x2 1e300 1e300)", "f64x2.sqrt", "(global.set $v)", 32},
	{"f64x2.div", "(v128.const f64x2 1e300 1e300)", "(f64x2.div (v128.const f64x2 1.01 1.01))", "(global.set $v)", 32},
	{"i64x2.mul", "(v128.const i64x2 3 3)", "(i64x2.mul (local.get $v))", "(global.set $v)", 8},
	{"i8x16.shr_s", "(v128.const i64x2 3 3)", "(i8x16.shr_s (i32.const 1))", "(global.set $v)", 8},
	{"i8x16.popcnt", "(v128.const i64x2 3 3)", "i8x16.popcnt", "(global.set $v)", 8},
	// the next address is what was read, which no cache holds
	{"i32.load that misses", "(global.get $g)", "i32.load", "(global.set $g)", 128},
	{"i32.store that misses", "(i32.add (global.get $g) (i32.const 77))", "(i32.mul (i32.const 0x9E3779B1)) (local.tee $i) (i32.store (i32.and (local.get $i) (i32.const 0x3fffff8)) (local.get $i))", "(global.set $g)", 32},
	{"i32.atomic.load that misses", "(global.get $g)", "i32.atomic.load", "(global.set $g)", 160},
	{"i32.atomic.rmw.add that misses", "(i32.add (global.get $g) (i32.const 77))", "(i32.mul (i32.const 0x9E3779B1)) (local.tee $i) (drop (i32.atomic.rmw.add (i32.and (local.get $i) (i32.const 0x3fffff8)) (local.get $i)))", "(global.set $g)", 160},
	{"i64.atomic.rmw.xor that misses", "(i32.add (global.get $g) (i32.const 77))", "(i32.mul (i32.const 0x9E3779B1)) (local.tee $i) (drop (i64.atomic.rmw.xor (i32.and (local.get $i) (i32.const 0x3fffff8)) (local.get $l)))", "(global.set $g)", 160},
	{"i32.atomic.rmw8.cmpxchg_u that misses", "(i32.add (global.get $g) (i32.const 77))", "(i32.mul (i32.const 0x9E3779B1)) (local.tee $i) (drop (i32.atomic.rmw8.cmpxchg_u (i32.and (local.get $i) (i32.const 0x3fffff8)) (local.get $i) (i32.const 1)))", "(global.set $g)", 160},
	{"i32.atomic.store that misses", "(i32.add (global.get $g) (i32.const 77))", "(i32.mul (i32.const 0x9E3779B1)) (local.tee $i) (i32.atomic.store (i32.and (local.get $i) (i32.const 0x3fffff8)) (local.get $i))", "(global.set $g)", 160},
	{"atomic.fence", "(local.get $i)", "(i32.store (i32.const 0) (i32.const 1)) (atomic.fence)", "(global.set $g)", 160},
	{"memory.atomic.notify", "(local.get $i)", "(drop (memory.atomic.notify (i32.const 64) (i32.const 1)))", "(global.set $g)", 416},
	{"memory.fill", "(local.get $i)", "(memory.fill (i32.const 0) (i32.const 0) (i32.const 128))", "(global.set $g)", 128},
	{"memory.copy", "(local.get $i)", "(memory.copy (i32.const 0) (i32.const 64) (i32.const 128))", "(global.set $g)", 128},
	{"memory.grow", "(local.get $i)", "(drop (memory.grow (i32.const 0)))", "(global.set $g)", 256},
	{"memory.size", "(local.get $i)", "(drop (memory.size))", "(global.set $g)", 4},
	{"table.get", "(local.get $i)", "(drop (ref.is_null (table.get $t (i32.const 3))))", "(global.set $g)", 128},
	{"table.set", "(local.get $i)", "(table.set $t (i32.const 3) (ref.null func))", "(global.set $g)", 256},
	{"table.fill", "(local.get $i)", "(table.fill $t (i32.const 0) (ref.null func) (i32.const 16))", "(global.set $g)", 128},
	{"table.grow", "(local.get $i)", "(drop (table.grow $t (ref.null func) (i32.const 0)))", "(global.set $g)", 256},
	{"ref.func", "(local.get $i)", "(drop (ref.is_null (ref.func $leaf)))", "(global.set $g)", 128},
	{"global.set", "(local.get $i)", "(global.set $g (i32.add (global.get $g) (i32.const 1)))", "drop", 4},
	{"call", "(local.get $i)", "(call $leaf)", "(global.set $g)", 256},
	{"call_indirect", "(local.get $i)", "(call_indirect $c (i32.const 0))", "(global.set $g)", 384},
}

// heavyModule runs n of a row's instructions for each of the passes it is given.
func heavyModule(row int, n int) string {
	r := heavy[row]
	return fmt.Sprintf(`(module (memory (export "memory") 1024) (table $c funcref (elem $leaf)) (table $t 100 funcref)
	  (global $g (mut i32) (i32.const 0)) (global $l (mut i64) (i64.const 0)) (global $f (mut f32) (f32.const 0))
	  (global $d (mut f64) (f64.const 0)) (global $v (mut v128) (v128.const i64x2 0 0))
	  ;; the heaviest function that is not charged
	  (func $leaf (global.set $g (i32.load (i32.load (i32.load (i32.const 0))))))
	  (func $heavy (local $i i32) (local $l i64) (local $d f64) (local $v v128) %s %s %s)
	  (func (export "run") (param $n i32)
	    (loop $again (call $heavy) (br_if $again (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))))`,
		r.before, strings.Repeat(r.each+"\n", n), r.after)
}

// chase makes of the memory one long walk over all of it, in no order that can be
// foreseen.
func chase(m api.Module, seed uint64) {
	const line = 64
	size := m.Memory().Size()
	order := rand.New(rand.NewPCG(seed, seed)).Perm(int(size / line))
	for i, at := range order {
		m.Memory().WriteUint32Le(uint32(at)*line, uint32(order[(i+1)%len(order)])*line)
	}
}

func TestLongCodeIsChargedInPartsByItsWeight(t *testing.T) {
	const n, passes = 600, 5
	for row, r := range heavy {
		bytes, done := mustRewrite(t, watModule(t, heavyModule(row, n)), everything)
		h := newHost(t, wazero.NewRuntimeConfigCompiler())
		m := h.instantiate(t, bytes, done)
		if _, err := h.call(m, "run", passes); err != nil {
			t.Fatal(r.name, err)
		}
		spent := h.spent + h.slice - int(int32(m.ExportedGlobal(done.Fuel).Get()))
		if least := n * passes * r.weight / 64; spent < least || spent > 8*least+n*passes {
			t.Errorf("%s: %d units of fuel, want about %d", r.name, spent, least)
		}
		if h.debt > stretch {
			t.Errorf("%s: %d units were paid for at once", r.name, h.debt)
		}
	}
}

// TestEveryPathThroughCodeIsCharged counts the instructions that generated code runs,
// and compares the count with the fuel that was charged, also when branches skip code.
func TestEveryPathThroughCodeIsCharged(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: left out by -short")
	}
	first := rand.Uint64() >> 16
	t.Log("seeds from ", first)
	checks, seeds := 0, uint64(10)
	if os.Getenv("RUNNER_SOAK") != "" {
		seeds = 100
	}
	for seed := first; seed < first+seeds; seed++ {
		g := ways{Rand: rand.New(rand.NewPCG(seed, 1))}
		text := `(module (memory (export "memory") 1) (global $ran (export "ran") (mut i32) (i32.const 0)) (global $chance (mut i32) (i32.const ` +
			fmt.Sprint(g.Uint32()|1) + `))
		  (func $next (result i32)
		    (global.set $chance (i32.add (i32.mul (global.get $chance) (i32.const 1664525)) (i32.const 1013904223)))
		    (i32.shr_u (global.get $chance) (i32.const 24)))
		  (func $worker ` + strings.Repeat(step, 300) + `)
		  (func $small ` + strings.Repeat(step, 20) + ` (call $worker))
		  (func $smaller ` + strings.Repeat(step, 5) + ` (call $worker) ` + strings.Repeat(step, 5) + ` (call $worker))
		  (func $tiny ` + strings.Repeat(step, 30) + `)
		  (func (export "run") (param $n i32) (local $c i32) (local $p i32) ` + g.block(3) + `))`
		bytes, done := mustRewrite(t, watModule(t, text), everything)
		checks += done.FuelChecks
		h := newHost(t, wazero.NewRuntimeConfigCompiler())
		m := h.instantiate(t, bytes, done)
		for range 20 {
			if _, err := h.call(m, "run", 1); err != nil {
				t.Fatal(err)
			}
		}
		// each step is two accesses to a global, a constant and an addition
		ran := int(m.ExportedGlobal("ran").Get()) * 6
		spent := (h.spent + h.slice - int(int32(m.ExportedGlobal(done.Fuel).Get()))) * 64
		if spent < ran {
			t.Fatalf("seed %d: code of weight %d ran, and %d was paid\n%s", seed, ran, spent, text)
		}
		if h.debt > stretch {
			t.Errorf("seed %d: %d units were paid for at once", seed, h.debt)
		}
	}
	if checks < int(seeds)*6 {
		t.Errorf("only %d checks: the code is too short to tell", checks)
	}
}

// A path goes on after an if without an else whose code leaves the function, if the condition is false.
func TestAPathGoesOnAfterAnIfThatIsNotTaken(t *testing.T) {
	spent := func(leaves string) int {
		bytes, done := mustRewrite(t, watModule(t, `(module (memory (export "memory") 1) (global $ran (mut i32) (i32.const 0))
		  (func (export "run") (param $c i32) `+strings.Repeat(step, 100)+`
		    (if (local.get $c) (then `+leaves+`)) `+strings.Repeat(step, 100)+`))`), everything)
		h := newHost(t, wazero.NewRuntimeConfigCompiler())
		m := h.instantiate(t, bytes, done)
		if _, err := h.call(m, "run", 0); err != nil {
			t.Fatal(err)
		}
		return h.spent + h.slice - int(int32(m.ExportedGlobal(done.Fuel).Get()))
	}
	want := spent("nop")
	for _, leaves := range []string{"return", "(br 1)", "unreachable"} {
		if got := spent(leaves); got < want {
			t.Errorf("%s: %d units were paid, want %d", leaves, got, want)
		}
	}
}

// step counts what runs.
const step = "(global.set $ran (i32.add (global.get $ran) (i32.const 1)))"

// ways generates code that branches.
type ways struct {
	*rand.Rand
}

func (g *ways) block(budget int) string {
	var b strings.Builder
	for range 2 + g.IntN(4) {
		b.WriteString(strings.Repeat(step, g.IntN(150)))
		b.WriteString([]string{"", "", "", "(call $small)", "(call $smaller)", "(call $tiny)"}[g.IntN(6)])
		if budget == 0 {
			continue
		}
		inner := func() string { return g.block(budget - 1 - g.IntN(budget)) }
		chance := fmt.Sprintf("(i32.lt_u (call $next) (i32.const %d))", g.IntN(256))
		switch g.IntN(9) {
		case 0:
			fmt.Fprintf(&b, "(if %s (then %s) (else %s))", chance, inner(), inner())
		case 1:
			fmt.Fprintf(&b, "(if %s (then %s))", chance, inner())
		case 2:
			fmt.Fprintf(&b, "(block %s (br_if 0 %s) %s)", inner(), chance, inner())
		case 3:
			fmt.Fprintf(&b, "(block (block (block (br_table 0 1 2 (i32.shr_u (call $next) (i32.const 6))) %s) %s (br 1)) %s)", inner(), inner(), inner())
		case 4:
			fmt.Fprintf(&b, "(loop %s (br_if 0 (i32.lt_u (call $next) (i32.const 100))) %s)", inner(), inner())
		case 5:
			fmt.Fprintf(&b, "(block (loop %s (br_if 1 %s) %s (br_if 0 (i32.lt_u (call $next) (i32.const 60)))))", inner(), chance, inner())
		case 7, 8: // jumps as Go's, forward, backward and computed
			jump := func(to string) string { return "(local.set $p " + to + ") (br $d)" }
			maybe := func(percent int, to string) string {
				return fmt.Sprintf("(if (i32.lt_u (call $next) (i32.const %d)) (then %s))", percent*256/100, jump(to))
			}
			fmt.Fprintf(&b, `(local.set $p (i32.const %d)) (loop $d (block $3 (block $2 (block $1 (block $0 (br_table $0 $1 $2 $3 $2 (local.get $p)))
				%s %s %s) %s %s %s) %s %s) %s %s)`, g.IntN(6),
				inner(), maybe(50, "(i32.const 2)"), maybe(30, "(i32.const 9)"),
				inner(), maybe(30, "(i32.const 0)"), jump("(i32.const 3)"),
				inner(), maybe(20, "(i32.and (call $next) (i32.const 3))"), inner(), maybe(20, "(i32.const 1)"))
		case 6:
			fmt.Fprintf(&b, "(if %s (then %s (return)))", fmt.Sprintf("(i32.lt_u (call $next) (i32.const %d))", g.IntN(20)), inner())
		}
	}
	return b.String()
}

// BenchmarkSlice measures how long a slice of fuel of 2^15 units lasts at most,
// for each kind of instruction: in long code, and in a loop.
func BenchmarkSlice(b *testing.B) {
	saved := slice
	slice = 1 << 15
	defer func() { slice = saved }()
	for row, r := range heavy {
		for _, n := range []int{1, 5_000} {
			b.Run(fmt.Sprintf("%s/%d", strings.ReplaceAll(r.name, " ", "-"), n), func(b *testing.B) {
				bytes, done := mustRewrite(b, watModule(b, heavyModule(row, n)), everything)
				h := newHost(b, wazero.NewRuntimeConfigCompiler())
				h.quick = true
				m := h.instantiate(b, bytes, done)
				chase(m, 1)
				run := m.ExportedFunction("run")
				passes := uint64(max(1, 200_000/n))
				if err := run.CallWithStack(context.Background(), []uint64{1}); err != nil {
					b.Fatal(err)
				}
				h.refills = 0
				began := time.Now()
				for b.Loop() {
					if err := run.CallWithStack(context.Background(), []uint64{passes}); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(time.Since(began).Microseconds())/1000/float64(max(1, h.refills)), "ms/slice")
			})
		}
	}
}

// The call of a function that counts nothing is charged for it, so such a function must not
// call another one.
func TestCallsOfSmallFunctionsAreCharged(t *testing.T) {
	bytes, done := mustRewrite(t, watModule(t, `(module (memory (export "memory") 1) (global $ran (export "ran") (mut i32) (i32.const 0))
	  (func $tiny `+strings.Repeat(step, 40)+`)
	  (func $twelve `+strings.Repeat("(call $tiny)", 12)+`)
	  (func $first (loop $l) `+strings.Repeat(step, 40)+`)
	  (func $more (call $first) (call $first) (call $first) (call $first) (call $first) (call $first))
	  (func (export "run") (param $n i32)
	    (loop $again (call $twelve) (call $more) (br_if $again (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))))`), everything)
	h := newHost(t, wazero.NewRuntimeConfigCompiler())
	m := h.instantiate(t, bytes, done)
	if _, err := h.call(m, "run", 100); err != nil {
		t.Fatal(err)
	}
	ran := int(m.ExportedGlobal("ran").Get()) * 6
	if spent := (h.spent + h.slice - int(int32(m.ExportedGlobal(done.Fuel).Get()))) * 64; spent < ran {
		t.Errorf("code of weight %d ran, and %d was paid", ran, spent)
	}
}

// A loop is charged for its heaviest path, wherever in the loop that is and however it ends: by
// going on, by leaving or by returning.
func TestALoopIsChargedForItsHeaviestPathHoweverItEnds(t *testing.T) {
	const passes = 1000
	heavyPath, lightPath := strings.Repeat(step, 150), step
	onward := "(br_if $out (i32.eqz (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))"
	for name, body := range map[string]string{
		"br to the loop":             `(if (local.get $n) (then HEAVY ` + onward + ` (br $loop))) LIGHT (br $loop)`,
		"br out":                     `(if (local.get $n) (then HEAVY ` + onward + ` (br $loop))) LIGHT (br $out)`,
		"return":                     `(if (local.get $n) (then HEAVY ` + onward + ` (br $loop))) LIGHT (return)`,
		"unreachable":                `(if (local.get $n) (then HEAVY ` + onward + ` (br $loop))) LIGHT unreachable`,
		"br_table":                   `(if (local.get $n) (then HEAVY ` + onward + ` (br $loop))) LIGHT (br_table $loop $out (i32.const 1))`,
		"its end":                    `(if (local.get $n) (then HEAVY ` + onward + ` (br $loop))) LIGHT`,
		"heavy in a block":           `(block $skip (br_if $skip (i32.eqz (local.get $n))) HEAVY ` + onward + ` (br $loop)) LIGHT (br $out)`,
		"heavy in the else":          `(if (i32.eqz (local.get $n)) (then LIGHT (br $out)) (else HEAVY ` + onward + ` (br $loop))) unreachable`,
		"heavy before br_table":      `(block $a (block $b (br_table $b $a (i32.eqz (local.get $n)))) HEAVY ` + onward + ` (br_table $loop $loop (local.get $n))) LIGHT (br $out)`,
		"heavy around an inner loop": `(if (local.get $n) (then (loop $inner LIGHT) HEAVY ` + onward + ` (br $loop))) (loop $last LIGHT (br $out))`,
	} {
		t.Run(name, func(t *testing.T) {
			body := strings.NewReplacer("HEAVY", heavyPath, "LIGHT", lightPath).Replace(body)
			bytes, done := mustRewrite(t, watModule(t, `(module (memory (export "memory") 1) (global $ran (export "ran") (mut i32) (i32.const 0))
			  (func (export "run") (param $n i32) (block $out (loop $loop `+body+`))))`), everything)
			h := newHost(t, wazero.NewRuntimeConfigCompiler())
			m := h.instantiate(t, bytes, done)
			if _, err := h.call(m, "run", passes); err != nil {
				t.Fatal(err)
			}
			ran := int(m.ExportedGlobal("ran").Get()) * 6
			if ran < passes*150*6 {
				t.Fatalf("code of weight %d ran: the loop does not do what it says", ran)
			}
			if spent := (h.spent + h.slice - int(int32(m.ExportedGlobal(done.Fuel).Get()))) * 64; spent < ran {
				t.Errorf("code of weight %d ran, and %d was paid", ran, spent)
			}
		})
	}
}
