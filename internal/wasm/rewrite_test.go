package wasm_test

import (
	"bytes"
	"context"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"runner.example/internal/wasm"
)

func mustParse(t testing.TB, b []byte) *wasm.Module {
	t.Helper()
	m, err := wasm.Parse(b, wasm.DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func compile(t testing.TB, b []byte) wazero.CompiledModule {
	t.Helper()
	ctx := context.Background()
	r := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter())
	t.Cleanup(func() { _ = r.Close(ctx) })
	compiled, err := r.CompileModule(ctx, b)
	if err != nil {
		t.Fatal(err)
	}
	return compiled
}

func TestRewrittenGuestsCompile(t *testing.T) {
	modules := guests(t)
	if tracker, err := os.ReadFile("../../plugins/examples/tracker/build/tracker.wasm"); err == nil {
		modules["tracker.wasm"] = tracker
	}
	for name, original := range modules {
		t.Run(name, func(t *testing.T) {
			for _, o := range append(forms[1:len(forms):len(forms)], &everything) {
				bytes, _ := mustRewrite(t, original, *o)
				compile(t, bytes)
			}
		})
	}
}

// facts are the properties of a module that Parse returns.
type facts struct {
	Imports   []string
	Exports   []wasm.Export
	Memory    *wasm.Memory
	Tables    []wasm.Table
	Globals   []string
	Functions int
	Types     []wasm.FuncType
	Start     bool
	Reasons   []string
}

func factsOf(m *wasm.Module) (f facts) {
	for _, i := range m.Imports() {
		f.Imports = append(f.Imports, i.Module+"."+i.Name)
	}
	for _, g := range m.Globals() {
		f.Globals = append(f.Globals, g.Type.String())
	}
	for i := range len(m.Imports()) + m.Functions() {
		f.Types = append(f.Types, m.FunctionType(uint32(i)))
	}
	f.Exports, f.Memory, f.Tables, f.Functions = m.Exports(), m.Memory(), m.Tables(), m.Functions()
	f.Start, f.Reasons = m.HasStart(), m.Eligibility()
	return f
}

func TestRewriteWithoutOptionsChangesNothing(t *testing.T) {
	modules := guests(t)
	for seed := range uint64(30) {
		modules["generated "+string(rune('a'+seed))] = generate(seed)
	}
	for name, original := range modules {
		same, done := mustRewrite(t, original, wasm.Options{Target: "amd64"})
		if diff := cmp.Diff(factsOf(mustParse(t, original)), factsOf(mustParse(t, same))); diff != "" {
			t.Errorf("%s: (-original +rewritten)\n%s", name, diff)
		}
		if diff := cmp.Diff(&wasm.Rewritten{}, done); diff != "" {
			t.Errorf("%s: was changed: %s", name, diff)
		}
		if len(same) > len(original) {
			t.Errorf("%s: grew from %d to %d bytes", name, len(original), len(same))
		}
	}
}

func TestParseReportsThePartsOfAModule(t *testing.T) {
	m := mustParse(t, watModule(t, `(module
	  (import "env" "in" (func $in (param i32 i64) (result f32)))
	  (memory (export "memory") 2 7)
	  (table 3 9 funcref)
	  (global i32 (i32.const 1))
	  (global (export "g") (mut f64) (f64.const 1))
	  (func $start)
	  (start $start)
	  (func (export "f") (result i32 v128) (i32.const 1) (v128.const i64x2 0 0)))`))
	want := facts{
		Imports:   []string{"env.in"},
		Exports:   []wasm.Export{{"memory", wasm.MemoryKind, 0}, {"g", wasm.GlobalKind, 1}, {"f", wasm.FunctionKind, 2}},
		Memory:    &wasm.Memory{MinPages: 2, MaxPages: 7, HasMax: true},
		Tables:    []wasm.Table{{Type: wasm.FuncRef, Min: 3, Max: 9, HasMax: true}},
		Globals:   []string{"i32", "f64"},
		Functions: 2,
		Types: []wasm.FuncType{
			{Params: []wasm.ValueType{wasm.I32, wasm.I64}, Results: []wasm.ValueType{wasm.F32}},
			{},
			{Results: []wasm.ValueType{wasm.I32, wasm.V128}},
		},
		Start: true,
	}
	if diff := cmp.Diff(want, factsOf(m)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestEligibilityNamesStateOutsideOfMemoryAndGlobals(t *testing.T) {
	for _, row := range []struct{ code, want string }{
		{"(table.set 0 (i32.const 0) (ref.null func))", "uses table.set"},
		{"(drop (table.grow 0 (ref.null func) (i32.const 1)))", "uses table.grow"},
		{"(table.fill 0 (i32.const 0) (ref.null func) (i32.const 1))", "uses table.fill"},
		{"(table.copy (i32.const 0) (i32.const 0) (i32.const 1))", "uses table.copy"},
		{"(table.init $e (i32.const 0) (i32.const 0) (i32.const 1))", "uses table.init"},
		{"(elem.drop $e)", "uses elem.drop"},
		{"(memory.init $d (i32.const 0) (i32.const 0) (i32.const 1))", ""},
		{"(data.drop $d)", "uses data.drop"},
		{"(memory.init $d (i32.const 0) (i32.const 0) (i32.const 1)) (data.drop $d)", "uses memory.init, uses data.drop"},
		{"(global.set $v (v128.const i64x2 1 1))", ""},
		{"(memory.fill (i32.const 0) (i32.const 0) (i32.const 1)) (drop (table.get 0 (i32.const 0))) (drop (table.size 0))", ""},
	} {
		text := `(module (memory 1) (table 4 funcref) (elem $e func $f) (data $d "x")
		  (global $v (mut v128) (v128.const i64x2 0 0)) (func $f ` + row.code + `))`
		want := []string{"has a mutable global of type v128 (number 0)"}
		if row.want != "" {
			want = append(strings.Split(row.want, ", "), want...)
		}
		if got := mustParse(t, watModule(t, text)).Eligibility(); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", row.code, got, want)
		}
	}
	plain := `(module (memory 1) (global (mut i32) (i32.const 0)) (global v128 (v128.const i64x2 0 0)) (data (i32.const 0) "x") (func))`
	if got := mustParse(t, watModule(t, plain)).Eligibility(); got != nil {
		t.Errorf("a plain module: %q", got)
	}
}

func TestMemoryAndTablesGrowOnlyToTheirLimits(t *testing.T) {
	original := watModule(t, `(module
	  (memory (export "memory") 1 100) (table $a 2 funcref) (table $b 2 5 funcref) (table $c 30 funcref)
	  (func (export "memory_grow") (param i32) (result i32) (memory.grow (local.get 0)))
	  (func (export "a") (param i32) (result i32) (table.grow $a (ref.null func) (local.get 0)))
	  (func (export "b") (param i32) (result i32) (table.grow $b (ref.null func) (local.get 0)))
	  (func (export "c") (param i32) (result i32) (table.grow $c (ref.null func) (local.get 0))))`)
	rewritten, done := mustRewrite(t, original, wasm.Options{MemoryMaxPages: 3, TableMax: 10})
	m := newHost(t, wazero.NewRuntimeConfigInterpreter()).instantiate(t, rewritten, done)
	for _, row := range []struct {
		export string
		by     uint64
		want   int32
	}{
		{"memory_grow", 3, -1}, {"memory_grow", 2, 1}, {"memory_grow", 1, -1},
		{"a", 9, -1}, {"a", 8, 2}, {"a", 1, -1},
		{"b", 4, -1}, {"b", 3, 2},
		{"c", 1, -1}, {"c", 0, 30},
	} {
		results, err := m.ExportedFunction(row.export).Call(context.Background(), row.by)
		if err != nil || int32(results[0]) != row.want {
			t.Errorf("%s by %d: %d, %v; want %d", row.export, row.by, int32(results[0]), err, row.want)
		}
	}
	if err := mustParse(t, original).CheckMemory(0); err == nil || !strings.Contains(err.Error(), "needs 64 KiB of memory to begin with, and the limit is 0 MiB") {
		t.Errorf("a limit below the minimum: %v", err)
	}
	if err := mustParse(t, original).CheckMemory(1); err != nil {
		t.Error(err)
	}
}

func TestUnknownSectionsAreKeptAndDebugInformationIsDropped(t *testing.T) {
	original := module(
		section(0, text("producers"), []byte("by hand")),
		section(1, []byte{1, 0x60, 0, 0}),
		section(0, text(".debug_info"), []byte("stale")),
		section(0, text("target_features"), []byte("all")),
		section(0, text("name"), []byte{1, 200, 0}), // damaged
	)
	bytes, _ := mustRewrite(t, original, wasm.Options{})
	want := module(
		section(0, text("producers"), []byte("by hand")),
		section(1, []byte{1, 0x60, 0, 0}),
		section(0, text("target_features"), []byte("all")),
	)
	if !slices.Equal(bytes, want) {
		t.Errorf("got %q, want %q", bytes, want)
	}
}

const stateful = `(module
  (memory (export "memory") 1 8)
  (global $i (mut i32) (i32.const 7))
  (global $l (mut i64) (i64.const -7))
  (global $c i32 (i32.const 3))
  (global $f (mut f32) (f32.const 1.5))
  (global $d (mut f64) (f64.const -2.5))
  (table 2 funcref)
  (elem (i32.const 0) $bump $peek)
  (data (i32.const 16) "abc")
  (data (i32.const 18) "xyz")
  (func $init (i32.store (i32.const 0) (i32.const 41)) (call $bump))
  (start $init)
  (func $bump (export "bump")
    (i32.store (i32.const 0) (i32.add (i32.load (i32.const 0)) (i32.const 1)))
    (global.set $i (i32.mul (global.get $i) (i32.const -3)))
    (global.set $l (i64.mul (global.get $l) (i64.const 5000000000)))
    (global.set $f (f32.mul (global.get $f) (f32.const -2)))
    (global.set $d (f64.div (global.get $d) (f64.const 0)))
    (if (i32.eq (memory.size) (i32.const 1)) (then (drop (memory.grow (global.get $c))))))
  (func $peek (export "peek") (result i32 i32 i64 f32 f64 i32 i32)
    (i32.load (i32.const 0)) (global.get $i) (global.get $l) (global.get $f) (global.get $d)
    (i32.load (i32.const 16)) (memory.size)))`

func peek(t *testing.T, m api.Module) []uint64 {
	t.Helper()
	results, err := m.ExportedFunction("peek").Call(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return results
}

func call(t *testing.T, m api.Module, export string) {
	t.Helper()
	if _, err := m.ExportedFunction(export).Call(context.Background()); err != nil {
		t.Fatal(err)
	}
}

func TestDetachedModuleBeginsAsTheOriginal(t *testing.T) {
	original := watModule(t, stateful)
	rewritten, done := mustRewrite(t, original, everything)
	want := newHost(t, wazero.NewRuntimeConfigCompiler()).instantiate(t, original, &wasm.Rewritten{})
	got := newHost(t, wazero.NewRuntimeConfigCompiler()).instantiate(t, rewritten, done)
	for range 3 {
		if diff := cmp.Diff(peek(t, want), peek(t, got)); diff != "" {
			t.Fatalf("(-original +detached)\n%s", diff)
		}
		call(t, want, "bump")
		call(t, got, "bump")
	}
	if len(done.Data) != 2 || done.Start == "" || mustParse(t, rewritten).HasStart() {
		t.Errorf("%d data segments and the start function %q were detached", len(done.Data), done.Start)
	}
}

func TestDetachedModuleKeepsThePassiveDataItsCodeNames(t *testing.T) {
	original := watModule(t, `(module
	  (memory (export "memory") 1)
	  (data (i32.const 0) "active")
	  (data $p "passive")
	  (func (export "init") (memory.init $p (i32.const 100) (i32.const 0) (i32.const 7))))`)
	rewritten, done := mustRewrite(t, original, everything)
	m := newHost(t, wazero.NewRuntimeConfigCompiler()).instantiate(t, rewritten, done)
	call(t, m, "init")
	memory, _ := m.Memory().Read(0, 107)
	if string(memory[100:]) != "passive" || string(memory[:6]) != "active" {
		t.Errorf("memory holds %q", memory)
	}
}

func TestModulesThatDifferInDataNamesAndMemoryBecomeEqual(t *testing.T) {
	one := `(module (memory (export "memory") 1) (data (i32.const 8) "first")
	  (func $f (export "first") (result i32) (i32.load8_u (i32.const 8))) (func (export "second") (drop (memory.grow (i32.const 1)))))`
	other := `(module (memory (export "memory") 7) (data (i32.const 90000) "other")
	  (func $f (export "first") (result i32) (i32.load8_u (i32.const 8))) (func (export "third") (drop (memory.grow (i32.const 1)))))`
	options := everything
	options.Alike = true
	options.MemoryMaxPages = 100
	a, first := mustRewrite(t, watModule(t, one), options)
	b, second := mustRewrite(t, watModule(t, other), options)
	if !bytes.Equal(a, b) {
		t.Error("the two are different")
	}
	if first.Exports["first"] == "" || first.Exports["first"] != second.Exports["first"] || first.Exports["second"] != second.Exports["third"] {
		t.Errorf("they export %v and %v", first.Exports, second.Exports)
	}
	if m := mustParse(t, a); m.Memory().MinPages != 0 || m.Memory().MaxPages != 100 {
		t.Errorf("the memory is %v", m.Memory())
	}
	different, _ := mustRewrite(t, watModule(t, strings.Replace(one, "load8_u", "load8_s", 1)), options)
	if bytes.Equal(a, different) {
		t.Error("another instruction makes no difference")
	}
}
