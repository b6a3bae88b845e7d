package sandbox_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"sync"
	"testing"
	"time"

	"runner.example/internal/deadline"
	"runner.example/runtime/sandbox"
)

// compute runs "counted" for a number of passes, with a deadline as requests
// have it.
func compute(m *sandbox.Module, passes uint32, limit time.Duration) error {
	ctx := deadline.New(context.Background(), time.Now().Add(limit))
	defer ctx.Stop()
	call := newCall(ctx, new(bytes.Buffer))
	call.Request.Body = binary.LittleEndian.AppendUint32(nil, passes)
	return m.Run(call, "counted")
}

// Runs without an end delay neither those of another handler nor, once they have had more
// than usual, those of their own handler.
func TestEndlessRunsLetOthersHaveTheirCPUSlots(t *testing.T) {
	e := newEngine(t, sandbox.Options{NoBreaker: true})
	m, other := load(t, e, assemble(t, "cases")), loadAs(t, e, "build/other.wasm", assemble(t, "cases"))
	ctx, stop := context.WithCancel(context.Background())
	var loops sync.WaitGroup
	endless := func(handler string, passes uint32) {
		loops.Go(func() {
			call := newCall(ctx, new(bytes.Buffer))
			call.Request.Body = binary.LittleEndian.AppendUint32(nil, passes)
			_ = m.Run(call, handler)
		})
	}
	const passes = 10_000_000
	for range 3 {
		endless("loop", 0)
		endless("counted", 1<<32-1)
	}
	for _, module := range []*sandbox.Module{other, m} {
		for range 5 {
			if err := compute(module, passes, plenty); err != nil {
				t.Error(err)
			}
		}
	}
	stop()
	loops.Wait()
}

// Restoring a sandbox takes as long as a long run when much of it was touched, so it
// needs the CPU slot, too.
func TestARunKeepsItsCPUSlotUntilItsSandboxIsRestored(t *testing.T) {
	e := newEngine(t, sandbox.Options{NoBreaker: true})
	m := load(t, e, assembleText(t, `(module
		(import "runner" "response_send" (func $send (param i32 i32 i32) (result i32)))
		(memory (export "memory") 1)
		(func (export "touch") (local $at i32)
			(drop (memory.grow (i32.const 500)))
			(loop
				(i32.store (local.get $at) (i32.const 1))
				(br_if 0 (i32.lt_u (local.tee $at (i32.add (local.get $at) (i32.const 4096))) (i32.const 32768000))))
			(local.set $at (i32.const 50000000))
			(loop (br_if 0 (local.tee $at (i32.sub (local.get $at) (i32.const 1)))))
			(drop (call $send (i32.const 200) (i32.const 0) (i32.const 0)))))`))
	before := e.GuestMemory()
	var taken []int64
	e.WatchCPUQueue(func() { taken = append(taken, e.GuestMemory()) })
	if _, err := within(t, plenty, m, "touch"); err != nil {
		t.Fatal(err)
	}
	if len(taken) < 2 || taken[0] < before+500<<16 || taken[len(taken)-1] != before {
		t.Errorf("guests have %d bytes while a run has its CPU slot, want %d more than %d when it begins and %d when it ends", taken, 500<<16, before, before)
	}
}

// With much memory, a guest can spend far longer on a unit of fuel than the unit stands
// for. So it is interrupted sooner, and at once when its memory grows.
func TestSlicesAreShortWithMuchMemory(t *testing.T) {
	m := load(t, newEngine(t, sandbox.Options{}), assembleText(t, `(module
		(import "runner" "response_send" (func $send (param i32 i32 i32) (result i32)))
		(memory (export "memory") 1)
		(func $spin (local $left i32)
			(local.set $left (i32.const 1000000))
			(loop (br_if 0 (local.tee $left (i32.sub (local.get $left) (i32.const 1))))))
		(func (export "small") (call $spin)
			(drop (call $send (i32.const 200) (i32.const 0) (i32.const 0))))
		(func (export "large") (drop (memory.grow (i32.const 200))) (call $spin)
			(drop (call $send (i32.const 200) (i32.const 0) (i32.const 0)))))`))
	looks := func(handler string) int {
		ctx := &countdown{Context: context.Background(), left: 1 << 30}
		if err := m.Run(newCall(ctx, new(bytes.Buffer)), handler); err != nil {
			t.Fatal(err)
		}
		return ctx.looks
	}
	small, large := looks("small"), looks("large")
	if small > 1_000_000/sandbox.Slice+3 || large < 1_000_000/(1<<13) {
		t.Errorf("a million passes have the time looked at %d times with little memory, %d times with much", small, large)
	}
}
