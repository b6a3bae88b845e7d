package sandbox_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"runner.example/hostabi"
	"runner.example/internal/fault"
	"runner.example/runtime/sandbox"
)

// drawing has drawn eight random bytes when it is initialized, after so many passes of a loop. The handler
// answers them, with one more that counts the runs of the instance.
func drawing(t *testing.T, passes int) []byte {
	return assembleText(t, `(module
		(import "wasi_snapshot_preview1" "random_get" (func $random (param i32 i32) (result i32)))
		(import "runner" "response_send" (func $send (param i32 i32 i32) (result i32)))
		(memory (export "memory") 1)
		(func (export "_initialize") (local $i i32)
			(drop (call $random (i32.const 0) (i32.const 8)))
			(loop $again
				(i32.store (i32.const 16) (i32.mul (i32.load (i32.const 16)) (i32.const 31)))
				(local.set $i (i32.add (local.get $i) (i32.const 1)))
				(br_if $again (i32.lt_u (local.get $i) (i32.const `+fmt.Sprint(passes)+`)))))
		(func (export "runner_prepare") (i32.store8 (i32.const 7) (i32.const 0)))
		(func (export "draw")
			(i32.store8 (i32.const 8) (i32.add (i32.load8_u (i32.const 8)) (i32.const 1)))
			(drop (call $send (i32.const 200) (i32.const 0) (i32.const 9)))))`)
}

func loadFresh(t *testing.T, e *sandbox.Engine, wasm []byte) *sandbox.Module {
	t.Helper()
	m, err := e.LoadAs(t.Context(), "build/test.wasm", wasm, sandbox.Settings{Fresh: true})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// One file can be loaded fresh for one release and restored for another.
func TestAFreshModuleIsInitializedInEachRequest(t *testing.T) {
	e := newEngine(t, sandbox.Options{})
	wasm := drawing(t, 1)
	restored, fresh := load(t, e, wasm), loadFresh(t, e, wasm)
	if again := loadFresh(t, e, wasm); again != fresh || restored == fresh {
		t.Error("a fresh module is shared with one that is restored, or not with itself")
	}
	for _, row := range []struct {
		module *sandbox.Module
		want   int
	}{{restored, 1}, {fresh, 100}, {restored, 1}} {
		seen := map[string]bool{}
		for range 100 {
			call := newCall(t.Context(), new(bytes.Buffer))
			if err := row.module.Run(call, "draw"); err != nil {
				t.Fatal(err)
			}
			body := string(call.Response.Body)
			if prepared := body[7] == 0; row.want == 1 && !prepared { // of an image alone
				t.Error("the image was not prepared")
			}
			if !strings.HasSuffix(body, "\x01") {
				t.Errorf("a request sees what another has left: %q", body)
			}
			seen[body] = true
		}
		if len(seen) != row.want {
			t.Errorf("100 requests had %d different bytes, want %d", len(seen), row.want)
		}
	}
	if idle, err := fresh.Restored(); idle != 1 || err != nil {
		t.Errorf("%d sandboxes of the fresh module are as they were before the initialization, %v", idle, err)
	}
}

// The time of the initialization is the request's.
func TestTheInitializationOfAFreshModuleCountsAsCPUTimeOfTheRequest(t *testing.T) {
	e := newEngine(t, sandbox.Options{NoBreaker: true})
	wasm := drawing(t, 20_000_000)
	for _, row := range []struct {
		module *sandbox.Module
		want   fault.Code
	}{{loadFresh(t, e, wasm), fault.HandlerTimeout}, {load(t, e, wasm), ""}} {
		call := newCall(t.Context(), new(bytes.Buffer))
		call.Host.Limits.CPU = 3 * time.Millisecond
		err := row.module.Run(call, "draw")
		if fault.CodeOf(err) != row.want || row.want != "" && !errors.Is(err, hostabi.ErrCPUSpent) {
			t.Errorf("ended with %v, want %q", err, row.want)
		}
	}
}

// pausing is a context whose Err blocks at the n-th call, until it is released.
type pausing struct {
	context.Context
	at              int32
	looks           atomic.Int32
	paused, release chan struct{}
}

func (p *pausing) Err() error {
	if p.looks.Add(1) == p.at {
		close(p.paused)
		<-p.release
	}
	return nil
}

// Requests that initialize their module do so in a CPU slot, and one that would get its slot too late is
// refused: the module counts as one whose requests are long.
func TestInitializationsQueueForTheCPUAsHandlersDo(t *testing.T) {
	clock := newStepClock(time.Microsecond)
	options := clock.options()
	options.Instances = 64
	e := newEngine(t, options)
	m := loadFresh(t, e, drawing(t, 20_000_000))
	clock.step.Store(int64(time.Second)) // it takes minutes
	run := func(ctx context.Context) error {
		call := newCall(ctx, new(bytes.Buffer))
		call.Host.Limits.CPU = 1000 * time.Hour
		return m.Run(call, "draw")
	}
	if err := run(t.Context()); err != nil {
		t.Fatal(err)
	}
	release := make(chan struct{})
	var holders sync.WaitGroup
	for range sandbox.CPUSlots() {
		ctx := &pausing{Context: t.Context(), at: 20, paused: make(chan struct{}), release: release}
		holders.Go(func() {
			if err := run(ctx); err != nil {
				t.Errorf("one that had a CPU slot: %v", err)
			}
		})
		<-ctx.paused
	}
	soon, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := run(soon); fault.CodeOf(err) != fault.Overloaded {
		t.Errorf("an initialization of minutes within a minute, without a CPU slot: %v", err)
	}
	close(release)
	holders.Wait()
}
