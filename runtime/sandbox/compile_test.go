package sandbox_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"runner.example/internal/fault"
	"runner.example/runtime/compile"
	"runner.example/runtime/sandbox"
)

// compilerCommand makes the tests' program the compiler of its engines.
const compilerCommand = "compile-module"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == compilerCommand {
		os.Exit(compile.Main(os.Args[2:], os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// emulator is the program that runs these tests, if they are of another architecture.
var emulator = os.Getenv("RUNNER_TEST_EMULATOR")

func itself(t *testing.T) []string {
	t.Helper()
	if !compile.CanLimit {
		t.Skip("this system cannot limit a compiler process")
	}
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if emulator != "" {
		return []string{emulator, path, compilerCommand}
	}
	return []string{path, compilerCommand}
}

// withLarge is a module of a handler "f" that does nothing, and a large function
// (i32, i32) -> () beside it.
func withLarge(n int, instructions ...byte) []byte { return withCopies(1, n, instructions...) }

// withCopies is withLarge with so many equal functions.
func withCopies(copies, n int, instructions ...byte) []byte {
	num := func(n int) []byte { return binary.AppendUvarint(nil, uint64(n)) }
	section := func(id byte, content ...[]byte) []byte {
		all := slices.Concat(content...)
		return slices.Concat([]byte{id}, num(len(all)), all)
	}
	large := slices.Concat([]byte{0}, bytes.Repeat(instructions, n), []byte{0x0b})
	return slices.Concat([]byte("\x00asm\x01\x00\x00\x00"),
		section(1, []byte{2, 0x60, 0, 0, 0x60, 2, 0x7f, 0x7f, 0}),
		section(3, num(1+copies), []byte{0}, bytes.Repeat([]byte{1}, copies)),
		section(5, []byte{1, 0, 1}),
		section(7, []byte{2, 1, 'f', 0, 0, 6}, []byte("memory"), []byte{2, 0}),
		section(10, num(1+copies), []byte{2, 0, 0x0b}, bytes.Repeat(slices.Concat(num(len(large)), large), copies)))
}

// Pieces of large functions.
var (
	stores = []byte{0x20, 0, 0x20, 1, 0x36, 2, 0}    // i32.store of one parameter at the other
	calls  = []byte{0x10, 0}                         // of f
	divs   = []byte{0x20, 0, 0x20, 1, 0x6d, 0x21, 0} // i32.div_s
	drops  = []byte{0x41, 0, 0x1a}                   // i32.const and drop
	broken = []byte{0x6a, 0x21, 0}                   // i32.add of nothing
)

func TestAModuleThatMayTakeLongIsCompiledInASeparateProcess(t *testing.T) {
	if raceDetector {
		t.Skip("with the race detector the compiler takes several times as long as its limit assumes")
	}
	for _, cache := range []string{filepath.Join(t.TempDir(), "cache"), ""} {
		t.Setenv("TMPDIR", t.TempDir())
		options := sandbox.Options{CacheDir: cache, CompileTime: 3 * time.Second, Compiler: itself(t)}
		wasm := withLarge(40_000, stores...)
		m := load(t, newEngine(t, options), wasm)
		if _, err := within(t, plenty, m, "f"); fault.CodeOf(err) != fault.HandlerFailed || !strings.Contains(err.Error(), "without an answer") {
			t.Errorf("ends with %v", err)
		}
		options.Compiler = []string{"/nothing/there"}
		_, err := newEngine(t, options).Load(t.Context(), "large.wasm", wasm)
		if kept := cache != ""; kept != (err == nil) {
			t.Errorf("a second engine with the directory %q: %v", cache, err)
		}
		if err != nil && !strings.Contains(err.Error(), "did not start: fork/exec /nothing/there") {
			t.Errorf("the error is %v", err)
		}
		if left, err := os.ReadDir(os.Getenv("TMPDIR")); err != nil || len(left) > 0 {
			t.Errorf("left behind: %v %v", left, err)
		}
		m = load(t, newEngine(t, options), withLarge(1000, stores...)) // no helper is needed
		if _, err := within(t, plenty, m, "f"); fault.CodeOf(err) != fault.HandlerFailed {
			t.Errorf("a small one ends with %v", err)
		}
	}
}

func TestAModuleThatTakesTooMuchToCompileIsRefused(t *testing.T) {
	cache := filepath.Join(t.TempDir(), "cache")
	for what, row := range map[string]struct {
		options sandbox.Options
		wasm    []byte
		want    string
	}{
		"time": {
			sandbox.Options{CompileTime: 100 * time.Millisecond, Compiler: itself(t)}, withLarge(200_000, calls...),
			"large.wasm: takes more than 100ms to compile, function 1 most of it: split functions with many branches and locals, or raise [sandbox] compile_timeout",
		},
		"memory": {
			sandbox.Options{CompileBytes: 64 << 20, Compiler: itself(t)}, withLarge(100_000, divs...),
			"large.wasm: takes more than 64 MiB to compile, function 1 most of it: split functions with many branches and locals, or raise [sandbox] compile_memory",
		},
		"time of a processor that others use": {
			sandbox.Options{CompileTime: 10 * time.Millisecond, Compiler: []string{"/bin/sh", "-c", "exec sleep 600"}}, withLarge(10_000, calls...),
			"large.wasm: takes more than 10ms to compile",
		},
		"the kernel's bound of time": {
			sandbox.Options{CompileTime: time.Second, Compiler: []string{"/bin/sh", "-c", "kill -XCPU $$"}}, withLarge(100_000, calls...),
			"large.wasm: takes more than 1s to compile",
		},
		"the kernel's bound of memory": {
			sandbox.Options{CompileTime: time.Second, Compiler: []string{"/bin/sh", "-c", "echo fatal error: runtime: out of memory >&2; exit 2"}}, withLarge(100_000, calls...),
			"large.wasm: takes more than 768 MiB to compile",
		},
		"the time of much code": {
			sandbox.Options{CompileTime: time.Second, Compiler: []string{"/bin/sh", "-c", "kill -XCPU $$"}}, withCopies(9, 330_000, drops...),
			"large.wasm: takes more than 3s to compile",
		},
		"the memory of much code": {
			sandbox.Options{CompileTime: time.Second, Compiler: []string{"/bin/sh", "-c", "echo fatal error: runtime: out of memory >&2; exit 2"}}, withCopies(9, 330_000, drops...),
			"large.wasm: takes more than 800 MiB to compile",
		},
		"a module that is not valid": {
			sandbox.Options{CompileTime: time.Second, Compiler: itself(t)}, withLarge(60_000, slices.Concat(broken, divs)...),
			"large.wasm: is not a valid WebAssembly module: invalid function[1]",
		},
		"a helper that fails": {
			sandbox.Options{CompileTime: time.Second, Compiler: []string{"/bin/sh", "-c", "echo its disk is full >&2; exit 1"}}, withLarge(100_000, calls...),
			"large.wasm: cannot be compiled: the compiler process failed: exit status 1: its disk is full",
		},
	} {
		t.Run(what, func(t *testing.T) {
			if what == "memory" && raceDetector {
				t.Skip("the race detector needs more memory than the limit, and ends the process itself")
			}
			row.options.CacheDir = cache
			e := newEngine(t, row.options)
			if _, err := e.Load(t.Context(), "large.wasm", row.wasm); err == nil || !strings.HasPrefix(err.Error(), row.want) {
				t.Errorf("ends with %v, want %q", err, row.want)
			}
		})
	}
}

func TestTheCompileProcessEndsWhenTheLoadIsCancelled(t *testing.T) {
	e := newEngine(t, sandbox.Options{CompileTime: 10 * time.Second, CompileBytes: 1 << 20, Compiler: []string{"/bin/sh", "-c", "exec sleep 600"}})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := e.Load(ctx, "large.wasm", withLarge(10_000, calls...)); err == nil || !strings.Contains(err.Error(), "was not loaded, as that was cancelled") {
		t.Errorf("ends with %v", err)
	}
}
