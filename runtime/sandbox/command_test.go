package sandbox_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"runner.example/internal/fault"
	"runner.example/runtime/sandbox"
)

// counting is a command that answers how often it has run in its sandbox, by a global and by
// memory. It exits with the status at the beginning of the body; with "r" it returns, with
// "t" it traps.
const counting = `(module
	(import "wasi_snapshot_preview1" "fd_read" (func $read (param i32 i32 i32 i32) (result i32)))
	(import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
	(import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
	(memory (export "memory") 1)
	(global $runs (mut i32) (i32.const 0))
	(data (i32.const 0) "\40\00\00\00\1c\00\00\00" "\00\02\00\00\01\00\00\00")
	(data (i32.const 0x40) "Content-Type: text/plain\n\n00")
	(func (export "_start")
		(global.set $runs (i32.add (global.get $runs) (i32.const 1)))
		(i32.store8 (i32.const 0x5a) (i32.add (i32.load8_u (i32.const 0x5a)) (i32.const 1)))
		(i32.store8 (i32.const 0x5b) (i32.add (i32.load8_u (i32.const 0x5b)) (global.get $runs)))
		(if (i32.eq (memory.grow (i32.const 3)) (i32.const -1)) (then unreachable))
		(drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 16)))
		(drop (call $read (i32.const 0) (i32.const 8) (i32.const 1) (i32.const 16)))
		(if (i32.eq (i32.load8_u (i32.const 0x200)) (i32.const 114)) (then (return)))
		(if (i32.eq (i32.load8_u (i32.const 0x200)) (i32.const 116)) (then (unreachable)))
		(call $exit (i32.sub (i32.load8_u (i32.const 0x200)) (i32.const 48)))))`

func TestACommandRunsAgainInARestoredSandbox(t *testing.T) {
	m := load(t, newEngine(t, sandbox.Options{Instances: 1}), assembleText(t, counting))
	if m.Command() != "test" {
		t.Fatalf("build/test.wasm is the command %q", m.Command())
	}
	call := newCall(context.Background(), new(bytes.Buffer)) // one for all, as a request that is run again has
	for i := range 300 {
		call.Request.Body = []byte([]string{"0", "r", "1", "t"}[i%4])
		err := m.Run(call, "test")
		switch {
		case i%4 < 2 && (err != nil || call.Response.Status != 200 || string(call.Response.Body) != "11"):
			t.Fatalf("run %d: %v, %d %q", i, err, call.Response.Status, call.Response.Body)
		case i%4 >= 2 && fault.CodeOf(err) != fault.HandlerFailed:
			t.Fatalf("run %d, which fails: %v, %d %q", i, err, call.Response.Status, call.Response.Body)
		}
		if idle, err := m.Restored(); err != nil || idle != 1 {
			t.Fatalf("after run %d: %d sandboxes, %v", i, idle, err)
		}
	}
}

func TestAModuleIsACommandWhenItExportsNoHandlerOfTheSchema(t *testing.T) {
	e := newEngine(t, sandbox.Options{})
	none := func(string) bool { return false }
	for _, row := range []struct {
		file, exports string
		named         string // the only handler of the schema
		want          string
	}{
		{"build/hello.wasm", "_start", "hello", "hello"},
		{"hello.wasm", "_start", "hello", "hello"},
		{"build/hello.wasm", "_start other", "hello", "hello"},
		{"build/hello.wasm", "_start other", "other", "other"},
		{"build/hello.wasm", "_start hello", "hello", "hello"},
		{"build/hello.wasm", "other", "hello", "other"},
	} {
		var functions strings.Builder
		for name := range strings.FieldsSeq(row.exports) {
			fmt.Fprintf(&functions, "(func (export %q))", name)
		}
		m, err := e.Load(context.Background(), row.file, assembleText(t, `(module (memory (export "memory") 1) `+functions.String()+`)`))
		if err != nil {
			t.Fatal(err)
		}
		got := m.Offers(func(name string) bool { return name == row.named })
		if !slices.Equal(got, []string{row.want}) {
			t.Errorf("%s with %s offers %q for a schema with %s, want %s", row.file, row.exports, got, row.named, row.want)
		}
		if strings.Contains(row.exports, "_start") && !slices.Equal(m.Offers(none), []string{"hello"}) {
			t.Errorf("%s with %s offers %q for a schema without handlers", row.file, row.exports, m.Offers(none))
		}
	}
}

// TestACommandSeesItsRequestOnlyWhenItRuns: what runs before belongs to no request.
func TestACommandSeesItsRequestOnlyWhenItRuns(t *testing.T) {
	m := load(t, newEngine(t, sandbox.Options{}), assembleText(t, `(module
		(import "wasi_snapshot_preview1" "environ_sizes_get" (func $sizes (param i32 i32) (result i32)))
		(import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
		(memory (export "memory") 1)
		(data (i32.const 0) "\40\00\00\00\1b\00\00\00")
		(data (i32.const 0x40) "Content-Type: text/plain\n\n?")
		(func $see (result i32)
			(drop (call $sizes (i32.const 16) (i32.const 20)))
			(i32.ne (i32.load (i32.const 16)) (i32.const 0)))
		(func (export "runner_warm") (if (call $see) (then unreachable)))
		(func (export "runner_reseed") (if (call $see) (then unreachable)))
		(func (export "_start")
			(i32.store8 (i32.const 0x5a) (i32.add (i32.const 48) (call $see)))
			(drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 16)))))`))
	for range 3 {
		call, err := within(t, plenty, m, "test")
		if err != nil || string(call.Response.Body) != "1" {
			t.Fatalf("%v, %q", err, call.Response.Body)
		}
	}
}
