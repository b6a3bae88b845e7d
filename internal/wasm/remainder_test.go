package wasm_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"runner.example/internal/wasm"
)

// targets are those that the rewriter distinguishes.
var targets = []string{"amd64", "arm64"}

// remainders are the instructions that are replaced for arm64.
var remainders = []string{"i32.rem_s", "i32.rem_u", "i64.rem_s", "i64.rem_u"}

// divisors are constants that remainders are computed by.
var divisors = []string{"0", "1", "-1", "2", "3", "7", "10", "-10", "16", "1000", "0x7fffffff", "0x80000000"}

// remaindersModule has functions (x, y) of one type for an instruction.
func remaindersModule(op string) string {
	var b strings.Builder
	// the globals are there to be compared
	b.WriteString(`(module (memory (export "memory") 1) (global $last (mut T) (T.const 0))
	  (func (export "plain") (param $x T) (param $y T) (result T) (REM (local.get $x) (local.get $y)))
	  ;; with locals of its own, of both types
	  (func (export "locals") (param $x T) (param $y T) (result T) (local $a i32) (local $b i64) (local $c T)
	    (local.set $a (i32.const 77)) (local.set $b (i64.const 78)) (local.set $c (local.get $x))
	    (if (T.ne (REM (local.get $c) (local.get $y)) (T.const 0)) (then (local.set $c (REM (local.get $y) (local.get $c)))))
	    (global.set $last (local.get $c))
	    (if (i32.ne (local.get $a) (i32.const 77)) (then (unreachable)))
	    (if (i64.ne (local.get $b) (i64.const 78)) (then (unreachable)))
	    (REM (REM (local.get $x) (local.get $y)) (T.or (local.get $c) (T.const 1))))
	  (func (export "deep") (param $x T) (param $y T) (result T)
	    (REM (T.add (REM (local.get $x) (T.const 1000003)) (REM (local.get $y) (T.xor (local.get $x) (T.const 5))))
	      (T.sub (REM (local.get $y) (T.or (REM (local.get $x) (local.get $y)) (T.const 1))) (T.const 3))))
	  (func (export "loop") (param $x T) (param $y T) (result T) (local $i T) (local $sum T) (local $bytes i32)
	    (local.set $i (T.const 20))
	    (loop $next
	      (local.set $sum (T.add (T.mul (local.get $sum) (T.const 31)) (REM (local.get $x) (T.add (local.get $y) (local.get $i)))))
	      (local.set $bytes (i32.const 300))
	      ;; of a bulk operation, which has a local of its own
	      (memory.init $d (i32.const 0) (i32.const 0) (local.get $bytes))
	      (br_if $next (T.ne (local.tee $i (T.sub (local.get $i) (T.const 1))) (T.const 0))))
	    (local.get $sum))
	  ;; calls itself, so it has a local for its stack
	  (func $gcd (export "gcd") (param $x T) (param $y T) (result T)
	    (if (result T) (T.eqz (local.get $y)) (then (local.get $x))
	      (else (call $gcd (local.get $y) (REM (local.get $x) (local.get $y))))))
	  (data $d "` + strings.Repeat("x", 300) + `")`)
	for i, divisor := range divisors {
		fmt.Fprintf(&b, `(func (export "by%d") (param $x T) (param $y T) (result T) (REM (local.get $x) (T.const %s)))`, i, divisor)
	}
	b.WriteString(")")
	return strings.NewReplacer("(REM", "("+op, "(T.", "("+op[:3]+".", " T)", " "+op[:3]+")").Replace(b.String())
}

// edges are numbers of the given bits near those where remainders may differ, and random ones.
func edges(random *rand.Rand, bits int) []uint64 {
	seen := map[uint64]bool{}
	var all []uint64
	add := func(n uint64) {
		n &= 1<<bits - 1
		if !seen[n] {
			seen[n] = true
			all = append(all, n)
		}
	}
	part := 4
	if testing.Short() {
		part = 12
	}
	add(0)
	// all powers are reached in a few runs
	for _, power := range append([]int{0, 1, bits - 2, bits - 1}, random.Perm(bits)[:bits/part]...) {
		for n := range uint64(3) { // n is 0, 1 and 2: the power and its neighbors
			add(1<<power + n - 1)
			add(-(1<<power + n - 1))
		}
	}
	for range 80 / part {
		add(random.Uint64() >> random.IntN(64))
	}
	return all
}

// TestReplacedRemaindersHaveTheSameResultsTrapsAndFuel runs modules that are rewritten for
// each target on this machine.
func TestReplacedRemaindersHaveTheSameResultsTrapsAndFuel(t *testing.T) {
	ctx := context.Background()
	seed := rand.Uint64()
	t.Log("seed ", seed)
	for _, op := range remainders {
		random := rand.New(rand.NewPCG(seed, 0))
		original := watModule(t, remaindersModule(op))
		plain := newHost(t, wazero.NewRuntimeConfigInterpreter())
		want := plain.instantiate(t, original, &wasm.Rewritten{})
		var hosts []*host
		var got []api.Module
		var done *wasm.Rewritten
		var sizes []int
		for _, target := range targets {
			options := everything
			options.Target = target
			bytes, d := mustRewrite(t, original, options)
			h := newHost(t, wazero.NewRuntimeConfigCompiler())
			hosts, got, done, sizes = append(hosts, h), append(got, h.instantiate(t, bytes, d)), d, append(sizes, len(bytes))
		}
		if sizes[0] >= sizes[1] {
			t.Errorf("%s: modules of %v bytes: nothing was replaced", op, sizes)
		}
		bits := 32
		if op[:3] == "i64" {
			bits = 64
		}
		exports := []string{"plain", "locals", "deep", "loop", "gcd"}
		for i := range divisors {
			exports = append(exports, fmt.Sprint("by", i))
		}
		values := edges(random, bits)
		results, traps := 0, 0
		for _, export := range exports {
			for _, x := range values {
				ys := values
				switch {
				case export != "plain" && export[:2] != "by":
					ys = []uint64{0, 1, 1<<bits - 1, 1 << (bits - 1), values[random.IntN(len(values))], values[random.IntN(len(values))]}
				case export != "plain":
					ys = values[:1] // not used
				}
				for _, y := range ys {
					wanted, wantErr := want.ExportedFunction(export).Call(ctx, x, y)
					for i, m := range got {
						result, err := hosts[i].call(m, export, x, y)
						switch {
						case (err == nil) != (wantErr == nil), err != nil && trap(err) != trap(wantErr):
							t.Fatalf("%s, %s(%#x, %#x) for %s: %v, want %v", op, export, x, y, targets[i], err, wantErr)
						case err == nil && (result[0]^wanted[0])&(1<<bits-1) != 0:
							t.Fatalf("%s, %s(%#x, %#x) for %s: %#x, want %#x", op, export, x, y, targets[i], result, wanted)
						}
						m.ExportedGlobal(done.Depth).(api.MutableGlobal).Set(0)
					}
					if wantErr == nil {
						results++
					} else {
						traps++
					}
				}
			}
		}
		spent := func(i int) int {
			return hosts[i].spent + hosts[i].slice - int(int32(got[i].ExportedGlobal(done.Fuel).Get()))
		}
		if spent(0) != spent(1) || spent(0) < results {
			t.Errorf("%s took %d units of fuel for %s, and %d for %s", op, spent(0), targets[0], spent(1), targets[1])
		}
		if traps < len(values) || results < 5*traps {
			t.Errorf("%s: %d results and %d traps: too few to tell", op, results, traps)
		}
		t.Logf("%s: %d results, %d traps, %d units of fuel", op, results, traps, spent(0))
	}
}

// crowdedModule computes remainders while n other values are in use. wazero 1.12.0 computes
// it wrongly on arm64 for n of 17 and more.
func crowdedModule(op string, n int) string {
	const results = 8
	text := `(module (memory (export "memory") 1) (func (export "f") (param $x T) (param $y T) (result T)` +
		times(results, `(local $r# T)`) + times(n, `(local $v# T)`) +
		times(n, `(local.set $v# (T.load offset=@ (i32.const 0)))`) +
		times(results, `(local.set $r# (`+op+` (local.get $x) (local.get $y)))`) +
		`(T.add (local.get $x) (local.get $y))` +
		times(n, `(T.add (local.get $v#))`) + times(results, `(T.add (T.mul (local.get $r#) (T.const 3)))`) +
		times(n, `(T.add (T.load offset=@ (i32.const 512)))`) + `))`
	return strings.NewReplacer("(T.", "("+op[:3]+".", " T)", " "+op[:3]+")").Replace(text)
}

// TestRemaindersAreRightWhileManyValuesAreInUse compiles for this machine.
func TestRemaindersAreRightWhileManyValuesAreInUse(t *testing.T) {
	ctx := context.Background()
	for _, op := range remainders {
		for n := 5; n <= 60; n += 15 {
			original := watModule(t, crowdedModule(op, n))
			rewritten, done := mustRewrite(t, original, wasm.Options{})
			var results [2]uint64
			for i, bytes := range [][]byte{original, rewritten} {
				h := newHost(t, []wazero.RuntimeConfig{wazero.NewRuntimeConfigInterpreter(), wazero.NewRuntimeConfigCompiler()}[i])
				m := h.instantiate(t, bytes, done)
				for at := range uint32(200) {
					m.Memory().WriteUint64Le(8*at, uint64(at)*1_000_003)
				}
				result, err := h.call(m, "f", 1_000_000, 77)
				if err != nil {
					t.Fatal(err)
				}
				if results[i] = result[0]; op[:3] == "i32" {
					results[i] &= 1<<32 - 1
				}
				_ = h.Close(ctx) // now: there are many
			}
			if results[0] != results[1] {
				t.Errorf("%s with %d values in use: %d, want %d", op, n, results[1], results[0])
			}
		}
	}
}
