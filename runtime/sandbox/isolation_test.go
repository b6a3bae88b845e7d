package sandbox_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"runner.example/hostabi"
	"runner.example/internal/fault"
	"runner.example/runtime/pages"
	"runner.example/runtime/sandbox"
)

// soak selects the long forms of the tests.
var soak = os.Getenv("RUNNER_SOAK") != ""

// ways are the handlers of cases.wat that end in different ways, with their fault codes.
var ways = map[string]fault.Code{
	"normal":      "",
	"hello":       "",
	"leave":       "",
	"growSome":    "",
	"growMuch":    "",
	"deep":        "",
	"trap":        fault.HandlerFailed,
	"outOfBounds": fault.HandlerFailed,
	"fail":        fault.HandlerFailed,
	"stack":       fault.HandlerFailed,
	"growAndTrap": fault.HandlerFailed,
	"outOfMemory": fault.HandlerOutOfMemory,
	"spin":        fault.HandlerTimeout,
}

// fallbacks are sets of disabled optimizations.
var fallbacks = withoutNative(map[string][]string{
	"everything":         nil,
	"pagemap":            {sandbox.OptWatch},
	"no changed pages":   {sandbox.OptWatch, sandbox.OptPagemap},
	"no shrinking":       {sandbox.OptShrink},
	"no reused function": {sandbox.OptReuse},
	"no stack":           {sandbox.OptStack},
	"no count of faults": {sandbox.OptFaults},
	"pagemap, no count":  {sandbox.OptWatch, sandbox.OptFaults},
	"no snapshot":        {sandbox.OptSnapshot},
	"no guard":           {sandbox.OptGuard},
	"no guard, pagemap":  {sandbox.OptGuard, sandbox.OptWatch},
	"portable":           {native},
})

// withoutNative removes what portable memory does not have, if all engines have that.
func withoutNative(fallbacks map[string][]string) map[string][]string {
	ofNative := []string{native, sandbox.OptWatch, sandbox.OptPagemap, sandbox.OptFaults, sandbox.OptGuard}
	maps.DeleteFunc(fallbacks, func(_ string, disabled []string) bool {
		return memoryBackend == pages.Portable && slices.ContainsFunc(disabled, func(name string) bool { return slices.Contains(ofNative, name) })
	})
	return fallbacks
}

// restores reports whether an engine with this fallback restores sandboxes.
func restores(fallback string) bool {
	return fallback != "no snapshot" && fallback != "no changed pages"
}

// runWay runs one handler whose request carries the secret.
func runWay(t testing.TB, m *sandbox.Module, call *hostabi.Call, way, secret string) {
	t.Helper()
	call.Context = context.Background()
	if way == "spin" { // its time is over when the clock is read for the tenth time
		call.Context = &countdown{Context: call.Context, left: 10}
	}
	call.Request.Body = append(call.Request.Body[:0], secret...)
	err := m.Run(call, way)
	if fault.CodeOf(err) != ways[way] {
		t.Errorf("%s ends with %v, want %q", way, err, ways[way])
	}
}

// dump returns all that a guest can see when a request begins.
func dump(t testing.TB, m *sandbox.Module) []byte {
	t.Helper()
	call := newCall(context.Background(), new(bytes.Buffer))
	if err := m.Run(call, "dump"); err != nil {
		t.Fatal(err)
	}
	return call.Response.Body
}

// After any end of a request the sandbox is as it was before, byte for byte, with each
// fallback. A guest that reads everything finds nothing of the request.
func TestASandboxIsRestoredAfterAnyEndOfARequest(t *testing.T) {
	eachKind(t, testASandboxIsRestoredAfterAnyEndOfARequest)
}

func testASandboxIsRestoredAfterAnyEndOfARequest(t *testing.T, as kind) {
	const canary = "rnk_CANARYcanaryCANARYcanary"
	rounds := 3
	if testing.Short() {
		rounds = 1
	}
	wasm := as.file(t, "cases")
	for name, disabled := range fallbacks {
		if as.waits && !restores(name) {
			continue // without images no program waits
		}
		t.Run(name, func(t *testing.T) {
			m := load(t, newEngine(t, sandbox.Options{MemoryBytes: 16 << 20, Disable: disabled, NoBreaker: true}), wasm)
			first := slices.Clone(dump(t, m))
			if bytes.Count(first, []byte{0}) == len(first) || binary.LittleEndian.Uint32(first[200000:]) != 0x600d {
				t.Fatal("the first request does not find what _initialize left")
			}
			call := newCall(context.Background(), new(bytes.Buffer))
			for round := range rounds {
				for way := range ways {
					runWay(t, m, call, way, fmt.Sprint(canary, round))
					if restores(name) {
						if _, err := m.Restored(); err != nil {
							t.Fatalf("after %s: %v", way, err)
						}
					}
					if now := dump(t, m); !bytes.Equal(now, first) {
						t.Fatalf("after %s a guest finds something else than before (the canary: %v)", way, bytes.Contains(now, []byte(canary)))
					}
				}
			}
		})
	}
}

// Sandboxes are reused if possible. Otherwise the test above would test nothing.
func TestASandboxIsUsedAgainUnlessTheHostFailed(t *testing.T) {
	eachKind(t, testASandboxIsUsedAgainUnlessTheHostFailed)
}

func testASandboxIsUsedAgainUnlessTheHostFailed(t *testing.T, as kind) {
	m := load(t, newEngine(t, sandbox.Options{MemoryBytes: 16 << 20, NoBreaker: true}), as.file(t, "cases"))
	call := newCall(context.Background(), new(bytes.Buffer))
	for way := range ways {
		runWay(t, m, call, way, "x")
		if idle, err := m.Restored(); idle != 1 || err != nil {
			t.Errorf("after %s %d sandboxes are idle, want 1: %v", way, idle, err)
		}
	}
	call.Context = context.Background()
	call.Host.Logger = nil // a bug of the host: the host function panics
	if err := m.Run(call, "hostPanic"); fault.CodeOf(err) != fault.HandlerFailed {
		t.Errorf("a panic of the host ends with %v", err)
	}
	if idle, _ := m.Restored(); idle != 0 {
		t.Errorf("after a panic of the host %d sandboxes are idle, want 0", idle)
	}
}

// inNewStack calls f in a goroutine of its own, whose stack is too small and grows at a random depth, perhaps within f.
func inNewStack(chance *rand.Rand, f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		below(chance.IntN(64), f)
	}()
	<-done
}

// below calls f with so many frames of half a kilobyte above it.
func below(frames int, f func()) {
	var frame [512]byte
	if frames == 0 {
		f()
	} else {
		below(frames-1, f)
	}
	runtime.KeepAlive(&frame)
}

// Many concurrent requests of all kinds each find a restored sandbox, while garbage is collected and stacks grow.
func TestConcurrentRequestsFindRestoredSandboxes(t *testing.T) {
	eachKind(t, testConcurrentRequestsFindRestoredSandboxes)
}

func testConcurrentRequestsFindRestoredSandboxes(t *testing.T, as kind) {
	n := 4000
	if testing.Short() {
		n = 1000
	}
	if soak {
		n = 500_000
	}
	// With a stopped clock no run is long, so none is refused by the CPU queue.
	still := func() time.Duration { return 0 }
	m := load(t, newEngine(t, sandbox.Options{MemoryBytes: 16 << 20, NoBreaker: true, Now: still}), as.file(t, "cases"))
	want := slices.Clone(dump(t, m))
	var names []string
	for way := range ways {
		if way != "stack" && way != "outOfMemory" { // some 10 ms each
			names = append(names, way)
		}
	}
	slices.Sort(names)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	var workers sync.WaitGroup
	const parallel = 6
	for worker := range uint64(parallel) {
		workers.Go(func() {
			chance := rand.New(rand.NewPCG(seed, worker))
			call := newCall(context.Background(), new(bytes.Buffer))
			for i := range n / parallel {
				if chance.IntN(300) == 0 {
					runtime.GC()
				}
				if chance.IntN(8) == 0 {
					call.Context = context.Background()
					if err := m.Run(call, "dump"); err != nil || !bytes.Equal(call.Response.Body, want) {
						t.Errorf("run %d of worker %d finds something else than the first (%v)", i, worker, err)
						return
					}
					continue
				}
				run := func() {
					runWay(t, m, call, names[chance.IntN(len(names))], fmt.Sprintf("secret %d of %d", i, worker))
				}
				if chance.IntN(8) == 0 {
					inNewStack(chance, run)
				} else {
					run()
				}
			}
		})
	}
	workers.Wait()
	if idle, err := m.Restored(); err != nil || idle == 0 || idle > parallel {
		t.Errorf("%d sandboxes are idle, want 1 to %d: %v", idle, parallel, err)
	}
}

// Random numbers never repeat, neither those of the host nor those of a state in guest
// memory that runner_reseed seeds again.
func TestTwoRequestsNeverSeeTheSameRandomNumbers(t *testing.T) {
	eachKind(t, testTwoRequestsNeverSeeTheSameRandomNumbers)
}

func testTwoRequestsNeverSeeTheSameRandomNumbers(t *testing.T, as kind) {
	for _, disabled := range [][]string{nil, {sandbox.OptSnapshot}} {
		if as.waits && disabled != nil {
			return // without images no program waits
		}
		m := load(t, newEngine(t, sandbox.Options{Disable: disabled}), as.file(t, "cases"))
		seen := map[string]bool{}
		for range 200 {
			call, err := within(t, plenty, m, "seed")
			if err != nil {
				t.Fatal(err)
			}
			seen[string(call.Response.Body)] = true
		}
		if len(seen) != 200 || seen["\x00\x00\x00\x00\x00\x00\x00\x00"] {
			t.Errorf("200 requests began with %d different random states", len(seen))
		}
	}
	if testing.Short() {
		return // compiling Go takes long under the race detector
	}
	m := load(t, newEngine(t, sandbox.Options{}), buildGo(t, "gohello"))
	seen := map[string]bool{}
	for range 200 {
		call, err := within(t, plenty, m, "chance")
		if err != nil {
			t.Fatal(err)
		}
		seen[string(call.Response.Body)] = true
	}
	if len(seen) != 200 {
		t.Errorf("crypto/rand of Go gave 200 requests %d different numbers", len(seen))
	}
}

// As the SDK's documentation says, generators that are seeded from crypto/rand in the request
// or in runner_reseed never repeat. That of Go's runtime does: this module has neither the SDK nor
// was it built by runner build, so it does not export runner_random.
func TestTwoRequestsToAGoHandlerNeverSeeTheSameSequence(t *testing.T) {
	if testing.Short() {
		t.Skip("compiling Go takes long under the race detector")
	}
	m := load(t, newEngine(t, sandbox.Options{}), buildGo(t, "godice"))
	for handler, repeats := range map[string]bool{"own": false, "reseeded": false, "runtimes": true} {
		seen := map[string]bool{}
		for range 200 {
			call, err := within(t, plenty, m, handler)
			if err != nil {
				t.Fatal(err)
			}
			seen[string(call.Response.Body)] = true
		}
		t.Logf("%s: %d sequences in 200 requests", handler, len(seen))
		if len(seen) != 200 && !repeats {
			t.Errorf("%s: %d sequences in 200 requests", handler, len(seen))
		}
	}
}

func TestAGoHandlerIsRestoredToo(t *testing.T) {
	if testing.Short() {
		t.Skip("compiling Go takes long under the race detector")
	}
	m := load(t, newEngine(t, sandbox.Options{}), buildGo(t, "gohello"))
	call := newCall(context.Background(), new(bytes.Buffer))
	for i := range 300 {
		call.Request.Body = fmt.Appendf(nil, `{"id":"o-%d","total":%d,"tags":["x"]}`, i, i)
		want := fmt.Sprintf(`{"id":"o-%d","total":%d,"tags":["x"]}`, i, 2*i)
		if err := m.Run(call, "handle"); err != nil || string(call.Response.Body) != want {
			t.Fatalf("request %d: %v, %s", i, err, call.Response.Body)
		}
		if i%50 == 0 {
			if _, err := m.Restored(); err != nil {
				t.Fatalf("after request %d: %v", i, err)
			}
		}
	}
	if call, err := within(t, plenty, m, "recurse"); err != nil || string(call.Response.Body) != "0" {
		t.Errorf("20,000 calls deep: %v, %s", err, call.Response.Body)
	}
}

func TestARunInASteadyStateAllocatesNothing(t *testing.T) {
	eachKind(t, testARunInASteadyStateAllocatesNothing)
}

func testARunInASteadyStateAllocatesNothing(t *testing.T, as kind) {
	m := load(t, newEngine(t, sandbox.Options{}), as.file(t, "small"))
	call := newCall(context.Background(), new(bytes.Buffer))
	allocs := testing.AllocsPerRun(5000, func() {
		if err := m.Run(call, "handle"); err != nil {
			t.Error(err)
		}
	})
	if allocs != 0 {
		t.Errorf("%v allocations", allocs)
	}
}
