package wasm_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"

	"runner.example/internal/wasm"
)

// offering has something of each kind.
const offering = `(module
  (func (export "f") (param i32))
  (table (export "t") 3 9 funcref)
  (table (export "endless") 3 funcref)
  (memory (export "m") 2 4)
  (global (export "c") i32 (i32.const 1))
  (global (export "v") (mut i64) (i64.const 1)))`

func TestImportsAreMatched(t *testing.T) {
	for _, row := range []struct{ wanted, want string }{
		{`"f" (func (param i32))`, ""},
		{`"f" (func)`, "as a function of another type"},
		{`"f" (global i32)`, "as a global, and gets a function"},
		{`"t" (table 3 9 funcref)`, ""},
		{`"t" (table 0 10 funcref)`, ""},
		{`"t" (table 0 funcref)`, ""},
		{`"t" (table 4 funcref)`, "as a table of another type"},
		{`"t" (table 3 8 funcref)`, "as a table of another type"},
		{`"t" (table 3 9 externref)`, "as a table of another type"},
		{`"endless" (table 3 9 funcref)`, "as a table of another type"},
		{`"m" (memory 2 4)`, ""},
		{`"m" (memory 0)`, ""},
		{`"m" (memory 3)`, "as a memory of another type"},
		{`"m" (memory 2 3)`, "as a memory of another type"},
		{`"m" (table 0 funcref)`, "as a table, and gets a memory"},
		{`"c" (global i32)`, ""},
		{`"c" (global (mut i32))`, "as a global of another type"},
		{`"c" (global i64)`, "as a global of another type"},
		{`"v" (global (mut i64))`, ""},
		{`"v" (global i64)`, "as a global of another type"},
		{`"nothing" (global i64)`, `from instance 0, which does not export "nothing"`},
	} {
		c := mergeCase{modules: []string{offering, `(module (import "0" ` + row.wanted + `))`}}
		_, err := c.merge(t).Module(wasm.DefaultLimits())
		if (err == nil) != (row.want == "") || err != nil && !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: %v, want %q", row.wanted, err, row.want)
		}
	}
}

func TestMergeRefusesWhatOneModuleCannotBe(t *testing.T) {
	const memory, function = `(module (memory (export "m") 1))`, `(module (func (export "f")))`
	for _, row := range []struct {
		name string
		mergeCase
		want string
	}{
		{"two memories", mergeCase{modules: []string{memory, memory}}, "has several memories (of instances 0 and 1)"},
		{"a memory of 4 GiB beside another", mergeCase{modules: []string{`(module (memory 65536))`, `(module (memory 0))`}}, "one of 4 GiB"},
		{
			"an empty memory is exported",
			mergeCase{modules: []string{memory, `(module (memory (export "m") 0))`}, exports: map[string]string{"memory": "1.m"}},
			"which is an empty memory",
		},
		{"a later part", mergeCase{modules: []string{`(module (import "1" "f" (func)))`, function}}, "which is not an earlier one"},
		{"the part itself", mergeCase{modules: []string{`(module (import "0" "f" (func)) (func (export "f")))`}}, "which is not an earlier one"},
		{"a part that is not there", mergeCase{modules: []string{function}, exports: map[string]string{"f": "3.f"}}, "from instance 3"},
		{"a missing function", mergeCase{modules: []string{`(module (import "added" "f" (func)))`}}, `as the function "f", which is not there`},
		{"too few imports", mergeCase{modules: []string{function, `(module (import "0" "f" (func)))`}, add: func(m *wasm.Merge) {
			m.Parts[1].Imports = nil
		}}, "has 1 imports, and 0 are given"},
		{"an added function that calls nothing", mergeCase{add: func(m *wasm.Merge) {
			m.Functions = []wasm.Function{{Name: "f", Code: calling(nil, "nowhere")}}
		}}, `has no function "nowhere"`},
		{"a name of nothing", mergeCase{add: func(m *wasm.Merge) {
			m.Names = map[string]wasm.Source{"f": {Part: 0, Name: "f"}}
		}}, `needs "f" from instance 0`},
		{"two names of one function", mergeCase{modules: []string{function}, add: func(m *wasm.Merge) {
			m.Functions = []wasm.Function{{Name: "f", Code: calling(nil, "")}}
			m.Names = map[string]wasm.Source{"f": {Part: 0, Name: "f"}}
		}}, "two functions of the name"},
		{"two imports of one name", mergeCase{add: func(m *wasm.Merge) {
			m.Imports = []wasm.Import{{Module: "a", Name: "b"}, {Module: "a", Name: "b", Type: oneToOne}}
		}}, "two functions of the name"},
	} {
		t.Run(row.name, func(t *testing.T) {
			_, err := row.merge(t).Module(wasm.DefaultLimits())
			if err == nil || !strings.Contains(err.Error(), row.want) {
				t.Errorf("got %v, want %q", err, row.want)
			}
		})
	}
}

func TestAMergeIsLimited(t *testing.T) {
	parsed, err := wasm.ParsePart(watModule(t, `(module (func) (func) (func))`), wasm.DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	m := wasm.Merge{}
	for range 5 {
		m.Parts = append(m.Parts, wasm.Part{Module: parsed})
	}
	for want, change := range map[string]func(*wasm.Limits){
		"has 5 instances of modules, and may have 4":   func(l *wasm.Limits) { l.Parts = 4 },
		"has 15 functions in all instances of modules": func(l *wasm.Limits) { l.Functions = 14 },
		"bytes in all instances, and may have 100":     func(l *wasm.Limits) { l.ModuleBytes = 100 },
		"has 5 instances of modules, and may have 4 ":  func(l *wasm.Limits) {},
	} {
		limits := wasm.DefaultLimits()
		change(&limits)
		_, err := m.Module(limits)
		if fails := !strings.HasSuffix(want, " "); fails != (err != nil) || fails && !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// TestComputedInitialValues writes the initial value of a global by hand: wat2wasm has no such values.
func TestComputedInitialValues(t *testing.T) {
	first, err := wasm.ParsePart(watModule(t, `(module (global (export "i") i32 (i32.const 40)) (global (export "l") i64 (i64.const 7)))`), wasm.DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		kind  byte
		value []byte
		want  uint64
		error string
	}{
		{0x7f, []byte{0x23, 0, 0x41, 2, 0x6a}, 42, ""},
		{0x7f, []byte{0x41, 2, 0x23, 0, 0x6b}, 1<<32 - 38, ""},
		{0x7f, []byte{0x41, 0x80, 0x80, 0x80, 0x80, 0x78, 0x41, 2, 0x6c}, 0, ""},
		{0x7f, []byte{0x41, 1, 0x41, 2, 0x41, 3, 0x6c, 0x6a}, 7, ""},
		{0x7e, []byte{0x23, 1, 0x42, 3, 0x7e, 0x42, 1, 0x7d}, 20, ""},
		{0x7e, []byte{0x42, 0x7f, 0x23, 1, 0x7c}, 6, ""},
		{0x7f, []byte{0x23, 0, 0x23, 1, 0x6a}, 0, "computed from i32 and i64"},
		{0x7f, []byte{0x41, 1, 0x6a, 0x41, 1}, 0, "without an operand"},
		{0x7f, []byte{0x41, 1, 0x41, 1}, 0, "an initial value of 2 values"},
		{0x7f, []byte{0x41, 1, 0x41, 1, 0x6d}, 0, "is not a constant (0x6d)"},
		{0x7f, []byte{0x23, 0, 0x23, 9, 0x6a}, 0, "global 9, which is not there yet"},
		{0x7f, []byte{0x23, 0, 0x23, 2, 0x6a}, 0, "global 2, which can change"},
	} {
		binary := module(
			section(2, []byte{3}, text("0"), text("i"), []byte{3, 0x7f, 0}, text("0"), text("l"), []byte{3, 0x7e, 0},
				text("0"), text("mutable"), []byte{3, 0x7f, 1}),
			section(6, []byte{1, row.kind, 0}, row.value, []byte{0x0b}),
			section(7, []byte{1}, text("g"), []byte{3, 3}),
		)
		if _, err := wasm.Parse(binary, wasm.DefaultLimits()); err == nil {
			t.Errorf("%x: Parse accepts it", row.value)
		}
		part, err := wasm.ParsePart(binary, wasm.DefaultLimits())
		if row.error != "" {
			if err == nil || !strings.Contains(err.Error(), row.error) {
				t.Errorf("%x: %v, want %q", row.value, err, row.error)
			}
			continue
		}
		if err != nil {
			t.Errorf("%x: %v", row.value, err)
			continue
		}
		mutable, err := wasm.ParsePart(watModule(t, `(module (global (export "mutable") (mut i32) (i32.const 0)))`), wasm.DefaultLimits())
		if err != nil {
			t.Fatal(err)
		}
		imports := []wasm.Source{{Part: 0, Name: "i"}, {Part: 0, Name: "l"}, {Part: 1, Name: "mutable"}}
		merged, err := wasm.Merge{
			Parts:   []wasm.Part{{Module: first}, {Module: mutable}, {Module: part, Imports: imports}},
			Exports: []wasm.MergedExport{{Name: "g", Source: wasm.Source{Part: 2, Name: "g"}}},
		}.Module(wasm.DefaultLimits())
		if err != nil {
			t.Fatal(err)
		}
		instance := newMergeHost(t, wazero.NewRuntimeConfigInterpreter()).instantiate(t, merged, &wasm.Rewritten{})
		if got := instance.ExportedGlobal("g").Get(); got != row.want {
			t.Errorf("%x: %d, want %d", row.value, got, row.want)
		}
	}
}

func TestAPartIsNoModuleOfItsOwn(t *testing.T) {
	for _, import_ := range []string{`(table 1 funcref)`, `(memory 1)`, `(global i32)`} {
		binary := watModule(t, `(module (import "a" "b" `+import_+`))`)
		if _, err := wasm.Parse(binary, wasm.DefaultLimits()); err == nil || !strings.HasPrefix(err.Error(), "imports ") {
			t.Errorf("%s: Parse returns %v", import_, err)
		}
		part, err := wasm.ParsePart(binary, wasm.DefaultLimits())
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := part.Rewrite(wasm.Options{}); err == nil || !strings.Contains(err.Error(), "merge it") {
			t.Errorf("%s: Rewrite returns %v", import_, err)
		}
		if _, err := part.Link(wasm.Link{}); err == nil || !strings.Contains(err.Error(), "merge it") {
			t.Errorf("%s: Link returns %v", import_, err)
		}
	}
	two := watModule(t, `(module (import "a" "b" (memory 1)))`)
	two = append(two, 5, 3, 1, 0, 1)
	if _, err := wasm.ParsePart(two, wasm.DefaultLimits()); err == nil || !strings.Contains(err.Error(), "several memories") {
		t.Errorf("a second memory: %v", err)
	}
}

func TestSegmentsOutOfBoundsTrapAtTheStart(t *testing.T) {
	const start = `(func $s) (start $s)`
	for _, modules := range [][]string{
		{`(module (memory 1) (data (i32.const 65536) "x"))`},
		{`(module (memory 1) ` + start + ` (data (i32.const 0) "x"))`, `(module (memory 0) (data (i32.const 0) "x"))`},
		{`(module (memory 1) (data (i32.const 0) "x"))`, `(module (memory 0) (data (i32.const 1) ""))`},
		{`(module (table 1 funcref) (func $f) (elem (i32.const 1) $f))`},
		{
			`(module (table (export "t") 1 funcref) (memory (export "m") 1) ` + start + `)`,
			`(module (import "0" "t" (table 1 funcref)) (func $f) (elem (i32.const 0) $f $f))`,
		},
		{
			`(module (table (export "t") 1 funcref) (memory (export "m") 1) ` + start + `)`,
			`(module (import "0" "m" (memory 1)) (data (i32.const -1) "x"))`,
		},
	} {
		merged, err := mergeCase{modules: modules}.merge(t).Module(wasm.DefaultLimits())
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range []wasm.Options{{}, everything} {
			bytes, done := mustRewrite(t, merged, o)
			h := newMergeHost(t, wazero.NewRuntimeConfigCompiler())
			if _, err := h.start(bytes, done); err == nil || !strings.Contains(err.Error(), outOfBounds) && !strings.Contains(err.Error(), "invalid table access") {
				t.Errorf("%s: %v", modules, err)
			}
		}
	}
}

func TestAMergedModuleKeepsTheNamesOfFunctions(t *testing.T) {
	c := mergeCase{
		modules: []string{
			`(module (import "env" "five" (func $five (result i32))) (func $inner (result i32) (unreachable)) (export "f" (func $inner)))`,
			`(module (import "0" "f" (func $f (result i32))) (func $outer (result i32) (call $f)) (export "g" (func $outer)))`,
		},
		add: func(m *wasm.Merge) {
			m.Functions = []wasm.Function{{Name: "added", Export: "go", Type: constI32, Code: calling(nil, "g")}}
			m.Names = map[string]wasm.Source{"g": {Part: 1, Name: "g"}}
		},
	}
	merged, err := c.merge(t).Module(wasm.DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	instance, err := newMergeHost(t, wazero.NewRuntimeConfigCompiler()).start(merged, &wasm.Rewritten{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = instance.ExportedFunction("go").Call(context.Background())
	if err == nil {
		t.Fatal("it did not trap")
	}
	_, stack, _ := strings.Cut(err.Error(), "stack trace")
	inner, outer, added := strings.Index(stack, "inner"), strings.Index(stack, "outer"), strings.Index(stack, "added")
	if inner < 0 || outer < inner || added < outer {
		t.Errorf("the trap is shown as\n%v", err)
	}
}

// environment has something for most imports.
const environment = `(module
  (table (export "funcref") 8 funcref) (table (export "externref") 8 externref)
  (memory (export "memory") 1)
  (global (export "i32 false") i32 (i32.const 2)) (global (export "i32 true") (mut i32) (i32.const 2))
  (global (export "i64 false") i64 (i64.const 2)) (global (export "i64 true") (mut i64) (i64.const 2))
  (global (export "f32 false") f32 (f32.const 2)) (global (export "f64 true") (mut f64) (f64.const 2))
  (global (export "v128 false") v128 (v128.const i64x2 1 1)) (global (export "v128 true") (mut v128) (v128.const i64x2 1 1))
  (global (export "funcref false") funcref (ref.null func)) (global (export "externref true") (mut externref) (ref.null extern)))`

// FuzzMerge: two instances of what ParsePart accepts are merged with functions, tables, memory and globals for
// their imports, or refused in a line. The engine accepts the result if it accepts the module.
func FuzzMerge(f *testing.F) {
	seeds(f)
	for seed := range uint64(10) {
		for _, m := range generateSet(seed) {
			f.Add(m.bytes)
		}
	}
	for _, text := range []string{shim, adapted, fixup, adapter, sharedEnvironment, sharedA, sharedB, sharedInit} {
		f.Add(watModule(f, text))
	}
	first, err := wasm.ParsePart(watModule(f, environment), wasm.DefaultLimits())
	if err != nil {
		f.Fatal(err)
	}
	accepts := acceptedBy(f, wazero.NewRuntimeConfigInterpreter())
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := wasm.ParsePart(b, wasm.DefaultLimits())
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Fatalf("%q", err)
			}
			return
		}
		all := wasm.Merge{Parts: []wasm.Part{{Module: first}}}
		var sources []wasm.Source
		for i, x := range m.Externals() {
			s := wasm.Source{Part: 0}
			switch x.Kind {
			case wasm.FunctionKind:
				s = wasm.Source{Part: wasm.NoPart, Name: fmt.Sprint("function ", i)}
				all.Functions = append(all.Functions, wasm.Function{
					Name: s.Name, Type: m.Imports()[x.Index].Type, Code: func(func(string) uint32) []byte { return []byte{0} },
				})
			case wasm.TableKind:
				s.Name = m.Tables()[x.Index].Type.String()
			case wasm.MemoryKind:
				s.Name = "memory"
			case wasm.GlobalKind:
				s.Name = fmt.Sprint(m.Globals()[x.Index].Type, m.Globals()[x.Index].Mutable)
				s.Name = strings.ReplaceAll(strings.ReplaceAll(s.Name, "true", " true"), "false", " false")
			}
			sources = append(sources, s)
		}
		all.Parts = append(all.Parts, wasm.Part{Module: m, Imports: sources}, wasm.Part{Module: m, Imports: sources})
		merged, err := all.Module(wasm.DefaultLimits())
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Fatalf("%q", err)
			}
			return
		}
		if _, err := wasm.Parse(merged, written()); err != nil {
			t.Fatalf("what was merged cannot be read: %v", err)
		}
		if err := accepts(withoutCustom(b)); err != nil {
			return
		}
		if err := accepts(withoutCustom(merged)); err != nil {
			t.Fatalf("the engine accepts the part, and of what was merged it says: %v", err)
		}
	})
}
