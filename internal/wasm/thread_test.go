package wasm_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"

	"runner.example/internal/wasm"
)

// dispatching are loops that branch by the local p, and code that is similar. Each reports
// the parts that it passes through, as digits, and ends after a few.
var dispatching = map[string]string{
	"jumps forward, backward and out": `(block $out (loop $l (block $2 (block $1 (block $0
	    (br_table $0 $1 $2 $out (local.get $p)))
	  (call $pass (i32.const 1)) (local.set $p (i32.const 2)) (br $l))
	  (call $pass (i32.const 2)) (local.set $p (i32.const 3)) (br $l))
	  (call $pass (i32.const 3)) (local.set $p (i32.const 1)) (br $l)))`,
	"constants that select the default": `(loop $l (block $2 (block $1 (block $0
	    (br_table $0 $1 $2 (local.get $p)))
	  (call $pass (i32.const 1)) (local.set $p (i32.const 77)) (br $l))
	  (call $pass (i32.const 2)) (local.set $p (i32.const -1)) (br $l))
	  (call $pass (i32.const 3)) (if (i32.lt_u (global.get $n) (i32.const 5)) (then (local.set $p (i32.const 1)) (br $l))))`,
	"a later block in the place of the target": `(loop $l (block $1 (block $0
	    (br_table $0 $1 (local.get $p)))
	  (call $pass (i32.const 1)))
	  (call $pass (i32.const 2))
	  (block $other (block
	    (local.set $p (i32.const 1)) (br_if $other (i32.gt_u (global.get $n) (i32.const 6))) (local.set $p (i32.const 1)) (br $l))
	    (call $pass (i32.const 3)))
	  (call $pass (i32.const 4)))`,
	"another local": `(loop $l (block $1 (block $0
	    (br_table $0 $1 (local.get $p)))
	  (call $pass (i32.const 1)) (local.set $q (i32.const 1)) (br $l))
	  (call $pass (i32.const 2)))`,
	"an assignment that does not stay": `(loop $l (block $2 (block $1 (block $0
	    (br_table $0 $1 $2 (local.get $p)))
	  (call $pass (i32.const 1)) (local.set $p (i32.const 1)) (local.set $p (i32.add (local.get $p) (i32.const 1))) (br $l))
	  (call $pass (i32.const 2)) (local.set $p (local.tee $q (i32.const 0))) (br $l))
	  (call $pass (i32.const 3)))`,
	"work before the table": `(loop $l (block $1 (block $0
	    (call $pass (i32.const 8)) (br_table $0 $1 (local.get $p)))
	  (call $pass (i32.const 1)) (local.set $p (i32.const 1)) (br $l))
	  (call $pass (i32.const 2)))`,
	"a computed selector": `(loop $l (block $1 (block $0
	    (br_table $0 $1 (i32.xor (local.get $p) (i32.const 1))))
	  (call $pass (i32.const 1)) (local.set $p (i32.const 0)) (br $l))
	  (call $pass (i32.const 2)))`,
	"loops within each other with one selector": `(loop $l (block $2 (block $1 (block $0
	    (br_table $0 $1 $2 (local.get $p)))
	  (call $pass (i32.const 1))
	  (local.set $p (i32.const 0))
	  (loop $m (block $b (block $a (br_table $a $b (local.get $p)))
	    (call $pass (i32.const 5)) (local.set $p (i32.const 1)) (br $m))
	    (call $pass (i32.const 6)) (if (i32.and (global.get $n) (i32.const 1)) (then (local.set $p (i32.const 2)) (br $l)))
	    (local.set $p (i32.const 1)) (br_if $l (i32.lt_u (global.get $n) (i32.const 9)))
	    (local.set $p (i32.const 1)) (br $l)))
	  (call $pass (i32.const 2)))
	  (call $pass (i32.const 3)))`,
	"a loop as the target": `(loop $outer (call $pass (i32.const 9))
	  (if (i32.lt_u (global.get $n) (i32.const 8)) (then
	  (loop $l (block $0
	    (br_table $0 $outer $outer (local.get $p)))
	  (call $pass (i32.const 1)) (local.set $p (i32.const 1)) (br $l)))))`,
	"jumps in code that is never reached": `(loop $l (block $1 (block $0
	    (br_table $0 $1 (local.get $p)))
	  (call $pass (i32.const 1)) (local.set $p (i32.const 1)) (br $l) (local.set $p (i32.const 1)) (br $l))
	  (call $pass (i32.const 2)) (return) (block (local.set $p (i32.const 0)) (br $l)))`,
	"loops with results": `(call $pass (block $x (result i32) (loop $l (result i32) (block $1 (block $0
	    (br_table $0 $1 (local.get $p)))
	  (call $pass (i32.const 1)) (local.set $p (i32.const 1)) (br $l))
	  (drop (br_if $x (i32.const 6) (i32.eq (global.get $n) (i32.const 1)))) (i32.const 7))))`,
	"loops with parameters": `(i32.const 5) (loop $l (param i32) (result i32) (call $pass (i32.const 3)) (i32.const 1) (i32.sub) (local.tee $q)
	  (br_if $l (i32.ne (local.get $q) (i32.const 0)))) (call $pass)`,
}

// TestThreadedJumpsReachTheSameParts compares the parts that each loop passes through, for
// each first part, before and after rewriting.
func TestThreadedJumpsReachTheSameParts(t *testing.T) {
	for name, code := range dispatching {
		original := watModule(t, `(module (memory (export "memory") 1)
		  (global $n (mut i32) (i32.const 0)) (global $seen (mut i64) (i64.const 0))
		  (func $pass (param $part i32)
		    (global.set $n (i32.add (global.get $n) (i32.const 1)))
		    (global.set $seen (i64.add (i64.mul (global.get $seen) (i64.const 10)) (i64.extend_i32_u (local.get $part))))
		    (if (i32.gt_u (global.get $n) (i32.const 15)) (then (unreachable))))
		  (func $run (param $p i32) (local $q i32) `+code+`)
		  (func (export "f") (param $p i32) (result i64)
		    (global.set $n (i32.const 0)) (global.set $seen (i64.const 0)) (call $run (local.get $p)) (global.get $seen))
		  (func (export "seen") (result i64) (global.get $seen)))`)
		for _, o := range append(forms[1:len(forms):len(forms)], &everything) {
			bytes, done := mustRewrite(t, original, *o)
			want := newHost(t, wazero.NewRuntimeConfigInterpreter()).instantiate(t, original, &wasm.Rewritten{})
			h := newHost(t, wazero.NewRuntimeConfigCompiler())
			got := h.instantiate(t, bytes, done)
			for p := range uint64(6) {
				_, failed := want.ExportedFunction("f").Call(context.Background(), p)
				_, err := h.call(got, "f", p)
				parts, _ := want.ExportedFunction("seen").Call(context.Background())
				passed, _ := got.ExportedFunction("seen").Call(context.Background())
				if parts[0] != passed[0] || (failed == nil) != (err == nil) {
					t.Errorf("%s, %+v, from %d: passes %d (%v), want %d (%v)", name, *o, p, passed[0], err, parts[0], failed)
				}
			}
		}
	}
}

// A jump forward takes no fuel, because it does not repeat the loop. The entry and jumps
// backward take fuel.
func TestJumpsForwardTakeNoFuel(t *testing.T) {
	bytes, done := mustRewrite(t, watModule(t, `(module (memory (export "memory") 1)
	  (func (export "run") (param $passes i32) (local $p i32)
	    (block $out (loop $l (block $3 (block $2 (block $1 (block $0
	      (br_table $0 $1 $2 $3 $out (local.get $p)))
	    (local.set $p (i32.const 2)) (br $l))
	    (unreachable))
	    (local.set $p (i32.const 3)) (br $l))
	    (br_if $out (i32.eqz (local.tee $passes (i32.sub (local.get $passes) (i32.const 1)))))
	    (local.set $p (i32.const 0)) (br $l)))))`), everything)
	h := newHost(t, wazero.NewRuntimeConfigCompiler())
	m := h.instantiate(t, bytes, done)
	const passes = 1000
	if _, err := h.call(m, "run", passes); err != nil {
		t.Fatal(err)
	}
	if spent := h.spent + h.slice - int(int32(m.ExportedGlobal(done.Fuel).Get())); spent != passes {
		t.Errorf("%d passes with two jumps forward each took %d fuel", passes, spent)
	}
}

// A jump at the end of a heavy path stays a branch to the loop: if it were not, the path would go on, and need a
// check within it. A step weighs 6, a jump is changed up to 3,072, and a path has a check each 4,096.
func TestAJumpAtTheEndOfAHeavyPathStays(t *testing.T) {
	checks := func(steps int) int {
		part := strings.Repeat(step, steps)
		_, done := mustRewrite(t, watModule(t, `(module (memory (export "memory") 1) (global $ran (export "ran") (mut i32) (i32.const 0))
		  (func (export "run") (local $p i32)
		    (loop $l (block $1 (block $0
		      (br_table $0 $1 (local.get $p)))
		    `+part+` (local.set $p (i32.const 1)) (br $l))
		    `+part+`)))`), everything)
		return done.FuelChecks
	}
	light := checks(60)
	if n := checks(450); n != light+1 {
		t.Errorf("after a path of 2,700 that is continued: %d checks, want %d", n, light+1)
	}
	if n := checks(550); n != light {
		t.Errorf("after a path of 3,300, which begins anew: %d checks, want %d", n, light)
	}
}

// endless are programs that run forever, or for far longer than a test can wait.
var endless = map[string]string{
	"a default that is the loop": `(func $f (param $p i32) (local.set $p (i32.add (local.get $p) (i32.const 1)))
	  (loop $l (block $0 (br_table $0 $l (local.get $p)))))`,
	"a table of nothing else": `(func $f (param $p i32) (loop $l (br_table $l $l (local.get $p))))`,
	"jumps forward and backward": `(func $f (param $p i32) (loop $l (block $1 (block $0
	    (br_table $0 $1 (local.get $p))) (local.set $p (i32.const 1)) (br $l)) (local.set $p (i32.const 0)) (br $l)))`,
	"jumps between two loops": `(func $f (param $p i32) (loop $k (loop $l (block $1 (block $0
	    (br_table $0 $1 $k (local.get $p))) (local.set $p (i32.const 2)) (br $l)) (local.set $p (i32.const 0)) (br $k))))`,
	"a loop that carries a value": `(func $f (param $p i32) (local.get $p) (loop $l (param i32) (i32.const 3) (i32.add) (br $l)))`,
	"a loop in a loop that exits": `(func $f (param $p i32) (loop $l (block $x (loop $m (br_if $x (local.get $p)) (br_if $m (i32.eqz (local.get $p))))) (br $l)))`,
	"a ring of small functions": `(func $a (param i32) (call $b (local.get 0))) (func $b (param i32) (call $c (local.get 0)))
	  (func $c (param i32) (if (local.get 0) (then (call $d (i32.sub (local.get 0) (i32.const 1))) (call $d (i32.sub (local.get 0) (i32.const 1))))))
	  (func $d (param i32) (call $a (local.get 0))) (func $f (param i32) (call $a (i32.const 60)))`,
	"small functions through a table": `(type $t (func (param i32))) (table funcref (elem $b))
	  (func $a (param i32) (call_indirect (type $t) (local.get 0) (i32.const 0)))
	  (func $b (param i32) (if (local.get 0) (then (call $a (i32.sub (local.get 0) (i32.const 1))) (call $a (i32.sub (local.get 0) (i32.const 1))))))
	  (func $f (param i32) (call $a (i32.const 60)))`,
	"calls in a loop that ends at once": `(func $a (param i32) (loop $l)
	  (if (local.get 0) (then (call $a (i32.sub (local.get 0) (i32.const 1))) (call $a (i32.sub (local.get 0) (i32.const 1))))))
	  (func $f (param i32) (call $a (i32.const 60)))`,
	"a counter that passes its end": `(func $f (param $i i32) (loop $l (br_if $l (i32.ne (local.tee $i (i32.add (local.get $i) (i32.const 2))) (i32.const 1)))))`,
}

func TestEveryEndlessFormEndsAtARefill(t *testing.T) {
	for name, code := range endless {
		for p := range uint64(3) {
			bytes, done := mustRewrite(t, watModule(t, `(module (memory (export "memory") 1) `+code+` (export "f" (func $f)))`), everything)
			h := newHost(t, wazero.NewRuntimeConfigCompiler())
			h.atMost = 50
			m := h.instantiate(t, bytes, done)
			_, err := h.call(m, "f", p)
			if !errors.Is(err, errOutOfFuel{}) || h.refills != 50 {
				t.Errorf("%s, from %d: %d refills, error %v", name, p, h.refills, err)
			}
		}
	}
}
