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
