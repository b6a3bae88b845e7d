package sandbox_test

import (
	"testing"

	"runner.example/internal/wasm"
	"runner.example/runtime/sandbox"
)

// TestAMergedModuleIsRestored serves a module of several: one whose table another one fills, one with a start
// function and a mutable global that others use, and one whose data is written after that start function.
func TestAMergedModuleIsRestored(t *testing.T) {
	modules := []struct {
		text    string
		imports []wasm.Source
	}{
		{`(module
			(table (export "table") 1 1 funcref)
			(func (export "send") (param i32 i32 i32) (result i32)
				(call_indirect (param i32 i32 i32) (result i32) (local.get 0) (local.get 1) (local.get 2) (i32.const 0))))`, nil},
		{`(module
			(memory (export "memory") 1)
			(global $started (export "started") (mut i32) (i32.const 0))
			(data (i32.const 8) "\01")
			(func $start (i32.store8 (i32.const 9) (i32.const 2)) (global.set $started (i32.const 1)))
			(start $start))`, nil},
		{`(module
			(import "1" "memory" (memory 1))
			(data (i32.const 10) "\03"))`, []wasm.Source{{Part: 1, Name: "memory"}}},
		{`(module
			(import "1" "memory" (memory 1))
			(import "1" "started" (global $started (mut i32)))
			(import "0" "send" (func $send (param i32 i32 i32) (result i32)))
			(func (export "h")
				(if (i32.ne (i32.load (i32.const 8)) (i32.const 0x030201)) (then unreachable))
				(if (i32.ne (global.get $started) (i32.const 1)) (then unreachable))
				(i32.store (i32.const 8) (i32.const 7))
				(global.set $started (i32.const 9))
				(drop (call $send (i32.const 204) (i32.const 0) (i32.const 0)))))`,
			[]wasm.Source{{Part: 1, Name: "memory"}, {Part: 1, Name: "started"}, {Part: 0, Name: "send"}}},
		{`(module
			(import "runner" "response_send" (func $send (param i32 i32 i32) (result i32)))
			(import "0" "table" (table 1 1 funcref))
			(elem (i32.const 0) $send))`,
			[]wasm.Source{{Part: wasm.NoPart, Name: "runner.response_send"}, {Part: 0, Name: "table"}}},
	}
	var merge wasm.Merge
	for _, m := range modules {
		part, err := wasm.ParsePart(assembleText(t, m.text), wasm.DefaultLimits())
		if err != nil {
			t.Fatal(err)
		}
		merge.Parts = append(merge.Parts, wasm.Part{Module: part, Imports: m.imports})
	}
	merge.Imports = merge.Parts[4].Module.Imports()
	merge.Exports = []wasm.MergedExport{
		{Name: "memory", Source: wasm.Source{Part: 1, Name: "memory"}}, {Name: "h", Source: wasm.Source{Part: 3, Name: "h"}},
	}
	merged, err := merge.Module(wasm.DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	for name, disabled := range fallbacks {
		m := load(t, newEngine(t, sandbox.Options{Disable: disabled}), merged)
		for i := range 20 {
			if call, err := within(t, plenty, m, "h"); err != nil || call.Response.Status != 204 {
				t.Fatalf("%s, request %d: %v", name, i, err)
			}
		}
		if idle, err := m.Restored(); restores(name) && (idle == 0 || err != nil) {
			t.Errorf("%s: %d sandboxes were restored: %v", name, idle, err)
		}
	}
}
