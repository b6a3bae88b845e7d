package wasm_test

import (
	"context"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"runner.example/internal/wasm"
)

const recursions = `(module
  (type $f (func (param i32) (result i32)))
  (table funcref (elem $indirect $plain))
  (func $self (export "self") (param i32) (result i32)
    (call $self (local.get 0)))
  (func $even (export "even") (param i32) (result i32)
    (call $odd (local.get 0)))
  (func $odd (param i32) (result i32)
    (if (i32.eqz (local.get 0)) (then unreachable))
    (call $even (local.get 0)))
  (func $indirect (export "indirect") (param i32) (result i32)
    (call_indirect (type $f) (local.get 0) (i32.const 0)))
  (func $plain (export "plain") (param i32) (result i32)
    (i32.add (local.get 0) (call $leaf)))
  (func $leaf (result i32) (i32.const 1))
  (func $count (export "count") (param $n i32) (param $way i32) (result i32 i64)
    (if (i32.eqz (local.get $n)) (then (return (i32.const 0) (i64.const 0))))
    (block $out
      (block $a
        (block $b
          (br_table $a $b $out (local.get $way)))
        (call $count (i32.sub (local.get $n) (i32.const 1)) (local.get $way))
        (return))
      (call $count (i32.sub (local.get $n) (i32.const 1)) (local.get $way))
      (br 1))
    (call $count (i32.sub (local.get $n) (i32.const 1)) (local.get $way)))
  (func (export "trap") (param i32) (result i32) (unreachable))
)`

// stacked makes an instance whose recursion is bounded, and a way to read how
// much it uses.
func stacked(t *testing.T, most uint32) (m api.Module, depth func() uint64, done *wasm.Rewritten) {
	bytes, done := mustRewrite(t, watModule(t, recursions), wasm.Options{MaxStack: most, Prefix: "\x00"})
	m = newHost(t, wazero.NewRuntimeConfigCompiler()).instantiate(t, bytes, done)
	return m, m.ExportedGlobal(done.Depth).Get, done
}

func TestRecursionTrapsAtTheLimit(t *testing.T) {
	const most = 1 << 20
	for _, export := range []string{"self", "even", "indirect"} {
		m, depth, _ := stacked(t, most)
		_, err := m.ExportedFunction(export).Call(context.Background(), 1)
		if err == nil || !strings.Contains(err.Error(), "unreachable") {
			t.Errorf("%s: error %v, want the trap of the bound", export, err)
		}
		if d := depth(); d <= most || d > most+2_000 {
			t.Errorf("%s: trapped at a depth of %d, want just above %d", export, d, most)
		}
	}
}

func TestATrapOfTheModuleDiffersFromTheStackLimit(t *testing.T) {
	m, depth, _ := stacked(t, 1<<20)
	if _, err := m.ExportedFunction("trap").Call(context.Background(), 1); err == nil {
		t.Fatal("no trap")
	}
	if depth() > 1<<20 {
		t.Errorf("the depth is %d after a trap of the module's own", depth())
	}
}

func TestEveryExitOfAFunctionReleasesItsStack(t *testing.T) {
	m, depth, _ := stacked(t, 1<<20)
	for way := range uint64(3) {
		results, err := m.ExportedFunction("count").Call(context.Background(), 1000, way)
		if err != nil || len(results) != 2 {
			t.Fatalf("way %d: %v, %v", way, results, err)
		}
		if depth() != 0 {
			t.Errorf("way %d left the depth at %d", way, depth())
		}
	}
}

func TestOneFunctionOnEachCycleIsCounted(t *testing.T) {
	_, _, done := stacked(t, 1<<20)
	// self, even or odd, indirect, count; plain is in the table of indirect's
	// type, but calls no function in it
	if done.StackChecks != 4 {
		t.Errorf("%d functions are bounded, want 4", done.StackChecks)
	}
}

// A call takes the stack of its callees too, also if these do not ask for any: called directly,
// through others, and through a table.
func TestACallIsBoundedWithTheCalleesThatDoNotAsk(t *testing.T) {
	// Each function that computes takes 19 KiB. One that takes less than 32 KiB with its
	// callees does not ask.
	compute := func(call string) string {
		return times(600, `(i64.load offset=@ (i32.const 0))`) + call + times(599, `i64.xor`) + `(global.set $l)`
	}
	text := `(module (memory 1) (global $l (mut i64) (i64.const 0)) (type $none (func)) (table funcref (elem $leaf))
	  (func $leaf ` + compute("") + `)
	  (func $middle (call $leaf))
	  (func (export "leaf") (call $leaf))
	  (func (export "direct") ` + compute("(call $leaf)") + `)
	  (func (export "through another") ` + compute("(call $middle)") + `)
	  (func (export "through a table") ` + compute("(call_indirect (type $none) (i32.const 0))") + `))`
	module := watModule(t, text)
	for _, row := range []struct {
		most   uint32
		asks   bool // the host, which says that no stack is in use
		traps  bool
		export string
	}{
		{64 << 10, false, false, "direct"}, {64 << 10, false, false, "through another"}, {64 << 10, false, false, "through a table"},
		{36 << 10, false, true, "direct"}, {36 << 10, false, true, "through another"}, {36 << 10, false, true, "through a table"},
		// The frame is in use then, and the callees are still to come.
		{28 << 10, true, false, "direct"}, {28 << 10, true, false, "through another"}, {28 << 10, true, false, "through a table"},
		{16 << 10, true, true, "direct"}, {16 << 10, true, true, "through another"}, {16 << 10, true, true, "through a table"},
		{16 << 10, false, false, "leaf"},
	} {
		options := wasm.Options{MaxStack: row.most, Prefix: "\x00"}
		if row.asks {
			options.Stack = everything.Stack
		}
		bytes, done := mustRewrite(t, module, options)
		if done.StackChecks != 3 {
			t.Fatalf("%d functions ask for stack, want 3: the test has other frames", done.StackChecks)
		}
		h := newHost(t, wazero.NewRuntimeConfigCompiler())
		m := h.instantiate(t, bytes, done)
		_, err := m.ExportedFunction(row.export).Call(context.Background())
		if trapped := err != nil && strings.Contains(err.Error(), "unreachable"); trapped != row.traps || err != nil && !trapped {
			t.Errorf("%s with %d KiB, host asked %v: %v, want a trap: %v", row.export, row.most>>10, row.asks, err, row.traps)
		}
		if asked := h.asked > 0; asked != row.asks {
			t.Errorf("%s with %d KiB: the host was asked %d times", row.export, row.most>>10, h.asked)
		}
	}
}
