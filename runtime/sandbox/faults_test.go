package sandbox_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"runner.example/hostabi"
	"runner.example/runtime/sandbox"
)

// writer is a guest with 32 pages of memory. Its handlers write to the addresses in the
// body, and then answer.
const writer = `(module
	(import "runner" "request_body" (func $body (param i32 i32 i32) (result i32)))
	(import "runner" "response_send" (func $send (param i32 i32 i32) (result i32)))
	(import "wasi_snapshot_preview1" "random_get" (func $random (param i32 i32) (result i32)))
	(import "wasi_snapshot_preview1" "poll_oneoff" (func $poll (param i32 i32 i32 i32) (result i32)))
	(memory (export "memory") 32)
	(data (i32.const 70000) "content")

	;; write stores to each address, by itself or by the host
	(func $write (param $byHost i32) (local $at i32) (local $end i32)
		(local.set $end (call $body (i32.const 0) (i32.const 0) (i32.const 4096)))
		(block (loop
			(br_if 1 (i32.ge_u (local.get $at) (local.get $end)))
			(if (local.get $byHost)
				(then (drop (call $random (i32.load (local.get $at)) (i32.const 8))))
				(else (i64.store (i32.load (local.get $at)) (i64.const 0x5ec12e7))))
			(local.set $at (i32.add (local.get $at) (i32.const 4)))
			(br 0))))
	(func $answer (drop (call $send (i32.const 204) (i32.const 0) (i32.const 0))))
	(func (export "own") (call $write (i32.const 0)) (call $answer))
	(func (export "host") (call $write (i32.const 1)) (call $answer))
	(func (export "trap") (call $write (i32.const 0)) unreachable)
	;; grow needs more memory, and writes to it
	(func (export "grow")
		(drop (memory.grow (i32.const 1)))
		(i32.store (i32.const 2097152) (i32.const 1))
		(call $write (i32.const 0)) (call $answer))
	;; wait waits for a nanosecond between two writes: a subscription to the clock 1
	(func (export "wait")
		(i32.store (i32.const 8016) (i32.const 1))
		(i64.store (i32.const 8024) (i64.const 1))
		(drop (call $poll (i32.const 8000) (i32.const 8100) (i32.const 1) (i32.const 8200)))
		(call $write (i32.const 0)) (call $answer)))`

// body has the addresses of pages of a writer.
func body(pages ...int) (addresses []byte) {
	for _, page := range pages {
		addresses = binary.LittleEndian.AppendUint32(addresses, uint32(page*os.Getpagesize()+8))
	}
	return addresses
}

func runWriter(t *testing.T, m *sandbox.Module, call *hostabi.Call, handler string, pages ...int) {
	t.Helper()
	call.Request.Body = body(pages...)
	if err := m.Run(call, handler); (err != nil) != (handler == "trap") {
		t.Fatalf("%s: %v", handler, err)
	}
}

// A run writes mostly to the pages of the run before, and sometimes to others. After each
// the memory is compared with the image, byte by byte.
func TestPagesAreRestoredWhicheverRunWritesThem(t *testing.T) {
	n := 2000
	if testing.Short() {
		n = 200
	}
	wasm := assembleText(t, writer)
	handlers := []string{"own", "own", "own", "host", "host", "trap", "wait", "grow"}
	pages := 32 * 65536 / os.Getpagesize()
	for name, disabled := range fallbacks {
		t.Run(name, func(t *testing.T) {
			m := load(t, newEngine(t, sandbox.Options{NoBreaker: true, Disable: disabled}), wasm)
			seed := rand.Uint64()
			t.Logf("seed %d", seed)
			chance := rand.New(rand.NewPCG(seed, 0))
			call := newCall(context.Background(), new(bytes.Buffer))
			var written []int
			for i := range n {
				if chance.IntN(4) == 0 {
					written = append(written, 3+chance.IntN(pages-3)) // the body is in the first two
				}
				if chance.IntN(100) == 0 {
					written = nil
				}
				handler := handlers[chance.IntN(len(handlers))]
				runWriter(t, m, call, handler, written...)
				if !restores(name) {
					continue
				}
				want := 1
				if name == "no shrinking" && handler == "grow" {
					want = 0
				}
				if idle, err := m.Restored(); idle != want || err != nil {
					t.Fatalf("run %d, %s to %d: %d sandboxes are idle, %v", i, handler, written, idle, err)
				}
			}
		})
	}
}

// A run that the host stops keeps its thread, but may have written on another one before it waited.
func TestPagesAreRestoredAfterARunThatWaitedAndWasStopped(t *testing.T) {
	wasm := assembleText(t, strings.TrimSuffix(writer, ")")+`
		;; spin writes, waits for a millisecond, and does not end
		(func (export "spin")
			(call $write (i32.const 0))
			(i32.store (i32.const 8016) (i32.const 1))
			(i64.store (i32.const 8024) (i64.const 1000000))
			(drop (call $poll (i32.const 8000) (i32.const 8100) (i32.const 1) (i32.const 8200)))
			(loop (br 0)))
		(func (export "runner_stopped")))`)
	m := load(t, newEngine(t, newStepClock(100*time.Microsecond).options()), wasm)
	for page := 3; page < 23; page++ {
		call := newCall(context.Background(), new(bytes.Buffer))
		call.Host.Limits.CPU = 5 * time.Millisecond
		call.Request.Body = body(page)
		if err := m.Run(call, "spin"); !errors.Is(err, hostabi.ErrCPUSpent) {
			t.Fatalf("spin: %v", err)
		}
		if idle, err := m.Restored(); idle != 1 || err != nil {
			t.Fatalf("a run that wrote to page %d: %d sandboxes are idle, %v", page, idle, err)
		}
		again := newCall(context.Background(), new(bytes.Buffer))
		runWriter(t, m, again, "own", 3) // the next scan finds what it wrote, and all of it
	}
}

// The scan is skipped when that is safe, and only then.
func TestTheMemoryIsScannedOnlyAfterAWriteToANewPage(t *testing.T) {
	onlyNative(t)
	const n = 200
	e, wasm := newEngine(t, sandbox.Options{}), assembleText(t, writer)
	call := newCall(context.Background(), new(bytes.Buffer))
	kept := func(first func(*sandbox.Module), handler string, pages ...int) (kept int) {
		t.Helper()
		m := load(t, e, wasm)
		defer func() {
			if err := m.Close(context.Background()); err != nil {
				t.Error(err)
			}
		}()
		for range n {
			first(m)
			before := m.Searches()
			runWriter(t, m, call, handler, pages...)
			if idle, err := m.Restored(); idle != 1 || err != nil {
				t.Fatalf("%d sandboxes are idle: %v", idle, err)
			}
			if m.Searches() == before {
				kept++
			}
		}
		return kept
	}
	again := func(m *sandbox.Module) { runWriter(t, m, call, "own", 3, 4, 7) }
	if got := kept(again, "own", 3, 7); got < n/2 { // the Go runtime may cause a fault, too
		t.Errorf("%d of %d runs that wrote to the same pages were restored without a scan", got, n)
	}
	fresh := func(m *sandbox.Module) {
		again(m)
		if err := m.Trim(); err != nil {
			t.Fatal(err)
		}
		again(m)
	}
	for _, handler := range []string{"own", "host", "wait", "grow"} {
		if got := kept(fresh, handler, 3, 7, 9); got > 0 {
			t.Errorf("%d of %d runs of %s that wrote to a new page were restored without a scan", got, n, handler)
		}
	}
}

// Pages that only one request wrote to are not copied forever.
func TestPagesThatAreNoLongerWrittenAreReleased(t *testing.T) {
	onlyNative(t)
	m := load(t, newEngine(t, sandbox.Options{}), assembleText(t, writer))
	call := newCall(context.Background(), new(bytes.Buffer))
	var many []int
	for page := range 200 {
		many = append(many, 3+page)
	}
	runWriter(t, m, call, "own", many...)
	runWriter(t, m, call, "own", 3)
	if got := m.KnownPages(); got < len(many) {
		t.Fatalf("%d pages are copied, want at least %d", got, len(many))
	}
	for range 600 {
		runWriter(t, m, call, "own", 3, 4)
	}
	if got := m.KnownPages(); got > 8 {
		t.Errorf("%d pages are copied after many runs that wrote to 3 or 4", got)
	}
}
