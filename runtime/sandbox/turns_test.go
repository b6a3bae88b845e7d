package sandbox_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"runner.example/hostabi"
	"runner.example/internal/fault"
	"runner.example/runtime/sandbox"
)

// compute runs "counted" for a number of passes, with a deadline as requests
// have it.
func compute(m *sandbox.Module, passes uint32, limit time.Duration) error {
	ctx := hostabi.NewDeadline(context.Background(), time.Now().Add(limit))
	defer ctx.Stop()
	call := newCall(ctx, new(bytes.Buffer))
	call.Request.Body = binary.LittleEndian.AppendUint32(nil, passes)
	return m.Run(call, "counted")
}

// passesFor is how many passes take about so long on this machine, now.
func passesFor(t *testing.T, m *sandbox.Module, want time.Duration) uint32 {
	t.Helper()
	const probe = 10_000_000
	best := time.Hour
	for range 3 {
		began := time.Now()
		if err := compute(m, probe, plenty); err != nil {
			t.Fatal(err)
		}
		best = min(best, time.Since(began))
	}
	return uint32(float64(probe) * float64(want) / float64(best))
}

// With four times as many long requests as there is time for, as many are done
// as fit; the others are told soon, and short requests are served meanwhile.
// Were the time shared by all, each would be late and none be done.
func TestLongRequestsAreDoneUnderOverload(t *testing.T) {
	// The short form sees that there is any progress, on a machine that has become 20
	// times slower meanwhile, too: how much, only the long one can tell.
	turns := max(1, runtime.GOMAXPROCS(0)-1)
	each, rounds, patience, least := 40*time.Millisecond, 100, time.Duration(20), 0.0
	if soak {
		each, rounds, patience, least = 200*time.Millisecond, 200, 5, 0.8
	}
	limit := patience * each
	e := newEngine(t, sandbox.Options{NoBreaker: true})
	m, other := load(t, e, assemble(t, "cases")), load(t, e, assemble(t, "cases"))
	passes := passesFor(t, m, each)
	short := func(n int) []time.Duration {
		all := make([]time.Duration, n)
		for i := range all {
			began := time.Now()
			if _, err := within(t, plenty, other, "hello"); err != nil {
				t.Error(err)
			}
			all[i] = time.Since(began)
			time.Sleep(time.Millisecond)
		}
		slices.Sort(all)
		return all
	}
	quiet := short(100)

	// What fits is what as many at a time as may compute get done.
	capacity := func() (perSecond float64) {
		var served atomic.Int32
		var all sync.WaitGroup
		began := time.Now()
		for range turns {
			all.Go(func() {
				for time.Since(began) < time.Duration(rounds)*each/8 {
					if err := compute(m, passes, plenty); err != nil {
						t.Error(err)
					}
					served.Add(1)
				}
			})
		}
		all.Wait()
		return float64(served.Load()) / time.Since(began).Seconds()
	}
	before := capacity()
	var served, refused, late atomic.Int32
	var refusedAfter atomic.Int64
	var requests sync.WaitGroup
	began := time.Now()
	beside := make(chan []time.Duration)
	go func() { beside <- short(rounds) }()
	tick := time.NewTicker(each / time.Duration(4*turns))
	for range rounds * turns {
		<-tick.C
		requests.Go(func() {
			began := time.Now()
			switch err := compute(m, passes, limit); fault.CodeOf(err) {
			case "":
				served.Add(1)
			case fault.Overloaded:
				refused.Add(1)
				refusedAfter.Add(int64(time.Since(began)))
			case fault.HandlerTimeout:
				late.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	tick.Stop()
	requests.Wait()
	took := time.Since(began)
	busy := <-beside
	fits := (before + capacity()) / 2 * took.Seconds()
	t.Logf("%d requests of %s within %s, in %s: %d served (%.0f %% of what fits), %d refused after %s on average, %d too late; short requests take %s (median) and %s (p99), without the others %s and %s",
		rounds*turns, each, limit, took, served.Load(), 100*float64(served.Load())/fits, refused.Load(), time.Duration(refusedAfter.Load()/max(1, int64(refused.Load()))), late.Load(),
		busy[len(busy)/2], busy[len(busy)*99/100], quiet[50], quiet[99])
	if n := float64(served.Load()); n == 0 || n < least*fits {
		t.Errorf("%d requests are served, and %.1f fit", served.Load(), fits)
	}
	if refused.Load() == 0 {
		t.Error("none is refused")
	}
	if p := busy[len(busy)/2]; soak && p > 20*time.Millisecond {
		t.Errorf("short requests take %s beside them (median)", p)
	}
}

// The same with guests that only take time: how much is done depends on no machine.
func TestWhatFitsIsDoneUnderOverload(t *testing.T) {
	const each, limit = 40 * time.Millisecond, 200 * time.Millisecond
	for _, processors := range []int{2, 3, 17} {
		synctest.Test(t, func(t *testing.T) {
			turns, line, count := sandbox.NewTurns(processors), new(sandbox.Line), processors-1
			var served, refused atomic.Int32
			var requests sync.WaitGroup
			began := time.Now()
			tick := time.NewTicker(each / time.Duration(4*count))
			for range 200 * count {
				<-tick.C
				requests.Go(func() {
					ctx, cancel := context.WithTimeout(t.Context(), limit)
					defer cancel()
					switch err := turns.Run(ctx, line, each); {
					case err == nil:
						served.Add(1)
					case err != hostabi.ErrTimeOver:
						refused.Add(1)
					}
				})
			}
			tick.Stop()
			requests.Wait()
			fits := int32(time.Since(began) * time.Duration(count) / each)
			t.Logf("%d turns: of %d requests that fit %d are served; %d are refused", count, fits, served.Load(), refused.Load())
			if served.Load() < fits*4/5 || refused.Load() == 0 {
				t.Errorf("%d turns: of %d requests that fit %d are served; %d are refused", count, fits, served.Load(), refused.Load())
			}
		})
	}
}

// A handler whose runs have become far longer than they were is served as well,
// after a while, though what was usual does not hold any more.
func TestAHandlerThatBecomesSlowIsStillServed(t *testing.T) {
	const usual, each, limit = 10 * time.Millisecond, 100 * time.Millisecond, 500 * time.Millisecond
	for _, processors := range []int{2, 3} {
		synctest.Test(t, func(t *testing.T) {
			turns, line := sandbox.NewTurns(processors), new(sandbox.Line)
			for range 3 {
				if err := turns.Run(t.Context(), line, usual); err != nil {
					t.Fatal(err)
				}
			}
			var served atomic.Int32
			var requests sync.WaitGroup
			tick := time.NewTicker(each / time.Duration(4*(processors-1)))
			defer tick.Stop()
			began := time.Now()
			for served.Load() < 5 && time.Since(began) < plenty {
				<-tick.C
				requests.Go(func() {
					ctx, cancel := context.WithTimeout(t.Context(), limit)
					defer cancel()
					if turns.Run(ctx, line, each) == nil {
						served.Add(1)
					}
				})
			}
			took := time.Since(began)
			requests.Wait()
			t.Logf("%d processors: %d served after %s", processors, served.Load(), took)
			if took > 10*time.Second {
				t.Errorf("%d requests were served within %s", served.Load(), took)
			}
		})
	}
}

// A handler that computes without an end does not keep those of other handlers
// from their turns, nor, once it has had more than usual, those of its own.
func TestAnEndlessRequestLetsOthersHaveTheirTurns(t *testing.T) {
	e := newEngine(t, sandbox.Options{NoBreaker: true})
	m, other := load(t, e, assemble(t, "cases")), load(t, e, assemble(t, "cases"))
	ctx, stop := context.WithCancel(context.Background())
	var loops sync.WaitGroup
	endless := func(handler string, passes uint32) {
		loops.Go(func() {
			call := newCall(ctx, new(bytes.Buffer))
			call.Request.Body = binary.LittleEndian.AppendUint32(nil, passes)
			_ = m.Run(call, handler)
		})
	}
	passes := passesFor(t, m, 10*time.Millisecond)
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

// Handlers have as much of the turns as each other from the moment on when both
// want them: who had them alone before has nothing to make good.
func TestHandlersShareTurnsEvenlyWhileBothWantThem(t *testing.T) {
	if runtime.GOMAXPROCS(0) > 2 {
		t.Skip("there are enough turns for both")
	}
	e := newEngine(t, sandbox.Options{NoBreaker: true})
	m, other := load(t, e, assemble(t, "cases")), load(t, e, assemble(t, "cases"))
	end := time.Now().Add(600 * time.Millisecond)
	spin := func(m *sandbox.Module) int64 {
		ctx := hostabi.NewDeadline(context.Background(), end)
		defer ctx.Stop()
		call := newCall(ctx, new(bytes.Buffer))
		usage, _ := m.Measure(call, "loop")
		return usage.Fuel
	}
	alone := make(chan int64)
	go func() { alone <- spin(m) }()
	time.Sleep(400 * time.Millisecond)
	second := spin(other)
	first := <-alone
	t.Logf("%d units of fuel for the one that had 400 ms alone, %d for the one that came then, of 200 ms", first, second)
	if second == 0 || soak && (first < 3*second || second*20 < first) { // 500 ms and 100 ms
		t.Errorf("the first had %d units of fuel, the second %d", first, second)
	}
}

// A run that takes far longer than its handler's usually do goes behind others,
// but not behind all that come for as long as they come.
func TestAHeavyRequestBesideLightOnesOfItsHandlerEnds(t *testing.T) {
	const light, heavy = 10 * time.Millisecond, time.Second
	for _, processors := range []int{2, 3} { // one turn, and two
		synctest.Test(t, func(t *testing.T) {
			turns, line := sandbox.NewTurns(processors), new(sandbox.Line)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			var stop atomic.Bool
			var served, longest atomic.Int64
			var callers sync.WaitGroup
			for range 8 {
				callers.Go(func() {
					for !stop.Load() {
						began := time.Now()
						if err := turns.Run(ctx, line, light); err != nil {
							t.Error(err)
							return
						}
						served.Add(1)
						longest.Store(max(longest.Load(), int64(time.Since(began))))
					}
				})
			}
			time.Sleep(time.Second)
			began := time.Now()
			err := turns.Run(ctx, line, heavy)
			took := time.Since(began)
			stop.Store(true)
			callers.Wait()
			t.Logf("a run of %s beside 8 callers with runs of %s: %s; of theirs %d are served, within %s", heavy, light, took, served.Load(), time.Duration(longest.Load()))
			if err != nil || took > 10*heavy {
				t.Errorf("the heavy one ends after %s: %v", took, err)
			}
			if most := 20 * light; time.Duration(longest.Load()) > most {
				t.Errorf("a light one took %s beside it, want %s at most", time.Duration(longest.Load()), most)
			}
		})
	}
}

// What was usual of a handler is forgotten as soon as it is not any more: none is
// refused for what others took long ago.
func TestAHandlerThatIsQuickAgainIsNotRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns, line := sandbox.NewTurns(2), new(sandbox.Line)
		run := func(long, limit time.Duration) error {
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			return turns.Run(ctx, line, long)
		}
		for range 20 {
			if err := run(time.Second, time.Minute); err != nil {
				t.Fatal(err)
			}
		}
		const quick = 10 * time.Millisecond
		for range 4 {
			if err := run(quick, time.Minute); err != nil {
				t.Fatal(err)
			}
		}
		var callers sync.WaitGroup
		for range 8 {
			callers.Go(func() {
				if err := run(quick, time.Second); err != nil {
					t.Error(err)
				}
			})
		}
		callers.Wait()
	})
}

// Restoring a sandbox of which much was touched takes as long as a long request
// does, and is paid for like one.
func TestATurnLastsUntilTheSandboxIsRestored(t *testing.T) {
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
	e.LookAtTurns(func() { taken = append(taken, e.GuestMemory()) })
	if _, err := within(t, plenty, m, "touch"); err != nil {
		t.Fatal(err)
	}
	if len(taken) < 2 || taken[0] < before+500<<16 || taken[len(taken)-1] != before {
		t.Errorf("guests have %d bytes in the course of a turn, want %d more than %d when it begins and %d when it ends", taken, 500<<16, before, before)
	}
}

// A guest with much memory can spend far longer on a unit of fuel than it pays for,
// so it is asked sooner; and at once when its memory grows.
func TestSlicesAreShortWhileThereIsMuchMemory(t *testing.T) {
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
