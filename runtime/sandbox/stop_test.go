package sandbox_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"runner.example/hostabi"
	"runner.example/internal/fault"
	"runner.example/runtime/sandbox"
)

// The module logs what it was told before, and that host calls are denied (errno -3).
func TestAStoppedRunCanLogWhereItWas(t *testing.T) {
	options := newStepClock(100 * time.Microsecond).options()
	options.MemoryBytes = 1 << 20
	m := load(t, newEngine(t, options), assemble(t, "stopped"))
	for _, row := range []struct {
		handler, logs string
		code          fault.Code
		because       error
	}{
		{"computes", "13", fault.HandlerTimeout, hostabi.ErrCPUSpent},
		{"returns", "23", fault.HandlerTimeout, hostabi.ErrCPUSpent},
		{"stays", "!3", fault.HandlerTimeout, hostabi.ErrCPUSpent},
		{"grows", "33", fault.HandlerOutOfMemory, nil},
	} {
		for range 2 { // the second run begins with fresh memory
			var log bytes.Buffer
			call := newCall(context.Background(), &log)
			call.Host.Limits.CPU = 5 * time.Millisecond
			err := m.Run(call, row.handler)
			if fault.CodeOf(err) != row.code || row.because != nil && !errors.Is(err, row.because) {
				t.Errorf("%s ends with %v, want %s because of %v", row.handler, err, row.code, row.because)
			}
			if want := `"msg":"` + row.logs + `"`; strings.Count(log.String(), want) != 1 {
				t.Errorf("%s logs %s, want %s once", row.handler, log.String(), want)
			}
		}
	}
	var log bytes.Buffer
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := m.Run(newCall(ctx, &log), "computes"); fault.CodeOf(err) != fault.HandlerTimeout || log.Len() > 0 {
		t.Errorf("a run whose caller has gone ends with %v and logs %s", err, log.String())
	}
}

// On a busy machine much more time passes than runner_stopped computes.
func TestReportingIsLimitedByCPUTime(t *testing.T) {
	var wall, cpu atomic.Int64
	options := sandbox.Options{
		NoBreaker: true,
		Now:       func() time.Duration { return time.Duration(wall.Add(int64(300 * time.Millisecond))) },
		CPUTime:   func() time.Duration { return time.Duration(cpu.Add(int64(10 * time.Microsecond))) },
	}
	m := load(t, newEngine(t, options), named(t, `(module
		(import "runner" "log" (func $log (param i32 i32 i32)))
		(memory (export "memory") 1)
		(data (i32.const 0) "stopped\0a\0a    at handler (handlers/a.ts:1:2)")
		(func (export "spin") (loop (br 0)))
		(func (export "runner_stopped")
			(local $i i32)
			(loop $again (br_if $again (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 2_000_000))))
			(call $log (i32.const 4) (i32.const 0) (i32.const 43))))`))
	f, _ := failureOf(t, m, "spin", 5*time.Millisecond)
	if f.Kind != "CPU limit" || len(f.Frames) != 1 || f.Frames[0].Function != "handler" || f.Frames[0].File != "handlers/a.ts" {
		t.Errorf("%s at %v", f.Kind, f.Frames)
	}
}

// If runner_stopped fails, or has nothing to report, the frames are those of the run.
func TestRunnerStoppedDoesNotReplaceFrames(t *testing.T) {
	const module = `(module
		(import "runner" "log" (func $log (param i32 i32 i32)))
		(import "wasi_snapshot_preview1" "sched_yield" (func $yield (result i32)))
		(memory (export "memory") 1 2)
		(data (i32.const 0) "stopped\0a\0a    at handler (handlers/a.ts:1:2)")
		(func $busy (loop (br 0)))
		(func (export "spin") (nop) (call $busy))
		(func $more (result i32) (memory.grow (i32.const 5)))
		(func (export "grow") (drop (call $more)) (drop (call $more)) unreachable)
		(func $report (call $log (i32.const 4) (i32.const 0) (i32.const 43)))
		(func $never (loop (drop (call $yield)) (br 0)))
		(func $traps unreachable)
		(func (export "runner_stopped") `
	for body, reported := range map[string]bool{
		"(nop)": false, "(call $traps)": false, "(call $never)": false, "(drop (call $yield))": false,
		"(call $report)": true, "(call $report) (call $traps)": true, "(call $report) (call $never)": true,
	} {
		wasm := named(t, module+body+"))")
		options := newStepClock(100 * time.Microsecond).options()
		options.MemoryBytes = 128 << 10
		options.ReadModule = func([sha256.Size]byte) ([]byte, []byte, error) { return wasm, nil, nil }
		m := load(t, newEngine(t, options), wasm)
		for handler, want := range map[string]string{"spin": "busy 3, spin 10", "grow": "grow 0"} {
			f, _ := failureOf(t, m, handler, 5*time.Millisecond)
			got := ""
			if !reported {
				got = show(wasm, f.Frames)
			} else if want = "handler (handlers/a.ts:1:2)"; len(f.Frames) == 1 {
				got = f.Frames[0].String()
			}
			if got != want {
				t.Errorf("%s, and runner_stopped is %s: frames %q, want %q", handler, body, got, want)
			}
		}
	}
}
