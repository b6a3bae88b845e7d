package sandbox_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"runner.example/hostabi"
	"runner.example/internal/fault"
	"runner.example/internal/symbols"
	"runner.example/runtime/sandbox"
)

// failing is a module with a handler for each kind of failure. Each function has one instruction
// of the kind that its row in the test names.
const failing = `(module
  (import "wasi_snapshot_preview1" "proc_exit" (func $proc_exit (param i32)))
  (memory (export "memory") 1 2)
  (global $stack_pointer (mut i32) (i32.const 4096))
  (type $plain (func))
  (type $other (func (param i64) (result i64)))
  (table 4 4 funcref)
  (elem (i32.const 0) $nothing)
  (data (i32.const 1024) "data below the stack")
  (func $nothing)

  (func $broken unreachable)
  (func $wrapper (call $broken))
  (func (export "unreachable") (call $wrapper))

  (func $read (param i32) (result i32) (i32.load offset=16 (local.get 0)))
  (func (export "load") (drop (call $read (i32.const 70000))))
  (func $clear (param i32) (memory.fill (i32.const 65000) (i32.const 1) (local.get 0)))
  (func (export "fill") (call $clear (i32.const 100000)))

  (func $divide (param i32 i32) (result i32) (i32.div_s (local.get 0) (local.get 1)))
  (func (export "zero") (drop (call $divide (i32.const 7) (i32.const 0))))
  (func (export "overflow") (drop (call $divide (i32.const 0x80000000) (i32.const -1))))
  (func $remain (param i32 i32) (result i32) (i32.rem_u (local.get 0) (local.get 1)))
  (func (export "remainder") (drop (call $remain (i32.const 7) (i32.const 0))))
  (func $truncate (param f32) (result i32) (i32.trunc_f32_s (local.get 0)))
  (func (export "conversion") (drop (call $truncate (f32.const nan))))

  (func $through (param i32) (call_indirect (type $plain) (local.get 0)))
  (func (export "null") (call $through (i32.const 2)))
  (func (export "beyond") (call $through (i32.const 9)))
  (func $mismatch (drop (call_indirect (type $other) (i64.const 1) (i32.const 0))))
  (func (export "type") (call $mismatch))

  (func $deeper (param i32) (result i32)
    (i32.add (i32.const 1) (call $deeper (i32.add (local.get 0) (i32.const 1)))))
  (func (export "deep") (drop (call $deeper (i32.const 0))))

  ;; as LLVM writes a function with a frame of 1008 bytes
  (func $frames (param i32) (result i32)
    (local $frame i32)
    (global.set $stack_pointer (local.tee $frame (i32.sub (global.get $stack_pointer) (i32.const 1008))))
    (i32.store offset=12 (local.get $frame) (local.get 0))
    (i32.add (call $frames (i32.load offset=12 (local.get $frame))) (i32.const 1)))
  (func (export "linear") (drop (call $frames (i32.const 0))))

  (func $busy (loop $again (br $again)))
  (func (export "spin") (nop) (call $busy))
  (func $tree (param i32)
    (if (local.get 0) (then
      (call $tree (i32.sub (local.get 0) (i32.const 1)))
      (call $tree (i32.sub (local.get 0) (i32.const 1))))))
  (func (export "branches") (call $tree (i32.const 60)))

  (func $more (result i32) (memory.grow (i32.const 5)))
  (func (export "grow") (if (i32.eq (call $more) (i32.const -1)) (then unreachable)))

  (func $quit (call $proc_exit (i32.const 3)))
  (func (export "exit") (call $quit))
  (func (export "silent")))`

// named assembles a module with its names.
func named(t testing.TB, wat string) []byte {
	t.Helper()
	in := filepath.Join(t.TempDir(), "module.wat")
	if err := os.WriteFile(in, []byte(wat), 0o600); err != nil {
		t.Fatal(err)
	}
	return assembleFile(t, in, "--debug-names")
}

// failureOf runs a handler that fails.
func failureOf(t testing.TB, m *sandbox.Module, handler string, cpu time.Duration) (*hostabi.Failure, error) {
	t.Helper()
	call := newCall(context.Background(), new(bytes.Buffer))
	call.Host.Limits.CPU = cpu
	err := m.Run(call, handler)
	failure, _ := call.Failures()
	if failure == nil {
		t.Fatalf("%s: no failure, and the error %v", handler, err)
	}
	return failure, err
}

// show shows the frames of a failure with the bytes of their instructions instead of offsets.
func show(wasm []byte, frames []symbols.Frame) string {
	var all []string
	for _, f := range frames {
		all = append(all, fmt.Sprintf("%s %x", f.Function, wasm[f.Offset]))
	}
	return strings.Join(all, ", ")
}

func TestAFailureHasItsKindAndItsFrames(t *testing.T) {
	wasm := named(t, failing)
	options := sandbox.Options{NoBreaker: true, ReadModule: func(sum [sha256.Size]byte) ([]byte, []byte, error) {
		if sum != sha256.Sum256(wasm) {
			return nil, nil, errors.New("another module is asked for")
		}
		return wasm, nil, nil
	}}
	for _, dir := range []string{"", filepath.Join(t.TempDir(), "cache"), "again"} {
		if dir != "again" { // with what was cached
			options.CacheDir = dir
		}
		m := load(t, newEngine(t, options), wasm)
		for _, row := range []struct{ handler, kind, message, frames string }{
			{"unreachable", "unreachable", "", "broken 0, wrapper 10, unreachable 10"},
			{"load", "out of bounds memory access", "i32.load, offset 16, memory of 65536 bytes", "read 28, load 10"},
			{"fill", "out of bounds memory access", "memory.fill, memory of 65536 bytes", "clear fc, fill 10"},
			{"zero", "integer divide by zero", "", "divide 6d, zero 10"},
			{"overflow", "integer overflow", "", "divide 6d, overflow 10"},
			{"remainder", "integer divide by zero", "", "remain 70, remainder 10"},
			{"conversion", "invalid conversion to integer", "", "truncate a8, conversion 10"},
			{"null", "invalid table access", "indirect call", "through 11, null 10"},
			{"beyond", "invalid table access", "indirect call", "through 11, beyond 10"},
			{"type", "indirect call type mismatch", "", "mismatch 11, type 10"},
			{"deep", "stack exhausted", "", "deeper 41, deeper 10, deeper 10, "},
			{"linear", "linear stack exhausted", "i32.store, offset 12", "frames 36, frames 10, frames 10, frames 10, frames 10, linear 10"},
			{"spin", "CPU limit", "", "busy 3, spin 10"},
			{"grow", "memory limit", "", "grow 0"},
			{"exit", "exit code 3", "", "quit 10, exit 10"},
			{"silent", "returned without an answer", "", ""},
		} {
			cpu := plenty
			if row.kind == "CPU limit" {
				cpu = 10 * time.Millisecond
			}
			f, err := failureOf(t, m, row.handler, cpu)
			text := show(wasm, f.Frames)
			exact := text == row.frames || row.handler == "deep" && strings.HasPrefix(text, row.frames)
			if f.Kind != row.kind || !strings.Contains(f.Message, row.message) || !exact {
				t.Errorf("%s: %s (%s) at %s; want %s (%s) at %s", row.handler, f.Kind, f.Message, text, row.kind, row.message, row.frames)
			}
			if fault.CodeOf(err) == "" || len(f.Frames) > symbols.MaxFrames {
				t.Errorf("%s: error %v, %d frames", row.handler, err, len(f.Frames))
			}
		}
		f, _ := failureOf(t, m, "branches", 10*time.Millisecond)
		if text := show(wasm, f.Frames); f.Kind != "CPU limit" || !strings.HasPrefix(text, "tree 20, tree 10") && !strings.HasPrefix(text, "tree 20, branches 10") {
			t.Errorf("branches: %s at %s", f.Kind, text)
		}
	}
}

func TestATimeLimitHasFrames(t *testing.T) {
	wasm := named(t, failing)
	m := load(t, newEngine(t, sandbox.Options{NoBreaker: true, ReadModule: func([sha256.Size]byte) ([]byte, []byte, error) { return wasm, nil, nil }}), wasm)
	call := newCall(&countdown{Context: context.Background(), left: 7}, new(bytes.Buffer))
	err := m.Run(call, "spin")
	f, _ := call.Failures()
	if fault.CodeOf(err) != fault.HandlerTimeout || f == nil || f.Kind != "time limit" || show(wasm, f.Frames) != "busy 3, spin 10" {
		t.Errorf("error %v, failure %+v", err, f)
	}
}

// Without symbols there are offsets and the names of exports, and without the optimization, as on a
// machine where its self-test fails, there is the kind.
func TestAFailureWithoutSymbolsHasWhatIsKnown(t *testing.T) {
	wasm := named(t, failing)
	unreadable := func([sha256.Size]byte) ([]byte, []byte, error) { return nil, nil, errors.New("a damaged disk") }
	for _, row := range []struct {
		options sandbox.Options
		frames  string
	}{
		{sandbox.Options{}, " 0,  10, unreachable 10"},
		{sandbox.Options{ReadModule: unreadable}, " 0,  10, unreachable 10"},
		{sandbox.Options{Disable: []string{sandbox.OptTrace}}, ""},
		{sandbox.Options{Disable: []string{sandbox.OptStack}}, ""},
	} {
		var log bytes.Buffer
		row.options.Logger = slog.New(slog.NewTextHandler(&log, nil))
		f, _ := failureOf(t, load(t, newEngine(t, row.options), wasm), "unreachable", plenty)
		if text := show(wasm, f.Frames); f.Kind != "unreachable" || text != row.frames {
			t.Errorf("%v: %s at %q", row.options.Disable, f.Kind, text)
		}
		if row.frames == "" && !strings.Contains(log.String(), "optimization=trace") {
			t.Errorf("the log does not say that there are no frames:\n%s", &log)
		}
		if row.options.ReadModule != nil && !strings.Contains(log.String(), "a damaged disk") {
			t.Errorf("the log does not say that symbols cannot be read:\n%s", &log)
		}
	}
}

// Symbols are read at the first failure of a module, and kept while it fails.
func TestSymbolsAreReadOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wasm, read := named(t, failing), 0
		e, err := sandbox.New(context.Background(), sandbox.Options{NoBreaker: true, InitTime: plenty, ReadModule: func([sha256.Size]byte) ([]byte, []byte, error) {
			read++
			return wasm, nil, nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		m := load(t, e, wasm)
		for range 20 {
			failureOf(t, m, "unreachable", plenty)
			time.Sleep(10 * time.Second)
		}
		if read != 1 || e.SymbolTables() != 1 {
			t.Errorf("the module was read %d times for failures every 10 s, and %d are kept", read, e.SymbolTables())
		}
		time.Sleep(2 * time.Minute)
		if e.SymbolTables() != 0 {
			t.Error("symbols are kept two minutes after the last failure")
		}
		failureOf(t, m, "unreachable", plenty)
		if read != 2 {
			t.Errorf("the module was read %d times", read)
		}
		if err := e.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
}

// Modules whose code is equal after it was rewritten may have had other offsets before: numbers may
// take more bytes than they need. Each module must have its own offsets.
func TestModulesThatShareCodeHaveTheirOwnOffsets(t *testing.T) {
	short := named(t, `(module (memory (export "memory") 1) (func (export "f") (nop) (call $g)) (func $g (drop (i32.div_u (i32.const 1) (i32.const 0)))))`)
	at := bytes.Index(short, []byte{0x01, 0x10, 0x01, 0x0b})
	if at < 0 {
		t.Fatal("the call is not found")
	}
	// the same call with a number of five bytes
	long := slices.Concat(short[:at], []byte{0x01, 0x10, 0x81, 0x80, 0x80, 0x80, 0x00, 0x0b}, short[at+4:])
	for _, size := range []int{bytes.LastIndexByte(short[:at-3], 0x0a) + 1, at - 2} { // of the section, and of the body
		long[size] += 4
	}
	e := newEngine(t, sandbox.Options{NoBreaker: true})
	for _, wasm := range [][]byte{short, long} {
		f, _ := failureOf(t, loadAs(t, e, fmt.Sprint(len(wasm)), wasm), "f", plenty)
		if text := show(wasm, f.Frames); text != " 6e, f 10" {
			t.Errorf("a module of %d bytes fails at %q", len(wasm), text)
		}
	}
}

// A module that fails at a different place in each request, with the longest names, does not fill memory.
func TestNamedFramesAreLimited(t *testing.T) {
	const places, limit = 400, 256 << 10
	var wat strings.Builder
	wat.WriteString(`(module (memory (export "memory") 1)`)
	name := func(i int) string { return fmt.Sprintf("%d_%s", i, strings.Repeat("x", 900)) }
	for i := range places {
		fmt.Fprintf(&wat, "(func $%s (export \"f%d\") unreachable)\n", name(i), i)
	}
	wasm := named(t, wat.String()+")")
	e := newEngine(t, sandbox.Options{NoBreaker: true, ReadModule: func([sha256.Size]byte) ([]byte, []byte, error) { return wasm, nil, nil }})
	m := load(t, e, wasm)
	most := 0
	for i := range 2 * places {
		at := i / 2 % places // twice in a row
		f, _ := failureOf(t, m, fmt.Sprint("f", at), plenty)
		if len(f.Frames) != 1 || f.Frames[0].Function != name(at) || wasm[f.Frames[0].Offset] != 0 {
			t.Fatalf("f%d: %.60v", at, f.Frames)
		}
		most = max(most, e.NamedBytes())
	}
	if most > limit || most < limit/2 {
		t.Errorf("%d bytes of frames are kept, the limit is %d", most, limit)
	}
}
