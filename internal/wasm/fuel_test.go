package wasm_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/tetratelabs/wazero"
)

const runaways = `(module
  (memory (export "memory") 4)
  (global $n (mut i32) (i32.const 0))
  (func (export "loop") (param i32)
    (loop $l
      (local.set 0 (i32.sub (local.get 0) (i32.const 1)))
      (br_if $l (local.get 0))))
  (func (export "forever") (loop $l (br $l)))
  (func $tree (export "tree") (param i32)
    (if (local.get 0) (then
      (call $tree (i32.sub (local.get 0) (i32.const 1)))
      (call $tree (i32.sub (local.get 0) (i32.const 1))))))
  (func $deep (export "deep") (param i32) (result i32)
    (if (result i32) (local.get 0)
      (then (i32.add (i32.const 1) (call $deep (i32.sub (local.get 0) (i32.const 1)))))
      (else (i32.const 0))))
  (func (export "fill") (param i32 i32)
    (memory.fill (i32.const 0) (local.get 0) (local.get 1)))
  (func (export "smallfill") (param i32)
    (memory.fill (i32.const 0) (local.get 0) (i32.const 100)))
)`

// Each row runs code whose cost is known: what a pass through it takes at most,
// times the passes.
func TestFuelIsCountedByPassesThroughLoopsAndCalls(t *testing.T) {
	bytes, done := mustRewrite(t, watModule(t, runaways), everything)
	for _, row := range []struct {
		export string
		args   []uint64
		cost   int // of all passes together
	}{
		{"loop", []uint64{100_000}, 100_000},
		{"tree", []uint64{14}, 9 * (1<<15 - 1)}, // two calls, that is 512 and more
		{"deep", []uint64{5_000}, 5 * 5_001},    // one
		{"fill", []uint64{1, 1 << 17}, 1 << 10},
		{"fill", []uint64{1, 1 << 10}, 1 << 3},
		{"fill", []uint64{1, 1 << 7}, 0},
		{"smallfill", []uint64{1}, 0},
	} {
		h := newHost(t, wazero.NewRuntimeConfig())
		m := h.instantiate(t, bytes, done)
		if _, err := h.call(m, row.export, row.args...); err != nil {
			t.Fatal(err)
		}
		spent := h.spent + h.slice - int(int32(m.ExportedGlobal(done.Fuel).Get()))
		if spent != row.cost {
			t.Errorf("%s%v took %d fuel, want %d", row.export, row.args, spent, row.cost)
		}
		// a refill comes with the first pass and whenever a slice is used up;
		// what the pass before it took too much is forgiven
		if least, most := row.cost/(slice+1), (row.cost+slice-1)/slice; h.refills < least || h.refills > most {
			t.Errorf("%s%v: %d refills, want %d to %d", row.export, row.args, h.refills, least, most)
		}
	}
}

func TestEveryEndlessGuestEndsAtARefill(t *testing.T) {
	bytes, done := mustRewrite(t, watModule(t, runaways), everything)
	for _, row := range []struct {
		export string
		args   []uint64
	}{
		{"forever", nil},
		{"tree", []uint64{60}},
	} {
		h := newHost(t, wazero.NewRuntimeConfig())
		h.atMost = 50
		m := h.instantiate(t, bytes, done)
		_, err := h.call(m, row.export, row.args...)
		if !errors.Is(err, errOutOfFuel{}) || h.refills != 50 {
			t.Errorf("%s: %d refills, error %v", row.export, h.refills, err)
		}
	}
}

// A guest writes to new memory after it grows, which takes time. The host is called before
// that, and the rest of the slice stays counted.
func TestTheHostIsAskedForFuelWhenMemoryGrows(t *testing.T) {
	bytes, done := mustRewrite(t, watModule(t, `(module
	  (memory (export "memory") 1)
	  (func (export "grow") (param i32) (result i32) (memory.grow (local.get 0)))
	  (func (export "growTwice") (result i32)
	    (i32.add (memory.grow (i32.const 1)) (i32.mul (i32.const 10) (memory.grow (i32.const 9)))))
	  (func (export "size") (result i32) (memory.size)))`), everything)
	h := newHost(t, wazero.NewRuntimeConfig())
	m := h.instantiate(t, bytes, done)
	for _, row := range []struct {
		export  string
		args    []uint64
		want    int32
		refills int
	}{
		{"size", nil, 1, 0}, {"grow", []uint64{1}, 1, 1}, {"growTwice", nil, 2 + 10*3, 2}, {"grow", []uint64{0}, 12, 1}, {"grow", []uint64{1 << 16}, -1, 1},
	} {
		h.refills = 0
		results, err := h.call(m, row.export, row.args...)
		if err != nil {
			t.Fatal(err)
		}
		if got := int32(results[0]); got != row.want || h.refills < row.refills {
			t.Errorf("%s%v gives %d, and asks for fuel %d times: want %d, %d times at least", row.export, row.args, got, h.refills, row.want, row.refills)
		}
		if left := int32(m.ExportedGlobal(done.Fuel).Get()); row.refills > 0 && int(left) != slice {
			t.Errorf("%s%v leaves %d units of fuel, want a whole slice", row.export, row.args, left)
		}
	}
}

// TestTheHostIsToldWhereCodeOfGoContinues runs out of fuel in loops. In code like Go's the host must
// see the block that each pass begins with, elsewhere none.
func TestTheHostIsToldWhereCodeOfGoContinues(t *testing.T) {
	defer func(n int) { slice = n }(slice)
	slice = 1 // ask at each pass
	loop := `(loop $l (block $2 (block $1 (block $0 (br_table $0 $1 $2 (local.get 0)))
	    (local.set 0 (i32.const 1)) (br $l))
	    (local.set 0 (i32.const 7)) (br $l))
	  (global.set $n (i32.sub (global.get $n) (i32.const 1)))
	  (local.set 0 (i32.const 1)) (br_if $l (global.get $n)))`
	bytes, done := mustRewrite(t, watModule(t, `(module (memory (export "memory") 1) (global $n (mut i32) (i32.const 9))
	  (func (export "go") (param i32) (result i32) `+loop+` (i32.const 0))
	  (func $again (export "again") (param i32) (result i32) (block $1 (block $0 (br_table $0 $1 (local.get 0)))
	    (return (call $again (i32.const 5)))) (i32.const 0))
	  (func (export "other") (param i32) `+loop+`)
	  (func (export "later") (param i32) (result i32) (local i32) (call $none) (block (br_table 0 (local.get 0))) (i32.const 0))
	  (func $none (loop (br_if 0 (i32.const 0)))))`), everything)
	for _, row := range []struct {
		export string
		want   []int32 // each once
	}{
		{"go", []int32{0, 7}}, // a slice lasts for the pass to 1
		{"again", []int32{0, 5}},
		{"other", []int32{-1}},
		{"later", []int32{-1}},
	} {
		h := newHost(t, wazero.NewRuntimeConfig())
		m := h.instantiate(t, bytes, done)
		if _, err := h.call(m, row.export, 0); err != nil {
			t.Fatal(err)
		}
		if got := slices.Compact(h.places); !slices.Equal(got, row.want) {
			t.Errorf("%s: the host was told %v, want %v", row.export, got, row.want)
		}
	}
}
