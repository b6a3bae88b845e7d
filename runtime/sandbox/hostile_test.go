package sandbox_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"runner.example/internal/fault"
	"runner.example/runtime/sandbox"
)

// hostileProgram makes a program with this code in _start, and with functions beside it. $tell writes a part of a message
// to the host's file, and $deep waits in so many calls.
func hostileProgram(t *testing.T, start, functions string) []byte {
	t.Helper()
	return assembleText(t, `(module
		(import "runner" "request_next" (func $next (param i32 i32) (result i32)))
		(import "runner" "response_send" (func $send (param i32 i32 i32) (result i32)))
		(import "wasi_snapshot_preview1" "path_open"
			(func $path_open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
		(import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
		(import "wasi_snapshot_preview1" "fd_read" (func $fd_read (param i32 i32 i32 i32) (result i32)))
		(import "wasi_snapshot_preview1" "poll_oneoff" (func $poll (param i32 i32 i32 i32) (result i32)))
		(import "wasi_snapshot_preview1" "sched_yield" (func $yield (result i32)))
		(memory (export "memory") 1)
		(type $plain (func))
		(table 4 funcref)
		(elem (i32.const 0) $wait $fine)
		(data (i32.const 16) "runner/host")
		(data (i32.const 32) "log 1 2\nhilog")
		(func $wait (drop (call $next (i32.const 0) (i32.const 0))))
		(func $fine (drop (call $send (i32.const 200) (i32.const 32) (i32.const 2))))
		(func $write (param $fd i32) (param $at i32) (param $length i32)
			(i32.store (i32.const 64) (local.get $at)) (i32.store (i32.const 68) (local.get $length))
			(if (call $fd_write (local.get $fd) (i32.const 64) (i32.const 1) (i32.const 72)) (then unreachable)))
		(func $tell (param $length i32)
			(if (call $path_open (i32.const 3) (i32.const 0) (i32.const 16) (i32.const 11) (i32.const 0)
				(i64.const 0) (i64.const 0) (i32.const 0) (i32.const 80)) (then unreachable))
			(call $write (i32.load (i32.const 80)) (i32.const 32) (local.get $length)))
		(func $deep (param $calls i32)
			(if (local.get $calls)
				(then (call $deep (i32.sub (local.get $calls) (i32.const 1))))
				(else (call $wait))))
		`+functions+`
		(func (export "_start") `+start+`))`)
}

// withTryTable is a program that waits within a try_table, which wat2wasm does not know.
const withTryTable = "\x00asm\x01\x00\x00\x00" +
	"\x01\x0a\x02\x60\x00\x00\x60\x02\x7f\x7f\x01\x7f" +
	"\x02\x17\x01\x06runner\x0crequest_next\x00\x01" +
	"\x03\x02\x01\x00" +
	"\x05\x03\x01\x00\x01" +
	"\x07\x13\x02\x06memory\x02\x00\x06_start\x00\x01" +
	"\x0a\x14\x01\x12\x00\x02\x40\x1f\x40\x01\x02\x00\x41\x00\x41\x00\x10\x00\x1a\x0b\x0b\x0b"

// A program that waits where it cannot be continued, or whose start takes too much, is refused with one line that says
// what is wrong. The engine serves others after that, and keeps nothing of it.
func TestAProgramThatCannotBeContinuedIsRefused(t *testing.T) {
	needCapture(t)
	ends := newEngine(t, sandbox.Options{MemoryBytes: 64 << 20, TotalMemoryBytes: 128 << 20})
	endless := newEngine(t, sandbox.Options{InitTime: 300 * time.Millisecond}) // for starts that never end
	const late = "takes longer than 300ms (startTimeout) before it waits for a request"
	const cannot = "waits for requests, and cannot be continued: "
	for name, row := range map[string]struct{ start, functions, want string }{
		"in _initialize":                   {"", `(func (export "_initialize") (call $wait))`, "calls request_next before _start: call it in _start, or in what _start calls"},
		"in the start function":            {"", `(start $wait)`, "calls request_next before _start: "},
		"in runner_warm":                   {"", `(func (export "runner_warm") (call $wait))`, "calls request_next before _start: "},
		"deep":                             {"(call $deep (i32.const 20000))", "", " KiB of active calls, the limit is 256 KiB: call request_next in fewer calls"},
		"at the bound of the stack":        {"(call $deep (i32.const 170000))", "", " KiB of active calls, the limit is 256 KiB: call request_next in fewer calls"},
		"beyond the stack":                 {"(call $deep (i32.const 10000000))", "", "fails before it waits for a request: stack overflow: calls nest too deep"},
		"an answer is not read":            {"(call $tell (i32.const 10)) (call $wait)", "", "request_next: an answer in /runner/host is not read: read it before"},
		"a message is not complete":        {"(call $tell (i32.const 5)) (call $wait)", "", "request_next: a message in /runner/host is not complete: write all of it before"},
		"a table is grown":                 {"(drop (table.grow 0 (ref.func $fine) (i32.const 1))) (call $wait)", "", cannot + "it uses "},
		"a table is written":               {"(table.set 0 (i32.const 0) (ref.func $fine)) (call $wait)", "", cannot + "it uses "},
		"a segment of data is dropped":     {"(data.drop $d) (call $wait)", `(data $d "x")`, cannot + "it uses "},
		"a segment of elements is dropped": {"(elem.drop $e) (call $wait)", "(elem $e func $fine)", cannot + "it uses "},
		"it computes without end":          {"(loop (br 0))", "", late},
		"it calls the host without end":    {"(loop (drop (call $yield)) (br 0))", "", late},
		"it writes to the log without end": {"(loop (call $write (i32.const 2) (i32.const 0) (i32.const 65536)) (br 0))", "", late},
		"it writes messages without end":   {"(loop (call $tell (i32.const 10)) (br 0))", "", "fails before it waits for a request: "},
		"it sleeps without end": {
			"(i32.store (i32.const 116) (i32.const 1)) (i64.store (i32.const 124) (i64.const -1)) (drop (call $poll (i32.const 100) (i32.const 200) (i32.const 1) (i32.const 300)))",
			"", late,
		},
		"it takes 2 GB": {
			"(loop (if (i32.eq (memory.grow (i32.const 16)) (i32.const -1)) (then unreachable)) (br_if 0 (i32.lt_u (memory.size) (i32.const 32768)))) (call $wait)",
			"", "fails before it waits for a request: handler needed more than 64mb of memory ([sandbox] memory)",
		},
		"within a try_table": {withTryTable, "", "exceptions"},
	} {
		e := ends
		if row.want == late {
			e = endless
		}
		before := e.GuestMemory()
		wasm := []byte(row.start)
		if row.start != withTryTable {
			wasm = hostileProgram(t, row.start, row.functions)
		}
		_, err := e.Load(context.Background(), "build/program.wasm", wasm)
		detail := ""
		if f := fault.Of(err); f != nil {
			detail = f.Detail
		}
		if fault.CodeOf(err) != fault.Invalid || !strings.Contains(detail, row.want) || strings.Contains(detail, "\n") {
			t.Errorf("%s: %v\nwant one line with %q", name, err, row.want)
		}
		if after := e.GuestMemory(); after != before {
			t.Errorf("%s: %d bytes of guests are in use, and %d were before", name, after, before)
		}
	}
	m := load(t, ends, hostileProgram(t, "(call $wait) (call $fine)", ""))
	if call, err := within(t, plenty, m, "test"); err != nil || string(call.Response.Body) != "lo" {
		t.Errorf("another program after these: %v, %q", err, call.Response.Body)
	}
}

// tails wait in a function that so many tail calls lead to.
const tails = `(type $one (func (param i32)))
	(table $tails 2 funcref) (elem (table $tails) (i32.const 0) func $tail_indirect)
	(func $tail (param $calls i32)
		(if (i32.eqz (local.get $calls)) (then (return_call $wait)))
		(return_call $tail (i32.sub (local.get $calls) (i32.const 1))))
	(func $tail_indirect (param $calls i32)
		(if (i32.eqz (local.get $calls)) (then (return_call_indirect (type $plain) (i32.const 0))))
		(return_call_indirect $tails (type $one) (i32.sub (local.get $calls) (i32.const 1)) (i32.const 0)))`

// A program may wait in any call of its own, with any values, and a request may wait again in any call.
func TestAProgramWaitsInAnyCallOfItsOwn(t *testing.T) {
	needCapture(t)
	e := newEngine(t, sandbox.Options{})
	const constructors = `(func $constructors (export "__wasm_call_ctors") (call $wait))`
	planted, sum := new(strings.Builder), new(strings.Builder)
	for i := range 40 { // as those of Go's heap, of mapped memory and of code
		word := []uint64{0xc000000000, 0x7f0000000000, 0x555555554000, 0x5a5a5a5a00000000}[i%4] + uint64(i)*0x1008
		fmt.Fprintf(planted, "(i64.add (i64.const %d) (global.get $zero))\n", int64(word))
		fmt.Fprintf(sum, "(if (i64.ne (i64.const %d)) (then unreachable))\n", int64([]uint64{0xc000000000, 0x7f0000000000, 0x555555554000, 0x5a5a5a5a00000000}[(39-i)%4]+uint64(39-i)*0x1008))
	}
	for name, row := range map[string]struct{ start, functions string }{
		"an indirect call":            {"(call_indirect (type $plain) (i32.const 0)) (call $fine)", ""},
		"a constructor":               {"(call $constructors) (call $fine)", constructors},
		"a deep call":                 {"(call $deep (i32.const 1000)) (call $fine)", ""},
		"a tail call":                 {"(call $tail (i32.const 1000)) (call $fine)", tails},
		"a tail call through a table": {"(call $tail_indirect (i32.const 1000)) (call $fine)", tails},
		"the last tail call":          {"(call $tail (i32.const 1000)) (return_call $fine)", tails},
		"beside atomic values":        {"(drop (i32.atomic.rmw.add (i32.const 1000) (i32.const 7))) (call $wait) (if (i32.ne (i32.atomic.rmw.xchg (i32.const 1000) (i32.const 9)) (i32.const 7)) (then unreachable)) (call $fine)", ""},
		"a line that is not complete": {"(call $write (i32.const 1) (i32.const 32) (i32.const 3)) (call $wait) (call $fine)", ""},
		"two waits":                   {"(call $wait) (call $fine) (call $wait) unreachable", ""},
		"two waits, in a deep call":   {"(call $wait) (call $fine) (call $deep (i32.const 20000)) unreachable", ""},
		"values like addresses":       {planted.String() + "(call $wait)\n" + sum.String() + "(call $fine)", "(global $zero (mut i64) (i64.const 0))"},
	} {
		m, err := e.Load(context.Background(), "build/test.wasm", hostileProgram(t, row.start, row.functions))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		call := newCall(context.Background(), new(bytes.Buffer))
		for range 3 {
			if err := m.Run(call, "test"); err != nil || string(call.Response.Body) != "lo" {
				t.Errorf("%s: %v, %q", name, err, call.Response.Body)
			}
		}
		if _, err := m.Restored(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := m.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}
}
