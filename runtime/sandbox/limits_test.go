package sandbox_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tetratelabs/wazero"

	"runner.example/hostabi"
	"runner.example/hostabi/abi"
	"runner.example/internal/caller"
	"runner.example/internal/fault"
	"runner.example/runtime/sandbox"
)

// countdown is a context that ends when Err is called for the n-th time. It counts the calls.
type countdown struct {
	context.Context
	left, looks int
}

func (c *countdown) Err() error {
	if c.looks++; c.looks > c.left {
		return context.DeadlineExceeded
	}
	return nil
}

// stepClock is an engine's clock that advances by a step whenever it is read. What a guest computes takes
// the same time on it on any machine, however busy.
type stepClock struct{ at, step atomic.Int64 }

func newStepClock(step time.Duration) *stepClock {
	c := new(stepClock)
	c.step.Store(int64(step))
	return c
}

func (c *stepClock) now() time.Duration { return time.Duration(c.at.Add(c.step.Load())) }

// options returns options with this clock, which measures CPU time too.
func (c *stepClock) options() sandbox.Options {
	return sandbox.Options{NoBreaker: true, Now: c.now, CPUTime: c.now}
}

// A guest that does not call the host ends at the first refill after its deadline.
func TestAGuestEndsAtTheFirstRefillAfterItsDeadline(t *testing.T) {
	eachKind(t, testAGuestEndsAtTheFirstRefillAfterItsDeadline)
}

func testAGuestEndsAtTheFirstRefillAfterItsDeadline(t *testing.T, as kind) {
	m := load(t, newEngine(t, sandbox.Options{NoBreaker: true}), as.file(t, "cases"))
	for _, handler := range []string{"loop", "tree", "dive", "fill"} {
		for _, left := range []int{0, 1, 7, 50} {
			ctx := &countdown{Context: context.Background(), left: left}
			call := newCall(ctx, new(bytes.Buffer))
			if err := m.Run(call, handler); fault.CodeOf(err) != fault.HandlerTimeout {
				t.Errorf("%s ends with %v", handler, err)
			}
			if ctx.looks != left+1 {
				t.Errorf("%s: %d looks at the clock, the last of which found the time over: want %d", handler, ctx.looks, left+1)
			}
		}
	}
}

func TestRefillsAreAtMostASliceApart(t *testing.T) { eachKind(t, testRefillsAreAtMostASliceApart) }

func testRefillsAreAtMostASliceApart(t *testing.T, as kind) {
	m := load(t, newEngine(t, sandbox.Options{}), as.file(t, "cases"))
	for _, passes := range []uint32{100_000, 1_000_000, 10_000_000} {
		ctx := &countdown{Context: context.Background(), left: 1 << 30}
		call := newCall(ctx, new(bytes.Buffer))
		call.Request.Body = binary.LittleEndian.AppendUint32(nil, passes)
		usage, err := m.Measure(call, "counted")
		if err != nil {
			t.Fatal(err)
		}
		// The two host calls and the judgement look once each.
		refills := ctx.looks - 2
		if perRefill := int(passes) / (refills + 1); perRefill > sandbox.Slice {
			t.Errorf("%d passes of a loop and %d refills: more than %d passes from one to the next", passes, refills, sandbox.Slice)
		}
		if usage.Fuel < int64(passes)*99/100 || usage.Fuel/int64(refills+1) > sandbox.Slice {
			t.Errorf("%d passes, %d refills, and %d units of fuel", passes, refills, usage.Fuel)
		}
	}
}

func TestCPUTimeIsLimitedForAllRunsOfARequestTogether(t *testing.T) {
	eachKind(t, testCPUTimeIsLimitedForAllRunsOfARequestTogether)
}

func testCPUTimeIsLimitedForAllRunsOfARequestTogether(t *testing.T, as kind) {
	m := load(t, newEngine(t, sandbox.Options{NoBreaker: true}), as.file(t, "cases"))
	call := newCall(context.Background(), new(bytes.Buffer))
	call.Host.Limits.CPU = 20 * time.Millisecond
	run := func(attempt int, handler string) error {
		call.Attempt = attempt
		return m.Run(call, handler)
	}
	if err := run(1, "loop"); fault.CodeOf(err) != fault.HandlerTimeout || !errors.Is(err, hostabi.ErrCPUSpent) {
		t.Errorf("a loop with 20 ms of CPU time ends with %v", err)
	} else if cause := fault.Of(err).Cause; !strings.Contains(cause.Error(), "handler used more than 20ms of CPU ([sandbox] cpu)") {
		t.Errorf("the cause is %q", cause)
	}
	call.Request.Body = binary.LittleEndian.AppendUint32(nil, 5_000_000)
	if err := run(2, "counted"); !errors.Is(err, hostabi.ErrCPUSpent) {
		t.Errorf("the second run of a request whose time is spent: %v", err)
	}
	call.Host.Limits.CPU = time.Hour
	if err := run(1, "counted"); err != nil {
		t.Errorf("the next request: %v", err)
	}
}

func TestWaitingIsNotCPUTime(t *testing.T) { eachKind(t, testWaitingIsNotCPUTime) }

func testWaitingIsNotCPUTime(t *testing.T, as kind) {
	wasm := as.file(t, "cases")
	synctest.Test(t, func(t *testing.T) {
		m := load(t, newEngine(t, sandbox.Options{}), wasm)
		call := newCall(context.Background(), new(bytes.Buffer))
		call.Host.Limits.CPU = time.Second
		if err := m.Run(call, "sleep"); err != nil {
			t.Errorf("sleeping 5 s with 1 s of CPU time: %v", err)
		}
	})
}

// A recursion may take more native stack than each guest has, and takes guest memory for it.
func TestADeepRecursionIsPaidForWithMemory(t *testing.T) {
	eachKind(t, testADeepRecursionIsPaidForWithMemory)
}

func testADeepRecursionIsPaidForWithMemory(t *testing.T, as kind) {
	wasm := as.text(t, `(module
		(import "runner" "response_send" (func $send (param i32 i32 i32) (result i32)))
		(memory (export "memory") 1)
		(func $down (param i32) (result i32)
			(if (result i32) (i32.eqz (local.get 0)) (then (i32.const 0))
				(else (i32.add (i32.const 1) (call $down (i32.sub (local.get 0) (i32.const 1)))))))
		(func (export "down") (drop (call $down (i32.const 200000))) (drop (call $send (i32.const 204) (i32.const 0) (i32.const 0)))))`)
	for _, row := range []struct {
		total int64
		want  fault.Code
	}{{64 << 20, ""}, {8 << 20, fault.HandlerFailed}} {
		e := newEngine(t, sandbox.Options{NoBreaker: true, MemoryBytes: 1 << 20, TotalMemoryBytes: row.total})
		m := load(t, e, wasm)
		before := e.GuestMemory()
		for range 3 {
			if _, err := within(t, plenty, m, "down"); fault.CodeOf(err) != row.want {
				t.Errorf("with %d MiB for guests: %v", row.total>>20, err)
			}
		}
		if after := e.GuestMemory(); after != before {
			t.Errorf("with %d MiB for guests %d bytes are in use, and %d were before", row.total>>20, after, before)
		}
	}
}

// What the host keeps for a stream that decompresses brotli counts as memory of guests until the request ends. The
// stream is left open by a run that may have kept its thread.
func TestCompressedStreamsCountAsGuestMemory(t *testing.T) {
	const open = "compression.open"
	args := `{"format":"brotli","decompress":true}`
	wasm := assembleText(t, fmt.Sprintf(`(module
		(import "runner" "call" (func $call (param i32 i32 i32 i32) (result i32)))
		(import "runner" "response_send" (func $send (param i32 i32 i32) (result i32)))
		(memory (export "memory") 1)
		(data (i32.const 0) %q) (data (i32.const 100) %q)
		(func (export "open")
			(i32.store (i32.const 200) (call $call (i32.const 0) (i32.const %d) (i32.const 100) (i32.const %d)))
			(drop (call $send (i32.const 200) (i32.const 200) (i32.const 4)))))`, open, args, len(open), len(args)))
	for total, fits := range map[int64]bool{64 << 20: true, 16 << 20: false} {
		e := newEngine(t, sandbox.Options{MemoryBytes: 1 << 20, TotalMemoryBytes: total})
		m := load(t, e, wasm)
		before := e.GuestMemory()
		for range 3 {
			call := newCall(context.Background(), new(bytes.Buffer))
			if err := m.Run(call, "open"); err != nil {
				t.Fatal(err)
			}
			if n := int32(binary.LittleEndian.Uint32(call.Response.Body)); (n > 0) != fits || !fits && n != int32(abi.Unavailable) {
				t.Errorf("with %d MiB for guests, a stream that takes 17 MiB: %d", total>>20, n)
			}
		}
		if after := e.GuestMemory(); after != before {
			t.Errorf("%d bytes are in use, and %d were before", after, before)
		}
	}
}

// The stack of a guest is limited to 16 MiB, which are three steps of 8 MiB of guest memory.
func TestAnEndlessRecursionTakesAtMostThreeSteps(t *testing.T) {
	eachKind(t, testAnEndlessRecursionTakesAtMostThreeSteps)
}

func testAnEndlessRecursionTakesAtMostThreeSteps(t *testing.T, as kind) {
	var e *sandbox.Engine
	var loaded atomic.Bool
	var most int64
	now := func() time.Duration { // called at each refill, by the guest
		if loaded.Load() {
			most = max(most, e.GuestMemory())
		}
		return 0
	}
	e = newEngine(t, sandbox.Options{NoBreaker: true, Now: now, CPUTime: func() time.Duration { return 0 }})
	m := load(t, e, as.text(t, `(module
		(memory (export "memory") 1)
		(func $down (param i32) (result i32) (i32.add (i32.const 1) (call $down (local.get 0))))
		(func (export "down") (drop (call $down (i32.const 0)))))`))
	loaded.Store(true)
	before := e.GuestMemory()
	if _, err := within(t, plenty, m, "down"); fault.CodeOf(err) != fault.HandlerFailed {
		t.Errorf("endless recursion ends with %v", err)
	}
	if took := (most - before) >> 20; took != 24 {
		t.Errorf("endless recursion took %d MiB of the memory for guests, want 24", took)
	}
}

func TestTheStackOfADeepRecursionIsReleased(t *testing.T) {
	eachKind(t, testTheStackOfADeepRecursionIsReleased)
}

func testTheStackOfADeepRecursionIsReleased(t *testing.T, as kind) {
	if testing.Short() {
		t.Skip("takes seconds: left out by -short")
	}
	e := newEngine(t, sandbox.Options{NoBreaker: true, QueueWait: plenty})
	m := load(t, e, as.file(t, "cases"))
	heap := func() int64 {
		var s runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&s)
		return int64(s.HeapAlloc)
	}
	deep := func(n int) {
		var all sync.WaitGroup
		for range n {
			all.Go(func() {
				if _, err := within(t, plenty, m, "deep"); err != nil {
					t.Error(err)
				}
				_, err := within(t, plenty, m, "stack")
				if f := fault.Of(err); f == nil || f.Code != fault.HandlerFailed || !strings.Contains(f.Cause.Error(), "stack overflow") {
					t.Errorf("endless recursion ends with %v", err)
				}
			})
		}
		all.Wait()
	}
	deep(1)
	if used := e.GuestMemory(); used > 1<<20 {
		t.Errorf("a deep recursion keeps %d KiB of the memory for guests", used>>10)
	}
	before := heap()
	deep(16)
	if grown := heap() - before; grown > 4<<20 { // kept, it would be more than 16 MiB
		t.Errorf("16 deep recursions left %d KiB in the heap", grown>>10)
	}
}

func TestABreakerOpensAfterFiveTimeOutsInAMinute(t *testing.T) {
	eachKind(t, testABreakerOpensAfterFiveTimeOutsInAMinute)
}

func testABreakerOpensAfterFiveTimeOutsInAMinute(t *testing.T, as kind) {
	wasm := as.file(t, "cases")
	synctest.Test(t, func(t *testing.T) {
		e := newEngine(t, sandbox.Options{})
		m := load(t, e, wasm)
		timeOut := func() {
			t.Helper()
			if _, err := within(t, time.Second, m, "sleep"); fault.CodeOf(err) != fault.HandlerTimeout {
				t.Fatalf("ends with %v, want a time-out", err)
			}
		}
		refused := func(seconds int) {
			t.Helper()
			_, err := within(t, plenty, m, "sleep")
			u, ok := errors.AsType[*sandbox.Unavailable](err)
			if !ok || fault.CodeOf(err) != fault.HandlerUnavailable || u.RetryAfter != seconds {
				t.Errorf("ends with %v, want a refusal for %d s", err, seconds)
			}
		}
		answers := func() {
			t.Helper()
			if _, err := within(t, plenty, m, "sleep"); err != nil {
				t.Errorf("ends with %v", err)
			}
		}
		for range 4 { // too slowly: never five in a minute
			timeOut()
			time.Sleep(15 * time.Second)
		}
		timeOut()
		answers()
		time.Sleep(time.Minute)
		for range 5 {
			timeOut()
		}
		refused(10)
		if _, err := within(t, plenty, m, "hello"); err != nil {
			t.Errorf("another handler: %v", err)
		}
		time.Sleep(6500 * time.Millisecond)
		refused(4)
		time.Sleep(3500 * time.Millisecond)
		probe := make(chan error)
		go func() {
			_, err := within(t, time.Second, m, "sleep")
			probe <- err
		}()
		synctest.Wait()
		refused(1) // one is let through, and no more
		if err := <-probe; fault.CodeOf(err) != fault.HandlerTimeout {
			t.Errorf("the one that was let through: %v", err)
		}
		refused(10)
		time.Sleep(10 * time.Second)
		answers() // and so closes it
		answers()
		timeOut() // the others were within a minute: the count did not begin again
		refused(10)
		time.Sleep(time.Minute)
		answers()
		for range 4 {
			timeOut()
		}
		answers()
	})
}

// Strikes of a caller count for all handlers together, and each handler that had one refuses the
// caller then. A short request between them changes nothing.
func TestStrikesOfACallerCountForAllHandlers(t *testing.T) {
	wasm := assemble(t, "cases")
	synctest.Test(t, func(t *testing.T) {
		e := newEngine(t, sandbox.Options{})
		var modules []*sandbox.Module
		for i := range 16 {
			modules = append(modules, loadAs(t, e, fmt.Sprintf("build/%d.wasm", i), wasm))
		}
		const ada, bob = "192.0.2.1", "192.0.2.2"
		strikes := 0
		for range 4 {
			for _, m := range modules {
				if err := callAs(caller.Caller{}, ada, time.Millisecond, m, "sleep"); fault.CodeOf(err) == fault.HandlerTimeout {
					strikes++
				} else if fault.CodeOf(err) != fault.HandlerUnavailable {
					t.Errorf("ends with %v", err)
				}
				for _, who := range []string{ada, bob} {
					if err := callAs(caller.Caller{}, who, plenty, m, "hello"); err != nil {
						t.Errorf("%s gets %v from a handler without strikes", who, err)
					}
				}
			}
		}
		if strikes != len(modules) { // each handler has had one
			t.Errorf("%d endless requests of one caller ran, want %d", strikes, len(modules))
		}
		if err := callAs(caller.Caller{}, bob, plenty, modules[0], "sleep"); err != nil {
			t.Errorf("another caller gets %v", err)
		}
		// After the fifth, those before it do not run again either.
		time.Sleep(2 * time.Minute)
		for i := range 10 {
			want := fault.HandlerTimeout
			if i >= 5 {
				want = fault.HandlerUnavailable
			}
			if err := callAs(caller.Caller{}, ada, time.Millisecond, modules[i%5], "sleep"); fault.CodeOf(err) != want {
				t.Errorf("request %d ends with %v, want %q", i+1, err, want)
			}
		}
	})
}

// callAs runs a handler for one of many callers, with some time.
func callAs(who caller.Caller, address string, d time.Duration, m *sandbox.Module, handler string) error {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	call := newCall(ctx, new(bytes.Buffer))
	call.Caller, call.Address = who, netip.MustParseAddr(address)
	return m.Run(call, handler)
}

func TestABreakerOpensOnlyForTheCallerWhoseRequestsFail(t *testing.T) {
	wasm := assemble(t, "cases")
	const home, away = "192.0.2.1", "192.0.2.2"
	for name, row := range map[string]struct {
		striker, same, other       caller.Caller
		strikerAt, sameAt, otherAt string
	}{
		"addresses": {strikerAt: home, sameAt: home, otherAt: away},
		"networks":  {strikerAt: "2001:db8::1", sameAt: "2001:db8::2:1", otherAt: "2001:db8:0:1::1"},
		"keys": {
			striker: caller.Caller{Kind: caller.APIKey, KeyID: "a"}, same: caller.Caller{Kind: caller.APIKey, KeyID: "a"},
			other: caller.Caller{Kind: caller.APIKey, KeyID: "b"}, strikerAt: home, sameAt: away, otherAt: home,
		},
		"users": {
			striker: caller.Caller{Kind: caller.Session, UserID: "a"}, same: caller.Caller{Kind: caller.Session, UserID: "a"},
			other: caller.Caller{Kind: caller.Session, UserID: "b"}, strikerAt: home, sameAt: away, otherAt: home,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := load(t, newEngine(t, sandbox.Options{}), wasm)
				for range 5 {
					if err := callAs(row.striker, row.strikerAt, time.Second, m, "sleep"); fault.CodeOf(err) != fault.HandlerTimeout {
						t.Fatalf("ends with %v", err)
					}
				}
				for range 2 {
					if err := callAs(row.same, row.sameAt, plenty, m, "sleep"); fault.CodeOf(err) != fault.HandlerUnavailable {
						t.Errorf("the same caller: %v", err)
					}
					if err := callAs(row.other, row.otherAt, plenty, m, "sleep"); err != nil {
						t.Errorf("another caller: %v", err)
					}
				}
				time.Sleep(10 * time.Second)
				for range 2 {
					if err := callAs(row.same, row.sameAt, plenty, m, "sleep"); err != nil {
						t.Errorf("the same caller, later: %v", err)
					}
				}
			})
		})
	}
}

func TestAHandlerThatFailsForFiveCallersIsUnavailableToAll(t *testing.T) {
	wasm := assemble(t, "cases")
	at := func(n int) string { return netip.AddrFrom4([4]byte{192, 0, 2, byte(n)}).String() }
	synctest.Test(t, func(t *testing.T) {
		m := load(t, newEngine(t, sandbox.Options{}), wasm)
		ends := func(n int, d time.Duration, want fault.Code) {
			t.Helper()
			if err := callAs(caller.Caller{}, at(n), d, m, "sleep"); fault.CodeOf(err) != want {
				t.Errorf("caller %d ends with %v, want %q", n, err, want)
			}
		}
		strike := func(callers ...int) {
			t.Helper()
			for _, n := range callers {
				ends(n, time.Second, fault.HandlerTimeout)
			}
		}
		strike(1, 2, 3, 4, 1, 2, 3, 4, 1, 2)
		ends(9, plenty, "")
		time.Sleep(time.Minute) // what was longer ago does not count
		strike(5)
		ends(9, plenty, "")
		strike(1, 2, 3, 4)
		for n := range 9 {
			ends(n, plenty, fault.HandlerUnavailable)
		}
		// Callers that struck do not block the others, which are admitted first.
		time.Sleep(10 * time.Second)
		ends(1, time.Second, fault.HandlerUnavailable)
		strike(9)
		ends(8, plenty, fault.HandlerUnavailable)
		time.Sleep(10 * time.Second)
		ends(9, plenty, fault.HandlerUnavailable)
		ends(8, plenty, "")
		for n := range 9 {
			ends(n, plenty, "")
		}
		// Without other callers, those that struck are admitted.
		strike(1, 2, 3, 4, 5)
		time.Sleep(20 * time.Second)
		ends(1, plenty, "")
		ends(2, plenty, "")
	})
}

// When a server stops its handlers, their breakers do not count that.
func TestARunThatIsCancelledDoesNotCountAgainstItsHandler(t *testing.T) {
	eachKind(t, testARunThatIsCancelledDoesNotCountAgainstItsHandler)
}

func testARunThatIsCancelledDoesNotCountAgainstItsHandler(t *testing.T, as kind) {
	m := load(t, newEngine(t, sandbox.Options{}), as.file(t, "cases"))
	for range 10 {
		ctx, cancel := context.WithCancel(context.Background())
		calls := &cancelled{Context: ctx, cancel: cancel, left: 1000}
		call := newCall(calls, new(bytes.Buffer))
		if err := m.Run(call, "loop"); fault.CodeOf(err) != fault.HandlerTimeout {
			t.Fatalf("ends with %v", err)
		}
	}
}

// cancelled is a context that is cancelled when Err is called for the n-th time.
type cancelled struct {
	context.Context
	cancel context.CancelFunc
	left   int
}

func (c *cancelled) Err() error {
	if c.left--; c.left == 0 {
		c.cancel()
	}
	return c.Context.Err()
}

// The time in which a request has queued for a slot is not that of its handler: a run that had less than a
// quarter of all time does not count.
func TestARunThatMostlyQueuedForASlotDoesNotCountAgainstItsHandler(t *testing.T) {
	eachKind(t, testARunThatMostlyQueuedForASlotDoesNotCountAgainstItsHandler)
}

func testARunThatMostlyQueuedForASlotDoesNotCountAgainstItsHandler(t *testing.T, as kind) {
	wasm := as.file(t, "cases")
	synctest.Test(t, func(t *testing.T) {
		for queued, want := range map[time.Duration]fault.Code{900 * time.Millisecond: "", 700 * time.Millisecond: fault.HandlerUnavailable} {
			e := newEngine(t, sandbox.Options{Instances: 1, QueueWait: time.Minute})
			m := load(t, e, wasm)
			for range 5 {
				release := e.Occupy()
				time.AfterFunc(queued, release)
				if _, err := within(t, time.Second, m, "sleep"); fault.CodeOf(err) != fault.HandlerTimeout {
					t.Errorf("%v of a second in the queue: %v", queued, err)
				}
			}
			if _, err := within(t, plenty, m, "sleep"); fault.CodeOf(err) != want {
				t.Errorf("after five runs with %v of a second in the queue: %v, want %q", queued, err, want)
			}
		}
	})
}

func TestExhaustedStacksOpenABreakerToo(t *testing.T) {
	eachKind(t, testExhaustedStacksOpenABreakerToo)
}

func testExhaustedStacksOpenABreakerToo(t *testing.T, as kind) {
	m := load(t, newEngine(t, sandbox.Options{}), as.file(t, "cases"))
	for range 5 {
		if _, err := within(t, plenty, m, "stack"); fault.CodeOf(err) != fault.HandlerFailed {
			t.Fatalf("ends with %v", err)
		}
	}
	if _, err := within(t, plenty, m, "stack"); fault.CodeOf(err) != fault.HandlerUnavailable {
		t.Errorf("the sixth ends with %v", err)
	}
	for range 10 {
		if _, err := within(t, plenty, m, "trap"); fault.CodeOf(err) != fault.HandlerFailed {
			t.Errorf("a trap ends with %v", err)
		}
	}
}

// The compiler has its own limit of native stacks, far above that of the sandbox. A guest
// that reaches it ran out of stack, too.
func TestAStackOverflowOfTheCompilerIsRecognized(t *testing.T) {
	ctx := context.Background()
	for name, config := range map[string]wazero.RuntimeConfig{
		"compiler": wazero.NewRuntimeConfigCompiler(), "interpreter": wazero.NewRuntimeConfigInterpreter(),
	} {
		r := wazero.NewRuntimeWithConfig(ctx, config)
		t.Cleanup(func() { _ = r.Close(ctx) })
		m, err := r.Instantiate(ctx, assembleText(t, `(module
			(func $deep (export "deep") (param i32) (result i32) (i32.add (i32.const 1) (call $deep (local.get 0))))
			(func (export "trap") unreachable))`))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := m.ExportedFunction("deep").Call(ctx, 1); err == nil || !sandbox.Overflowed(err) {
			t.Errorf("%s: endless recursion ends with %v", name, err)
		}
		if _, err := m.ExportedFunction("trap").Call(ctx); err == nil || sandbox.Overflowed(err) {
			t.Errorf("%s: a trap ends with %v", name, err)
		}
	}
}

func TestIdleSandboxesReleaseTheirMemory(t *testing.T) {
	eachKind(t, testIdleSandboxesReleaseTheirMemory)
}

func testIdleSandboxesReleaseTheirMemory(t *testing.T, as kind) {
	wasm := as.file(t, "cases")
	synctest.Test(t, func(t *testing.T) {
		e := newEngine(t, sandbox.Options{IdleTime: 10 * time.Second})
		m := load(t, e, wasm)
		const image, filled = 6 << 16, 2 << 12 // pages that are not zeros
		if n := e.GuestMemory(); n != image+filled {
			t.Fatalf("a module that was loaded takes %d bytes, want %d", n, image+filled)
		}
		var guests sync.WaitGroup
		for range 3 { // at once, so that there are three
			guests.Go(func() {
				if _, err := within(t, plenty, m, "growAndSleep"); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		if n := e.GuestMemory(); n != 3*106<<16+filled {
			t.Errorf("three guests of 106 pages take %d pages", n>>16)
		}
		guests.Wait()
		for _, step := range []struct {
			after time.Duration
			idle  int
			most  int64
		}{{0, 3, 3*image + 3<<22}, {15 * time.Second, 3, 3*image + filled}, {time.Minute, 1, image + filled}, {time.Hour, 1, image + filled}} {
			time.Sleep(step.after)
			synctest.Wait()
			idle, err := m.Restored()
			if n := e.GuestMemory(); idle != step.idle || n > step.most || n < image || err != nil {
				t.Errorf("%s later %d are idle with %d KiB, want %d with %d at most: %v", step.after, idle, n>>10, step.idle, step.most>>10, err)
			}
		}
		if _, err := within(t, plenty, m, "normal"); err != nil {
			t.Error(err)
		}
		if err := m.Close(context.Background()); err != nil || e.GuestMemory() != 0 {
			t.Errorf("closed, the module takes %d bytes: %v", e.GuestMemory(), err)
		}
	})
}

// The sandbox that was used last is used next, also after others were trimmed.
func TestATrimmedSandboxIsUsedAfterOthers(t *testing.T) {
	eachKind(t, testATrimmedSandboxIsUsedAfterOthers)
}

func testATrimmedSandboxIsUsedAfterOthers(t *testing.T, as kind) {
	wasm := as.file(t, "cases")
	synctest.Test(t, func(t *testing.T) {
		m := load(t, newEngine(t, sandbox.Options{IdleTime: 10 * time.Second}), wasm) // it looks every 2.5 s
		run := func(handler string) {
			if _, err := within(t, plenty, m, handler); err != nil {
				t.Error(err)
			}
		}
		time.Sleep(100 * time.Millisecond)
		var guests sync.WaitGroup
		for range 2 { // at once, so that there are two; each ends after 5 s
			guests.Go(func() { run("sleep") })
		}
		guests.Wait()
		time.Sleep(4 * time.Second)
		run("normal") // in one of them
		time.Sleep(9 * time.Second)
		kept := 2
		if as.waits {
			kept = 1 // for both handlers
		}
		if n := m.KeptFunctions(); n != kept { // the other has released its functions
			t.Fatalf("%d functions are kept, want those of one sandbox", n)
		}
		run("normal")
		time.Sleep(3 * time.Second)
		if n := m.KeptFunctions(); n != kept {
			t.Errorf("%d functions are kept: the trimmed sandbox was used", n)
		}
	})
}

func TestTheMemoryOfAllGuestsIsLimited(t *testing.T) { eachKind(t, testTheMemoryOfAllGuestsIsLimited) }

func testTheMemoryOfAllGuestsIsLimited(t *testing.T, as kind) {
	wasm := as.file(t, "cases")
	synctest.Test(t, func(t *testing.T) {
		e := newEngine(t, sandbox.Options{MemoryBytes: 8 << 20, TotalMemoryBytes: 8 << 20})
		m := load(t, e, wasm)
		other := load(t, e, wasm)
		busy := make(chan error)
		go func() {
			_, err := within(t, plenty, m, "growAndSleep") // 106 of 128 pages
			busy <- err
		}()
		synctest.Wait()
		if n := e.GuestMemory(); n > 8<<20 {
			t.Errorf("guests take %d KiB", n>>10)
		}
		if _, err := within(t, plenty, other, "growMuch"); fault.CodeOf(err) != fault.HandlerFailed && fault.CodeOf(err) != fault.HandlerOutOfMemory {
			t.Errorf("a guest that would grow beyond the bound: %v", err)
		}
		hogs := make(chan error, 3)
		for i := range 3 { // three times 6 pages are there, and no more
			go func() {
				hogs <- callAs(caller.Caller{}, netip.AddrFrom4([4]byte{192, 0, 2, byte(i)}).String(), plenty, other, "sleep")
			}()
		}
		synctest.Wait()
		if _, err := within(t, plenty, other, "hello"); fault.CodeOf(err) != fault.Overloaded {
			t.Errorf("without memory for a sandbox: %v", err)
		}
		for range 3 {
			if err := <-hogs; err != nil {
				t.Error(err)
			}
		}
		if err := <-busy; err != nil {
			t.Error(err)
		}
		if _, err := within(t, plenty, m, "growMuch"); err != nil { // what is idle makes room
			t.Errorf("when the others are idle: %v", err)
		}
	})
}

// Guests that are large or wait leave memory to small ones that run.
func TestSmallGuestsFindMemoryBesideLargeOnes(t *testing.T) {
	eachKind(t, testSmallGuestsFindMemoryBesideLargeOnes)
}

func testSmallGuestsFindMemoryBesideLargeOnes(t *testing.T, as kind) {
	const page = 64 << 10
	wasm := as.text(t, `(module
		(import "runner" "response_send" (func $send (param i32 i32 i32) (result i32)))
		(import "wasi_snapshot_preview1" "poll_oneoff" (func $poll (param i32 i32 i32 i32) (result i32)))
		(memory (export "memory") 4)
		(func $answer (drop (call $send (i32.const 200) (i32.const 0) (i32.const 0))))
		(func (export "small") (if (i32.eq (memory.grow (i32.const 10)) (i32.const -1)) (then unreachable)) (call $answer))
		(func (export "largestSmall") (if (i32.eq (memory.grow (i32.const 12)) (i32.const -1)) (then unreachable)) (call $answer))
		(func (export "smallestLarge") (if (i32.eq (memory.grow (i32.const 13)) (i32.const -1)) (then unreachable)) (call $answer))
		(func (export "large") (if (i32.eq (memory.grow (i32.const 20)) (i32.const -1)) (then unreachable)) (call $answer))
		(func (export "waits")
			(i32.store (i32.const 16) (i32.const 1))
			(i64.store (i32.const 24) (i64.const 20000000))
			(drop (call $poll (i32.const 0) (i32.const 200) (i32.const 1) (i32.const 300)))
			(call $answer)))`)
	synctest.Test(t, func(t *testing.T) {
		// 64 of 512 pages are for small guests: 16 for each slot.
		e := newEngine(t, sandbox.Options{Instances: 4, MemoryBytes: 64 * page, TotalMemoryBytes: 512 * page, NoBreaker: true})
		m := load(t, e, wasm)
		run := func(handler string, want fault.Code) {
			t.Helper()
			if _, err := within(t, plenty, m, handler); fault.CodeOf(err) != want {
				t.Errorf("%s ends with %v, want %q", handler, err, want)
			}
		}
		for _, handler := range []string{"small", "large", "waits"} {
			run(handler, "")
		}
		e.UseMemory()
		run("small", "")
		run("largestSmall", "")
		run("smallestLarge", fault.HandlerOutOfMemory)
		run("large", fault.HandlerOutOfMemory)
		run("waits", fault.Overloaded)
		run("small", "")
	})
}

// Idle sandboxes are discarded when others need their memory: not more than necessary, and
// none if all of them have too little.
func TestIdleSandboxesAreDiscardedOnlyIfThatHelps(t *testing.T) {
	eachKind(t, testIdleSandboxesAreDiscardedOnlyIfThatHelps)
}

func testIdleSandboxesAreDiscardedOnlyIfThatHelps(t *testing.T, as kind) {
	const page = 64 << 10
	// Loading a program that waits takes two sandboxes, beside two modules with their images.
	e := newEngine(t, sandbox.Options{MemoryBytes: 65 * page, TotalMemoryBytes: 65 * page, NoBreaker: true})
	load16 := func(most string) *sandbox.Module {
		return load(t, e, as.text(t, `(module
			(import "runner" "response_send" (func $send (param i32 i32 i32) (result i32)))
			(memory (export "memory") 16 `+most+`)
			(func $answer (drop (call $send (i32.const 200) (i32.const 0) (i32.const 0))))
			(func (export "hello") (call $answer))
			(func (export "grow") (drop (memory.grow (i32.const 24))) (call $answer))
			(func (export "growTooMuch")
				(if (i32.ne (memory.grow (i32.const 60)) (i32.const -1)) (then unreachable)) (call $answer)))`))
	}
	modules := []*sandbox.Module{load16(""), load16("16"), load16("17")} // 48 pages, 16 of them of each
	idle := func() (n int) {
		for _, m := range modules[1:] {
			i, _ := m.Restored()
			n += i
		}
		return n
	}
	for _, row := range []struct {
		handler string
		idle    int // of the two others
	}{{"hello", 2}, {"growTooMuch", 2}, {"grow", 1}} {
		if _, err := within(t, plenty, modules[0], row.handler); err != nil {
			t.Errorf("%s: %v", row.handler, err)
		}
		if n := idle(); n != row.idle {
			t.Errorf("after %s %d sandboxes are idle, want %d", row.handler, n, row.idle)
		}
	}
}

// A guest that only computes does not stop the garbage collector. Without fuel the
// collections would wait for the end of the guests, and the test would hang.
func TestSpinningGuestsDoNotStopTheCollector(t *testing.T) {
	eachKind(t, testSpinningGuestsDoNotStopTheCollector)
}

func testSpinningGuestsDoNotStopTheCollector(t *testing.T, as kind) {
	m := load(t, newEngine(t, sandbox.Options{NoBreaker: true}), as.file(t, "cases"))
	ctx, stop := context.WithCancel(context.Background())
	var guests sync.WaitGroup
	for _, handler := range []string{"loop", "tree", "fill"} {
		guests.Go(func() {
			call := newCall(ctx, new(bytes.Buffer))
			_ = m.Run(call, handler)
		})
	}
	for range 10 {
		runtime.GC()
	}
	stop()
	guests.Wait()
}
