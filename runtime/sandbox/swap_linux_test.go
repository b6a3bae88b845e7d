package sandbox_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"runner.example/runtime/sandbox"
)

// swapSpace makes swap space of some MiB for the time of the test, unless the machine has it.
func swapSpace(t *testing.T) {
	t.Helper()
	if known, err := os.ReadFile("/proc/swaps"); err == nil && strings.Count(string(known), "\n") > 1 {
		return
	}
	const size = 8 << 20
	page := os.Getpagesize()
	text := make([]byte, size)
	binary.NativeEndian.PutUint32(text[1024:], 1)                   // version
	binary.NativeEndian.PutUint32(text[1028:], uint32(size/page-1)) // last page
	copy(text[page-10:], "SWAPSPACE2")                              // the header of Linux, mm/swapfile.c
	path := filepath.Join(t.TempDir(), "swap")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if err := file.Sync(); err != nil {
		t.Fatal(err)
	}
	name, err := unix.BytePtrFromString(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, errno := unix.Syscall(unix.SYS_SWAPON, uintptr(unsafe.Pointer(name)), 0, 0); errno != 0 {
		t.Skipf("this process may not add swap space, and there is none: %v", errno)
	}
	t.Cleanup(func() {
		if _, _, errno := unix.Syscall(unix.SYS_SWAPOFF, uintptr(unsafe.Pointer(name)), 0, 0); errno != 0 {
			t.Errorf("remove the swap space %s: %v", path, errno)
		}
	})
}

// A page that a run wrote to may be in swap space when the sandbox is restored.
func TestSwappedPagesAreRestored(t *testing.T) {
	if emulator != "" {
		t.Skip("qemu accepts MADV_PAGEOUT and does nothing")
	}
	swapSpace(t)
	wasm := assembleText(t, writer)
	for name, disabled := range map[string][]string{"watched": nil, "by the page table": {sandbox.OptWatch}} {
		m := load(t, newEngine(t, sandbox.Options{Disable: disabled}), wasm)
		for _, handler := range []string{"own", "grow"} {
			call := newCall(context.Background(), new(bytes.Buffer))
			runWriter(t, m, call, "own", 3) // the image's random pages and others that each run writes
			call.Request.Body = body(5, 6, 7, 100, 300)
			if err := m.RunWithoutRestore(call, handler); err != nil {
				t.Fatal(err)
			}
			swapped, err := m.PageOut()
			if err != nil || swapped < 5 {
				t.Fatalf("%s: %d pages are in swap space: %v", name, swapped, err)
			}
			runWriter(t, m, call, "own", 4)
			if idle, err := m.Restored(); idle != 1 || err != nil {
				t.Errorf("%s, %s: %d sandboxes are idle: %v", name, handler, idle, err)
			}
		}
	}
}
