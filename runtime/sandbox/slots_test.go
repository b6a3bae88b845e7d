package sandbox_test

import (
	"bytes"
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"runner.example/internal/deadline"
	"runner.example/internal/fault"
	"runner.example/runtime/sandbox"
)

// Guests that wait for something release their instance slots. However many requests some
// handlers have, slots remain for the others, and for parked guests.
func TestSleepingGuestsReleaseTheirInstanceSlots(t *testing.T) {
	wasm := assemble(t, "cases")
	synctest.Test(t, func(t *testing.T) {
		e := newEngine(t, sandbox.Options{Instances: 16, QueueWait: 10 * time.Second, NoBreaker: true})
		m, other := loadAs(t, e, "build/first.wasm", wasm), loadAs(t, e, "build/other.wasm", wasm)
		third, fourth := loadAs(t, e, "build/third.wasm", wasm), loadAs(t, e, "build/fourth.wasm", wasm)
		var sleepers sync.WaitGroup
		sleep := func(m *sandbox.Module, n int) {
			for range n {
				sleepers.Go(func() {
					if _, err := within(t, plenty, m, "sleep"); err != nil {
						t.Error(err)
					}
				})
			}
			synctest.Wait()
		}
		at := func(m *sandbox.Module, handler string, want time.Duration) {
			t.Helper()
			began := time.Now()
			if _, err := within(t, plenty, m, handler); err != nil || time.Since(began) != want {
				t.Errorf("%s ends after %s, want %s: %v", handler, time.Since(began), want, err)
			}
		}
		lasts := func(want time.Duration, what string) {
			t.Helper()
			began := time.Now()
			sleepers.Wait()
			if took := time.Since(began); took != want {
				t.Errorf("%s take %s, want %s", what, took, want)
			}
		}
		for range 2 { // what was taken is given back
			sleep(m, 40)
			sleep(other, 30)
			sleep(third, 20)
			at(fourth, "hello", 0)
			at(m, "hello", 0)
			lasts(5*time.Second, "90 guests of three handlers that sleep 5 s")
		}
		sleep(m, 130) // 96 without a place and 12 in one; the others after them
		at(m, "hello", 0)
		at(other, "hello", 0)
		sleep(other, 20)
		at(third, "hello", 0)
		lasts(10*time.Second, "more than may wait at a time")
		sleep(m, 96)
		at(m, "sleep", 5*time.Second)
		lasts(0, "those before it")
	})
}

// The memory of parked guests is limited, and shared between handlers.
func TestParkedGuestsLeaveMemoryToOthers(t *testing.T) {
	slots := sandbox.NewSlots(16, 2000) // half of which is for those that wait
	large, other := new(sandbox.Handler), new(sandbox.Handler)
	rests := func(l *sandbox.Handler, memory int64, most int) (n int) {
		for range most {
			if err := slots.Enter(t.Context(), l, 0); err != nil {
				t.Fatal(err)
			}
			if !slots.Park(l, memory) {
				slots.Leave(l)
				return n
			}
			n++
		}
		return n
	}
	if n := rests(large, 100, 20); n != 7 {
		t.Errorf("%d guests with a tenth of the memory each wait, want 7", n)
	}
	if n := rests(other, 100, 20); n == 0 {
		t.Error("there is none left for another handler")
	}
	if n := rests(new(sandbox.Handler), 1001, 1); n != 0 {
		t.Error("one waits with more memory than there is")
	}
}

// A request that waited for an instance slot for most of its time, after it had parked, is
// refused as overloaded and not as slow.
func TestARequestThatGetsNoSlotAfterItsWaitIsRefused(t *testing.T) {
	wasm := assembleText(t, `(module
		(import "wasi_snapshot_preview1" "poll_oneoff" (func $poll (param i32 i32 i32 i32) (result i32)))
		(memory (export "memory") 1)
		(func $sleep (param $ns i64)
			(i32.store (i32.const 16) (i32.const 1))
			(i64.store (i32.const 24) (local.get $ns))
			(drop (call $poll (i32.const 0) (i32.const 200) (i32.const 1) (i32.const 300))))
		(func (export "hold") (drop (memory.grow (i32.const 20))) (call $sleep (i64.const 3600000000000)))
		(func (export "nap") (call $sleep (i64.const 20000000))))`)
	synctest.Test(t, func(t *testing.T) {
		const page = 64 << 10 // of the 32 there are those that wait may have half: hold keeps its place
		e := newEngine(t, sandbox.Options{Instances: 1, QueueWait: plenty, MemoryBytes: 32 * page, TotalMemoryBytes: 32 * page})
		m := load(t, e, wasm)
		run := func(handler string, limit time.Duration, want fault.Code) {
			began := time.Now()
			ctx := deadline.New(context.Background(), began.Add(limit))
			defer ctx.Stop()
			if err := m.Run(newCall(ctx, new(bytes.Buffer)), handler); fault.CodeOf(err) != want || time.Since(began) != limit {
				t.Errorf("%s ends after %s with %v, want %q after %s", handler, time.Since(began), err, want, limit)
			}
		}
		var all sync.WaitGroup
		all.Go(func() { run("nap", 300*time.Millisecond, fault.Overloaded) })
		synctest.Wait()
		if e.Parked() != 1 {
			t.Fatal("it is not parked")
		}
		all.Go(func() { run("hold", 600*time.Millisecond, fault.HandlerTimeout) })
		synctest.Wait()
		if e.Parked() != 1 {
			t.Fatal("the other one is parked, too")
		}
		all.Wait()
	})
}

// When requests of a handler wait in vain, later ones of this handler wait a hundredth as
// long, until none has waited in vain for as long as they may wait.
func TestRequestsThatDoNotFitAreRefusedSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slots := sandbox.NewSlots(4, 0)
		busy, other := new(sandbox.Handler), new(sandbox.Handler)
		waits := func(h *sandbox.Handler, want time.Duration) {
			t.Helper()
			began := time.Now()
			if err := slots.Enter(t.Context(), h, time.Second); err == nil || time.Since(began) != want {
				t.Errorf("refused after %s with %v, want after %s", time.Since(began), err, want)
			}
		}
		for range 3 { // all that one handler may have
			if err := slots.Enter(t.Context(), busy, time.Second); err != nil {
				t.Fatal(err)
			}
		}
		waits(busy, time.Second)
		for range 300 { // more than two seconds
			waits(busy, 10*time.Millisecond)
		}
		if err := slots.Enter(t.Context(), other, time.Second); err != nil {
			t.Errorf("another handler: %v", err)
		}
		waits(other, time.Second)
		time.Sleep(time.Second)
		waits(busy, time.Second)

		// A client that leaves does not shorten the wait of others.
		time.Sleep(time.Second)
		gone, leave := context.WithTimeout(t.Context(), time.Hour)
		time.AfterFunc(time.Millisecond, leave)
		if err := slots.Enter(gone, busy, time.Second); err == nil {
			t.Error("there is no slot")
		}
		waits(busy, time.Second)
	})
}
