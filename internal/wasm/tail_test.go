package wasm_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"

	"runner.example/internal/wasm"
)

// endlessTails are tail calls that never end. None of them needs more stack with each.
var endlessTails = map[string]string{
	"of itself":      `(func $f (param i32) (return_call $f (local.get 0)))`,
	"between two":    `(func $f (param i32) (return_call $g (local.get 0))) (func $g (param i32) (return_call $f (local.get 0)))`,
	"in a loop":      `(func $f (param i32) (loop (loop) (return_call $f (local.get 0))))`,
	"behind a loop":  `(func $f (param i32) (loop $l (br_if $l (local.tee 0 (i32.shr_u (local.get 0) (i32.const 1))))) (return_call $f (i32.const 3)))`,
	"of other types": `(func $f (param i32) (return_call $g (local.get 0) (f64.const 1) (i64.const 3))) (func $g (param i32 f64 i64) (return_call $f (local.get 0)))`,
	"behind a call": `(func $f (param i32) (return_call $g (local.get 0) (call $h (local.get 0)) (call $h (local.get 0)))) (func $h (param i32) (result i32) (local.get 0))
	  (func $g (param i32 i32 i32) (return_call $f (i32.add (local.get 1) (local.get 2))))`,
	"with as many values as fit": `(func $f (param i32) (return_call $g (local.get 0) (i32.const 2) (i64.const 3) (i64.const 4) (i32.const 5) (i32.const 6)
	    (f32.const 1) (f32.const 2) (f32.const 3) (f32.const 4) (f64.const 5) (f64.const 6) (f64.const 7) (f64.const 8)))
	  (func $g (param i32 i32 i64 i64 i32 i32 f32 f32 f32 f32 f64 f64 f64 f64)
	    (if (f64.ne (local.get 13) (f64.const 8)) (then unreachable))
	    (if (i32.ne (local.get 5) (i32.const 6)) (then unreachable))
	    (return_call $f (local.get 0)))`,
}

// endlessIndirectTails are the same through a table.
var endlessIndirectTails = map[string]string{
	"of itself": `(func $f (param i32) (return_call_indirect (type $t) (local.get 0) (i32.const 0)))`,
	"between two": `(func $f (param i32) (return_call_indirect (type $six) (local.get 0) (i32.const 2) (i32.const 3) (i32.const 4) (i32.const 5) (i32.const 6) (i32.const 1)))
	  (func $g (type $six) (if (i32.ne (local.get 5) (i32.const 6)) (then unreachable))
	    (return_call_indirect (type $t) (local.get 0) (i32.const 0)))`,
}

func tailModule(t *testing.T, code string) []byte {
	t.Helper()
	if !strings.Contains(code, "(func $g") {
		code += `(func $g)`
	}
	return watModule(t, `(module (memory (export "memory") 1) (type $t (func (param i32))) (type $six (func (param i32 i32 i32 i32 i32 i32)))
	  (table 4 funcref) (elem (i32.const 0) $f $g)`+code+` (export "f" (func $f)))`)
}

// An endless chain of tail calls ends when its fuel does, with no more stack than one of them has.
func TestEndlessTailCallsEndAtARefillAndTakeNoStack(t *testing.T) {
	check := func(name, code string) {
		options := everything
		options.MaxStack = 16 << 10
		options.Stack = nil // an error in counting is a trap
		for engine, config := range map[string]wazero.RuntimeConfig{
			"compiler": wazero.NewRuntimeConfigCompiler(), "interpreter": wazero.NewRuntimeConfigInterpreter(),
		} {
			bytes, done := mustRewrite(t, tailModule(t, code), options)
			h := newHost(t, config)
			h.atMost = 200
			m := h.instantiate(t, bytes, done)
			f := m.ExportedFunction("f")
			_, err := f.Call(context.Background(), 5)
			if !errors.Is(err, errOutOfFuel{}) || h.refills != 200 {
				t.Errorf("%s, %s: %d refills, error %v", name, engine, h.refills, err)
			}
		}
	}
	for name, code := range endlessTails {
		check(name, code)
	}
	for name, code := range endlessIndirectTails {
		if wasm.JumpsOnARM64 || runtime.GOARCH != "arm64" {
			check(name+", through a table", code)
		}
	}
}

// Tail calls that pass more than the registers hold, and those of the host, take stack, up to the limit.
func TestTailCallsThatDoNotFitIntoRegistersAreBounded(t *testing.T) {
	const seven = `(i32.const 0) (i32.const 2) (i32.const 3) (i32.const 4) (i32.const 5) (i32.const 6) (i32.const 7)`
	for name, code := range map[string]string{
		"of many parameters": `(func $f (param i32) (return_call $g ` + seven + `)) (func $g (param i32 i32 i32 i32 i32 i32 i32) (return_call $f (local.get 0)))`,
		"of many floats": `(func $f (param i32) (return_call $g ` + times(9, `(f32.const 1)`) + `)) (func $g (param f32 f32 f32 f32 f32 f32 f32 f32 f32)
		  (return_call $f (i32.const 0)))`,
		"through a table": `(type $seven (func (param i32 i32 i32 i32 i32 i32 i32))) (func $f (param i32) (return_call_indirect (type $seven) ` + seven + `(i32.const 1)))
		  (func $g (type $seven) (return_call_indirect (type $t) (local.get 0) (i32.const 0)))`,
		"beside calls": `(func $f (param i32) (return_call $g (local.get 0))) (func $g (param i32) (call $f (local.get 0)))`,
		"beside calls through a table": `(func $f (param i32) (return_call_indirect (type $t) (local.get 0) (i32.const 1)))
		  (func $g (param i32) (call_indirect (type $t) (local.get 0) (i32.const 0)))`,
	} {
		for _, host := range []bool{false, true} {
			options := everything
			options.MaxStack = 1 << 20
			if !host {
				options.Stack = nil
			}
			bytes, done := mustRewrite(t, tailModule(t, code), options)
			h := newHost(t, wazero.NewRuntimeConfigCompiler())
			h.quick = true
			m := h.instantiate(t, bytes, done)
			_, err := h.call(m, "f", 0)
			if err == nil || !strings.Contains(err.Error(), "unreachable") || m.ExportedGlobal(done.Depth).Get() <= 1<<20 {
				t.Errorf("%s: %.100v, at a depth of %d", name, err, m.ExportedGlobal(done.Depth).Get())
			}
			if host && (h.deepest < 1<<19 || h.deepest > 1<<20+1<<10) {
				t.Errorf("%s: it took %d bytes of stack", name, h.deepest)
			}
		}
	}
}

// A tail call ends its function: the depth is as before the call, also in functions that ask for stack and that do not.
func TestTailCallsReturnToTheCaller(t *testing.T) {
	module := watModule(t, `(module (memory (export "memory") 1)
	  (type $t (func (param i32 i32) (result i32 i64)))
	  (table funcref (elem $down $end))
	  (func $end (type $t) (i32.add (local.get 0) (local.get 1)) (i64.const 9))
	  (func $down (type $t)
	    (if (i32.eqz (local.get 0)) (then (return_call $end (i32.const 5) (local.get 1))))
	    (block (br_if 0 (i32.and (local.get 0) (i32.const 1)))
	      (return_call_indirect (type $t) (i32.sub (local.get 0) (i32.const 1)) (i32.add (local.get 1) (i32.const 1)) (i32.const 0)))
	    (return_call $down (i32.sub (local.get 0) (i32.const 1)) (i32.add (local.get 1) (i32.const 1))))
	  (func (export "f") (param i32) (result i32)
	    (local $i i32) (local $sum i32)
	    (loop $l
	      (call $down (local.get 0) (i32.const 0)) (drop)
	      (local.set $sum (i32.add (local.get $sum)))
	      (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 10))))
	    (local.get $sum)))`)
	for _, target := range []string{"amd64", "arm64"} {
		options := everything
		options.Target = target
		bytes, done := mustRewrite(t, module, options)
		h := newHost(t, wazero.NewRuntimeConfigCompiler())
		h.quick = true
		m := h.instantiate(t, bytes, done)
		for _, n := range []uint64{0, 1, 2, 1000} {
			results, err := h.call(m, "f", n)
			if err != nil || results[0] != 10*(5+n) || m.ExportedGlobal(done.Depth).Get() != 0 {
				t.Errorf("%s, %d tail calls: %v, %v, and the depth is %d", target, n, results, err, m.ExportedGlobal(done.Depth).Get())
			}
		}
	}
}

// A function that is jumped to asks for stack; nothing else does for a tail call.
func TestFunctionsThatTailCallsGoToAsk(t *testing.T) {
	for want, code := range map[int]string{
		1: `(func $f (param i32) (return_call $g)) (func $g)`,
		2: `(func $f (param i32) (return_call_indirect (type $t) (local.get 0) (i32.const 0)))
		  (func $g (param i32) (call $h)) (func $h)`, // both are in the table
		0: `(func $f (param i32) (call $g)) (func $g)`,
	} {
		_, done := mustRewrite(t, tailModule(t, code), wasm.Options{MaxStack: 1 << 20, Prefix: "\x00"})
		if done.StackChecks != want {
			t.Errorf("%d functions ask for stack, want %d: %s", done.StackChecks, want, code)
		}
	}
}

func TestFeaturesOfModules(t *testing.T) {
	for _, row := range []struct{ text, want string }{
		{`(module (memory 1) (func (export "f") (drop (i32.load (i32.const 0)))))`, ""},
		{`(module (func (param i32) (result i32) (i32.extend8_s (local.get 0))))`, "sign extension"},
		{`(module (func (param f32) (result i32) (i32.trunc_sat_f32_s (local.get 0))))`, "saturating conversions"},
		{`(module (func (result i32 i32) (i32.const 0) (i32.const 1)))`, "multiple values"},
		{`(module (memory 1) (func (memory.fill (i32.const 0) (i32.const 0) (i32.const 0))))`, "bulk memory"},
		{`(module (memory 1) (data "a"))`, "bulk memory"},
		{`(module (table 1 externref))`, "reference types"},
		{`(module (func (param externref)))`, "reference types"},
		{`(module (table 1 funcref) (func (drop (table.grow 0 (ref.null func) (i32.const 1)))))`, "reference types"},
		{`(module (func (param v128)))`, "SIMD"},
		{`(module (func (drop (v128.const i64x2 0 0))))`, "SIMD"},
		{`(module (global i32 (i32.add (i32.const 1) (i32.const 2))))`, "extended constant expressions"},
		{`(module (func $f (return_call $f)))`, "tail calls"},
		{`(module (type $t (func)) (table 1 funcref) (func $f (return_call_indirect (type $t) (i32.const 0))))`, "tail calls"},
		{`(module (func (atomic.fence)))`, "atomics"},
		{`(module (memory 1) (func (param v128) (drop (i64.atomic.load (i32.const 8))) (return_call 0 (local.get 0))))`, "SIMD, tail calls, atomics"},
	} {
		m, err := wasm.Parse(watModule(t, row.text), wasm.DefaultLimits())
		if err != nil {
			t.Errorf("%s: %v", row.text, err)
		} else if have := strings.Join(m.Features(), ", "); have != row.want {
			t.Errorf("%s: %q, want %q", row.text, have, row.want)
		}
	}
}

// A computed initial value is one constant for those who ask for it, and for the engine.
func TestComputedConstantsAreComputed(t *testing.T) {
	module := watModule(t, `(module (memory (export "memory") 1) (type $t (func (result i64)))
	  (global $stack (mut i32) (i32.mul (i32.const 16) (i32.sub (i32.const 8) (i32.const 4))))
	  (global $l i64 (i64.sub (i64.const 1) (i64.mul (i64.const 3) (i64.const 5))))
	  (table 8 funcref) (elem (offset (i32.add (i32.const 1) (i32.const 2))) $f)
	  (data (offset (i32.sub (i32.const 9) (i32.const 2))) "\2a")
	  (func $f (type $t) (i64.add (global.get $l) (i64.load8_u (i32.const 7))))
	  (func (export "f") (result i64) (i64.add (i64.extend_i32_u (global.get $stack)) (call_indirect (type $t) (i32.const 3)))))`)
	parsed, err := wasm.Parse(module, wasm.DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	if p, ok := parsed.StackPointer(); !ok || p.Lowest != 8 {
		t.Errorf("the stack pointer is %+v, %v", p, ok)
	}
	for i, o := range forms[1:] {
		bytes, done := mustRewrite(t, module, *o)
		h := newHost(t, wazero.NewRuntimeConfigCompiler())
		m := h.instantiate(t, bytes, done)
		if results, err := h.call(m, "f"); err != nil || results[0] != 64-14+42 {
			t.Errorf("form %d: %v, %v", i+1, results, err)
		}
		// The engine is not asked to compute.
		if again, err := wasm.Parse(bytes, wasm.DefaultLimits()); err != nil || strings.Contains(strings.Join(again.Features(), " "), "extended") {
			t.Errorf("form %d: %v, %v", i+1, again.Features(), err)
		}
	}
}
