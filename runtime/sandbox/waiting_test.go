package sandbox_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"runner.example/hostabi/files"
	"runner.example/internal/fault"
	"runner.example/runtime/capture"
	"runner.example/runtime/sandbox"
)

// waiting is a program that waits for requests of three handlers two calls deep, with values in
// locals and memory. "count" answers how often it has run in its sandbox, "deep" recurses before it
// answers, and "bad" traps. With the method X it exits without an answer.
const waiting = `(module
	(import "runner" "request_next" (func $next (param i32 i32) (result i32)))
	(import "runner" "request_method" (func $method (param i32 i32) (result i32)))
	(import "runner" "response_send" (func $send (param i32 i32 i32) (result i32)))
	(import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
	(memory (export "memory") 2)
	(data (i32.const 0) "count\ndeep\nbad")
	(global $starts (mut i32) (i32.const 0))
	(table funcref (elem $wait $wait))
	(type $waiter (func (param i64 f64) (result i32)))
	(func $wait (type $waiter) (local $which i32)
		(local.set $which (call $next (i32.const 0) (i32.const 14)))
		(if (i64.ne (local.get 0) (i64.const 0x123456789abcdef)) (then unreachable))
		(if (f64.ne (local.get 1) (f64.const 1.5)) (then unreachable))
		(local.get $which))
	(func $deep (param i32) (result i32)
		(if (result i32) (local.get 0)
			(then (i32.add (i32.const 1) (call $deep (i32.sub (local.get 0) (i32.const 1)))))
			(else (i32.const 0))))
	(func (export "_start") (local $which i32) (local $sum i32)
		(global.set $starts (i32.add (global.get $starts) (i32.const 1)))
		(i32.store8 (i32.const 0x100) (i32.const 65))
		(loop $again
			(local.set $sum (i32.const 1000))
			(local.set $which (call_indirect (type $waiter) (i64.const 0x123456789abcdef) (f64.const 1.5) (i32.const 1)))
			(drop (call $method (i32.const 0x200) (i32.const 8)))
			(if (i32.eq (i32.load8_u (i32.const 0x200)) (i32.const 88)) (then (call $exit (i32.const 0))))
			(i32.store8 (i32.const 0x100) (i32.add (i32.load8_u (i32.const 0x100)) (global.get $starts)))
			(if (i32.eq (i32.const 1) (local.get $which)) (then
				(if (i32.eq (memory.grow (i32.const 3)) (i32.const -1)) (then unreachable))
				(local.set $sum (i32.add (local.get $sum) (call $deep (i32.const 20000))))))
			(if (i32.eq (i32.const 2) (local.get $which)) (then
				(i32.store8 (i32.const 0x101) (i32.const 90)) (unreachable)))
			(if (i32.ne (local.get $sum) (i32.add (i32.const 1000) (i32.mul (local.get $which) (i32.const 20000)))) (then unreachable))
			(i32.store8 (i32.const 0x101) (i32.add (i32.load8_u (i32.const 0x101)) (i32.const 48)))
			(drop (call $send (i32.const 200) (i32.const 0x100) (i32.const 2)))
			(global.set $starts (i32.const 7))
			(br $again))))`

func needCapture(t testing.TB) {
	t.Helper()
	if !capture.Available() {
		t.Skip("this program was built without the patches")
	}
}

func TestAProgramThatWaitsIsContinuedInEachRequest(t *testing.T) {
	needCapture(t)
	m := load(t, newEngine(t, sandbox.Options{Instances: 1}), assembleText(t, waiting))
	if got := strings.Join(m.Handlers(), " "); got != "count deep bad" || m.Command() != "" {
		t.Fatalf("its handlers are %q, its command %q", got, m.Command())
	}
	call := newCall(context.Background(), new(bytes.Buffer)) // one for all, as a request that is run again has
	for i := range 300 {
		handler := []string{"count", "deep", "bad", "count"}[i%4]
		call.Request.Method = []byte([]string{"GET", "GET", "GET", "X"}[i%4])
		err := m.Run(call, handler)
		switch {
		case i%4 < 2 && (err != nil || call.Response.Status != 200 || string(call.Response.Body) != "B0"):
			t.Fatalf("run %d of %s: %v, %d %q", i, handler, err, call.Response.Status, call.Response.Body)
		case i%4 >= 2 && fault.CodeOf(err) != fault.HandlerFailed:
			t.Fatalf("run %d of %s, which fails: %v, %d %q", i, handler, err, call.Response.Status, call.Response.Body)
		}
		if idle, err := m.Restored(); err != nil || idle != 1 {
			t.Fatalf("after run %d: %d sandboxes, %v", i, idle, err)
		}
	}
}

func TestManySandboxesContinueOneStart(t *testing.T) {
	needCapture(t)
	m := load(t, newEngine(t, sandbox.Options{Instances: 8}), assembleText(t, waiting))
	var all []chan error
	for range 16 {
		done := make(chan error, 1)
		all = append(all, done)
		go func() {
			for range 50 {
				call, err := within(t, plenty, m, "deep")
				if err == nil && string(call.Response.Body) != "B0" {
					err = fmt.Errorf("it answers %q", call.Response.Body)
				}
				if err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
	}
	for _, done := range all {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

func TestAStartThatDoesNotWaitRefusesTheModule(t *testing.T) {
	needCapture(t)
	e := newEngine(t, sandbox.Options{InitTime: 100 * time.Millisecond})
	program := func(start string) []byte {
		return assembleText(t, `(module
			(import "runner" "request_next" (func $next (param i32 i32) (result i32)))
			(import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
			(import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
			(memory (export "memory") 1)
			(table $t 1 funcref)
			(data (i32.const 0) "\10\00\00\00\0c\00\00\00")
			(data (i32.const 16) "no database\n" "9lives" "a\na" "\00")
			(func (export "_start") `+start+`))`)
	}
	const says = "(drop (call $write (i32.const 2) (i32.const 0) (i32.const 1) (i32.const 8)))"
	for _, row := range []struct{ start, want string }{
		{"", "ends before it waits for a request"},
		{"unreachable", "fails before it waits for a request: "},
		{"(call $exit (i32.const 3))", "exits with status 3 before it waits for a request"},
		{"(loop (br 0))", "takes longer than 100ms (startTimeout) before it waits for a request"},
		{says + "(loop (br 0))", "takes longer than 100ms (startTimeout) before it waits for a request; its last log lines: no database"},
		{says + "(call $exit (i32.const 3))", "exits with status 3 before it waits for a request; its last log lines: no database"},
		{"(drop (memory.grow (i32.const 60000))) unreachable", "fails before it waits for a request: handler needed more than 64mb of memory ([sandbox] memory)"},
		{strings.Repeat(says, 100) + "unreachable", "unreachable; its last log lines: no database" + strings.Repeat(" / no database", 7)},
		{"(drop (call $next (i32.const 28) (i32.const 6)))", `"9lives" is not a handler's name`},
		{"(drop (call $next (i32.const 34) (i32.const 3)))", "the handler a is named twice"},
		{"(drop (call $next (i32.const -1) (i32.const 3)))", "ends before it waits for a request"},
	} {
		_, err := e.Load(context.Background(), "build/program.wasm", program(row.start))
		if fault.CodeOf(err) != fault.Invalid || !strings.Contains(fault.Of(err).Detail, row.want) {
			t.Errorf("%s: %v, want %q", row.start, err, row.want)
		}
	}
}

// A start may read a clock faster than it ticks, for example to wait without sleeping.
func TestNoClockGoesBackWhenAProgramContinues(t *testing.T) {
	needCapture(t)
	m := load(t, newEngine(t, sandbox.Options{}), assembleText(t, `(module
		(import "runner" "request_next" (func $next (param i32 i32) (result i32)))
		(import "runner" "response_send" (func $send (param i32 i32 i32) (result i32)))
		(import "wasi_snapshot_preview1" "clock_time_get" (func $time (param i32 i64 i32) (result i32)))
		(memory (export "memory") 1)
		(func $read (drop (call $time (i32.const 0) (i64.const 1) (i32.const 0))) (drop (call $time (i32.const 1) (i64.const 1) (i32.const 8))))
		(func (export "_start") (local $n i32) (local $real i64) (local $monotonic i64)
			(call $read)
			(i64.store (i32.const 16) (i64.load (i32.const 8)))
			(loop $again
				(call $read)
				(if (i64.lt_u (i64.load (i32.const 8)) (local.get $monotonic)) (then unreachable))
				(local.set $real (i64.load (i32.const 0)))
				(local.set $monotonic (i64.load (i32.const 8)))
				(br_if $again (i32.lt_u (local.tee $n (i32.add (local.get $n) (i32.const 1))) (i32.const 300000))))
			(if (i64.eq (i64.load (i32.const 16)) (local.get $monotonic)) (then unreachable)) ;; it stands still
			(drop (call $next (i32.const 0) (i32.const 0)))
			(call $read)
			(i64.store (i32.const 0) (i64.sub (i64.load (i32.const 0)) (local.get $real)))
			(i64.store (i32.const 8) (i64.sub (i64.load (i32.const 8)) (local.get $monotonic)))
			(drop (call $send (i32.const 200) (i32.const 0) (i32.const 16)))))`))
	call, err := within(t, plenty, m, "test")
	if err != nil {
		t.Fatal(err)
	}
	for i, clock := range []string{"real", "monotonic"} {
		if passed := time.Duration(binary.LittleEndian.Uint64(call.Response.Body[8*i:])); passed < 0 || passed > plenty {
			t.Errorf("the %s clock goes from the start to the request by %s", clock, passed)
		}
	}
}

// The program waits, although it could not read one of its files.
func TestAStartThatCannotReadAFileRefusesTheModule(t *testing.T) {
	needCapture(t)
	gone := errors.New("the disk is gone")
	e := newEngine(t, sandbox.Options{})
	program := &sandbox.Program{Files: []files.File{
		{Path: "x", Size: 1, Read: func() ([]byte, error) { return nil, gone }},
	}}
	_, err := e.LoadAs(context.Background(), "build/program.wasm", assembleText(t, `(module
		(import "runner" "request_next" (func $next (param i32 i32) (result i32)))
		(import "wasi_snapshot_preview1" "path_open"
			(func $open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
		(import "wasi_snapshot_preview1" "fd_read" (func $read (param i32 i32 i32 i32) (result i32)))
		(memory (export "memory") 1)
		(data (i32.const 0) "app/x")
		(data (i32.const 16) "\20\00\00\00\0c\00\00\00")
		(func (export "_start")
			(if (call $open (i32.const 3) (i32.const 0) (i32.const 0) (i32.const 5) (i32.const 0)
					(i64.const 2) (i64.const 0) (i32.const 0) (i32.const 64))
				(then unreachable))
			(if (i32.ne (i32.const 29) ;; the errno io
					(call $read (i32.load (i32.const 64)) (i32.const 16) (i32.const 1) (i32.const 68)))
				(then unreachable))
			(drop (call $next (i32.const 0) (i32.const 0)))))`),
		sandbox.Settings{Program: program})
	const want = "build/program.wasm: cannot start: the disk is gone"
	if fault.CodeOf(err) != fault.Invalid || fault.Of(err).Detail != want || !errors.Is(err, gone) {
		t.Errorf("%v, want %q", err, want)
	}
}

// The contents of files that a program has read count as memory of guests until the module is closed. Without memory
// a read fails with io.
func TestContentsOfFilesCountAsGuestMemory(t *testing.T) {
	log := new(bytes.Buffer)
	e := newEngine(t, sandbox.Options{
		MemoryBytes: 1 << 20, TotalMemoryBytes: 8 << 20, Logger: slog.New(slog.NewTextHandler(log, nil)),
	})
	const mib = 1 << 20
	var with sandbox.Program
	reads := 0
	for i := range 9 {
		with.Files = append(with.Files, files.File{Path: fmt.Sprint(i), Size: mib, Read: func() ([]byte, error) {
			if reads++; reads == 3 {
				return nil, errors.New("the disk is gone")
			}
			return make([]byte, mib), nil
		}})
	}
	// It answers with the errno of reading the file that the body names.
	m, err := e.LoadAs(t.Context(), "build/program.wasm", assembleText(t, `(module
		(import "runner" "request_body" (func $body (param i32 i32 i32) (result i32)))
		(import "runner" "response_send" (func $send (param i32 i32 i32) (result i32)))
		(import "wasi_snapshot_preview1" "path_open"
			(func $open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
		(import "wasi_snapshot_preview1" "fd_read" (func $read (param i32 i32 i32 i32) (result i32)))
		(memory (export "memory") 1)
		(data (i32.const 0) "app/x")
		(data (i32.const 16) "\20\00\00\00\0c\00\00\00")
		(func (export "_start")
			(drop (call $body (i32.const 0) (i32.const 4) (i32.const 1)))
			(if (call $open (i32.const 3) (i32.const 0) (i32.const 0) (i32.const 5) (i32.const 0)
					(i64.const 2) (i64.const 0) (i32.const 0) (i32.const 64))
				(then (unreachable)))
			(i32.store8 (i32.const 80) (call $read (i32.load (i32.const 64)) (i32.const 16) (i32.const 1) (i32.const 68)))
			(drop (call $send (i32.const 200) (i32.const 80) (i32.const 1)))))`), sandbox.Settings{Program: &with})
	if err != nil {
		t.Fatal(err)
	}
	const io = 29
	before := e.GuestMemory()
	for _, row := range []struct {
		file  byte
		errno byte
		kept  int64 // files
	}{
		{'0', 0, 1}, {'1', 0, 2}, {'1', 0, 2}, {'2', io, 2}, {'2', 0, 3}, {'3', 0, 4}, {'4', 0, 5}, {'5', 0, 6}, {'6', io, 6}, {'0', 0, 6},
	} {
		call := newCall(t.Context(), new(bytes.Buffer))
		call.Host.Logger = slog.New(slog.NewTextHandler(log, nil))
		call.Request.Body = []byte{row.file}
		if err := m.Run(call, "program"); err != nil || call.Response.Body[0] != row.errno {
			t.Errorf("file %c: %v, errno %d, want %d", row.file, err, call.Response.Body, row.errno)
		}
		if kept := e.GuestMemory() - before; kept != row.kept*mib {
			t.Errorf("after file %c: %d bytes of files, want %d MiB", row.file, kept, row.kept)
		}
	}
	if !strings.Contains(log.String(), "raise [sandbox] total_memory") {
		t.Errorf("the log does not say what to do: %s", log)
	}
	if err := m.Close(t.Context()); err != nil || e.GuestMemory() != 0 {
		t.Errorf("closed, the module takes %d bytes: %v", e.GuestMemory(), err)
	}
}

// buildProgram compiles a program of testdata, in C or Go.
func buildProgram(t testing.TB, file string) []byte {
	t.Helper()
	out := filepath.Join(t.TempDir(), "program.wasm")
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", out, "./"+filepath.Dir(file))
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0")
	if strings.HasSuffix(file, ".c") {
		cmd = exec.Command("clang-22", "--target=wasm32-wasi", "-Wno-deprecated", "-O2", file, "-o", out)
	}
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build %s (tools/setup.sh installs the compilers): %v\n%s", file, err, text)
	}
	module, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	return module
}

func TestProgramsInCAndGoWait(t *testing.T) {
	needCapture(t)
	if testing.Short() {
		t.Skip("it runs compilers")
	}
	for _, file := range []string{"testdata/cwaits/main.c", "testdata/gowaits/main.go"} {
		t.Run(file, func(t *testing.T) {
			m := load(t, newEngine(t, sandbox.Options{Instances: 2}), buildProgram(t, file))
			call := newCall(context.Background(), new(bytes.Buffer))
			for i := range 200 {
				call.Request.Body = []byte(fmt.Sprintf("body %d", i))
				if err := m.Run(call, "test"); err != nil {
					t.Fatalf("run %d: %v", i, err)
				}
				if want := fmt.Sprintf("run 1 of started: body %d", i); string(call.Response.Body) != want {
					t.Fatalf("run %d answers %q, want %q", i, call.Response.Body, want)
				}
			}
		})
	}
}

// Modules of the same bytes share what was made of them. Each has its own start and data.
func TestModulesOfTheSameBytesAreReadOnce(t *testing.T) {
	needCapture(t)
	e := newEngine(t, sandbox.Options{})
	wasm := assembleText(t, waiting)
	var all []*sandbox.Module
	for i := range 3 {
		m, err := e.Load(t.Context(), fmt.Sprintf("build/%d.wasm", i), bytes.Clone(wasm))
		if err != nil {
			t.Fatal(err)
		}
		if shared := e.IsPrepared(wasm); !shared {
			t.Errorf("module %d would be read again", i)
		}
		all = append(all, m)
	}
	for i, m := range all {
		call, err := within(t, plenty, m, "count")
		if got := strings.Join(m.Handlers(), " "); got != "count deep bad" || err != nil || string(call.Response.Body) != "B0" {
			t.Errorf("module %d has the handlers %q, and answers %v, %q", i, got, err, call.Response.Body)
		}
		if err := m.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if e.IsPrepared(wasm) {
		t.Error("a closed module is still there")
	}
}

func TestAProgramCanBeStartedOnlyToSeeItsHandlers(t *testing.T) {
	needCapture(t)
	e := newEngine(t, sandbox.Options{})
	wasm, settings := assembleText(t, waiting), sandbox.Settings{Program: &sandbox.Program{Timeout: plenty}}
	handlers, err := e.Start(t.Context(), "build/a.wasm", wasm, settings)
	if got := strings.Join(handlers, " "); got != "count deep bad" || err != nil {
		t.Errorf("its handlers are %q, %v", got, err)
	}
	if e.IsPrepared(wasm) || e.GuestMemory() != 0 {
		t.Errorf("it is kept, with %d bytes", e.GuestMemory())
	}
	ends := assembleText(t, `(module (memory (export "memory") 1) (func (export "_start")))`)
	const want = "build/a.wasm: ends before it waits for a request"
	if handlers, err := e.Start(t.Context(), "build/a.wasm", ends, settings); handlers != nil || fault.Of(err).Detail != want {
		t.Errorf("a program that ends: %q, %v", handlers, err)
	}
}
