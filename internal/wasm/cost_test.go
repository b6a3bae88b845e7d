package wasm_test

import (
	"context"
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
