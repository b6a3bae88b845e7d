package sandbox_test

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"runner.example/hostabi"
	"runner.example/internal/fault"
	"runner.example/runtime/sandbox"
)

// hostwork are guests that have the host compute for them, and take less fuel
// for it than a slice has.
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

func TestWhatTheHostComputesForAGuestIsTheGuestsTime(t *testing.T) {
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
			t.Errorf("%s with less processor time than that ends with %v", handler, err)
		}
	}
}

func TestAHandlerThatHasTheHostComputeOpensItsBreaker(t *testing.T) {
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
