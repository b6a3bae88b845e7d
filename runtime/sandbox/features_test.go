package sandbox_test

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"runner.example/hostabi"
	"runner.example/internal/fault"
	"runner.example/runtime/sandbox"
)

// features is a module with tail calls, atomics and computed constants.
const features = `(module
	(import "runner" "response_send" (func $send (param i32 i32 i32) (result i32)))
	(memory (export "memory") 1 2)
	(global $at (mut i32) (i32.add (i32.const 1000) (i32.mul (i32.const 3) (i32.const 8))))
	(type $one (func (param i32)))
	(type $many (func (param i32 i32 i32 i32 i32 i32 i32 i32)))
	(table 3 funcref)
	(elem (offset (i32.sub (i32.const 2) (i32.const 2))) $self $odd $many)
	(data (offset (i32.add (i32.const 1000) (i32.const 24))) "\2a")

	(func $self (type $one) (return_call $self (local.get 0)))
	(func $even (type $one) (return_call $odd (local.get 0)))
	(func $odd (type $one) (return_call $even (local.get 0)))
	(func $through (type $one) (return_call_indirect (type $one) (local.get 0) (i32.const 0)))
	(func $many (type $many) (return_call $many (local.get 0) (local.get 1) (local.get 2) (local.get 3) (local.get 4) (local.get 5) (local.get 6) (local.get 7)))
	(func $down (param i32) (return_call $up (local.get 0)))
	(func $up (param i32) (call $down (local.get 0)))
	(func $count (param $n i32) (if (i32.eqz (local.get $n)) (then (return_call $answer)))
		(return_call $count (i32.sub (local.get $n) (i32.const 1))))
	(func $answer (drop (call $send (i32.const 204) (i32.const 0) (i32.const 0))))

	(func (export "self") (return_call $self (i32.const 1)))
	(func (export "mutual") (call $even (i32.const 1)))
	(func (export "indirect") (call $through (i32.const 1)))
	(func (export "atomics") (loop (drop (i32.atomic.rmw.add (i32.const 0) (i32.const 1))) (br 0)))
	(func (export "notify") (loop (drop (memory.atomic.notify (i32.const 0) (i32.const 1))) (br 0)))
	(func (export "many") (call $many (i32.const 1) (i32.const 1) (i32.const 1) (i32.const 1) (i32.const 1) (i32.const 1) (i32.const 1) (i32.const 1)))
	(func (export "recursion") (call $down (i32.const 1)))
	(func (export "count") (return_call $count (i32.const 1000000)))
	(func (export "state")
		(if (i32.ne (i32.atomic.load8_u (global.get $at)) (i32.const 42)) (then unreachable))
		(i32.atomic.store8 (global.get $at) (i32.const 7))
		(drop (i64.atomic.rmw.xchg (i32.const 1032) (i64.const -1)))
		(if (i32.ne (global.get $at) (i32.const 1024)) (then unreachable))
		(global.set $at (i32.const 0))
		(call $answer))
	(func (export "outside") (drop (i32.atomic.rmw.add (i32.const 65536) (i32.const 1))))
	(func (export "farOutside") (drop (i64.atomic.load offset=0xfffffff8 (i32.const -8))))
	(func (export "storeOutside") (i64.atomic.store (i32.const -8) (i64.const 1)))
	(func (export "exchangeOutside") (drop (i32.atomic.rmw.cmpxchg (i32.const 131072) (i32.const 0) (i32.const 1))))
	(func (export "notifyOutside") (drop (memory.atomic.notify (i32.const 65536) (i32.const 1))))
	(func (export "grown") (drop (memory.grow (i32.const 1))) (drop (i32.atomic.rmw.or (i32.const 131068) (i32.const 1))) (call $answer))
	(func (export "unaligned") (drop (i32.atomic.load (i32.const 2))))
	(func (export "wait") (drop (memory.atomic.wait32 (i32.const 0) (i32.const 0) (i64.const -1))))
	(func (export "wait64") (drop (memory.atomic.wait64 (i32.const 0) (i64.const 0) (i64.const -1)))))`

// failureKind is what kind of failure a run ended with.
func failureKind(call *hostabi.Call) string {
	f, _ := call.Failures()
	if f == nil {
		return ""
	}
	return f.Kind
}

// Tail calls and atomics without end are ended by the time of the request and by its CPU time, on every engine.
func TestEndlessTailCallsAndAtomicsEnd(t *testing.T) {
	eachKind(t, testEndlessTailCallsAndAtomicsEnd)
}

func testEndlessTailCallsAndAtomicsEnd(t *testing.T, as kind) {
	for name, disabled := range map[string][]string{"everything": nil, "no guard": {sandbox.OptGuard}, "no stack": {sandbox.OptStack}} {
		m := load(t, newEngine(t, sandbox.Options{NoBreaker: true, Disable: disabled}), as.text(t, features))
		for _, handler := range []string{"self", "mutual", "indirect", "atomics", "notify"} {
			if _, err := within(t, 30*time.Millisecond, m, handler); fault.CodeOf(err) != fault.HandlerTimeout {
				t.Errorf("%s: %s with 30 ms ends with %v", name, handler, err)
			}
			call := newCall(context.Background(), new(bytes.Buffer))
			call.Host.Limits.CPU = 20 * time.Millisecond
			if err := m.Run(call, handler); fault.CodeOf(err) != fault.HandlerTimeout || !strings.Contains(fault.Of(err).Cause.Error(), "handler used more than 20ms of CPU") {
				t.Errorf("%s: %s with 20 ms of CPU time ends with %v", name, handler, err)
			}
		}
		if _, err := within(t, plenty, m, "count"); err != nil {
			t.Errorf("%s: a million tail calls: %v", name, err)
		}
	}
}

// Tail calls take the stack of one call. Those that are ordinary ones, and calls between them, end at its limit.
func TestTailCallsStayWithinTheStack(t *testing.T) {
	eachKind(t, testTailCallsStayWithinTheStack)
}

func testTailCallsStayWithinTheStack(t *testing.T, as kind) {
	for name, disabled := range map[string][]string{"everything": nil, "no guard": {sandbox.OptGuard}, "no stack": {sandbox.OptStack}} {
		e := newEngine(t, sandbox.Options{NoBreaker: true, Disable: disabled})
		m := load(t, e, as.text(t, features))
		for range 3 {
			for _, handler := range []string{"many", "recursion"} {
				call, err := within(t, plenty, m, handler)
				if fault.CodeOf(err) != fault.HandlerFailed || failureKind(call) != "stack exhausted" {
					t.Errorf("%s: %s: %v", name, handler, err)
				}
			}
			if _, err := within(t, plenty, m, "count"); err != nil {
				t.Errorf("%s: a million tail calls after that: %v", name, err)
			}
		}
	}
}

// What atomics write is restored, and accesses outside of memory or not aligned are traps that change nothing.
func TestAtomicsStayWithinTheMemory(t *testing.T) {
	traps := map[string]string{
		"outside": "out of bounds memory access", "farOutside": "out of bounds memory access",
		"storeOutside": "out of bounds memory access", "exchangeOutside": "out of bounds memory access",
		"notifyOutside": "out of bounds memory access",
		"unaligned":     "unaligned atomic access",
		"wait":          "wait on a memory that is not shared", "wait64": "wait on a memory that is not shared",
	}
	for name, disabled := range fallbacks {
		m := load(t, newEngine(t, sandbox.Options{NoBreaker: true, Disable: disabled}), assembleText(t, features))
		for range 3 {
			for _, handler := range []string{"state", "grown"} {
				if call, err := within(t, plenty, m, handler); err != nil || call.Response.Status != 204 {
					t.Errorf("%s: %s: %v", name, handler, err)
				}
			}
			for handler, want := range traps {
				call, err := within(t, plenty, m, handler)
				if fault.CodeOf(err) != fault.HandlerFailed || failureKind(call) != want {
					t.Errorf("%s: %s: %v, want %q", name, handler, err, want)
				}
			}
		}
		if idle, err := m.Restored(); restores(name) && (idle == 0 || err != nil) {
			t.Errorf("%s: %d sandboxes were restored: %v", name, idle, err)
		}
	}
}
