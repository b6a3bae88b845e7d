//go:build patched

package guard_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	_ "runner.example/internal/wazerofix"
	"runner.example/runtime/guard"
)

const page = 65536

// features are those of the modules that sandboxes run.
const features = api.CoreFeaturesV2 | experimental.CoreFeaturesTailCall | experimental.CoreFeaturesThreads

// memory is a guarded memory without an image.
type memory struct {
	*guard.Region
	size uint64
}

func (m *memory) Allocate(_, most uint64) experimental.LinearMemory {
	region, err := guard.Take(most)
	if err != nil {
		panic(err)
	}
	m.Region = region
	return m
}

func (m *memory) Reallocate(size uint64) []byte {
	if size > uint64(len(m.Memory)) || m.Open(m.size, size) != nil {
		return nil
	}
	m.size = size
	return m.Memory[:size:size]
}

func (m *memory) Free() {}

// instances instantiates modules whose memories are guarded, or are not.
type instances struct {
	wazero.Runtime
	ctx     context.Context
	guarded bool
}

// newInstances makes a runtime whose host function env.id returns its argument as id gives it.
func newInstances(t testing.TB, guarded bool, id func(ctx context.Context, m api.Module, x uint32) uint64) *instances {
	t.Helper()
	ctx := context.Background()
	i := &instances{wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigCompiler().WithCoreFeatures(features)), ctx, guarded}
	t.Cleanup(func() { _ = i.Close(ctx) })
	if guarded {
		i.ctx = guard.Compile(ctx)
	}
	one := []api.ValueType{api.ValueTypeI32}
	_, err := i.NewHostModuleBuilder("env").NewFunctionBuilder().WithGoModuleFunction(
		api.GoModuleFunc(func(ctx context.Context, m api.Module, stack []uint64) {
			stack[0] = id(ctx, m, uint32(stack[0]))
		}), one, one).Export("id").Instantiate(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return i
}

func (i *instances) compile(t testing.TB, module []byte) wazero.CompiledModule {
	t.Helper()
	compiled, err := i.CompileModule(i.ctx, module)
	if err != nil {
		t.Fatal(err)
	}
	return compiled
}

// instance makes an instance. release unmaps its memory.
func (i *instances) instance(t testing.TB, compiled wazero.CompiledModule) (m api.Module, release func()) {
	t.Helper()
	ctx, memory := i.ctx, &memory{}
	if i.guarded {
		ctx = experimental.WithMemoryAllocator(ctx, memory)
	}
	m, err := i.InstantiateModule(ctx, compiled, wazero.NewModuleConfig().WithName(""))
	if err != nil {
		t.Fatal(err)
	}
	return m, func() {
		if err := m.Close(i.ctx); err != nil {
			t.Error(err)
		}
		if memory.Region != nil {
			memory.Release()
		}
	}
}

func same(_ context.Context, _ api.Module, x uint32) uint64 { return uint64(x) }

// torture is a module whose functions access addresses that they are given: at once, behind calls of
// the host, and behind 300 calls of a function.
const torture = `(module
  (import "env" "id" (func $id (param i32) (result i32)))
  (memory (export "memory") 1 10)
  (func (export "load") (param i32) (result i32) (i32.load offset=16 (local.get 0)))
  (func (export "store") (param i32) (result i32)
    (i32.store offset=16 (call $id (local.get 0)) (i32.const 7)) (i32.const 7))
  (func $deep (param i32 i32) (result i32)
    (if (result i32) (local.get 1)
      (then (i32.add (i32.const 1) (call $deep (call $id (local.get 0)) (i32.sub (local.get 1) (i32.const 1)))))
      (else (i32.load offset=16 (local.get 0)))))
  (func (export "deep") (param i32) (result i32) (call $deep (local.get 0) (i32.const 300))))`

// wat assembles a module.
func wat(t testing.TB, text string) []byte {
	t.Helper()
	if _, err := exec.LookPath("wat2wasm"); err != nil && testing.Short() {
		t.Skip("wat2wasm is missing: apt-get install wabt")
	}
	out := filepath.Join(t.TempDir(), "module.wasm")
	assemble := exec.Command("wat2wasm", "-", "-o", out)
	assemble.Stdin = strings.NewReader(text)
	if said, err := assemble.CombinedOutput(); err != nil {
		t.Fatalf("wat2wasm (tools/setup.sh installs it): %v\n%s", err, said)
	}
	module, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	return module
}

// rounds is how often a test repeats; RUNNER_SOAK has a hundred times as many, -short a tenth.
func rounds(n int) int {
	switch {
	case os.Getenv("RUNNER_SOAK") != "":
		return 100 * n
	case testing.Short():
		return n / 10
	}
	return n
}

// faultOf runs f, and returns the error of the fault that Go code has in it.
func faultOf(f func()) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			err = r.(error)
		}
	}()
	f()
	return nil
}

var sink byte

// TestFaultsOfGuestsAndOfGoAreToldApart has 64 threads with a guest each, of whose accesses half are out of
// bounds, beside goroutines that collect garbage, dereference nil, and touch addresses of regions, while a
// profile is taken.
func TestFaultsOfGuestsAndOfGoAreToldApart(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	guests := newInstances(t, true, func(_ context.Context, _ api.Module, x uint32) uint64 {
		if x%50 == 0 {
			runtime.Gosched()
		}
		return uint64(x)
	})
	compiled := guests.compile(t, wat(t, torture))
	unused, err := guard.Take(page)
	if err != nil {
		t.Fatal(err)
	}
	defer unused.Release()
	if err := pprof.StartCPUProfile(io.Discard); err != nil {
		t.Log(err) // the test is being profiled
	} else {
		defer pprof.StopCPUProfile()
	}
	var good, trapped, nils, faults atomic.Int64
	var running, beside sync.WaitGroup
	done := make(chan struct{})
	for n := range uint64(64) {
		running.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			random := rand.New(rand.NewPCG(seed, n))
			m, release := guests.instance(t, compiled)
			defer release()
			for range rounds(40) {
				at := random.Uint32()
				if random.IntN(2) == 0 {
					at %= page + 4096
				}
				name := []string{"load", "store", "deep"}[random.IntN(3)]
				_, err := m.ExportedFunction(name).Call(guests.ctx, uint64(at))
				outside := uint64(at)+16+4 > page
				switch {
				case err == nil && !outside:
					good.Add(1)
				case err != nil && outside && strings.Contains(err.Error(), "out of bounds memory access") &&
					(name != "deep" || strings.Count(err.Error(), "\n\t") > 30):
					trapped.Add(1)
				default:
					t.Errorf("%s at %d: %v", name, at, err)
				}
			}
		})
	}
	each := func(do func()) {
		beside.Go(func() {
			for {
				do() // at least once, however short the rest takes
				select {
				case <-done:
					return
				default:
				}
			}
		})
	}
	each(func() {
		if err := faultOf(func() { var p *[100]byte; sink = p[len(os.Args)] }); err == nil {
			t.Error("nil was read")
		}
		nils.Add(1)
	})
	each(func() {
		fault, ok := faultOf(func() { sink = unused.Memory[100] }).(interface{ Addr() uintptr })
		if !ok || fault.Addr() != uintptr(unsafe.Pointer(&unused.Memory[100])) {
			t.Errorf("Go code at an address of a region: %v", fault)
		}
		faults.Add(1)
	})
	each(func() {
		kept := make([][]byte, 100)
		for i := range kept {
			kept[i] = make([]byte, 5000)
		}
		runtime.GC()
		runtime.KeepAlive(kept)
	})
	running.Wait()
	close(done)
	beside.Wait()
	t.Logf("%d accesses in bounds, %d out of them, %d of nil, %d by Go code", good.Load(), trapped.Load(), nils.Load(), faults.Load())
	if good.Load() == 0 || trapped.Load() == 0 || nils.Load() == 0 || faults.Load() == 0 {
		t.Error("one of them did not occur")
	}
}

// A fault in a function of the host is Go's, also while a guest of the region waits for it, and the
// guest's own access after it is the guest's.
func TestAFaultInAHostFunctionIsNotTheGuests(t *testing.T) {
	region, err := guard.Take(page)
	if err != nil {
		t.Fatal(err)
	}
	defer region.Release()
	var caught error
	guests := newInstances(t, true, func(_ context.Context, m api.Module, x uint32) uint64 {
		caught = faultOf(func() {
			at, _ := m.Memory().Read(0, page)
			sink = unsafe.Slice(unsafe.SliceData(at), 2*page)[page+100] // behind the guest's own memory
		})
		return uint64(x)
	})
	m, release := guests.instance(t, guests.compile(t, wat(t, torture)))
	defer release()
	for range 3 {
		if _, err := m.ExportedFunction("store").Call(guests.ctx, 64); err != nil {
			t.Error(err)
		}
		if caught == nil {
			t.Error("the host function had no fault")
		}
		_, err := m.ExportedFunction("store").Call(guests.ctx, page)
		if err == nil || !strings.Contains(err.Error(), "out of bounds memory access") {
			t.Errorf("out of bounds after a fault of the host: %v", err)
		}
	}
}

// A host function may call the guest again. An access out of bounds ends the inner call alone, and after it
// one of the outer call is still that call's.
func TestAnInnerCallEndsAlone(t *testing.T) {
	var inner error
	guests := newInstances(t, true, func(ctx context.Context, m api.Module, x uint32) uint64 {
		_, inner = m.ExportedFunction("load").Call(ctx, page)
		return uint64(x)
	})
	m, release := guests.instance(t, guests.compile(t, wat(t, torture)))
	defer release()
	for _, at := range []uint64{8, page, 16} {
		_, err := m.ExportedFunction("store").Call(guests.ctx, at)
		if inner == nil || (err != nil) != (at == page) {
			t.Errorf("at %d: inner call %v, outer call %v", at, inner, err)
		}
	}
}

// Nothing of an address reaches beyond the region, whatever a 32-bit value has in the upper half of its
// register, and with each size of offset.
func TestNoAddressLeavesTheRegion(t *testing.T) {
	var text strings.Builder
	text.WriteString(`(module (import "env" "id" (func $id (param i32) (result i32))) (memory (export "memory") 1 10)`)
	offsets := []uint64{0, 8, 1 << 20, 1<<31 - 8, 1<<31 - 7, 1 << 31, 1<<32 - 1}
	for i, o := range offsets {
		fmt.Fprintf(&text, `
(func (export "host %d") (param i32) (result i64) (i64.load offset=%d (call $id (local.get 0))))
(func (export "wrap %d") (param i64) (result i64) (i64.load offset=%d (i32.wrap_i64 (local.get 0))))
(func (export "param %d") (param i32) (result i64) (i64.load offset=%d (local.get 0)))
(func (export "constant %d") (result i64) (i64.load offset=%d (i32.const -8)))`, i, o, i, o, i, o, i, o)
	}
	text.WriteString(")")
	module := wat(t, text.String())
	signed := func(_ context.Context, _ api.Module, x uint32) uint64 { return uint64(int64(int32(x))) }
	plain, guarded := newInstances(t, false, signed), newInstances(t, true, signed)
	p, releasePlain := plain.instance(t, plain.compile(t, module))
	defer releasePlain()
	g, releaseGuarded := guarded.instance(t, guarded.compile(t, module))
	defer releaseGuarded()
	for i := range offsets {
		for _, name := range []string{"host", "wrap", "param", "constant"} {
			for _, at := range []uint64{0, 8, page - 8, page - 7, page, 1 << 31, 0xffff_ffff, 0xffff_fff8, 0xffff_ffff_0000_0008, 0xffff_ffff_ffff_fff8} {
				f := name + " " + strconv.Itoa(i)
				args := []uint64{at}
				if name == "constant" {
					args = nil
				}
				want, wantErr := p.ExportedFunction(f).Call(plain.ctx, args...)
				have, haveErr := g.ExportedFunction(f).Call(guarded.ctx, args...)
				if fmt.Sprint(want, wantErr) != fmt.Sprint(have, haveErr) {
					t.Errorf("%s (offset %d) at %#x: %v, %v, want %v, %v", f, offsets[i], at, have, haveErr, want, wantErr)
				}
			}
		}
	}
}

// Nothing is in bounds of an empty memory, until it grows.
func TestAnEmptyMemoryIsGuarded(t *testing.T) {
	guests := newInstances(t, true, same)
	m, release := guests.instance(t, guests.compile(t, wat(t, `(module
  (memory 0 4)
  (func (export "load") (param i32) (result i32) (i32.load (local.get 0)))
  (func (export "grow") (result i32) (memory.grow (i32.const 1))))`)))
	defer release()
	for _, at := range []uint64{0, 8, 4 << 20, 1 << 31, 0xffff_fff0} { // Go's programs begin at 4 MiB
		if _, err := m.ExportedFunction("load").Call(guests.ctx, at); err == nil || !strings.Contains(err.Error(), "out of bounds memory access") {
			t.Errorf("at %#x of an empty memory: %v", at, err)
		}
	}
	if _, err := m.ExportedFunction("grow").Call(guests.ctx); err != nil {
		t.Fatal(err)
	}
	if result, err := m.ExportedFunction("load").Call(guests.ctx, page-4); err != nil || result[0] != 0 {
		t.Errorf("after it grew: %v, %v", result, err)
	}
}

func TestCodeForGuardedMemoriesNeedsOne(t *testing.T) {
	guests := newInstances(t, true, same)
	_, err := guests.InstantiateModule(guests.ctx, guests.compile(t, wat(t, torture)), wazero.NewModuleConfig().WithName(""))
	if err == nil || !strings.Contains(err.Error(), "compiled for a guarded memory") {
		t.Errorf("an instance with a memory of Go's: %v", err)
	}
}

// Code for guarded memories is not that for others, also if a cache has both.
func TestACacheTellsTheKindsOfCodeApart(t *testing.T) {
	dir, module := t.TempDir(), wat(t, torture)
	for _, guarded := range []bool{false, true, false, true} {
		cache, err := wazero.NewCompilationCacheWithDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		ctx := context.Background()
		i := &instances{wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigCompiler().WithCompilationCache(cache)), ctx, guarded}
		if guarded {
			i.ctx = guard.Compile(ctx)
		}
		if _, err := i.NewHostModuleBuilder("env").NewFunctionBuilder().WithFunc(func(x uint32) uint32 { return x }).Export("id").Instantiate(ctx); err != nil {
			t.Fatal(err)
		}
		m, release := i.instance(t, i.compile(t, module))
		if _, err := m.ExportedFunction("load").Call(i.ctx, page); err == nil || !strings.Contains(err.Error(), "out of bounds") {
			t.Errorf("guarded %v: %v", guarded, err)
		}
		release()
		if err := errors.Join(i.Close(ctx), cache.Close(ctx)); err != nil {
			t.Error(err)
		}
	}
}

// A region that was released has nothing of its last memory, and nothing can be mapped in its place.
func TestAReleasedRegionIsEmpty(t *testing.T) {
	region, err := guard.Take(2 * page)
	if err != nil {
		t.Fatal(err)
	}
	if err := region.Open(0, page); err != nil {
		t.Fatal(err)
	}
	copy(region.Memory, "secret")
	begin := unsafe.SliceData(region.Memory)
	region.Release()
	again, err := guard.Take(2 * page)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Release()
	if unsafe.SliceData(again.Memory) != begin {
		t.Fatal("the region is not the one that was released")
	}
	if err := faultOf(func() { sink = again.Memory[0] }); err == nil {
		t.Error("a new region can be accessed")
	}
	if err := again.Open(0, 2*page); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(again.Memory, make([]byte, 2*page)) {
		t.Error("a new region has bytes of the last memory")
	}
}

func TestAllRegionsCanBeTaken(t *testing.T) {
	var all []*guard.Region
	defer func() {
		for _, r := range all {
			r.Release()
		}
	}()
	for {
		r, err := guard.Take(page)
		if errors.Is(err, guard.ErrNone) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if all = append(all, r); len(all) > guard.Regions {
			t.Fatal("there are more regions than there can be")
		}
	}
	if len(all) < 64 {
		t.Errorf("only %d regions could be taken", len(all))
	}
}
