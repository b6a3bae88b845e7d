package sandbox_test

import (
	"bytes"
	"context"
	"errors"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"runner.example/hostabi"
	"runner.example/internal/fault"
	"runner.example/runtime/sandbox"
)

// unfit is a module that cannot be restored and has 8 MiB of initial data.
func unfit(t *testing.T) []byte {
	return assembleText(t, `(module
		(import "runner" "response_send" (func $send (param i32 i32 i32) (result i32)))
		(memory (export "memory") 128)
		(global $r (mut funcref) (ref.null func))
		(data (i32.const 0) "`+strings.Repeat("x", 8<<20)+`")
		(func (export "hello") (drop (call $send (i32.const 204) (i32.const 0) (i32.const 0)))))`)
}

// A request for which a sandbox is made is charged for that.
func TestMakingASandboxCountsAsCPUTimeOfTheRequest(t *testing.T) {
	const step = time.Millisecond // that passes each time when a clock is read
	tick := func() func() time.Duration {
		var now atomic.Int64
		return func() time.Duration { return time.Duration(now.Add(int64(step))) }
	}
	m := load(t, newEngine(t, sandbox.Options{NoBreaker: true, Now: tick(), CPUTime: tick()}), unfit(t))
	runtime.LockOSThread() // what another thread does is not measured
	defer runtime.UnlockOSThread()
	call := newCall(context.Background(), new(bytes.Buffer))
	u, err := m.Measure(call, "hello")
	if err != nil || call.CPU() != step || u.Restore < step {
		t.Errorf("making a sandbox took %s, and restoring %s; want %s for each: %v", call.CPU(), u.Restore, step, err)
	}
	call.Host.Limits.CPU = step / 2
	if err := m.Run(call, "hello"); fault.CodeOf(err) != fault.HandlerTimeout || !errors.Is(err, hostabi.ErrCPUSpent) {
		t.Errorf("with less CPU time than that the run ends with %v", err)
	}
}

// The first request of a module that can be restored is not charged for loading it.
func TestLoadingCountsForNoRequest(t *testing.T) {
	wasm := bytes.Replace(unfit(t), []byte("\x70\x01\xd0\x70\x0b"), []byte("\x70\x00\xd0\x70\x0b"), 1) // the global cannot change
	m := load(t, newEngine(t, sandbox.Options{NoBreaker: true}), wasm)
	call := newCall(context.Background(), new(bytes.Buffer))
	call.Host.Limits.CPU = 1
	if err := m.Run(call, "hello"); err != nil || call.CPU() != 0 {
		t.Errorf("%v, having computed for %s", err, call.CPU())
	}
	if idle, err := m.Restored(); idle != 1 || err != nil {
		t.Errorf("%d sandboxes are idle: %v", idle, err)
	}
}

// A command that exits was unwound like one that traps, though it has answered. If a function
// cannot be reused after that, it is looked up again.
func TestAFunctionThatExitedIsLookedUpAgainIfNecessary(t *testing.T) {
	for _, row := range []struct {
		disabled []string
		body     string
		kept     int
	}{{nil, "0", 1}, {[]string{sandbox.OptReuse}, "r", 1}, {[]string{sandbox.OptReuse}, "0", 0}, {[]string{sandbox.OptReuse}, "t", 0}} {
		m := load(t, newEngine(t, sandbox.Options{Disable: row.disabled}), assembleText(t, counting))
		call := newCall(context.Background(), new(bytes.Buffer))
		call.Request.Body = []byte(row.body)
		for range 3 {
			if err := m.Run(call, "test"); (err == nil) != (row.body != "t") {
				t.Errorf("%q: %v", row.body, err)
			}
			if n := m.KeptFunctions(); n != row.kept {
				t.Errorf("%q without %q: %d functions are kept, want %d", row.body, row.disabled, n, row.kept)
			}
		}
	}
}
