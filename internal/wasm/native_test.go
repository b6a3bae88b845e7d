package wasm_test

import (
	"context"
	"reflect"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"runner.example/internal/wasm"
)

// stackUsed is how much of its native stack a function has in use that calls the
// host. The compiler's runtime does not tell; so it is read where it is kept.
func stackUsed(f api.Function) uint64 {
	v := reflect.ValueOf(f).Elem()
	return v.FieldByName("stackTop").Uint() - uint64(v.FieldByName("execCtx").FieldByName("stackPointerBeforeGoCall").Pointer())
}

// times writes a text once for each number below n, with it in the place of # and
// eight times it in that of @.
func times(n int, text string) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(strings.NewReplacer("#", strconv.Itoa(i), "@", strconv.Itoa(8*i)).Replace(text) + "\n")
	}
	return b.String()
}

// frames are functions that keep as much as they can on the native stack: each
// calls itself ($f, with $n less one) in the midst of it.
var frames = map[string]string{
	"nothing": `(func $f (param $n i32) (if (local.get $n) (then (call $f (i32.sub (local.get $n) (i32.const 1)))) (else (call $mark))))`,
	"i64 operands": `(func $f (param $n i32)` + times(2000, `(i64.load offset=@ (i32.const 0))`) +
		deeper + times(2000, `(global.set $l (i64.xor (global.get $l)))`) + `)`,
	"computed i64 operands": `(func $f (param $n i32)` + times(2000, `(i64.add (i64.extend_i32_u (local.get $n)) (i64.const #))`) +
		deeper + times(1999, `i64.xor`) + `(global.set $l))`,
	"f64 operands": `(func $f (param $n i32)` + times(2000, `(f64.load offset=@ (i32.const 0))`) +
		deeper + times(1999, `f64.add`) + `(global.set $d))`,
	"v128 operands": `(func $f (param $n i32)` + times(2000, `(i32x4.splat (i32.add (local.get $n) (i32.const #)))`) +
		deeper + times(1999, `v128.xor`) + `global.set $v)`,
	"short vector code": `(func $f (param $n i32) (local $v v128)` + times(2000, `(v128.not (local.get $v))`) +
		deeper + times(1999, `v128.xor`) + `global.set $v)`,
	"constants": `(func $f (param $n i32)` + times(1000, `(f64.const #.5) (i64.const #)`) +
		deeper + times(1000, `(global.set $l) (global.set $d)`) + `)`,
	"locals": `(func $f (param $n i32)` + times(1000, `(local $x# i64)`) + times(1000, `(local.set $x# (i64.load offset=@ (i32.const 0)))`) +
		deeper + times(1000, `(global.set $l (local.get $x#))`) + `)`,
	"values that live one after another": `(func $f (param $n i32)` +
		times(1000, `(i64.load offset=@ (i32.const 0)) (call $leaf) (global.set $l)`) + deeper + `)`,
	"addresses that are used again": `(func $f (param $n i32) (local $a i32)` +
		times(500, `(local.set $a (i32.add (local.get $n) (i32.const #))) (call $leaf) (i64.store (local.get $a) (i64.add (i64.load (local.get $a)) (i64.const 1)))`) + deeper + `)`,
	"many parameters": `(func $f (param $n i32) ` + times(300, `(param i64)`) +
		`(if (local.get $n) (then (call $f (i32.sub (local.get $n) (i32.const 1))` + times(300, `(i64.load offset=@ (i32.const 0))`) + `)) (else (call $mark))))`,
	"many results": `(func $f (param $n i32) (result ` + strings.Repeat("i64 ", 300) + `) ` +
		deeper300 + `)`,
	"results of others": `(func $many (result ` + strings.Repeat("i64 ", 500) + `) ` + times(500, `(i64.load offset=@ (i32.const 0))`) + `)
		(func $f (param $n i32) (call $many) (call $many) ` + deeper + times(1000, `(global.set $l)`) + `)`,
	"vector results of others": `(func $many (result ` + strings.Repeat("v128 ", 200) + `) ` + times(200, `(v128.load offset=@ (i32.const 0))`) + `)
		(func $f (param $n i32) (call $many) (call $many) ` + deeper + times(400, `(v128.store (i32.const 0) (v128.load (i32.const 0))) drop`) + `)`,
	"locals set in nested loops": `(func $f (param $n i32) ` + times(100, `(local $x# i32)`) + times(40, `(loop $l#`) +
		times(100, `(local.set $x# (i32.add (local.get $x#) (i32.load offset=@ (i32.const 0))))`) + times(40, `(br_if 0 (i32.load8_u offset=# (i32.const 0))))`) +
		deeper + times(100, `(global.set $i (local.get $x#))`) + `)`,
	"br_table into nested blocks": `(func $f (param $n i32) ` + times(100, `(local $x# i32)`) + times(100, `(block`) +
		`(br_table` + times(100, ` #`) + ` (i32.load (i32.const 0)))` + times(100, `) (local.set $x# (i32.load offset=@ (i32.const 0))) (call $leaf)`) +
		deeper + times(100, `(global.set $i (local.get $x#))`) + `)`,
	"arms that set locals": `(func $f (param $n i32) ` + times(50, `(local $x# i64)`) +
		times(200, `(if (i32.load8_u offset=# (i32.const 0)) (then `+times(50, `(local.set $x# (i64.load offset=@ (i32.const 64)))`)+`))`) +
		deeper + times(50, `(global.set $l (local.get $x#))`) + `)`,
	"values that blocks pass on": `(func $f (param $n i32) ` + times(50, `(block (result `+strings.Repeat("i64 ", 20)+`)`+times(20, `(i64.load offset=@ (i32.const 0))`)+` (br_if 0 (local.get $n)) )`) +
		deeper + times(1000, `(global.set $l)`) + `)`,
	"references": `(elem declare func $leaf) (func $f (param $n i32)` + times(50, `(ref.func $leaf)`) + deeper + times(50, `(drop (ref.is_null))`) + `)`,
	"tables":     `(func $f (param $n i32)` + times(500, `(table.get 0 (i32.const #)) (table.set 0 (i32.const #) (table.get 0 (i32.const 1)))`) + deeper + times(500, `(drop (ref.is_null))`) + `)`,
	"conversions and bulk operations": `(func $f (param $n i32)` +
		times(300, `(i64.trunc_sat_f64_u (f64.load offset=@ (i32.const 0))) (memory.copy (i32.const 0) (local.get $n) (local.get $n)) (f64.convert_i64_u (i64.load (i32.const 8)))`) +
		deeper + times(300, `(global.set $d) (global.set $l)`) + `)`,
	"vector operations of many parts": `(func $f (param $n i32) (local $v v128)` +
		times(300, `(i8x16.shr_s (i64x2.mul (v128.load offset=@ (i32.const 0)) (local.get $v)) (local.get $n)) (i8x16.popcnt (v128.load offset=@ (i32.const 0)))`) +
		deeper + times(599, `i8x16.swizzle`) + `global.set $v)`,
	"atomic operands": `(func $f (param $n i32)` +
		times(200, `(i64.atomic.rmw.add offset=@ (i32.const 0) (i64.const 3)) (i64.atomic.load offset=@ (i32.const 0)) (i64.atomic.rmw.and offset=@ (i32.const 0) (i64.extend_i32_u (local.get $n)))`) +
		times(200, `(i64.atomic.rmw.cmpxchg offset=@ (i32.const 0) (i64.const #) (i64.extend_i32_u (local.get $n))) (i64.atomic.store offset=@ (i32.const 0) (i64.const #))`) +
		times(200, `(i64.extend_i32_u (memory.atomic.notify offset=@ (i32.const 0) (local.get $n)))`) +
		deeper + times(999, `i64.xor`) + `(global.set $l))`,
	"short atomic operands": `(func $f (param $n i32)` +
		times(500, `(i32.atomic.rmw8.xor_u offset=@ (i32.const 0) (local.get $n)) (i32.atomic.rmw16.cmpxchg_u offset=@ (i32.const 0) (local.get $n) (i32.const #))`) +
		deeper + times(999, `i32.xor`) + `(global.set $i))`,
	"tail calls": `(func $tail (param i32 i64 i64 i64 i64 f64 f64) (result i32) (local.get 0)) (func $f (param $n i32) (drop (call $two (local.get $n))))
		(func $two (param $n i32) (result i32)` + times(100, `(local $x# i64)`) + times(100, `(local.set $x# (i64.load offset=@ (i32.const 0)))`) + deeper +
		times(100, `(if (i32.eq (i32.load offset=@ (i32.const 8)) (i32.const 77)) (then (return_call $tail (local.get $n) (local.get $x#) (i64.const 1) (local.get $x#) (i64.const 3) (f64.const #) (f64.const 3))))`) + `(local.get $n))`,
	"remainders": `(func $f (param $n i32) (local $i i32) (local $l i64) (local $y i32) (local $z i64)` + divisorsSet +
		times(300, `(local.set $i (i32.rem_s (i32.load offset=@ (i32.const 0)) (local.get $y))) (i32.rem_u (local.get $i) (local.get $y))`) +
		times(300, `(local.set $l (i64.rem_s (i64.load offset=@ (i32.const 0)) (local.get $z))) (i64.rem_u (local.get $l) (local.get $z))`) +
		deeper + times(300, `(global.set $l)`) + times(300, `(global.set $i)`) + `)`,
	"remainders that live one after another": `(func $f (param $n i32) (local $y i32) (local $z i64)` + divisorsSet +
		times(300, `(i64.rem_s (i64.load offset=@ (i32.const 0)) (local.get $z)) (call $leaf) (global.set $l)`) +
		times(300, `(i32.rem_s (i32.load offset=@ (i32.const 0)) (local.get $y)) (call $leaf) (global.set $i)`) + deeper + `)`,
	"indirect calls": `(func $f (param $n i32)` +
		times(300, `(call_indirect (type $t) (local.get $n) (i32.const #))`) + deeper + times(300, `(global.set $l)`) + `)`,
}

const divisorsSet = `(local.set $y (i32.or (local.get $n) (i32.const 1))) (local.set $z (i64.extend_i32_u (local.get $y)))`

const deeper = `(if (local.get $n) (then (call $f (i32.sub (local.get $n) (i32.const 1)))) (else (call $mark)))`

var deeper300 = `(if (local.get $n) (then (call $f (i32.sub (local.get $n) (i32.const 1)))` + times(300, `global.set $l`) + `) (else (call $mark)))` +
	times(300, `(i64.load offset=@ (i32.const 0))`)

// guestOf is a module with one of the frames.
func guestOf(function string) string {
	args := times(strings.Count(function, "(param i64)"), `(i64.const 0)`)
	drops := ""
	if strings.Contains(function, "$f (param $n i32) (result") {
		drops = times(300, `drop`)
	}
	return `(module (import "env" "mark" (func $mark)) (memory (export "memory") 2) (table 1000 funcref) (type $t (func (param i32) (result i64)))
	  (func $l (type $t) (i64.load (local.get 0))) (elem (i32.const 0)` + strings.Repeat(" $l", 300) + `)
	  (global $i (mut i32) (i32.const 0)) (global $l (mut i64) (i64.const 0)) (global $d (mut f64) (f64.const 0)) (global $v (mut v128) (v128.const i64x2 0 0))
	  (func $leaf) ` + function + `
	  (func (export "run") (param i32) (call $f (local.get 0) ` + args + `)` + drops + `))`
}

// TestNoFrameIsLargerThanItsBound compares the stack that a recursive call is charged
// with the native stack that it takes.
func TestNoFrameIsLargerThanItsBound(t *testing.T) {
	ctx := context.Background()
	check := func(name, target, function string) {
		t.Run(name+" for "+target, func(t *testing.T) {
			bytes, done := mustRewrite(t, watModule(t, guestOf(function)), wasm.Options{
				Fuel: everything.Fuel, MaxStack: 1 << 30, Prefix: "\x00", Target: target,
			})
			h := newHost(t, wazero.NewRuntimeConfigCompiler())
			var run api.Function
			var used, depth uint64
			mark := api.GoModuleFunc(func(_ context.Context, m api.Module, _ []uint64) {
				used, depth = stackUsed(run), m.ExportedGlobal(done.Depth).Get()
			})
			if _, err := h.NewHostModuleBuilder("env").NewFunctionBuilder().WithGoModuleFunction(mark, nil, nil).Export("mark").Instantiate(ctx); err != nil {
				t.Fatal(err)
			}
			m := h.instantiate(t, bytes, done)
			run = m.ExportedFunction("run")
			at := func(n uint64) (uint64, uint64) {
				used = 0
				if _, err := run.Call(ctx, n); err != nil && used == 0 {
					t.Fatal(err)
				}
				m.ExportedGlobal(done.Depth).(api.MutableGlobal).Set(0)
				return used, depth
			}
			used1, depth1 := at(2)
			used2, depth2 := at(12)
			native, charged := (used2-used1)/10, (depth2-depth1)/10
			t.Logf("a call takes %6d bytes and is charged %6d (%.1f)", native, charged, float64(charged)/float64(native))
			if native == 0 || native > charged {
				t.Errorf("a call takes %d bytes, and is charged %d", native, charged)
			}
		})
	}
	for name, function := range frames {
		for _, target := range targets {
			if target == runtime.GOARCH || strings.Contains(function, ".rem_") {
				check(name, target, function)
			}
		}
	}
}

// stackBytes is how large a function's native stack is.
func stackBytes(f api.Function) int { return reflect.ValueOf(f).Elem().FieldByName("stack").Len() }

// TestRecursionEndsWhenTheStackIsFull runs each of the functions as deep as
// the stack allows, and without end.
func TestRecursionEndsWhenTheStackIsFull(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: left out by -short")
	}
	const most = 1 << 20
	options := everything
	options.MaxStack = most
	for name, function := range frames {
		t.Run(name, func(t *testing.T) {
			bytes, done := mustRewrite(t, watModule(t, guestOf(function)), options)
			h := newHost(t, wazero.NewRuntimeConfigCompiler())
			var used uint64
			mark := api.GoModuleFunc(func(context.Context, api.Module, []uint64) { used = stackUsed(h.running) })
			if _, err := h.NewHostModuleBuilder("env").NewFunctionBuilder().WithGoModuleFunction(mark, nil, nil).Export("mark").Instantiate(context.Background()); err != nil {
				t.Fatal(err)
			}
			m := h.instantiate(t, bytes, done)
			at := func(n uint64) uint64 {
				used = 0
				_, err := h.call(m, "run", n)
				if used == 0 {
					t.Fatalf("%d calls deep: %v", n, err)
				}
				m.ExportedGlobal(done.Depth).(api.MutableGlobal).Set(0)
				return used
			}
			frame := (at(2) - at(0)) / 2
			if deep := at((most - 64<<10) / frame * 8 / 10); deep < most/2 {
				t.Errorf("%d bytes of stack were used, of %d", deep, most)
			}
			asked := h.asked
			f := m.ExportedFunction("run")
			h.running = f
			if _, err := f.Call(context.Background(), 40_000); err == nil || !strings.Contains(err.Error(), "unreachable") {
				t.Errorf("endless recursion ends with %v", err)
			}
			h.running = nil
			if d := m.ExportedGlobal(done.Depth).Get(); d <= most {
				t.Errorf("it ended at a depth of %d", d)
			}
			// it is doubled when it is too small, by what the next frame needs, too
			if n := stackBytes(f); n > 4*most {
				t.Errorf("endless recursion took %d KiB of stack", n>>10)
			}
			t.Logf("%d bytes a frame, asked %d times, %d KiB", frame, h.asked-asked, stackBytes(f)>>10)
		})
	}
}

func TestAChainOfCallsIsLimitedLikeRecursion(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: left out by -short")
	}
	const most, n = 256 << 10, 600
	text := `(module (memory (export "memory") 1) (global $l (mut i64) (i64.const 0))
	  (func $f0) `
	for i := range n {
		text += `(func $f` + strconv.Itoa(i+1) + times(60, `(i64.load offset=@ (i32.const 0))`) +
			`(call $f` + strconv.Itoa(i) + `)` + times(60, `(global.set $l (i64.xor (global.get $l)))`) + `)`
	}
	text += `(func (export "short") (call $f` + strconv.Itoa(n/8) + `)) (func (export "long") (call $f` + strconv.Itoa(n) + `)))`
	options := everything
	options.MaxStack = most
	bytes, done := mustRewrite(t, watModule(t, text), options)
	h := newHost(t, wazero.NewRuntimeConfigCompiler())
	m := h.instantiate(t, bytes, done)
	if _, err := h.call(m, "short"); err != nil {
		t.Errorf("a chain that the stack has room for: %v", err)
	}
	f := m.ExportedFunction("long")
	h.running = f
	_, err := f.Call(context.Background())
	if err == nil || !strings.Contains(err.Error(), "unreachable") || m.ExportedGlobal(done.Depth).Get() <= most {
		t.Errorf("a chain that it has no room for ends with %v", err)
	}
	if size := stackBytes(f); size > 4*most {
		t.Errorf("it took %d KiB of stack", size>>10)
	}
}

func TestAFunctionWithATooLargeFrameIsRefused(t *testing.T) {
	text := `(module (memory 1) (func (export "f") ` + times(1000, `(local $x# i32)`) + times(3000, `(loop `) +
		times(1000, `(local.set $x# (i32.add (local.get $x#) (i32.load offset=@ (i32.const 0))))`) +
		times(3000, `(br_if 0 (i32.load8_u (i32.const 0))))`) + `))`
	_, err := wasm.Parse(watModule(t, text), wasm.DefaultLimits())
	if err == nil || !strings.Contains(err.Error(), "KiB of stack for one call (number 0), and one may take 16384: split it") {
		t.Errorf("error %v", err)
	}
}
