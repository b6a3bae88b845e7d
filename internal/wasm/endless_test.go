package wasm_test

import (
	"errors"
	"testing"

	"github.com/tetratelabs/wazero"
)

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
