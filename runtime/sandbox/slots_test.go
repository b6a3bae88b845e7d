package sandbox_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"runner.example/internal/caller"
	"runner.example/internal/deadline"
	"runner.example/internal/fault"
	"runner.example/runtime/sandbox"
)

// Guests that wait for something release their instance slots. However many requests some
// handlers have, slots remain for the others, and for parked guests.
func TestSleepingGuestsReleaseTheirInstanceSlots(t *testing.T) {
	const ada, bob, carol = "192.0.2.1", "192.0.2.2", "192.0.2.3" // who share the limit of parked guests
	wasm := assemble(t, "cases")
	synctest.Test(t, func(t *testing.T) {
		e := newEngine(t, sandbox.Options{Instances: 16, QueueWait: 10 * time.Second, NoBreaker: true})
		m, other := loadAs(t, e, "build/first.wasm", wasm), loadAs(t, e, "build/other.wasm", wasm)
		third, fourth := loadAs(t, e, "build/third.wasm", wasm), loadAs(t, e, "build/fourth.wasm", wasm)
		var sleepers sync.WaitGroup
		sleep := func(who string, m *sandbox.Module, n int) {
			for range n {
				sleepers.Go(func() {
					if err := callAs(caller.Caller{}, who, plenty, m, "sleep"); err != nil {
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
			sleep(ada, m, 40)
			sleep(bob, other, 30)
			sleep(carol, third, 20)
			at(fourth, "hello", 0)
			at(m, "hello", 0)
			lasts(5*time.Second, "90 guests of three handlers that sleep 5 s")
		}
		sleep(ada, m, 130) // 96 at a time; the others wait for a slot
		at(m, "hello", 0)
		at(other, "hello", 0)
		sleep(bob, other, 20)
		at(third, "hello", 0)
		lasts(10*time.Second, "more than may wait at a time")
		sleep(ada, m, 90)
		at(m, "sleep", 5*time.Second)
		lasts(0, "those before it")
	})
}

// A caller may park as many guests in many handlers as in one. Its next guest ends when it begins to
// wait; those of others, in the same handlers, do not.
func TestACallerOfManyHandlersLetsOthersPark(t *testing.T) {
	wasm := assemble(t, "cases")
	synctest.Test(t, func(t *testing.T) {
		e := newEngine(t, sandbox.Options{Instances: 16, QueueWait: time.Second, NoBreaker: true})
		var modules []*sandbox.Module
		for i := range 12 {
			modules = append(modules, loadAs(t, e, fmt.Sprintf("build/%d.wasm", i), wasm))
		}
		ended := make(chan error, 120)
		for i := range cap(ended) {
			go func() { ended <- callAs(caller.Caller{}, "192.0.2.1", plenty, modules[i%len(modules)], "sleep") }()
			synctest.Wait()
		}
		if n := e.Parked(); n != 96 {
			t.Errorf("%d guests of one caller have parked, want 96", n)
		}
		var others sync.WaitGroup
		for i := range 20 {
			others.Go(func() {
				who := netip.AddrFrom4([4]byte{192, 0, 3, byte(i % 2)}).String()
				if err := callAs(caller.Caller{}, who, plenty, modules[i%len(modules)], "sleep"); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		others.Wait()
		refused := 0
		for range cap(ended) {
			if err := <-ended; fault.CodeOf(err) == fault.Overloaded {
				refused++
			} else if err != nil {
				t.Error(err)
			}
		}
		if refused != 24 || e.Parked() != 0 {
			t.Errorf("%d requests of one caller are refused, want 24; %d have parked in the end", refused, e.Parked())
		}
	})
}

// Whatever guests of any handlers and callers do, each holds its slot for a moment at a time. So a
// new caller of another handler enters soon, and finds a place while its share is free.
func TestRandomGuestsLeaveSlotsToOthers(t *testing.T) {
	rounds := uint64(5)
	if testing.Short() {
		rounds = 1
	}
	const moment = 2 * time.Millisecond
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	for round := range rounds {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, round))
			const count = 16
			slots := sandbox.NewSlots(count, 1<<20)
			handlers, callers := 1+random.IntN(40), 1+random.IntN(40)
			states := make([]*sandbox.Handler, handlers)
			for i := range states {
				states[i] = slots.NewHandler()
			}
			ctx, stop := context.WithCancel(t.Context())
			var all sync.WaitGroup
			var ended atomic.Int32
			for range 200 {
				h := states[random.IntN(handlers)].By(netip.AddrFrom4([4]byte{192, 0, 2, byte(random.IntN(callers))}).String())
				memory, waits, seed := random.Int64N(1<<16), time.Duration(random.Int64N(int64(time.Second))), random.Uint64()
				all.Go(func() {
					own := rand.New(rand.NewPCG(seed, 0))
					for ctx.Err() == nil {
						if slots.Enter(ctx, h, time.Second) != nil {
							continue
						}
						for own.IntN(4) > 0 {
							time.Sleep(time.Duration(own.Int64N(int64(moment))))
							if !slots.Park(h, memory) {
								ended.Add(1)
								break
							}
							time.Sleep(waits)
							slots.Unpark(ctx, h, memory)
						}
						slots.Leave(h)
						time.Sleep(time.Nanosecond) // or some would not let time pass
					}
				})
			}
			for range 5 {
				time.Sleep(time.Second / 3)
				h, began := slots.NewHandler().By("192.0.3.1"), time.Now()
				if err := slots.Enter(ctx, h, time.Second); err != nil || time.Since(began) > 10*moment {
					t.Errorf("round %d: a newcomer enters after %s: %v", round, time.Since(began), err)
				}
				slots.Leave(h)
			}
			stop()
			all.Wait()
			if err := slots.Idle(count); err != nil {
				t.Errorf("round %d, %d guests without a place: %v", round, ended.Load(), err)
			}
		})
	}
}

// The memory of parked guests is limited, and shared between handlers.
func TestParkedGuestsLeaveMemoryToOthers(t *testing.T) {
	slots := sandbox.NewSlots(16, 1000)
	large, other := slots.NewHandler().By("192.0.2.1"), slots.NewHandler().By("192.0.2.2")
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
	if n := rests(slots.NewHandler().By("192.0.2.1"), 100, 1); n != 0 {
		t.Error("there is some left for another handler of the same caller")
	}
	if n := rests(slots.NewHandler().By("192.0.2.3"), 1001, 1); n != 0 {
		t.Error("one waits with more memory than there is")
	}
}

// More requests than can wait together are served one after the other: such with much memory, and those of a
// handler that waits for some of its requests only.
func TestRequestsThatFindNoPlaceToWaitQueueForIt(t *testing.T) {
	wasm := assembleText(t, `(module
		(import "wasi_snapshot_preview1" "poll_oneoff" (func $poll (param i32 i32 i32 i32) (result i32)))
		(import "runner" "request_body" (func $body (param i32 i32 i32) (result i32)))
		(import "runner" "response_send" (func $send (param i32 i32 i32) (result i32)))
		(memory (export "memory") 1)
		(func (export "nap") (local $n i32)
			(local.set $n (call $body (i32.const 0) (i32.const 1024) (i32.const 16)))
			(if (i32.gt_s (local.get $n) (i32.const 1)) (then (drop (memory.grow (i32.const 900)))))
			(i32.store (i32.const 16) (i32.const 1))
			(i64.store (i32.const 24) (i64.const 5000000))
			(if (i32.gt_s (local.get $n) (i32.const 0)) (then
				(drop (call $poll (i32.const 0) (i32.const 200) (i32.const 1) (i32.const 300)))))
			(drop (call $send (i32.const 200) (i32.const 0) (i32.const 0)))))`)
	for name, bodies := range map[string][]string{"with much memory": {"mm"}, "some wait": {"", "w"}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := newEngine(t, sandbox.Options{Instances: 16, QueueWait: time.Minute})
				m := load(t, e, wasm)
				run := func(body string) error {
					call := newCall(t.Context(), new(bytes.Buffer))
					call.Request.Body = []byte(body)
					return m.Run(call, "nap")
				}
				if err := run(bodies[len(bodies)-1]); err != nil {
					t.Fatal(err)
				}
				refused := make(chan error, 400)
				var requests sync.WaitGroup
				for i := range cap(refused) {
					requests.Go(func() {
						if err := run(bodies[i%len(bodies)]); err != nil {
							refused <- err
						}
					})
					synctest.Wait() // it waits, or has ended
				}
				if _, waiting, _ := e.Slots(); waiting == 0 {
					t.Error("all fit at once")
				}
				requests.Wait()
				if n := len(refused); n > 0 {
					t.Errorf("%d of %d requests are refused: %v", n, cap(refused), <-refused)
				}
			})
		})
	}
}

// Requests that could not all wait do not begin together, even if none of their caller waits yet. The first
// one of another caller begins beside them.
func TestRequestsThatCouldNotWaitTogetherDoNotBegin(t *testing.T) {
	for name, row := range map[string]struct {
		memory        int64
		parked, begin int // requests of the first caller
	}{
		"by memory":             {100, 0, 7},
		"by memory, after some": {100, 3, 4},
		"by number":             {0, 90, 6},
	} {
		t.Run(name, func(t *testing.T) {
			slots := sandbox.NewSlots(16, 1000)
			ada := slots.NewHandler().By("192.0.2.1")
			bob := ada.By("192.0.2.2")
			begins := func(h *sandbox.Handler) bool { return slots.Enter(t.Context(), h, 0) == nil }
			for range row.parked {
				if !begins(ada) || !slots.Park(ada, row.memory) {
					t.Fatal("one cannot wait")
				}
			}
			slots.Expect(ada, row.memory)
			n := 0
			for begins(ada) {
				n++
			}
			if n != row.begin {
				t.Errorf("%d requests of one caller begin, want %d", n, row.begin)
			}
			if !begins(bob) || begins(bob) {
				t.Error("not one request of another caller begins")
			}
			for range n {
				if !slots.Park(ada, row.memory) {
					t.Error("one that has begun cannot wait")
				}
			}
			if !slots.Park(bob, row.memory) {
				t.Error("that of the other caller cannot wait")
			}
		})
	}
}

// An initialization has no instance slot that it could give back while it waits.
func TestAnInitializationMayWait(t *testing.T) {
	wasm := assembleText(t, `(module
		(import "wasi_snapshot_preview1" "poll_oneoff" (func $poll (param i32 i32 i32 i32) (result i32)))
		(import "runner" "response_send" (func $send (param i32 i32 i32) (result i32)))
		(memory (export "memory") 1)
		(func (export "_initialize")
			(i32.store (i32.const 16) (i32.const 1))
			(i64.store (i32.const 24) (i64.const 2000000))
			(drop (call $poll (i32.const 0) (i32.const 200) (i32.const 1) (i32.const 300))))
		(func (export "nap") (drop (call $send (i32.const 200) (i32.const 0) (i32.const 0)))))`)
	e := newEngine(t, sandbox.Options{})
	for name, m := range map[string]*sandbox.Module{"restored": load(t, e, wasm), "fresh": loadFresh(t, e, wasm)} {
		if err := m.Run(newCall(t.Context(), new(bytes.Buffer)), "nap"); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if running, waiting, parked := e.Slots(); running != 0 || waiting != 0 || parked != 0 {
		t.Errorf("%d guests run, %d wait and %d have parked", running, waiting, parked)
	}
}

// A request that waited for an instance slot for most of its time, after it had parked, is
// refused as overloaded and not as slow.
func TestARequestThatGetsNoSlotAfterItsWaitIsRefused(t *testing.T) {
	wasm := assembleText(t, `(module
		(import "wasi_snapshot_preview1" "poll_oneoff" (func $poll (param i32 i32 i32 i32) (result i32)))
		(memory (export "memory") 1)
		(func (export "nap")
			(i32.store (i32.const 16) (i32.const 1))
			(i64.store (i32.const 24) (i64.const 20000000))
			(drop (call $poll (i32.const 0) (i32.const 200) (i32.const 1) (i32.const 300)))))`)
	synctest.Test(t, func(t *testing.T) {
		e := newEngine(t, sandbox.Options{Instances: 1})
		m := load(t, e, wasm)
		began, ended := time.Now(), make(chan error)
		ctx := deadline.New(context.Background(), began.Add(300*time.Millisecond))
		defer ctx.Stop()
		go func() { ended <- m.Run(newCall(ctx, new(bytes.Buffer)), "nap") }()
		synctest.Wait()
		if e.Parked() != 1 {
			t.Fatal("it is not parked")
		}
		release := e.Occupy()
		if err := <-ended; fault.CodeOf(err) != fault.Overloaded || time.Since(began) != 300*time.Millisecond {
			t.Errorf("it ends after %s with %v", time.Since(began), err)
		}
		release()
	})
}

// When requests of a handler wait in vain, later ones of this handler wait a hundredth as
// long, until none has waited in vain for as long as they may wait.
func TestRequestsThatDoNotFitAreRefusedSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slots := sandbox.NewSlots(4, 0)
		busy, other := slots.NewHandler(), slots.NewHandler()
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

func TestAStreamThatWaitsAloneMayHaveAnyMemoryAndManyHaveShares(t *testing.T) {
	w := sandbox.NewWaitingStreams(100)
	for range 2 { // what was taken is given back
		if !w.Begin("ada", 300) {
			t.Fatal("an answer that waits alone has not enough memory")
		}
		if w.Begin("bob", 1) {
			t.Error("beside one that has all memory another one waits")
		}
		w.End("ada", 300)
		held := 0
		for w.Begin("ada", 5) {
			held++
		}
		if held != 15 {
			t.Errorf("one caller waits with %d of 100, want three quarters", 5*held)
		}
		if !w.Begin("bob", 5) {
			t.Error("another caller finds no memory")
		}
		w.End("bob", 5)
		for range held {
			w.End("ada", 5)
		}
	}
}
