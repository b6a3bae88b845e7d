package sandbox_test

import (
	"bytes"
	"context"
	"crypto/sha512"
	"errors"
	"slices"
	"testing"
	"time"

	"runner.example/hostabi"
	"runner.example/internal/fault"
	"runner.example/runtime/sandbox"
)

// hostwork has guests that let the host compute, and use less fuel than a slice.
const hostwork = `(module
	(import "runner" "response_send" (func $send (param i32 i32 i32) (result i32)))
	(import "runner" "response_header" (func $header (param i32 i32 i32 i32) (result i32)))
	(import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
	(memory (export "memory") 4)
	(func (export "hello") (drop (call $send (i32.const 200) (i32.const 0) (i32.const 0))))
	(func (export "headers") (local $left i32)
		(memory.fill (i32.const 65536) (i32.const 97) (i32.const 16000))
		(i32.store8 (i32.const 81535) (i32.const 10)) ;; is no text for a header
		(local.set $left (i32.const 2000))
		(loop
			(drop (call $header (i32.const 65536) (i32.const 1) (i32.const 65536) (i32.const 16000)))
			(br_if 0 (local.tee $left (i32.sub (local.get $left) (i32.const 1))))))
	(func (export "lines") (local $left i32)
		(memory.fill (i32.const 65536) (i32.const 10) (i32.const 65536))
		(i32.store (i32.const 0) (i32.const 65536))
		(i32.store (i32.const 4) (i32.const 65536))
		(local.set $left (i32.const 2000))
		(loop
			(drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))
			(br_if 0 (local.tee $left (i32.sub (local.get $left) (i32.const 1)))))))`

func TestHostFunctionsCountAsTheGuestsCPUTime(t *testing.T) {
	m := load(t, newEngine(t, sandbox.Options{NoBreaker: true}), assembleText(t, hostwork))
	for _, handler := range []string{"headers", "lines"} {
		call := newCall(context.Background(), new(bytes.Buffer))
		usage, err := m.Measure(call, handler)
		if fault.CodeOf(err) != fault.HandlerFailed { // it does not answer
			t.Errorf("%s ends with %v", handler, err)
		}
		if usage.Fuel > sandbox.Slice {
			t.Errorf("%s takes %d units of fuel, and was to take less than a slice", handler, usage.Fuel)
		}
		if call.CPU() < hostabi.WorkedMost {
			t.Errorf("%s was charged %s for 2,000 calls of the host", handler, call.CPU())
		}
		call.Host.Limits.CPU = 2 * hostabi.WorkedMost
		if err := m.Run(call, handler); !errors.Is(err, hostabi.ErrCPUSpent) {
			t.Errorf("%s with less CPU time than that ends with %v", handler, err)
		}
	}
}

func TestCPUTimeOfHostFunctionsOpensABreaker(t *testing.T) {
	m := load(t, newEngine(t, sandbox.Options{}), assembleText(t, hostwork))
	run := func() fault.Code {
		call := newCall(context.Background(), new(bytes.Buffer))
		call.Host.Limits.CPU = 2 * hostabi.WorkedMost
		return fault.CodeOf(m.Run(call, "headers"))
	}
	for i := range 5 {
		if code := run(); code != fault.HandlerTimeout {
			t.Errorf("run %d ends with %q", i+1, code)
		}
	}
	if code := run(); code != fault.HandlerUnavailable {
		t.Errorf("the sixth ends with %q", code)
	}
	if _, err := within(t, plenty, m, "hello"); err != nil {
		t.Errorf("another handler: %v", err)
	}
}

// hashing has the host hash 2 MiB in one call, which takes some milliseconds.
const hashing = `(module
	(import "runner" "response_send" (func $send (param i32 i32 i32) (result i32)))
	(import "runner" "call" (func $call (param i32 i32 i32 i32) (result i32)))
	(memory (export "memory") 40)
	(data (i32.const 0) "digest")
	(data (i32.const 16) "{\"algorithm\":\"SHA-512\",\"data\":\"")
	(data (i32.const 2000000) "\"}")
	(func $hash
		(memory.fill (i32.const 47) (i32.const 97) (i32.const 1999953))
		(drop (call $call (i32.const 0) (i32.const 6) (i32.const 16) (i32.const 1999986))))
	(func (export "once") (call $hash) (drop (call $send (i32.const 200) (i32.const 0) (i32.const 0))))
	(func (export "often") (local $left i32)
		(local.set $left (i32.const 100))
		(loop
			(call $hash)
			(br_if 0 (local.tee $left (i32.sub (local.get $left) (i32.const 1)))))))`

// A host function ends early when the handler's CPU time is spent, in the first slice of fuel
// and later.
func TestAHostFunctionEndsWhenTheCPUTimeIsSpent(t *testing.T) {
	m := load(t, newEngine(t, sandbox.Options{NoBreaker: true}), assembleText(t, hashing))
	run := func(handler string, cpu time.Duration) (*hostabi.Call, error) {
		call := newCall(context.Background(), new(bytes.Buffer))
		call.Host.Limits.CPU, call.Host.Limits.MovedBytes = cpu, 1<<40
		return call, m.Run(call, handler)
	}
	if call, err := run("once", time.Hour); err != nil || call.Response.Status != 200 {
		t.Fatal(err)
	}
	for _, row := range []struct {
		handler string
		cpu     time.Duration
	}{{"once", time.Millisecond}, {"often", 30 * time.Millisecond}} {
		if _, err := run(row.handler, row.cpu); !errors.Is(err, hostabi.ErrCPUSpent) {
			t.Fatalf("%s with %s ends with %v", row.handler, row.cpu, err)
		}
		if call, err := run("once", time.Hour); err != nil || call.Response.Status != 200 {
			t.Errorf("then: %v", err)
		}
	}
	if n, err := m.Restored(); err != nil || n == 0 {
		t.Errorf("%d sandboxes are restored: %v", n, err)
	}
}

// Work for a request outside of its handler's runs is limited like these.
func TestWorkOutsideOfRunsIsLimited(t *testing.T) {
	m := load(t, newEngine(t, sandbox.Options{NoBreaker: true}), assembleText(t, hashing))
	var w sandbox.Work
	work := func(ctx context.Context, cpu time.Duration) (used time.Duration, err error) {
		meter := m.BeginWork(ctx, &w, new(hostabi.Call), "once", cpu)
		defer func() { used = w.End() }()
		data := make([]byte, 1<<20)
		for range 100 {
			for part := range slices.Chunk(data, 1<<15) {
				if err := meter.Spend(1 << 16); err != nil {
					return 0, err
				}
				sha512.Sum512(part)
			}
		}
		return 0, nil
	}
	if used, err := work(context.Background(), time.Hour); err != nil || used <= 0 {
		t.Errorf("it has %s: %v", used, err)
	}
	if used, err := work(context.Background(), 10*time.Millisecond); !errors.Is(err, hostabi.ErrCPUSpent) || fault.CodeOf(err) != fault.HandlerTimeout || used < 10*time.Millisecond {
		t.Errorf("with 10 ms it has %s: %v", used, err)
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := work(ended, time.Hour); !errors.Is(err, hostabi.ErrTimeOver) {
		t.Errorf("after its time: %v", err)
	}
	if _, err := within(t, plenty, m, "once"); err != nil {
		t.Errorf("a turn is still held: %v", err)
	}
}
