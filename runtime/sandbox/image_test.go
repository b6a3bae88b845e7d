package sandbox_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"runner.example/internal/fault"
	"runner.example/runtime/sandbox"
)

// The memory of images is limited like that of guests, and released when a module is closed.
func TestImagesCountAsGuestMemory(t *testing.T) {
	const page, filled = 64 << 10, 100
	wasm := assembleText(t, `(module
		(import "runner" "response_send" (func $send (param i32 i32 i32) (result i32)))
		(memory (export "memory") 110)
		(func (export "_initialize") (memory.fill (i32.const 0) (i32.const 1) (i32.const 6553600)))
		(func (export "hello") (drop (call $send (i32.const 200) (i32.const 0) (i32.const 0)))))`)
	e := newEngine(t, sandbox.Options{MemoryBytes: 110 * page, TotalMemoryBytes: 1000 * page})
	var all []*sandbox.Module
	for {
		m, err := e.Load(context.Background(), fmt.Sprintf("build/%d.wasm", len(all)), wasm)
		if err != nil {
			if m != nil || fault.CodeOf(err) != fault.Overloaded || !strings.Contains(err.Error(), "raise [sandbox] total_memory") {
				t.Errorf("refused with %v", err)
			}
			break
		}
		if all = append(all, m); len(all) > 10 {
			t.Fatalf("%d modules with %d pages each are loaded, and all may have 1000", len(all), filled)
		}
	}
	if len(all) != 7 { // 125 pages are for small guests; the eighth needs 210, 110 of them for its sandbox
		t.Errorf("%d modules are loaded, want 7", len(all))
	}
	for _, m := range all {
		if _, err := within(t, plenty, m, "hello"); err != nil { // idle sandboxes make room
			t.Error(err)
		}
	}
	if err := all[0].Close(context.Background()); err != nil {
		t.Error(err)
	}
	all[0] = load(t, e, wasm)
	for _, m := range all {
		if err := m.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}
	if n := e.GuestMemory(); n != 0 {
		t.Errorf("closed modules hold %d bytes", n)
	}
}
