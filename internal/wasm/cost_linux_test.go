package wasm_test

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"runner.example/internal/wasm"
	"runner.example/tests/bench/arms"
)

// costs are guests whose uninstrumented speed is known to suffer most, and one
// that does a bit of everything.
const costs = `(module
  (memory (export "memory") 2)
  ;; sieve has the tightest loop there is: one store for each pass
  (func (export "sieve") (local $i i32) (local $j i32)
    (memory.fill (i32.const 0) (i32.const 0) (i32.const 65536))
    (local.set $i (i32.const 2))
    (loop $next
      (if (i32.eqz (i32.load8_u (local.get $i)))
        (then
          (local.set $j (i32.shl (local.get $i) (i32.const 1)))
          (loop $strike
            (i32.store8 (local.get $j) (i32.const 1))
            (br_if $strike (i32.lt_u (local.tee $j (i32.add (local.get $j) (local.get $i))) (i32.const 65536))))))
      (br_if $next (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 32768)))))
  ;; fib calls and does little else
  (func $fib (param i32) (result i32)
    (if (result i32) (i32.lt_u (local.get 0) (i32.const 2))
      (then (local.get 0))
      (else (i32.add (call $fib (i32.sub (local.get 0) (i32.const 1))) (call $fib (i32.sub (local.get 0) (i32.const 2)))))))
  (func (export "fib") (drop (call $fib (i32.const 22))))
  ;; hash works on bytes, sixteen operations a pass
  (func (export "hash") (local $i i32) (local $h i64)
    (loop $next
      (local.set $h (i64.xor (i64.mul (i64.rotl (local.get $h) (i64.const 13)) (i64.const 0x9E3779B97F4A7C15))
        (i64.add (i64.load (i32.and (local.get $i) (i32.const 0xfff8))) (i64.shr_u (local.get $h) (i64.const 29)))))
      (i64.store (i32.and (local.get $i) (i32.const 0xfff8)) (local.get $h))
      (br_if $next (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 8))) (i32.const 400000)))))
)`

// BenchmarkCost measures what instrumentation costs: each guest as it is and
// rewritten.
func BenchmarkCost(b *testing.B) {
	module := watModule(b, costs)
	h := newHost(b, wazero.NewRuntimeConfigCompiler())
	h.quick = true
	saved := slice
	slice = 1 << 15
	defer func() { slice = saved }()
	original, err := h.InstantiateWithConfig(context.Background(), module, wazero.NewModuleConfig().WithName(""))
	if err != nil {
		b.Fatal(err)
	}
	options := everything
	options.Detach = false
	rewritten, done := mustRewrite(b, module, options)
	counted := h.instantiate(b, rewritten, done)
	for _, name := range []string{"sieve", "fib", "hash"} {
		b.Run(name, func(b *testing.B) {
			arm := func(f api.Function) func() {
				return func() {
					if err := f.CallWithStack(context.Background(), nil); err != nil {
						b.Fatal(err)
					}
				}
			}
			arms.Alternate(b, 10, [2]string{"plain", "counted"}, [2]func(){arm(original.ExportedFunction(name)), arm(counted.ExportedFunction(name))})
		})
	}
}

// BenchmarkCostRemainders measures what it costs to divide instead of computing remainders,
// as for arm64, on this machine: in a loop that does little else.
func BenchmarkCostRemainders(b *testing.B) {
	for _, op := range remainders {
		text := strings.NewReplacer("REM", op, "T", op[:3]).Replace(`(module
		  (memory (export "memory") 1) (global $sum (mut T) (T.const 0))
		  (func (export "remainders") (local $i T) (local $sum T)
		    (local.set $i (T.const 20000))
		    (loop $next
		      (local.set $sum (T.add (local.get $sum) (T.add
		        (T.add (REM (local.get $sum) (local.get $i)) (REM (T.const 1000003) (local.get $i)))
		        (T.add (REM (local.get $i) (T.const 10)) (REM (local.get $sum) (T.const 1000))))))
		      (br_if $next (T.ne (local.tee $i (T.sub (local.get $i) (T.const 1))) (T.const 0))))
		    (global.set $sum (local.get $sum))))`)
		original := watModule(b, text)
		h := newHost(b, wazero.NewRuntimeConfigCompiler())
		h.quick = true
		var arm [2]func()
		for i, target := range targets {
			options := everything
			options.Target = target
			bytes, done := mustRewrite(b, original, options)
			f := h.instantiate(b, bytes, done).ExportedFunction("remainders")
			arm[i] = func() {
				if err := f.CallWithStack(context.Background(), nil); err != nil {
					b.Fatal(err)
				}
			}
		}
		b.Run(op, func(b *testing.B) {
			arms.Alternate(b, 5, [2]string{"remainders", "divisions"}, arm)
		})
	}
}

// BenchmarkCostGo is BenchmarkCost for a Go program.
func BenchmarkCostGo(b *testing.B) {
	ctx := context.Background()
	module := program(b)
	h := newHost(b, wazero.NewRuntimeConfigCompiler())
	h.quick = true
	wasi_snapshot_preview1.MustInstantiate(ctx, h)
	saved := slice
	slice = 1 << 15
	defer func() { slice = saved }()
	rewritten, done := mustRewrite(b, module, everything)
	plain, counted := h.instantiate(b, module, &wasm.Rewritten{}), h.instantiate(b, rewritten, done)
	for _, m := range []api.Module{plain, counted} {
		if _, err := m.ExportedFunction("_initialize").Call(ctx); err != nil {
			b.Fatal(err)
		}
	}
	for _, name := range []string{"roundTrip", "digest", "mixture"} {
		b.Run(name, func(b *testing.B) {
			arm := func(m api.Module) func() {
				f := m.ExportedFunction(name)
				return func() {
					if _, err := f.Call(ctx, 10); err != nil {
						b.Fatal(err)
					}
				}
			}
			arms.Alternate(b, 5, [2]string{"plain", "counted"}, [2]func(){arm(plain), arm(counted)})
		})
	}
}

// scripts are JavaScript of several kinds. Each defines f.
var scripts = []struct{ name, text string }{
	{"arithmetic", `globalThis.f = n => {
		let a = 1, b = 2, sum = 0;
		for (let i = 0; i < n * 20; i++) { a = (a * 31 + b) | 0; b = (b ^ (a >>> 3)) + i | 0; if (a & 1) sum += a; else sum -= b; }
		return sum;
	}`},
	{"properties", `class Point {
		constructor(x, y) { this.x = x; this.y = y; }
		length() { return this.x * this.x + this.y * this.y; }
		move(d) { this.x += d; this.y -= d; return this; }
	}
	globalThis.f = n => {
		const points = [], count = {};
		for (let i = 0; i < n; i++) points.push(new Point(i, i + 1));
		let sum = 0;
		for (const p of points) sum += p.move(2).length();
		for (let i = 0; i < n; i++) count["k" + i % 17] = (count["k" + i % 17] ?? 0) + 1;
		return sum + Object.keys(count).length;
	}`},
	{"calls", `const fib = n => n < 2 ? n : fib(n - 1) + fib(n - 2);
	globalThis.f = n => fib(14) + [1, 2, 3, 4].map(x => x * n).filter(x => x > 2).reduce((a, b) => a + b, 0)`},
	{"JSON", `const item = { name: "lamp", price: 12.5, tags: ["light", "home"], more: { a: "1", b: "2", c: [1, 2, 3, null, true] }, text: "x".repeat(40) };
	globalThis.f = n => {
		let sum = 0;
		for (let i = 0; i < n; i++) { item.price = Math.sqrt(i) * 1.5; sum += JSON.parse(JSON.stringify(item)).tags.length; }
		return sum;
	}`},
}

// BenchmarkCostScript is BenchmarkCost for the interpreter of handlers in TypeScript.
func BenchmarkCostScript(b *testing.B) {
	module, err := os.ReadFile("../../develop/toolchain/typescript/engine/quickjs.wasm")
	if err != nil {
		b.Skip("tools/fetch-engine.sh fetches the engine: ", err)
	}
	ctx := context.Background()
	h := newHost(b, wazero.NewRuntimeConfigCompiler())
	h.quick = true
	saved := slice
	slice = 1 << 15
	defer func() { slice = saved }()
	wasi_snapshot_preview1.MustInstantiate(ctx, h)
	compiled, err := h.CompileModule(ctx, module)
	if err != nil {
		b.Fatal(err)
	}
	env := h.NewHostModuleBuilder("env") // which these scripts do not need
	for _, f := range compiled.ImportedFunctions() {
		if from, name, _ := f.Import(); from == "env" {
			env.NewFunctionBuilder().WithGoFunction(api.GoFunc(func(_ context.Context, stack []uint64) { clear(stack) }), f.ParamTypes(), f.ResultTypes()).Export(name)
		}
	}
	if _, err := env.Instantiate(ctx); err != nil {
		b.Fatal(err)
	}
	options := everything
	options.MaxStack = 16 << 20 // as the sandbox grants
	rewritten, done := mustRewrite(b, module, options)
	plain, counted := h.instantiate(b, module, &wasm.Rewritten{}), h.instantiate(b, rewritten, done)
	for _, m := range []api.Module{plain, counted} {
		do(b, m, "_initialize")
		do(b, m, "qjs_init")
	}
	for _, s := range scripts {
		b.Run(s.name, func(b *testing.B) {
			arms.Alternate(b, 5, [2]string{"plain", "counted"}, [2]func(){scriptArm(b, plain, s.text), scriptArm(b, counted, s.text)})
		})
	}
}

// do calls an export and returns its first result.
func do(b *testing.B, m api.Module, export string, args ...uint64) uint64 {
	results, err := m.ExportedFunction(export).Call(context.Background(), args...)
	if err != nil {
		b.Fatal(export, err)
	}
	if len(results) == 0 {
		return 0
	}
	return results[0]
}

// scriptArm evaluates a script and returns a function that calls f(20).
func scriptArm(b *testing.B, m api.Module, script string) func() {
	place := func(s string) uint64 {
		at := do(b, m, "wasm_malloc", uint64(len(s)+1))
		m.Memory().Write(uint32(at), append([]byte(s), 0))
		return at
	}
	script = "{" + script + "}"
	if do(b, m, "qjs_is_exception", do(b, m, "qjs_eval", place(script), uint64(len(script)), place("f.js"), 0)) != 0 {
		b.Fatal("the script fails")
	}
	f := do(b, m, "qjs_get_prop_string", do(b, m, "qjs_get_global"), place("f"))
	args := place("four")
	m.Memory().WriteUint32Le(uint32(args), uint32(do(b, m, "qjs_new_number", api.EncodeF64(20))))
	undefined := do(b, m, "qjs_get_undefined")
	run := func() { do(b, m, "qjs_free_value", do(b, m, "qjs_call", f, undefined, 1, args)) }
	result := do(b, m, "qjs_call", f, undefined, 1, args)
	if do(b, m, "qjs_is_number", result) == 0 {
		b.Fatal("f fails")
	}
	return run
}
