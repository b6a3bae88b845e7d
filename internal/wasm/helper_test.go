package wasm_test

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/tetratelabs/wazero"

	"runner.example/internal/wasm"
)

const bulks = `(module
  (memory (export "memory") 4)
  (func (export "fill") (param i32 i32 i32) (memory.fill (local.get 0) (local.get 1) (local.get 2)))
  (func (export "copy") (param i32 i32 i32) (memory.copy (local.get 0) (local.get 1) (local.get 2)))
  (func (export "clear") (memory.fill (i32.const 100) (i32.const 0) (i32.const 200000)))
)`

// TestLargeBulkOperationsInPartsHaveTheSameResult compares memory after each of
// many, which overlap, end at the end of memory, or beyond it.
func TestLargeBulkOperationsInPartsHaveTheSameResult(t *testing.T) {
	const size = 4 * wasm.PageBytes
	original := watModule(t, bulks)
	rewritten, done := mustRewrite(t, original, everything)
	h := newHost(t, wazero.NewRuntimeConfigCompiler())
	want, got := h.instantiate(t, original, &wasm.Rewritten{}), h.instantiate(t, rewritten, done)
	seed := rand.Uint64()
	t.Log("seed ", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	noise := make([]byte, size)
	for i := range noise {
		noise[i] = byte(random.Uint32())
	}
	want.Memory().Write(0, noise)
	got.Memory().Write(0, noise)
	trapped := 0
	for range 500 {
		export := []string{"copy", "copy", "fill", "clear"}[random.IntN(4)]
		var args []uint64
		if export != "clear" {
			args = []uint64{uint64(random.IntN(size)), uint64(random.IntN(size)), uint64(random.IntN(size))}
			switch random.IntN(8) {
			case 0: // to the very end
				args[2] = size - args[0]
			case 1: // one further
				args[2] = size - args[0] + 1
			case 2:
				args[2] = uint64(random.Uint32())
			case 3: // near one another
				args[1] = args[0] + uint64(random.IntN(20_000))
			case 4:
				args[1] = args[0] - min(args[0], uint64(random.IntN(20_000)))
			}
		}
		_, wantErr := h.call(want, export, args...)
		_, gotErr := h.call(got, export, args...)
		if (wantErr == nil) != (gotErr == nil) || wantErr != nil && trap(wantErr) != trap(gotErr) {
			t.Fatalf("%s%v: %v, want %v", export, args, gotErr, wantErr)
		}
		if wantErr != nil {
			trapped++
		}
		a, _ := want.Memory().Read(0, size)
		b, _ := got.Memory().Read(0, size)
		if !bytes.Equal(a, b) {
			t.Fatalf("%s%v does something else", export, args)
		}
	}
	if trapped == 0 || trapped > 400 {
		t.Errorf("%d of 500 trapped: too few or too many to tell", trapped)
	}
}

func TestAtMostAChunkOfMemoryIsWrittenBetweenTwoChecks(t *testing.T) {
	text := `(module (memory (export "memory") 1000)
	  (func (export "fill") (memory.fill (i32.const 7) (i32.const 1) (i32.const 65000000)))
	  (func (export "up") (memory.copy (i32.const 0) (i32.const 7) (i32.const 65000000)))
	  (func (export "down") (memory.copy (i32.const 7) (i32.const 0) (i32.const 65000000))))`
	for _, export := range []string{"fill", "up", "down"} {
		rewritten, done := mustRewrite(t, watModule(t, text), everything)
		h := newHost(t, wazero.NewRuntimeConfigCompiler())
		m := h.instantiate(t, rewritten, done)
		if _, err := h.call(m, export); err != nil {
			t.Fatal(err)
		}
		if spent := h.spent + h.slice - int(int32(m.ExportedGlobal(done.Fuel).Get())); spent < 65_000_000/128 || spent > 65_000_000/120 {
			t.Errorf("%s: %d units of fuel for 65 MB", export, spent)
		}
		if h.debt > 16<<10/128 {
			t.Errorf("%s: %d units were paid for at once", export, h.debt)
		}
	}
}
