package wasm_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"runner.example/internal/wasm"
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
// rewritten, in turns; the ratio is the median of neighbours.
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
			arms := []interface {
				CallWithStack(context.Context, []uint64) error
			}{original.ExportedFunction(name), counted.ExportedFunction(name)}
			var times [2][]float64
			var ratios []float64
			for b.Loop() {
				var now [2]float64
				for i, arm := range arms {
					began := time.Now()
					for range 10 {
						if err := arm.CallWithStack(context.Background(), nil); err != nil {
							b.Fatal(err)
						}
					}
					now[i] = float64(time.Since(began)) / 10
					times[i] = append(times[i], now[i])
				}
				ratios = append(ratios, now[1]/now[0])
			}
			b.ReportMetric(middle(times[0]), "plain-ns")
			b.ReportMetric(middle(times[1]), "counted-ns")
			b.ReportMetric(middle(ratios), "ratio")
			b.ReportMetric(0, "ns/op")
		})
	}
}

func middle(list []float64) float64 {
	slices.Sort(list)
	return list[len(list)/2]
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
			var ratios []float64
			h.refills = 0
			for b.Loop() {
				var now [2]float64
				for i, m := range []api.Module{plain, counted} {
					f := m.ExportedFunction(name)
					began := time.Now()
					if _, err := f.Call(ctx, 10); err != nil {
						b.Fatal(err)
					}
					now[i] = float64(time.Since(began))
				}
				ratios = append(ratios, now[1]/now[0])
			}
			b.ReportMetric(middle(ratios), "ratio")
			b.ReportMetric(float64(h.refills)/float64(b.N), "refills")
		})
	}
}
