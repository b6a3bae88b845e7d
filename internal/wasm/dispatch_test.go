package wasm_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"runner.example/internal/wasm"
)

// goFunction writes functions as Go's compiler does: basic blocks that a loop selects by the parameter.
type goFunction struct {
	*rand.Rand
	strings.Builder
	blocks  int
	pcs     []int // the first selector of each block
	table   []int // the block of each selector
	resumes []bool
	jumps   bool // it has a jump, and so a loop that dispatches
}

// newGoFunction chooses the blocks and their selectors, of which there may be several for one.
func newGoFunction(r *rand.Rand) *goFunction {
	f := &goFunction{Rand: r, blocks: 1 + r.IntN(12)}
	f.resumes = make([]bool, f.blocks)
	f.resumes[0] = true
	for k := range f.blocks {
		f.pcs = append(f.pcs, len(f.table))
		for range 1 + r.IntN(3) {
			f.table = append(f.table, k)
		}
	}
	return f
}

func (f *goFunction) ops(ops ...string) {
	for _, op := range ops {
		f.WriteString("  " + op + "\n")
	}
}

// write writes a function, which may call functions of the given number, directly or through the table.
func (f *goFunction) write(number, functions int) string {
	f.ops("(param i32) (result i32) (local i32 i32 i64)", "global.get $sp", "local.set 1", "block", "loop")
	for range f.blocks {
		f.ops("block")
	}
	f.ops("local.get 0", "br_table "+strings.Trim(fmt.Sprint(f.table), "[]"), "end")
	for k := range f.blocks {
		if k > 0 && number+1 < functions && f.IntN(8) == 0 {
			f.deferReturn(k, number+1)
		} else {
			f.block(k, functions)
		}
		f.ops("end")
	}
	f.ops("unreachable", "end", "i32.const 1")
	return f.String()
}

// jump goes to a block, as an instruction in a number of blocks of the block k.
func (f *goFunction) jump(k, depth int) {
	f.jumps = true
	to := f.IntN(f.blocks)
	f.ops(fmt.Sprintf("i32.const %d", f.pcs[to]), "local.set 0", fmt.Sprintf("br %d", f.blocks-1-k+depth))
}

func (f *goFunction) condition() {
	f.ops("global.get $seen", fmt.Sprintf("i64.const %d", f.IntN(30)), "i64.shr_u", "i32.wrap_i64", "i32.const 1", "i32.and")
}

// deferReturn is a block that only calls a function, and with which a goroutine can continue.
func (f *goFunction) deferReturn(k, callee int) {
	f.resumes[k] = true
	if f.IntN(2) == 0 {
		f.ops("nop")
	}
	f.ops("local.get 1", "i32.const 8", "i32.sub", "local.tee 1", "global.set $sp",
		"local.get 1", "i64.const 393216", "i64.store", "i32.const 0", fmt.Sprintf("call $f%d", callee),
		"global.get $sp", "local.set 1", fmt.Sprintf("br_if %d", f.blocks-1-k+1))
	if k+1 < f.blocks {
		f.resumes[k+1] = true
	}
}

func (f *goFunction) block(k, functions int) {
	if f.IntN(8) == 0 {
		return // empty
	}
	// A function ends after a number of blocks. What it passes through is mixed into one number.
	f.ops("global.get $left", "i32.const 1", "i32.sub", "global.set $left",
		"global.get $left", "i32.const 0", "i32.lt_s", "if", "i32.const 0", "return", "end")
	f.ops("global.get $seen", "i64.const 31", "i64.mul", "local.get 3", "i64.add",
		fmt.Sprintf("i64.const %d", k+1), "i64.add", "global.set $seen")
	f.ops("local.get 3", "i64.const 7", "i64.mul", "i64.const 3", "i64.add", "local.set 3")
	for range f.IntN(3) {
		switch f.IntN(5) {
		case 0, 1:
			f.condition()
			f.ops("if")
			f.jump(k, 1)
			f.ops("end")
		case 2:
			f.ops("block", "loop")
			f.condition()
			f.ops("br_if 1")
			f.jump(k, 2)
			f.ops("end", "end")
		case 3: // traps sometimes
			f.ops("i32.const 8", "global.get $seen", "i32.wrap_i64", "i32.const 15", "i32.and", "i32.div_u", "local.set 2")
		case 4:
			f.condition()
			f.ops("if", "i32.const 1", "return", "end")
		}
	}
	switch f.IntN(6) {
	case 0:
		f.jump(k, 0)
	case 1:
		f.condition()
		f.ops("return")
	case 2, 3:
		if k+1 == f.blocks {
			return
		}
		f.ops("local.get 1", "i32.const 8", "i32.sub", "local.tee 1", "global.set $sp",
			fmt.Sprintf("i32.const %d", f.IntN(functions)), "local.set 0", "i32.const 0")
		if f.IntN(2) == 0 {
			f.ops("local.get 0", "call_indirect (type $t)")
		} else {
			f.ops(fmt.Sprintf("call $f%d", f.IntN(functions)))
		}
		f.ops("global.get $sp", "local.set 1", fmt.Sprintf("br_if %d", f.blocks-1-k+1))
		f.resumes[k+1] = true
	}
}

// goModule is a module of such functions. run calls one, with a selector and how many blocks may be passed.
func goModule(t testing.TB, r *rand.Rand) ([]byte, []*goFunction) {
	n := 3
	var all []*goFunction
	var b, names strings.Builder
	for i := range n {
		f := newGoFunction(r)
		all = append(all, f)
		fmt.Fprintf(&b, "(func $f%d (type $t)\n%s)\n", i, f.write(i, n))
		fmt.Fprintf(&names, " $f%d", i)
	}
	return watModule(t, `(module (type $t (func (param i32) (result i32))) (memory (export "memory") 1)
	  (global $sp (mut i32) (i32.const 4096)) (global $seen (export "seen") (mut i64) (i64.const 0))
	  (global $left (export "left") (mut i32) (i32.const 0))
	  (table funcref (elem`+names.String()+`))
	  `+b.String()+`
	  (func (export "run") (param $f i32) (param $selector i32) (param $left i32) (result i32)
	    (global.set $sp (i32.const 4096)) (global.set $seen (i64.const 1)) (global.set $left (local.get $left))
	    (call_indirect (type $t) (local.get $selector) (local.get $f))))`), all
}

// TestFunctionsOfGoMeanTheSameWithoutDispatch compares generated functions in Go's form before and after, from
// each block with which a goroutine can continue: results, the blocks that are passed, and where they trap. From
// all other blocks they trap. RUNNER_SOAK=1 runs many more.
func TestFunctionsOfGoMeanTheSameWithoutDispatch(t *testing.T) {
	n := 40
	if os.Getenv("RUNNER_SOAK") != "" {
		n = 2_000
	}
	ctx := context.Background()
	seed := rand.Uint64()
	changed, trapped := 0, 0
	for i := range n {
		original, functions := goModule(t, rand.New(rand.NewPCG(seed, uint64(i))))
		m, err := wasm.Parse(original, wasm.DefaultLimits())
		if err != nil {
			t.Fatal(err)
		}
		direct := m.WithoutDispatch()
		if direct != m {
			changed++
		}
		o := everything
		o.Offsets = true
		bytes, done, err := direct.Rewrite(o)
		if err != nil {
			t.Fatal(err)
		}
		old := newHost(t, wazero.NewRuntimeConfigCompiler())
		want := old.instantiate(t, withLines(original), &wasm.Rewritten{})
		h := newHost(t, wazero.NewRuntimeConfigCompiler())
		got := h.instantiate(t, withLines(bytes), done)
		for f, function := range functions {
			for selector := range len(function.table) + 1 {
				block := function.table[min(selector, len(function.table)-1)]
				args := []uint64{uint64(f), uint64(selector), 60}
				result, failed := want.ExportedFunction("run").Call(ctx, args...)
				actual, err := h.call(got, "run", args...)
				got.ExportedGlobal(done.Depth).(api.MutableGlobal).Set(0)
				if !function.resumes[block] && direct != m {
					if function.jumps && err == nil {
						t.Errorf("seed %d, module %d: function %d from block %d: %v, want a trap", seed, i, f, block, err)
					}
					continue
				}
				at, from := "", ""
				if failed != nil && err != nil {
					trapped++
					at, from = trap(failed)+fmt.Sprintf("%x", tracedOffsets(failed)), trap(err)
					var offsets []uint32
					for _, o := range tracedOffsets(err) {
						if o, ok := done.Offsets.Original(o); ok {
							offsets = append(offsets, o)
						}
					}
					from += fmt.Sprintf("%x", offsets)
				}
				seen, passed := want.ExportedGlobal("seen").Get(), got.ExportedGlobal("seen").Get()
				if (failed == nil) != (err == nil) || !slices.Equal(result, actual) || seen != passed || at != from {
					t.Fatalf("seed %d, module %d: function %d from block %d: %v, %#x, %s (%v), want %v, %#x, %s (%v)",
						seed, i, f, block, actual, passed, from, err, result, seen, at, failed)
				}
			}
		}
	}
	if changed < n/2 || trapped == 0 {
		t.Errorf("seed %d: %d of %d modules were changed, and %d calls trapped", seed, changed, n, trapped)
	}
}

// TestLoopsOfGoTakeFuel runs loops that never end. Each must run out of fuel, and tell the block that it begins with.
func TestLoopsOfGoTakeFuel(t *testing.T) {
	function := func(blocks, table, code string) string {
		return `(func (export "f") (param i32) (result i32) (local i32) global.get $sp local.set 1 block loop ` +
			blocks + ` local.get 0 br_table ` + table + ` end ` + code + ` end unreachable end i32.const 1)`
	}
	const jump = " i32.const %d local.set 0 br %d "
	for _, c := range []struct {
		name, code string
		block      int32 // selector of the loop's first block
	}{
		{"a block that jumps to itself", function("block block", "0 1", "end"+fmt.Sprintf(jump, 1, 0)), 1},
		{"two blocks", function("block block block", "0 0 1 2", "end end"+fmt.Sprintf(jump, 2, 0)), 2},
		{"entered at the end", function("block block block", "0 1 2", fmt.Sprintf(jump, 2, 2)+"end end"+fmt.Sprintf(jump, 1, 0)), 1},
		{
			"entered after a call",
			function("block block block block", "0 1 2 3", "end i32.const 0 call $g br_if 2 end end"+fmt.Sprintf(jump, 1, 0)), 1,
		},
		{
			"a loop in a loop",
			function("block block block block", "0 1 2 3", "end end i32.const 0 if"+fmt.Sprintf(jump, 1, 2)+"end end"+fmt.Sprintf(jump, 2, 0)), 2,
		},
	} {
		original := watModule(t, `(module (memory (export "memory") 1) (global $sp (mut i32) (i32.const 4096))
		  (func $g (param i32) (result i32) (i32.const 0)) `+c.code+`)`)
		m, err := wasm.Parse(original, wasm.DefaultLimits())
		if err != nil {
			t.Fatal(err)
		}
		bytes, done, err := m.WithoutDispatch().Rewrite(everything)
		if err != nil {
			t.Fatal(err)
		}
		h := newHost(t, wazero.NewRuntimeConfigCompiler())
		h.atMost = 20
		guest := h.instantiate(t, bytes, done)
		_, err = h.call(guest, "f", 0)
		if !errors.Is(err, errOutOfFuel{}) || h.places[len(h.places)-1] != c.block {
			t.Errorf("%s: %v, and the last places are %d, want %d", c.name, err, h.places, c.block)
		}
	}
}

// TestLoopsThatNestTakeLittle has a function in Go's form whose blocks all begin a loop, with a jump from the last one,
// and can all be selected. Loops around them would have a table of all later blocks each.
func TestLoopsThatNestTakeLittle(t *testing.T) {
	const blocks = 2000
	var code, table strings.Builder
	for k := range blocks {
		fmt.Fprintf(&table, " %d", k)
		code.WriteString(" i32.const 0 i64.const 0 i64.store i32.const 0 call $g drop ")
		if k < blocks-1 {
			code.WriteString("end")
		}
	}
	for k := range blocks {
		fmt.Fprintf(&code, " i32.const %d local.set 0 br 0", k)
	}
	original := watModule(t, `(module (memory (export "memory") 1) (global $sp (mut i32) (i32.const 4096))
	  (func $g (param i32) (result i32) (i32.const 0))
	  (func (export "f") (param i32) (result i32) (local i32) global.get $sp local.set 1 block loop `+
		strings.Repeat("block ", blocks)+"local.get 0 br_table"+table.String()+" end "+code.String()+
		` end unreachable end i32.const 1))`)
	m, err := wasm.Parse(original, wasm.DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	direct := m.WithoutDispatch()
	runtime.ReadMemStats(&after)
	took := int(after.TotalAlloc - before.TotalAlloc)
	if direct != m || took > 300*len(original) {
		t.Errorf("changed: %v; %d bytes were allocated for a module of %d", direct != m, took, len(original))
	}
}
