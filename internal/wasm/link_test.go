package wasm_test

import (
	"context"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"runner.example/internal/wasm"
)

// linkable has what Link renumbers: calls, a table of functions, a reference to
// one in a global, loops and blocks, between imports of which one goes.
const linkable = `(module
  (import "env" "twice" (func $twice (param i32) (result i32)))
  (import "host" "note" (func $note (param i32)))
  (import "env" "gone" (func $gone))
  (memory (export "memory") 1)
  (table 4 funcref)
  (elem (i32.const 1) $inner $twice $note)
  (global $state (mut i32) (i32.const 5))
  (global $fixed i32 (i32.const 7))
  (global $reference funcref (ref.func $inner))
  (data (i32.const 16) "first")
  (func $inner (export "inner") (param i32) (result i32)
    (i32.add (call $twice (local.get 0)) (global.get $fixed)))
  (func (export "step")
    (local $n i32)
    (call $gone)
    (block (loop
      (local.set $n (i32.add (local.get $n) (i32.const 1)))
      (br_if 1 (i32.ge_u (local.get $n) (i32.const 3)))
      (br 0)))
    (global.set $state (call_indirect (param i32) (result i32) (global.get $state) (i32.const 1)))
    (global.set $state (call_indirect (param i32) (result i32) (global.get $state) (i32.const 2)))
    (call_indirect (param i32) (global.get $state) (i32.const 3))
    (call $note (local.get $n))
    (i32.store (i32.const 40000) (global.get $state))))`

// calling is the instructions of an added function, with a call after the first ones.
func calling(before []byte, name string, after ...byte) func(func(string) uint32) []byte {
	return func(index func(string) uint32) []byte {
		b := append([]byte{}, before...)
		if name != "" {
			b = append(b, 0x10, byte(index(name)))
		}
		return append(b, after...)
	}
}

var (
	takesOne = wasm.FuncType{Params: []wasm.ValueType{wasm.I32}}
	oneToOne = wasm.FuncType{Params: []wasm.ValueType{wasm.I32}, Results: []wasm.ValueType{wasm.I32}}
)

// exampleLink takes both imports of env away: twice becomes a function that adds
// what the host says, gone one that does nothing.
func exampleLink() wasm.Link {
	memory := make([]byte, 2*wasm.PageBytes)
	copy(memory[16:], "later")
	memory[len(memory)-1] = 9
	return wasm.Link{
		Imports: []wasm.Import{{Module: "other", Name: "plus", Type: oneToOne}},
		Functions: []wasm.Function{
			{Replaces: "env.twice", Type: oneToOne, Code: calling([]byte{0x20, 0}, "other.plus")},
			{Replaces: "env.gone", Code: calling(nil, "")},
			{Name: "quiet", Type: takesOne, Locals: []wasm.ValueType{wasm.I32, wasm.F64}, Code: calling([]byte{0x20, 0, 0x21, 1}, "step")},
			{Name: "one more", Type: takesOne, Code: calling([]byte{0x20, 0}, "quiet")},
			// It calls entry 4 of the table, as something of its second type.
			{Export: "go", Code: calling([]byte{0x41, 3, 0x41, 4, 0x11, 1, 0}, "")},
		},
		Table:  []string{"one more"},
		Memory: memory, Globals: []uint32{100},
	}
}

func TestALinkedModuleBeginsWithTheStateOfTheFirstOne(t *testing.T) {
	linked, err := mustParse(t, watModule(t, linkable)).Link(exampleLink())
	if err != nil {
		t.Fatal(err)
	}
	m := mustParse(t, linked)
	if exports := m.Exports(); len(exports) != 2 || exports[0].Name != "memory" || exports[1].Name != "go" {
		t.Errorf("it exports %v", exports)
	}
	if imports := m.Imports(); len(imports) != 2 || imports[0].Name != "note" || imports[1].Name != "plus" {
		t.Errorf("it imports %v", imports)
	}
	for name, config := range map[string]wazero.RuntimeConfig{"compiled": wazero.NewRuntimeConfigCompiler(), "interpreted": wazero.NewRuntimeConfigInterpreter()} {
		t.Run(name, func(t *testing.T) {
			ctx := context.Background()
			r := wazero.NewRuntimeWithConfig(ctx, config)
			defer r.Close(ctx)
			var noted []uint32
			i32 := []api.ValueType{api.ValueTypeI32}
			_, err := r.NewHostModuleBuilder("host").NewFunctionBuilder().
				WithGoFunction(api.GoFunc(func(_ context.Context, stack []uint64) { noted = append(noted, api.DecodeU32(stack[0])) }), i32, nil).Export("note").Instantiate(ctx)
			if err != nil {
				t.Fatal(err)
			}
			_, err = r.NewHostModuleBuilder("other").NewFunctionBuilder().
				WithGoFunction(api.GoFunc(func(_ context.Context, stack []uint64) { stack[0] = api.EncodeU32(api.DecodeU32(stack[0]) + 1000) }), i32, i32).Export("plus").Instantiate(ctx)
			if err != nil {
				t.Fatal(err)
			}
			instance, err := r.Instantiate(ctx, linked)
			if err != nil {
				t.Fatal(err)
			}
			first, _ := instance.Memory().Read(0, 32)
			last, _ := instance.Memory().ReadByte(2*wasm.PageBytes - 1)
			if string(first[16:21]) != "later" || last != 9 || instance.Memory().Size() != 2*wasm.PageBytes {
				t.Errorf("the memory begins with %q and ends with %d", first, last)
			}
			if _, err := instance.ExportedFunction("go").Call(ctx); err != nil {
				t.Fatal(err)
			}
			// 100 through inner is 100+1000+7, and then 1000 more.
			if len(noted) != 2 || noted[0] != 2107 || noted[1] != 3 {
				t.Errorf("the host received %v", noted)
			}
			if stored, _ := instance.Memory().ReadUint32Le(40000); stored != 2107 {
				t.Errorf("it stores %d", stored)
			}
		})
	}
}

func TestLinkRefusesStateThatItDoesNotDescribe(t *testing.T) {
	for _, row := range []struct {
		name, module string
		change       func(*wasm.Link)
		want         string
	}{
		{"a missing import", linkable, func(l *wasm.Link) { l.Functions[0].Replaces = "env.thrice" }, "does not import env.thrice"},
		{"another type", linkable, func(l *wasm.Link) { l.Functions[0].Type = takesOne }, "imports env.twice with another type"},
		{"a missing function", linkable, func(l *wasm.Link) { l.Functions[2].Code = calling(nil, "nowhere") }, "exports no function nowhere"},
		{"a missing function to inline", linkable, func(l *wasm.Link) { l.Reduce.Inline = []string{"nowhere"} }, "cannot inline nowhere"},
		{"too few globals", linkable, func(l *wasm.Link) { l.Globals = nil }, "has 1 mutable globals, and 0 values are given"},
		{"too little memory", linkable, func(l *wasm.Link) { l.Memory = nil }, "has no memory of 0 bytes"},
		{"half a page", linkable, func(l *wasm.Link) { l.Memory = l.Memory[:wasm.PageBytes+1] }, "has no memory of 65537 bytes"},
		{"an entry that is not there", linkable, func(l *wasm.Link) { l.Table[0] = "nowhere" }, "exports no function nowhere"},
		{"an entry for a table that is not there", `(module (memory 1))`, func(l *wasm.Link) {
			*l = wasm.Link{Memory: l.Memory, Functions: l.Functions[2:3], Table: []string{"quiet"}}
		}, "has no table of functions"},
		{"a written table", `(module (memory 1) (table $t 1 funcref) (func (table.set $t (i32.const 0) (ref.null func))))`, nil, "writes to tables or names segments"},
		{"a start function", `(module (memory 1) (func $s) (start $s))`, nil, "has a start function"},
		{"passive data", `(module (memory 1) (data "x"))`, nil, "has passive data segments"},
		{"a mutable global of i64", `(module (memory 1) (global (mut i64) (i64.const 1)))`, nil, "has a mutable global of i64"},
	} {
		t.Run(row.name, func(t *testing.T) {
			l := exampleLink()
			if row.change == nil {
				l = wasm.Link{Memory: make([]byte, wasm.PageBytes)}
			} else {
				row.change(&l)
			}
			if _, err := mustParse(t, watModule(t, row.module)).Link(l); err == nil || !strings.Contains(err.Error(), row.want) {
				t.Errorf("got %v, want %q", err, row.want)
			}
		})
	}
}

// part is added to linkable: it calls functions of it, among them one that it replaces, and uses
// its stack pointer.
const part = `(module
  (import "any" "inner" (func $inner (param i32) (result i32)))
  (import "any" "hidden" (func $hidden (param i32) (result i32)))
  (memory 1)
  (global $sp (mut i32) (i32.const 0))
  (func $local (param i32) (result i32) (local i64 i64 i32)
    (global.set $sp (i32.add (global.get $sp) (i32.const 1)))
    (local.set 3 (call $hidden (local.get 0)))
    (i32.add (local.get 3) (i32.const 1)))
  (func (export "replacement") (param i32) (result i32)
    (call $inner (call $local (local.get 0)))))`

func TestFunctionsOfAnotherModuleAreLinked(t *testing.T) {
	const other = `(module
	  (memory 1)
	  (table 2 funcref)
	  (elem (i32.const 1) $hidden)
	  (global $sp (mut i32) (i32.const 50))
	  (func (export "inner") (param i32) (result i32) (i32.mul (local.get 0) (i32.const 10)))
	  (func $hidden (param i32) (result i32) (i32.add (local.get 0) (i32.const 3)))
	  (func (export "direct") (result i32) (call $hidden (i32.const 1)))
	  (func (export "indirect") (result i32) (call_indirect (param i32) (result i32) (i32.const 2) (i32.const 1)))
	  (func (export "pointer") (result i32) (global.get $sp)))`
	functions, err := mustParse(t, watModule(t, part)).Parts("part ")
	if err != nil {
		t.Fatal(err)
	}
	for i := range functions {
		if functions[i].Name == "replacement" {
			functions[i].Replaces = "hidden"
		}
	}
	link := wasm.Link{Internal: map[string]uint32{"hidden": 1}, Functions: functions, Memory: make([]byte, wasm.PageBytes), Globals: []uint32{50}}
	for _, name := range []string{"direct", "indirect", "pointer"} {
		link.Functions = append(link.Functions, wasm.Function{
			Export: "call " + name, Type: wasm.FuncType{Results: []wasm.ValueType{wasm.I32}}, Code: calling(nil, name),
		})
	}
	linked, err := mustParse(t, watModule(t, other)).Link(link)
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	r := wazero.NewRuntime(ctx)
	defer r.Close(ctx)
	instance, err := r.Instantiate(ctx, linked)
	if err != nil {
		t.Fatal(err)
	}
	// (1+3+1)*10, (2+3+1)*10, and the stack pointer was raised twice.
	for _, row := range []struct {
		name string
		want uint64
	}{{"direct", 50}, {"indirect", 60}, {"pointer", 52}} {
		if got, err := instance.ExportedFunction("call " + row.name).Call(ctx); err != nil || got[0] != row.want {
			t.Errorf("%s returns %v, %v, want %d", row.name, got, err, row.want)
		}
	}

	link.Internal["hidden"] = 7
	if _, err := mustParse(t, watModule(t, other)).Link(link); err == nil || !strings.Contains(err.Error(), "has no function 7") {
		t.Errorf("got %v", err)
	}
	link.Internal["hidden"] = 2
	if _, err := mustParse(t, watModule(t, other)).Link(link); err == nil || !strings.Contains(err.Error(), "of another type") {
		t.Errorf("got %v", err)
	}
}

func TestAModuleWithStateOfItsOwnIsNotLinked(t *testing.T) {
	for _, row := range []struct{ module, want string }{
		{`(module (memory 1) (data (i32.const 0) "x"))`, "has data"},
		{`(module (table 1 funcref) (func $f) (elem (i32.const 0) $f))`, "table elements"},
		{`(module (table 1 funcref) (func (call_indirect (i32.const 0))))`, "table elements"},
		{`(module (func $f) (start $f))`, "a start function"},
		{`(module (global (mut i32) (i32.const 0)) (global i32 (i32.const 0)))`, "has other globals"},
		{`(module (global (mut i64) (i64.const 0)))`, "has other globals"},
		{`(module (func (i32.const 1) (block (param i32) (drop))))`, "has blocks with parameters"},
	} {
		if _, err := mustParse(t, watModule(t, row.module)).Parts("part "); err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: %v, want %q", row.module, err, row.want)
		}
	}
}
