package wasm_test

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"github.com/tetratelabs/wazero"

	"runner.example/internal/wasm"
)

// reducible has what Reduction finds, and beside it what only looks like it. run runs the instructions at
// address 0: each is a byte, and 0 ends the run. The words from 1024 on say where an instruction is.
const reducible = `(module
  (memory (export "memory") 1)
  (data (i32.const 0) "\03\01\02\05\04\09\ff\01\06\07\00")
  (data (i32.const 1024) "\07\00\00\00\08\00\00\00\09\00\00\00\08\00\00\00\0a\00\00\00\0b\00\00\00\0c")
  (global $total (mut i32) (i32.const 0))
  (func $step (export "step") (param $n i32) (param $by i64) (result i64)
    (if (i32.eqz (local.get $n)) (then (return (local.get $by))))
    (i64.add (local.get $by) (i64.extend_i32_u (local.get $n))))
  (func $note (export "note") (param $n i32) (global.set $total (i32.add (global.get $total) (local.get $n))))
  (func $run (export "run") (param $from i32) (result i64)
    (local $at i32) (local $byte i32) (local $sum i64) (local $p i32)
    (local.set $at (local.get $from))
    (block $done
      (loop $next
        (if (i32.and (i32.load8_u offset=99 (local.get $at)) (i32.const 4)) (then (call $note (i32.const 1000))))
        (if (i32.and (i32.load8_u offset=99 (i32.load offset=64 (i32.add (local.get $at) (i32.const 8)))) (i32.const 4))
          (then (call $note (i32.const 2000))))
        (if (i32.and (i32.load8_u offset=99 (local.tee $p (local.get $at))) (i32.const 4)) (then (call $note (i32.const 3000))))
        (if (i32.and (i32.load8_u offset=98 (local.get $at)) (i32.const 4)) (then (call $note (i32.const 1))))
        (if (i32.and (i32.load8_u offset=99 (local.get $p)) (i32.const 8)) (then (call $note (i32.const 2))))
        (if (i32.and (i32.load8_u offset=99 (local.get $at)) (i32.const 4)) (then (call $note (i32.const 4000))) (else (call $note (i32.const 3))))
        (block $five (block $four (block $three (block $two (block $one (block $zero
          (i32.load8_u (local.get $at))
          (local.tee $byte)
          (i32.const 2)
          (i32.shl)
          (i32.load offset=1024)
          (i32.const 7)
          (i32.sub)
          (br_table $zero $one $two $three $four $five))
          (br $done))
          (local.set $sum (call $step (i32.const 0) (local.get $sum)))
          (local.set $sum (call $step (local.get $byte) (local.get $sum))))
          (call $note (i32.const 16)))
          (local.set $sum (i64.mul (local.get $sum) (i64.const 3))))
          (call $note (call $twice (local.get $byte))))
        (local.set $at (i32.add (local.get $at) (i32.const 1)))
        (br $next)))
    (i64.add (local.get $sum) (i64.extend_i32_u (global.get $total))))
  (func $twice (param i32) (result i32) (i32.shl (local.get 0) (i32.const 1))))`

// A reduced module answers as before, and has none of the code that is known.
func TestReducedCodeMeansTheSame(t *testing.T) {
	m := mustParse(t, watModule(t, reducible))
	memory := make([]byte, wasm.PageBytes)
	copy(memory, "\x03\x01\x02\x05\x04\x09\xff\x01\x06\x07\x01\x03\x00")
	for i := range 256 {
		memory[1024+4*i] = byte(7 + (i+i/7)%7) // the last target is the default one
	}
	clear(memory[1024 : 1024+4])
	memory[1024] = 7
	parts, err := mustParse(t, watModule(t, `(module
	  (func (export "sum") (param i32 i64) (result i64) (local $sum i64)
	    (if (i32.eqz (local.get 0)) (then (return (local.get 1))))
	    (block (br_if 0 (i64.eqz (local.get $sum))) (return (i64.const -1)))
	    (local.set $sum (i64.add (local.get 1) (i64.extend_i32_u (local.get 0))))
	    (local.get $sum)))`)).Parts("part ")
	if err != nil {
		t.Fatal(err)
	}
	parts[0].Replaces = "step"
	link := func(r wasm.Reduction) []byte {
		l := wasm.Link{
			Internal: map[string]uint32{"step": 0, "run": 2}, Functions: append(parts, wasm.Function{
				Export: "go", Type: wasm.FuncType{Params: []wasm.ValueType{wasm.I32}, Results: []wasm.ValueType{wasm.I64}},
				Code: calling([]byte{0x20, 0}, "run"),
			}), Memory: memory, Globals: []uint32{0}, Reduce: r,
		}
		linked, err := m.Link(l)
		if err != nil {
			t.Fatal(err)
		}
		return linked
	}
	plain := link(wasm.Reduction{})
	reduced := link(wasm.Reduction{
		Functions: []uint32{2}, Clear: []wasm.Bits{{Offset: 99, Mask: 4}}, Constant: []uint32{1024}, Inline: []string{"sum"},
	})
	run := func(module []byte, from uint64) uint64 {
		runtime := wazero.NewRuntime(context.Background())
		defer runtime.Close(context.Background())
		instance, err := runtime.Instantiate(context.Background(), module)
		if err != nil {
			t.Fatal(err)
		}
		results, err := instance.ExportedFunction("go").Call(context.Background(), from)
		if err != nil {
			t.Fatal(err)
		}
		return results[0]
	}
	for from := range uint64(13) {
		if have, want := run(reduced, from), run(plain, from); have != want {
			t.Errorf("from %d: %d, and %d without a reduction", from, have, want)
		}
	}
	count := func(module []byte, code ...byte) int { return bytes.Count(module, code) }
	load, table := []byte{0x2d, 0, 99}, []byte{0x28, 2, 0x80, 8}
	have := fmt.Sprint(count(plain, load...), count(plain, table...), " ", count(reduced, load...), count(reduced, table...))
	if have != "5 1 2 0" {
		t.Error("loads of the bits and of the table, before and after:", have)
	}
	if calls := count(plain, 0x10, 4) - count(reduced, 0x10, 4); calls < 2 {
		t.Errorf("%d calls were inlined", calls)
	}
}
