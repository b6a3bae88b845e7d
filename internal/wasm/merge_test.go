package wasm_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"

	"runner.example/internal/wasm"
)

// mergeCase is modules that are merged. Imports of module "1" are exports of the second one; those of
// "env" stay.
type mergeCase struct {
	modules []string
	exports map[string]string // by their names: "1.export"
	add     func(*wasm.Merge)
}

var constI32 = wasm.FuncType{Results: []wasm.ValueType{wasm.I32}}

// merge describes the case.
func (c mergeCase) merge(t *testing.T) wasm.Merge {
	t.Helper()
	var m wasm.Merge
	for _, text := range c.modules {
		parsed, err := wasm.ParsePart(watModule(t, text), wasm.DefaultLimits())
		if err != nil {
			t.Fatal(err)
		}
		p := wasm.Part{Module: parsed}
		for _, x := range parsed.Externals() {
			p.Imports = append(p.Imports, sourceOf(x.Module+"."+x.Name))
			known := slices.ContainsFunc(m.Imports, func(i wasm.Import) bool { return i.Name == x.Name })
			if x.Module == "env" && !known {
				m.Imports = append(m.Imports, wasm.Import{Module: x.Module, Name: x.Name, Type: parsed.Imports()[x.Index].Type})
			}
		}
		m.Parts = append(m.Parts, p)
	}
	for name, of := range c.exports {
		m.Exports = append(m.Exports, wasm.MergedExport{Name: name, Source: sourceOf(of)})
	}
	slices.SortFunc(m.Exports, func(a, b wasm.MergedExport) int { return strings.Compare(a.Name, b.Name) })
	if c.add != nil {
		c.add(&m)
	}
	return m
}

// sourceOf reads "1.export", "env.function", "added.name".
func sourceOf(text string) wasm.Source {
	part := 0
	of, name, _ := strings.Cut(text, ".")
	if _, err := fmt.Sscan(of, &part); err == nil {
		return wasm.Source{Part: part, Name: name}
	}
	if of == "added" {
		return wasm.Source{Part: wasm.NoPart, Name: name}
	}
	return wasm.Source{Part: wasm.NoPart, Name: text}
}

// The modules that wit-component adds around others: the first has a table for functions that are not
// there yet, the last fills it.
const (
	shim = `(module
	  (type $t (func (param i32) (result i32)))
	  (func (export "0") (type $t) local.get 0 i32.const 0 call_indirect (type $t))
	  (table (export "$imports") 1 1 funcref))`
	adapted = `(module
	  (import "0" "0" (func $later (param i32) (result i32)))
	  (memory (export "memory") 2)
	  (global $sp (mut i32) (i32.const 4096))
	  (data (i32.const 16) "\2a")
	  (func (export "realloc") (param i32) (result i32) (i32.add (local.get 0) (i32.const 1000)))
	  (func (export "handler") (result i32) (call $later (i32.load8_u (i32.const 16)))))`
	fixup = `(module
	  (import "1" "realloc" (func $f (param i32) (result i32)))
	  (import "0" "$imports" (table 1 1 funcref))
	  (elem (i32.const 0) func $f))`
	// adapter gets its own stack when it is instantiated, before the table is filled.
	adapter = `(module
	  (import "1" "memory" (memory 1))
	  (global $sp (mut i32) (i32.const 0))
	  (func $grow (result i32) (memory.grow (i32.const 1)))
	  (func $start (global.set $sp (i32.mul (call $grow) (i32.const 65536))))
	  (start $start)
	  (func (export "sp") (result i32) (global.get $sp)))`
)

// Modules that are linked as shared objects: the first has what all use.
const (
	sharedEnvironment = `(module
	  (memory (export "memory") 1)
	  (table (export "__indirect_function_table") 5 funcref)
	  (global (export "__stack_pointer") (mut i32) (i32.const 1024))
	  (global (export "a:memory_base") i32 (i32.const 1024))
	  (global (export "a:table_base") i32 (i32.const 1))
	  (global (export "b:memory_base") i32 (i32.const 2048))
	  (global (export "b:table_base") i32 (i32.const 3))
	  (global (export "GOT.func") (mut i32) (i32.const 0))
	  (global (export "GOT.mem") (mut i32) (i32.const 0)))`
	sharedA = `(module
	  (import "0" "memory" (memory 1))
	  (import "0" "__indirect_function_table" (table 0 funcref))
	  (import "0" "__stack_pointer" (global $sp (mut i32)))
	  (import "0" "a:memory_base" (global $memory i32))
	  (import "0" "a:table_base" (global $table i32))
	  (data (global.get $memory) "\07\00\00\00")
	  (elem (global.get $table) func $seven $initialize)
	  (func $seven (result i32) (i32.load (global.get $memory)))
	  (func $initialize (export "_initialize")
	    (global.set $sp (i32.sub (global.get $sp) (i32.const 16))))
	  (global (export "word") i32 (i32.const 0)))`
	sharedB = `(module
	  (import "0" "memory" (memory 1))
	  (import "0" "__indirect_function_table" (table 0 funcref))
	  (import "0" "__stack_pointer" (global $sp (mut i32)))
	  (import "0" "b:memory_base" (global $memory i32))
	  (import "0" "b:table_base" (global $table i32))
	  (import "0" "GOT.func" (global $f (mut i32)))
	  (import "0" "GOT.mem" (global $m (mut i32)))
	  (data (global.get $memory) "\09\00\00\00")
	  (elem (global.get $table) func $sum)
	  (func $sum (export "sum") (result i32)
	    (i32.add (i32.load (global.get $memory))
	      (i32.add (i32.load (global.get $m)) (call_indirect (result i32) (global.get $f)))))
	  (func (export "sp") (result i32) (global.get $sp)))`
	sharedInit = `(module
	  (import "0" "GOT.func" (global $f (mut i32)))
	  (import "0" "GOT.mem" (global $m (mut i32)))
	  (import "0" "a:table_base" (global $table i32))
	  (import "0" "a:memory_base" (global $memory i32))
	  (import "1" "_initialize" (func $initialize))
	  (func $start
	    (global.set $f (global.get $table))
	    (global.set $m (global.get $memory))
	    (call $initialize))
	  (start $start))`
)

// counter has state of its own in each instance.
const counter = `(module
  (import "0" "n" (global $step i32))
  (global $n (mut i32) (i32.const 0))
  (func (export "next") (result i32)
    (global.set $n (i32.add (global.get $n) (global.get $step)))
    (global.get $n)))`

func TestMergedModules(t *testing.T) {
	for _, row := range []struct {
		name string
		mergeCase
		want map[string]string // by export: its result or trap
		kept bool              // an image of it can be kept
	}{
		{
			"shim and fixup",
			mergeCase{[]string{shim, adapted, fixup}, map[string]string{"handler": "1.handler", "memory": "1.memory"}, nil},
			map[string]string{"handler": "1042"}, true,
		},
		{
			"code that grows memory before the fixup",
			mergeCase{
				[]string{shim, adapted, adapter, fixup},
				map[string]string{"handler": "1.handler", "memory": "1.memory", "sp": "2.sp"}, nil,
			},
			map[string]string{"handler": "1042", "sp": "131072"}, true,
		},
		{
			"shared objects",
			mergeCase{
				[]string{sharedEnvironment, sharedA, sharedB, sharedInit},
				map[string]string{"sum": "2.sum", "sp": "2.sp", "memory": "0.memory"}, nil,
			},
			map[string]string{"sum": "23", "sp": "1008"}, true,
		},
		{
			"two instances of a module",
			mergeCase{
				[]string{`(module (global (export "n") i32 (i32.const 5)))`, counter, counter},
				map[string]string{"1": "1.next", "2": "2.next"},
				func(m *wasm.Merge) {
					m.Parts[2].Module = m.Parts[1].Module
					m.Functions = []wasm.Function{{Export: "both", Type: constI32, Code: func(index func(string) uint32) []byte {
						b := []byte{0x10, byte(index("a")), 0x1a, 0x10, byte(index("a")), 0x1a}
						return append(b, 0x10, byte(index("a")), 0x10, byte(index("b")), 0x6a)
					}}}
					m.Names = map[string]wasm.Source{"a": {Part: 1, Name: "next"}, "b": {Part: 2, Name: "next"}}
				},
			},
			map[string]string{"both": "20"}, true,
		},
		{
			"a global that is imported under two names",
			mergeCase{
				[]string{
					`(module (global $n (export "a") (mut i32) (i32.const 1)) (export "b" (global $n)))`,
					`(module (import "0" "a" (global $a (mut i32))) (import "0" "b" (global $b (mut i32)))
					  (func (export "f") (result i32) (global.set $a (i32.const 4)) (global.get $b)))`,
				},
				map[string]string{"f": "1.f"}, nil,
			},
			map[string]string{"f": "4"}, true,
		},
		{
			"a table that is filled after code could use it",
			mergeCase{
				[]string{
					`(module (table (export "t") 2 funcref) (func (export "f") (result i32) (call_indirect (result i32) (i32.const 0))))`,
					`(module (import "0" "t" (table 2 funcref)) (global $null (mut i32) (i32.const 7))
					  (func $s (global.set $null (ref.is_null (table.get 0 (i32.const 0))))) (start $s)
					  (func (export "null") (result i32) (global.get $null)))`,
					`(module (import "0" "t" (table 2 funcref)) (func $g (result i32) (i32.const 3)) (elem (i32.const 0) $g))`,
				},
				map[string]string{"f": "0.f", "null": "1.null"}, nil,
			},
			map[string]string{"f": "3", "null": "1"}, false,
		},
		{
			"data that is written after code could read it",
			mergeCase{
				[]string{
					`(module (memory (export "m") 1) (func (export "read") (result i32) (i32.load8_u (i32.const 9))))`,
					`(module (import "0" "m" (memory 1)) (global $was (mut i32) (i32.const 7))
					  (func $s (global.set $was (i32.load8_u (i32.const 9)))) (start $s)
					  (func (export "was") (result i32) (global.get $was)))`,
					`(module (import "0" "m" (memory 1)) (global $at i32 (i32.const 9)) (data (i32.const 9) "\05"))`,
				},
				map[string]string{"read": "0.read", "was": "1.was"}, nil,
			},
			map[string]string{"read": "5", "was": "0"}, true,
		},
		{
			"start functions in order, of which one is the host's",
			mergeCase{
				[]string{
					`(module (import "env" "note" (func $note)) (global $n (export "n") (mut i32) (i32.const 1)) (start $note))`,
					`(module (import "0" "n" (global $n (mut i32))) (func $s (global.set $n (i32.mul (global.get $n) (i32.const 10)))) (start $s))`,
					`(module (import "0" "n" (global $n (mut i32))) (func $s (global.set $n (i32.add (global.get $n) (i32.const 7)))) (start $s)
					  (func (export "n") (result i32) (global.get $n)))`,
				},
				map[string]string{"n": "2.n"}, nil,
			},
			map[string]string{"n": "17"}, true,
		},
		{
			"a memory without pages",
			mergeCase{
				[]string{
					`(module (memory (export "memory") 1) (data (i32.const 0) "\01\01\01\01\01\01\01\01") (func (export "one") (result i32) (i32.load8_u (i32.const 0))))`,
					`(module (memory 0) (data $d "x")
					  (func (export "load") (result i32) (i32.load8_u (i32.const 0)))
					  (func (export "lane") (result i32) (i32x4.extract_lane 0 (v128.load32_lane 0 (i32.const 0) (v128.const i32x4 0 0 0 0))))
					  (func (export "store") (result i32) (i64.store32 offset=4 (i32.const -8) (i64.const 0)) (i32.const 0))
					  (func (export "size") (result i32) (memory.size))
					  (func (export "grow") (result i32) (memory.grow (i32.const 2)))
					  (func (export "grow 0") (result i32) (memory.grow (i32.const 0)))
					  (func (export "fill") (result i32) (memory.fill (i32.const 0) (i32.const 5) (i32.const 1)) (i32.const 0))
					  (func (export "fill 0") (result i32) (memory.fill (i32.const 0) (i32.const 5) (i32.const 0)) (i32.const 4))
					  (func (export "fill behind") (result i32) (memory.fill (i32.const 1) (i32.const 5) (i32.const 0)) (i32.const 4))
					  (func (export "copy 0") (result i32) (memory.copy (i32.const 0) (i32.const 0) (i32.const 0)) (i32.const 4))
					  (func (export "copy behind") (result i32) (memory.copy (i32.const 0) (i32.const 1) (i32.const 0)) (i32.const 4))
					  (func (export "init") (result i32) (memory.init $d (i32.const 0) (i32.const 0) (i32.const 1)) (i32.const 4))
					  (func (export "init 0") (result i32) (memory.init $d (i32.const 0) (i32.const 1) (i32.const 0)) (i32.const 4))
					  (func (export "init behind") (result i32) (memory.init $d (i32.const 0) (i32.const 2) (i32.const 0)) (i32.const 4)))`,
				},
				map[string]string{
					"memory": "0.memory", "one": "0.one", "load": "1.load", "lane": "1.lane", "store": "1.store", "size": "1.size",
					"grow": "1.grow", "grow 0": "1.grow 0", "fill": "1.fill", "fill 0": "1.fill 0", "fill behind": "1.fill behind",
					"copy 0": "1.copy 0", "copy behind": "1.copy behind", "init": "1.init", "init 0": "1.init 0",
					"init behind": "1.init behind",
				}, nil,
			},
			map[string]string{
				"one": "1", "load": "out of bounds memory access", "lane": "out of bounds memory access",
				"store": "out of bounds memory access", "size": "0", "grow": "4294967295", "grow 0": "0",
				"fill": "out of bounds memory access", "fill 0": "4", "fill behind": "out of bounds memory access",
				"copy 0": "4", "copy behind": "out of bounds memory access", "init": "out of bounds memory access",
				"init 0": "4", "init behind": "out of bounds memory access",
			}, true,
		},
		{
			"a memory that grows, beside one that is only there",
			mergeCase{
				[]string{
					`(module (memory 0 0))`,
					`(module (memory (export "memory") 0) (func (export "grow") (result i32) (drop (memory.grow (i32.const 1))) (memory.size)))`,
				},
				map[string]string{"memory": "1.memory", "grow": "1.grow"}, nil,
			},
			map[string]string{"grow": "1"}, true,
		},
		{
			"an added function in place of an import, and a host function that is exported again",
			mergeCase{
				[]string{
					`(module (import "added" "twice" (func $twice (result i32))) (import "env" "five" (func $five (result i32)))
					  (export "five" (func $five)) (export "twice" (func $twice)) (elem declare func $five))`,
					`(module (import "0" "five" (func $five (result i32))) (import "0" "twice" (func $twice (result i32)))
					  (func (export "sum") (result i32) (i32.add (call $five) (call $twice))))`,
				},
				map[string]string{"sum": "1.sum", "five": "0.five"},
				func(m *wasm.Merge) {
					m.Functions = []wasm.Function{{Name: "twice", Type: constI32, Code: func(index func(string) uint32) []byte {
						five := byte(index("env.five"))
						return []byte{0x10, five, 0x10, five, 0x6a}
					}}}
				},
			},
			map[string]string{"sum": "15"}, true,
		},
		{
			"a reference to a function that only an export declares",
			mergeCase{
				[]string{`(module (table $t 1 funcref) (func $f (export "f") (result i32) (i32.const 6))
				  (func (export "g") (result i32) (table.set $t (i32.const 0) (ref.func $f)) (call_indirect (result i32) (i32.const 0))))`},
				map[string]string{"g": "0.g"}, nil,
			},
			map[string]string{"g": "6"}, false,
		},
		{
			"initial values of globals of other modules",
			mergeCase{
				[]string{
					`(module (func $f (result i32) (i32.const 8)) (global (export "f") funcref (ref.func $f)) (global (export "v") v128 (v128.const i64x2 3 4)))`,
					`(module (import "0" "f" (global $f funcref)) (import "0" "v" (global $v v128)) (table $t 3 funcref)
					  (global $copy v128 (global.get $v))
					  (global $function funcref (global.get $f))
					  (func (export "call") (result i32)
					    (table.set $t (i32.const 2) (global.get $function))
					    (call_indirect (result i32) (i32.const 2)))
					  (func (export "lane") (result i32) (i32.wrap_i64 (i64x2.extract_lane 1 (global.get $copy)))))`,
				},
				map[string]string{"call": "1.call", "lane": "1.lane"}, nil,
			},
			map[string]string{"call": "8", "lane": "4"}, false,
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			merged, err := row.merge(t).Module(wasm.DefaultLimits())
			if err != nil {
				t.Fatal(err)
			}
			parsed := mustParse(t, merged)
			if reasons := parsed.Eligibility(); row.kept != (reasons == nil) {
				t.Errorf("an image cannot be kept because of %q", reasons)
			}
			for _, o := range forms {
				bytes, done := merged, &wasm.Rewritten{}
				if o != nil {
					bytes, done = mustRewrite(t, merged, *o)
				}
				instance := newMergeHost(t, wazero.NewRuntimeConfigCompiler()).instantiate(t, bytes, done)
				for name, want := range row.want {
					results, err := instance.ExportedFunction(name).Call(context.Background())
					got := ""
					if err != nil {
						got = trap(err)
					} else {
						got = fmt.Sprint(results[0])
					}
					if got != want {
						t.Errorf("%+v: %s: %s, want %s", o, name, got, want)
					}
				}
			}
		})
	}
}

// TestTheMemoryOfAMergeIsExported: that of the part that LiveMemory names, or an empty one.
func TestTheMemoryOfAMergeIsExported(t *testing.T) {
	const code = `(module (func (export "f")))`
	for _, row := range []struct {
		modules   []string
		part      int
		min, most uint32
	}{
		{[]string{code}, wasm.NoPart, 0, 0},
		{[]string{code, `(module (memory 0 0))`}, 1, 0, 0},
		{[]string{`(module (memory 0 0))`, code, `(module (memory 2 3))`}, 2, 2, 3},
		{[]string{`(module (memory 0 5))`, `(module (memory 0 6))`}, 0, 0, 5},
		{[]string{`(module (memory 0 5))`, `(module (memory (export "m") 1 4))`, `(module (import "1" "m" (memory 1)))`}, 1, 1, 4},
	} {
		m := mergeCase{modules: row.modules}.merge(t)
		m.Memory = "memory"
		if got := m.LiveMemory(); got != row.part {
			t.Errorf("%q: the memory is that of part %d", row.modules, got)
		}
		merged, err := m.Module(wasm.DefaultLimits())
		if err != nil {
			t.Fatalf("%q: %v", row.modules, err)
		}
		parsed, err := wasm.Parse(merged, wasm.DefaultLimits())
		if err != nil {
			t.Fatalf("%q: %v", row.modules, err)
		}
		exports, memory := parsed.Exports(), parsed.Memory()
		if len(exports) != 1 || exports[0] != (wasm.Export{Name: "memory", Kind: wasm.MemoryKind}) ||
			memory.MinPages != row.min || memory.MaxPages != row.most {
			t.Errorf("%q: exports %v, memory %v", row.modules, exports, memory)
		}
	}
}
