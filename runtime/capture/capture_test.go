//go:build patched

package capture_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
	"github.com/tetratelabs/wazero/sys"

	_ "runner.example/internal/wazerofix"
	"runner.example/runtime/capture"
	"runner.example/runtime/guard"
)

// imports is the beginning of each module.
const imports = `(module
  (import "env" "next" (func $next (result i32)))
  (import "env" "note" (func $note (param i64)))
  (import "env" "exit" (func $exit (param i32)))
  (import "env" "nest" (func $nest))
`

// program is a compiled module.
type program struct {
	wazero.Runtime
	compiled wazero.CompiledModule
	ctx      context.Context
	guarded  bool
}

// guest is an instance, and what its host functions do.
type guest struct {
	api.Module
	fn    api.Function
	nexts int // calls of next so far
	at    int // the call of next that is captured
	// take captures the call; nil: nothing is captured.
	take  func() (*capture.Capture, error)
	taken *capture.Capture
	err   error
	goOn  bool // after the capture
	image image
	notes []uint64
	next  func(n int) uint32
	nest  func()

	from, to [256]byte
}

type image struct {
	memory  []byte
	globals []uint64
	notes   int
	nexts   int
}

type guestKey struct{}

// inGuest makes a host function of one that gets the guest.
func inGuest(f func(g *guest, stack []uint64)) api.GoModuleFunc {
	return func(ctx context.Context, _ api.Module, stack []uint64) { f(ctx.Value(guestKey{}).(*guest), stack) }
}

var errCaptured = sys.NewExitError(77)

// compile compiles the text of a module, to code for guarded memories if asked.
func compile(t testing.TB, config wazero.RuntimeConfig, guarded bool, text string) *program {
	t.Helper()
	ctx := context.Background()
	if guarded {
		ctx = guard.Compile(ctx)
	}
	p := &program{Runtime: wazero.NewRuntimeWithConfig(ctx, config.WithMemoryCapacityFromMax(true)), ctx: ctx, guarded: guarded}
	t.Cleanup(func() { _ = p.Close(ctx) })
	i32, i64 := []api.ValueType{api.ValueTypeI32}, []api.ValueType{api.ValueTypeI64}
	b := p.NewHostModuleBuilder("env")
	b.NewFunctionBuilder().WithGoModuleFunction(inGuest((*guest).callNext), nil, i32).Export("next")
	b.NewFunctionBuilder().WithGoModuleFunction(inGuest(func(g *guest, stack []uint64) { g.notes = append(g.notes, stack[0]); g.dirty() }), i64, nil).Export("note")
	b.NewFunctionBuilder().WithGoModuleFunction(inGuest(func(_ *guest, stack []uint64) { panic(sys.NewExitError(uint32(stack[0]))) }), i32, nil).Export("exit")
	b.NewFunctionBuilder().WithGoModuleFunction(inGuest(func(g *guest, _ []uint64) { g.nest() }), nil, nil).Export("nest")
	if _, err := b.Instantiate(ctx); err != nil {
		t.Fatal(err)
	}
	var err error
	if p.compiled, err = p.CompileModule(ctx, wat(t, imports+text+")")); err != nil {
		t.Fatal(err)
	}
	return p
}

// callNext is the host function next.
func (g *guest) callNext(stack []uint64) {
	n := g.nexts
	g.nexts++
	if g.take != nil && n == g.at {
		if g.taken, g.err = g.take(); g.err == nil {
			g.image = g.save()
		}
		if !g.goOn {
			panic(errCaptured)
		}
	}
	stack[0] = uint64(g.next(n))
	g.dirty()
}

// dirty leaves other values in the vector registers each time, as any code of Go may.
func (g *guest) dirty() {
	n := len(g.from) - g.nexts%2 // a constant would be copied by other instructions
	_, _ = rand.Read(g.from[:n])
	copy(g.to[:n], g.from[:n])
}

// guarded is a memory whose accesses are not compared.
type guardedMemory struct {
	*guard.Region
	size uint64
}

func (m *guardedMemory) Allocate(_, most uint64) experimental.LinearMemory {
	region, err := guard.Take(most)
	if err != nil {
		panic(err)
	}
	m.Region = region
	return m
}

func (m *guardedMemory) Reallocate(size uint64) []byte {
	if size > uint64(len(m.Memory)) || m.Open(m.size, size) != nil {
		return nil
	}
	m.size = size
	return m.Memory[:size:size]
}

func (m *guardedMemory) Free() {}

// guest makes an instance whose function is started by Call.
func (p *program) guest(t testing.TB, export string) *guest {
	t.Helper()
	ctx := p.ctx
	var m *guardedMemory
	if p.guarded {
		m = new(guardedMemory)
		ctx = experimental.WithMemoryAllocator(ctx, m)
	}
	instance, err := p.InstantiateModule(ctx, p.compiled, wazero.NewModuleConfig().WithName("").WithStartFunctions())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = instance.Close(p.ctx)
		if m != nil {
			m.Release()
		}
	})
	g := &guest{Module: instance, fn: instance.ExportedFunction(export)}
	g.next = func(n int) uint32 { return uint32(n)*7 + 1 }
	return g
}

func (g *guest) context() context.Context {
	return context.WithValue(context.Background(), guestKey{}, g)
}

// save returns the memory and the globals g0, g1 and so on.
func (g *guest) save() image {
	i := image{notes: len(g.notes), nexts: g.nexts}
	b, _ := g.Memory().Read(0, g.Memory().Size())
	i.memory = bytes.Clone(b)
	for n := 0; ; n++ {
		global := g.ExportedGlobal(fmt.Sprintf("g%d", n))
		if global == nil {
			return i
		}
		i.globals = append(i.globals, global.Get())
	}
}

// load makes an instance what a captured one was.
func (g *guest) load(t testing.TB, i image) {
	t.Helper()
	m := g.Memory()
	if have := m.Size(); have < uint32(len(i.memory)) {
		m.Grow((uint32(len(i.memory)) - have) / 65536)
	}
	if !m.Write(0, i.memory) || m.Size() != uint32(len(i.memory)) {
		t.Fatalf("the memory has %d bytes, want %d", m.Size(), len(i.memory))
	}
	for n, x := range i.globals {
		g.ExportedGlobal(fmt.Sprintf("g%d", n)).(api.MutableGlobal).Set(x)
	}
	g.notes, g.nexts = make([]uint64, i.notes), i.nexts
}

// taken starts an instance, which is captured at its n-th call of next.
func (p *program) taken(t testing.TB, export string, n int) *guest {
	t.Helper()
	g := p.guest(t, export)
	g.at, g.take = n, func() (*capture.Capture, error) { return capture.Take(g.fn) }
	if err := capture.Call(g.context(), g.fn); !errors.Is(err, errCaptured) || g.err != nil {
		t.Fatalf("the call ended with %v, the capture with %v", err, g.err)
	}
	g.take = nil
	return g
}

// state starts two instances and returns what they share, and the image of one.
func (p *program) state(t testing.TB, export string, n int) (*capture.State, image) {
	t.Helper()
	a, b := p.taken(t, export, n), p.taken(t, export, n)
	s, err := capture.Compare(a.taken, b.taken)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(a.image.memory, b.image.memory) || !slices.Equal(a.image.globals, b.image.globals) {
		t.Fatal("the instances have done other things")
	}
	return s, a.image
}

// outcome is what can be seen of a run.
type outcome struct {
	err     string
	notes   []uint64 // beyond those before the capture
	memory  []byte
	globals []uint64
}

func (g *guest) outcome(err error, i image) outcome {
	after := g.save()
	return outcome{fmt.Sprint(err), slices.Clone(g.notes[i.notes:]), after.memory, after.globals}
}

func (o outcome) compare(t testing.TB, what string, want outcome) {
	t.Helper()
	if o.err != want.err || !slices.Equal(o.notes, want.notes) || !slices.Equal(o.globals, want.globals) || !bytes.Equal(o.memory, want.memory) {
		t.Fatalf("%s: error %s, notes %#x, globals %#x\nwant error %s, notes %#x, globals %#x; equal memories: %v", what,
			o.err, o.notes, o.globals, want.err, want.notes, want.globals, bytes.Equal(o.memory, want.memory))
	}
}

// check compares runs that continue, in instances new and used, with one that is never interrupted.
func (p *program) check(t testing.TB, export string, n int) (*capture.State, image) {
	t.Helper()
	s, i := p.state(t, export, n)
	whole := p.guest(t, export)
	err := capture.Call(whole.context(), whole.fn)
	want := whole.outcome(err, i)
	for round := range 2 {
		g := p.guest(t, export)
		g.load(t, i)
		if round == 1 { // it has a frame of another size behind it, and another stack
			_ = g.fn.CallWithStack(g.context(), nil)
			if g.Memory().Size() != uint32(len(i.memory)) {
				continue
			}
			g.load(t, i)
			runtime.GC()
		}
		g.outcome(g.resume(s), i).compare(t, "continued", want)
	}
	return s, i
}

// resume continues as if the captured call of next returned what it does otherwise.
func (g *guest) resume(s *capture.State) error {
	return s.Resume(g.context(), g.fn, []uint64{uint64(g.next(g.nexts - 1))})
}

// kinds runs a test with compared and with guarded memories.
func kinds(t *testing.T, f func(t *testing.T, guarded bool)) {
	t.Run("compared", func(t *testing.T) { f(t, false) })
	if guardable {
		t.Run("guarded", func(t *testing.T) { f(t, true) })
	}
}

const guardable = runtime.GOARCH == "amd64"

var compiler = wazero.NewRuntimeConfigCompiler().WithCoreFeatures(
	api.CoreFeaturesV2 | experimental.CoreFeaturesTailCall | experimental.CoreFeaturesThreads)

// live has values of all types in locals while the host is called, in frames below too, and through a table.
const live = `
  (memory (export "memory") 1 20)
  (global $count (export "g0") (mut i64) (i64.const 0))
  (table 4 funcref)
  (elem (i32.const 1) $middle $middle)
  (type $f (func (param i32 i64 f32 f64 v128 i64 i64 i64 i64 i64 i32) (result i64)))
  (func (export "_start") (local $i i32)
    (loop $again
      (call $note (call $outer (i32.const 12) (i64.extend_i32_u (local.get $i))))
      (br_if $again (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 4)))))
  (func $outer (param $n i32) (param $x i64) (result i64) (local $a i64) (local $b f64) (local $v v128)
    (local.set $a (i64.mul (local.get $x) (i64.const 0x123456789)))
    (local.set $b (f64.convert_i64_u (local.get $a)))
    (local.set $v (i64x2.splat (local.get $a)))
    (i64.store (i32.mul (local.get $n) (i32.const 8)) (local.get $a))
    (if (result i64) (local.get $n)
      (then (call $outer (i32.sub (local.get $n) (i32.const 1)) (i64.add (local.get $a) (i64.const 1))))
      (else (call_indirect (type $f) (local.get $n) (local.get $a) (f32.demote_f64 (local.get $b)) (local.get $b)
        (local.get $v) (local.get $a) (local.get $x) (i64.const 1) (i64.const 2) (i64.const 3) (i32.const 4)
        (i32.and (i32.wrap_i64 (local.get $x)) (i32.const 1)) (i32.add (i32.const 1)))))
    (i64.xor (local.get $x))
    (i64.add (i64.load (i32.mul (local.get $n) (i32.const 8))))
    (i64.add (i64.reinterpret_f64 (local.get $b)))
    (i64.add (i64x2.extract_lane 1 (local.get $v))))
  (func $middle (type $f)
    (call $next) (i64.extend_i32_u)
    (global.set $count (i64.add (global.get $count) (i64.const 1)))
    (i64.add (i64.extend_i32_u (local.get 0)))
    (i64.add (local.get 1))
    (i64.add (i64.extend_i32_u (i32.reinterpret_f32 (local.get 2))))
    (i64.add (i64.reinterpret_f64 (local.get 3)))
    (i64.add (i64x2.extract_lane 0 (local.get 4)))
    (i64.add (local.get 5)) (i64.add (local.get 6)) (i64.add (local.get 7)) (i64.add (local.get 8))
    (i64.add (local.get 9)) (i64.add (i64.extend_i32_u (local.get 10)))
    (i64.add (global.get $count)))`

func TestACallContinuesInAnotherInstance(t *testing.T) {
	kinds(t, func(t *testing.T, guarded bool) {
		p := compile(t, compiler, guarded, live)
		for n := range 4 {
			s, _ := p.check(t, "_start", n)
			if size := s.Size(); size.Frames != 15 || size.Stack < 15*16 || size.Replaced == 0 {
				t.Errorf("%+v", size)
			}
		}
	})
}

// Two captures of one call are independent of each other.
func TestACallIsCapturedTwice(t *testing.T) {
	p := compile(t, compiler, false, live)
	var captures [2][2]*capture.Capture
	var images [2]image
	for i := range 2 {
		g := p.guest(t, "_start")
		next := g.next
		g.next = func(n int) uint32 {
			if n == 1 || n == 3 {
				var err error
				if captures[n/2][i], err = capture.Take(g.fn); err != nil {
					t.Fatal(err)
				}
				images[n/2] = g.save()
			}
			return next(n)
		}
		if err := capture.Call(g.context(), g.fn); err != nil {
			t.Fatal(err)
		}
	}
	whole := p.guest(t, "_start")
	err := whole.fn.CallWithStack(whole.context(), nil)
	for k := range 2 {
		s, failed := capture.Compare(captures[k][0], captures[k][1])
		if failed != nil {
			t.Fatal(failed)
		}
		g := p.guest(t, "_start")
		g.load(t, images[k])
		g.outcome(g.resume(s), images[k]).compare(t, "continued", whole.outcome(err, images[k]))
	}
	if _, err := capture.Compare(captures[0][0], captures[1][1]); err == nil {
		t.Error("captures of two moments are equal")
	}
	if _, err := capture.Compare(captures[0][0], captures[0][0]); err == nil || !strings.Contains(err.Error(), "same instance") {
		t.Error(err)
	}
}

// grows grows its memory before it is captured, and after.
const grows = `
  (memory (export "memory") 1 20)
  (func (export "_start") (local $x i32) (local $y i32)
    (drop (memory.grow (i32.const 2)))
    (i32.store (i32.const 150000) (i32.const 5))
    (local.set $x (i32.load (i32.const 150000)))
    (local.set $y (call $next))
    (call $note (i64.extend_i32_u (i32.add (local.get $x) (i32.load (i32.const 150000)))))
    (call $note (i64.extend_i32_s (memory.grow (local.get $y))))
    (call $note (i64.extend_i32_u (memory.size)))
    (i32.store (i32.const 250000) (i32.const 6))
    (call $note (i64.extend_i32_u (i32.add (i32.load (i32.const 250000)) (call $next)))))`

func TestTheMemoryGrowsBeforeAndAfter(t *testing.T) {
	kinds(t, func(t *testing.T, guarded bool) { compile(t, compiler, guarded, grows).check(t, "_start", 0) })
}

// deep recurses before the capture, which is at a depth of its own, and after.
const deep = `
  (memory (export "memory") 1 1)
  (func (export "_start")
    (call $note (call $down (i64.const 3000) (i64.const 2900) (i64.const 1)))
    (call $note (call $down (i64.const 20) (i64.const -1) (i64.const 2)))
    (call $note (call $down (i64.const 20000) (i64.const -1) (i64.const 3))))
  (func (export "shallow")
    (call $note (call $down (i64.const 3000) (i64.const -1) (i64.const 1)))
    (call $note (call $down (i64.const 20) (i64.const 0) (i64.const 2)))
    (call $note (call $down (i64.const 20000) (i64.const -1) (i64.const 3))))
  (func $down (param $n i64) (param $at i64) (param $x i64) (result i64) (local $y i64)
    (local.set $y (i64.mul (local.get $x) (i64.const 31)))
    (if (i64.eq (local.get $n) (local.get $at)) (then (call $note (i64.extend_i32_u (call $next)))))
    (if (result i64) (i64.eqz (local.get $n))
      (then (local.get $x))
      (else (call $down (i64.sub (local.get $n) (i64.const 1)) (local.get $at) (local.get $y))))
    (i64.xor (i64.add (local.get $x) (local.get $y))))
  (func (export "deepest")
    (call $note (call $down (i64.const 8000) (i64.const 0) (i64.const 9))))`

func TestTheStackGrowsBeforeAndAfter(t *testing.T) {
	p := compile(t, compiler, false, deep)
	p.check(t, "_start", 0)
	p.check(t, "shallow", 0)
	if s, _ := p.check(t, "deepest", 0); s.Size().Stack < 300<<10 || s.Size().Frames != 8002 {
		t.Errorf("%+v", s.Size())
	}
}

// Many instances continue at once, while garbage is collected.
func TestManyInstancesContinueAtOnce(t *testing.T) {
	kinds(t, func(t *testing.T, guarded bool) {
		p := compile(t, compiler, guarded, live)
		s, i := p.state(t, "_start", 2)
		whole := p.guest(t, "_start")
		want := whole.outcome(whole.fn.CallWithStack(whole.context(), nil), i)
		var wait sync.WaitGroup
		stop := make(chan struct{})
		for range 16 {
			g := p.guest(t, "_start")
			wait.Go(func() {
				for range 40 {
					g.load(t, i)
					got := g.outcome(g.resume(s), i)
					if got.err != want.err || !slices.Equal(got.notes, want.notes) || !bytes.Equal(got.memory, want.memory) {
						t.Errorf("notes %#x, want %#x", got.notes, want.notes)
						return
					}
				}
			})
		}
		var collector sync.WaitGroup
		collector.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					runtime.GC()
				}
			}
		})
		wait.Wait()
		close(stop)
		collector.Wait()
	})
}

// traps ends as the host says.
const traps = `
  (memory (export "memory") 1 1)
  (global (export "g0") (mut i32) (i32.const 0))
  (table 1 funcref)
  (type $none (func))
  (func (export "_start") (call $run (i32.const 3)))
  (func $run (param $n i32) (local $how i32)
    (if (local.get $n) (then (call $run (i32.sub (local.get $n) (i32.const 1))) (return)))
    (local.set $how (call $next))
    (global.set 0 (i32.add (global.get 0) (i32.const 1)))
    (call $note (i64.extend_i32_u (global.get 0)))
    (if (i32.eq (local.get $how) (i32.const 1)) (then (call $trap)))
    (if (i32.eq (local.get $how) (i32.const 2)) (then (call $load)))
    (if (i32.eq (local.get $how) (i32.const 3)) (then (call $exit (i32.const 9))))
    (if (i32.eq (local.get $how) (i32.const 4)) (then (call_indirect (type $none) (i32.const 0))))
    (if (i32.eq (local.get $how) (i32.const 5)) (then (call $endless)))
    (if (i32.eq (local.get $how) (i32.const 6)) (then (drop (i32.div_u (i32.const 1) (i32.eqz (local.get $how)))))))
  (func $endless (call $endless) (call $endless))
  (func $trap unreachable)
  (func $load (drop (i32.load (i32.const 65536))))`

// Whatever ends a continued run, it ends as an uninterrupted one, with the same trace, and the function continues again.
func TestContinuedRunsEndAsOthers(t *testing.T) {
	kinds(t, func(t *testing.T, guarded bool) {
		p := compile(t, compiler, guarded, traps)
		s, i := p.state(t, "_start", 0)
		g := p.guest(t, "_start")
		for _, how := range []uint32{0, 1, 2, 3, 4, 5, 6, 0, 5, 1, 0} {
			whole := p.guest(t, "_start")
			whole.next = func(int) uint32 { return how }
			g.next = whole.next
			want := whole.outcome(whole.fn.CallWithStack(whole.context(), nil), i)
			g.load(t, i)
			got := g.outcome(s.Resume(g.context(), g.fn, []uint64{uint64(how)}), i)
			got.compare(t, fmt.Sprint("end ", how), want)
			if how == 2 && !strings.Contains(got.err, "out of bounds") {
				t.Error(got.err)
			}
			g.load(t, i) // and it can be called as before
			if got := g.outcome(g.fn.CallWithStack(g.context(), nil), i); got.err != want.err {
				t.Errorf("called again: %s, want %s", got.err, want.err)
			}
		}
	})
}

// ends is an error with which a host function ends a call, with a trace or without.
type ends struct{ without bool }

func (e *ends) Error() string  { return "the guest is done" }
func (e *ends) EndsCall() bool { return e.without }

// A call that a host function ends has no trace, and its instance can be called again.
func TestACallEndsWithoutATrace(t *testing.T) {
	p := compile(t, wazero.NewRuntimeConfigCompiler(), false, `(func (export "run") (call $nest))`)
	m, err := p.InstantiateModule(p.ctx, p.compiled, wazero.NewModuleConfig().WithName(""))
	if err != nil {
		t.Fatal(err)
	}
	var end *ends
	ctx := context.WithValue(p.ctx, guestKey{}, &guest{nest: func() { panic(end) }})
	for _, without := range []bool{true, false, true} {
		end = &ends{without}
		_, err := m.ExportedFunction("run").Call(ctx)
		if !errors.Is(err, end) || strings.Contains(err.Error(), "wasm stack trace") == (without && capture.Available()) {
			t.Errorf("ends without a trace: %v, the error is %v", without, err)
		}
	}
}

func TestADeadlineEndsAContinuedRun(t *testing.T) {
	p := compile(t, compiler.WithCloseOnContextDone(true), false, `
  (memory (export "memory") 1 1)
  (func (export "_start") (drop (call $next)) (call $nest) (loop (br 0)))`)
	s, i := p.state(t, "_start", 0)
	g := p.guest(t, "_start")
	g.load(t, i)
	ctx, cancel := context.WithCancel(g.context())
	g.nest = cancel
	var exit *sys.ExitError
	if err := s.Resume(ctx, g.fn, []uint64{0}); !errors.As(err, &exit) || exit.ExitCode() != sys.ExitCodeContextCanceled {
		t.Error(err)
	}
}

func TestAClosedInstanceDoesNotContinue(t *testing.T) {
	p := compile(t, compiler, false, live)
	s, i := p.state(t, "_start", 0)
	g := p.guest(t, "_start")
	g.load(t, i)
	if err := g.CloseWithExitCode(p.ctx, 4); err != nil {
		t.Fatal(err)
	}
	var exit *sys.ExitError
	if err := s.Resume(g.context(), g.fn, []uint64{0}); !errors.As(err, &exit) || exit.ExitCode() != 4 {
		t.Error(err)
	}
}

// planted keeps numbers in its frames, which the test chooses.
const planted = `
  (memory (export "memory") 1 1)
  (func (export "_start") (local $a i64) (local $b i64) (local $c i64) (local $d i64)
    (local.set $a (i64.load (i32.const 0))) (local.set $b (i64.load (i32.const 8)))
    (local.set $c (i64.load (i32.const 16))) (local.set $d (i64.load (i32.const 24)))
    (call $inner (local.get $a) (local.get $b) (local.get $c) (local.get $d))
    (call $note (local.get $a)) (call $note (local.get $b)) (call $note (local.get $c)) (call $note (local.get $d)))
  (func $inner (param i64 i64 i64 i64)
    (call $note (i64.extend_i32_u (call $next)))
    (call $note (i64.add (local.get 0) (i64.add (local.get 1) (i64.add (local.get 2) (local.get 3))))))`

// Words that look like addresses of one instance are kept.
func TestPlantedWordsAreKept(t *testing.T) {
	p := compile(t, compiler, false, planted)
	probe := p.guest(t, "_start")
	addresses := addressesOf(probe)
	a, b := probe, p.guest(t, "_start")
	for _, g := range []*guest{a, b} {
		for n, x := range addresses {
			g.Memory().WriteUint64Le(uint32(8*n), x)
		}
		g.take = func() (*capture.Capture, error) { return capture.Take(g.fn) }
		if err := capture.Call(g.context(), g.fn); !errors.Is(err, errCaptured) || g.err != nil {
			t.Fatal(err, g.err)
		}
	}
	s, err := capture.Compare(a.taken, b.taken)
	if err != nil {
		t.Fatal(err)
	}
	g := p.guest(t, "_start")
	g.load(t, a.image)
	if err := g.resume(s); err != nil {
		t.Fatal(err)
	}
	if sum := addresses[0] + addresses[1] + addresses[2] + addresses[3]; !slices.Equal(g.notes[1:], append([]uint64{sum}, addresses[:]...)) {
		t.Errorf("notes %#x, want %#x", g.notes, addresses)
	}
}

// addressesOf returns addresses of an instance that its frames have: both contexts, the top of the stack, and the memory.
func addressesOf(g *guest) [4]uint64 {
	fn := reflect.ValueOf(g.fn).Elem()
	memory, _ := g.Memory().Read(0, 1)
	return [4]uint64{
		fn.FieldByName("execCtxPtr").Uint(), uint64(fn.FieldByName("parent").Elem().FieldByName("opaquePtr").Pointer()),
		fn.FieldByName("stackTop").Uint(), uint64(uintptr(unsafe.Pointer(&memory[0]))),
	}
}

// Whatever else differs is an error that names it.
func TestOtherDifferencesAreErrors(t *testing.T) {
	p := compile(t, compiler, false, planted)
	var all [2]*capture.Capture
	for i := range all {
		g := p.guest(t, "_start")
		g.Memory().WriteUint64Le(8, 0x1122334455667700+uint64(i))
		g.take = func() (*capture.Capture, error) { return capture.Take(g.fn) }
		if err := capture.Call(g.context(), g.fn); !errors.Is(err, errCaptured) || g.err != nil {
			t.Fatal(err, g.err)
		}
		all[i] = g.taken
	}
	_, err := capture.Compare(all[0], all[1])
	if err == nil || !strings.Contains(err.Error(), "0x1122334455667700 and 0x1122334455667701") {
		t.Error(err)
	}
}

// references has a reference to a function in a local, and in a table that it sets.
const references = `
  (memory (export "memory") 1 1)
  (table $t 4 funcref)
  (type $f (func (result i32)))
  (elem declare func $two)
  (elem (table $t) (i32.const 0) func $one $two $three)
  (func $one (result i32) (i32.const 1)) (func $two (result i32) (i32.const 2)) (func $three (result i32) (i32.const 3))
  (func (export "_start") (local $r funcref) (local $q funcref) (local $x i32)
    (local.set $r (ref.func $two))
    (local.set $q (table.get $t (i32.const 2)))
    (local.set $x (call $next))
    (table.set $t (i32.const 0) (local.get $r))
    (table.set $t (i32.const 1) (local.get $q))
    (call $note (i64.extend_i32_u (call_indirect $t (type $f) (i32.const 0))))
    (call $note (i64.extend_i32_u (call_indirect $t (type $f) (i32.const 1))))
    (call $note (i64.extend_i32_u (local.get $x))))`

func TestReferencesToFunctionsAreThoseOfTheInstance(t *testing.T) {
	p := compile(t, compiler, false, references)
	a, b := p.taken(t, "_start", 0), p.taken(t, "_start", 0)
	s, err := capture.Compare(a.taken, b.taken)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		g := p.guest(t, "_start")
		g.load(t, a.image)
		if err := g.resume(s); err != nil || !slices.Equal(g.notes, []uint64{2, 3, 1}) {
			t.Error(err, g.notes)
		}
	}
}

// A number of 32 bits can lie in a word whose other half was an address before.
func TestNumbersNextToOldAddressesAreKept(t *testing.T) {
	if !guardable {
		t.Skip("the memories must be 4 GiB apart")
	}
	const values, params = 40, 70
	var text, sum, arguments strings.Builder
	text.WriteString(`(memory (export "memory") 1 1) (func $spill (result i64) (local` + strings.Repeat(" i32", values) + ")\n")
	for i := range values {
		fmt.Fprintf(&text, "(local.set %d (i32.load offset=%d (i32.const 0)))\n", i, 16*i)
	}
	text.WriteString("(i64.const 0)\n")
	for offset := 8; offset >= 0; offset -= 8 { // the second time with the addresses of the first
		for i := range values {
			fmt.Fprintf(&text, "(i64.add (i64.load offset=%d (local.get %d)))\n", offset, i)
		}
	}
	for i := range params {
		fmt.Fprintf(&arguments, "(i32.const %d)", 1<<(i%31))
		fmt.Fprintf(&sum, "(i32.add (local.get %d))", i)
	}
	fmt.Fprintf(&text, `) (func $sum (param%s) (call $next) %s (i64.extend_i32_u) (call $note))
		(func (export "_start") (call $note (call $spill)) (call $sum %s))`, strings.Repeat(" i32", params), &sum, &arguments)
	p := compile(t, compiler, false, text.String())
	p.guarded = true // the memory is in a region, and its accesses are compared
	s, _ := p.check(t, "_start", 0)
	if s.Size().Dead < 10 {
		t.Errorf("%+v: the addresses of $spill are not where the parameters of $sum are", s.Size())
	}
}

// nests calls a host function that calls the guest.
const nests = `
  (memory (export "memory") 1 1)
  (func (export "_start") (drop (call $next)) (call $nest) (drop (call $next)))
  (func (export "inner") (drop (call $next)))
  (func (export "with") (param i32) (drop (call $next)))`

func TestNestedCallsAreNotCaptured(t *testing.T) {
	p := compile(t, compiler, false, nests)
	g := p.guest(t, "_start")
	inner := g.ExportedFunction("inner")
	var outside, within error
	g.next = func(n int) uint32 {
		if n == 1 {
			_, outside = capture.Take(g.fn)
			_, within = capture.Take(inner)
		}
		return 0
	}
	g.nest = func() {
		if err := capture.Call(g.context(), inner); err != nil {
			t.Error(err)
		}
	}
	if err := capture.Call(g.context(), g.fn); err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{outside, within} {
		if err == nil || !strings.Contains(err.Error(), "nested") {
			t.Error(err)
		}
	}
}

func TestWhatCannotBeCaptured(t *testing.T) {
	p := compile(t, compiler, false, nests)
	g := p.guest(t, "_start")
	refused := func(err error, want string) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	take := func() error { _, err := capture.Take(g.fn); return err }
	refused(take(), "not in a host function")
	refused(capture.Call(g.context(), g.ExportedFunction("with")), "parameters or results")

	g.nest = func() {
		refused(capture.Call(g.context(), g.fn), "running")
	}
	var err error
	g.next = func(int) uint32 { err = take(); return 0 }
	if err := g.fn.CallWithStack(g.context(), nil); err != nil {
		t.Fatal(err)
	}
	refused(err, "CallCapturable")

	s, i := p.state(t, "_start", 0)
	refused(s.Resume(g.context(), g.ExportedFunction("inner"), []uint64{0}), "another function")
	refused(s.Resume(g.context(), g.fn, nil), "has 1 results, not 0")
	other := compile(t, compiler, false, nests).guest(t, "_start")
	refused(s.Resume(other.context(), other.fn, []uint64{0}), "another function")
	g.load(t, i)
	g.nest = func() { refused(s.Resume(g.context(), g.fn, []uint64{0}), "running") }
	g.next = func(int) uint32 { err = take(); return 0 }
	if err := s.Resume(g.context(), g.fn, []uint64{0}); err != nil {
		t.Fatal(err)
	}
	refused(err, "CallCapturable") // a continued call is not captured again

	interpreted := compile(t, wazero.NewRuntimeConfigInterpreter(), false, nests).guest(t, "_start")
	refused(capture.Call(interpreted.context(), interpreted.fn), "not compiled code")
}

// exceptions returns a module whose _start has the code. wat2wasm does not know try_table.
func exceptions(code string) []byte {
	body := "\x00" + code // no locals
	return []byte("\x00asm\x01\x00\x00\x00" +
		"\x01\x08\x02\x60\x00\x01\x7f\x60\x00\x00" + // types
		"\x02\x0c\x01\x03env\x04next\x00\x00" +
		"\x03\x02\x01\x01" +
		"\x05\x04\x01\x01\x01\x01" + // memory, of one page at most
		"\x0d\x03\x01\x00\x01" + // tag
		"\x07\x0a\x01\x06_start\x00\x01" +
		"\x0a" + string(rune(len(body)+2)) + "\x01" + string(rune(len(body))) + body)
}

const (
	tryNext  = "\x02\x40\x1f\x40\x01\x02\x00\x10\x00\x1a\x0b\x0b" // block, try_table (catch_all 0), next
	tryThrow = "\x02\x40\x1f\x40\x01\x02\x00\x08\x00\x0b\x0b"
	justNext = "\x10\x00\x1a"
)

func TestACallWithinATryTableIsNotCaptured(t *testing.T) {
	config := compiler.WithCoreFeatures(api.CoreFeaturesV2 | experimental.CoreFeaturesExceptionHandling)
	p := compile(t, config, false, "")
	var err error
	if p.compiled, err = p.CompileModule(p.ctx, exceptions(tryNext+justNext+"\x0b")); err != nil {
		t.Fatal(err)
	}
	g := p.guest(t, "_start")
	g.next = func(n int) uint32 {
		_, err := capture.Take(g.fn)
		if (err == nil) != (n == 1) || n == 0 && !strings.Contains(err.Error(), "try_table") {
			t.Errorf("call %d: %v", n, err)
		}
		return 0
	}
	if err := capture.Call(g.context(), g.fn); err != nil || g.nexts != 2 {
		t.Fatal(err, g.nexts)
	}
	p.check(t, "_start", 1)

	// A caught exception replaces the stack, before the capture and after.
	if p.compiled, err = p.CompileModule(p.ctx, exceptions(tryThrow+tryThrow+justNext+tryThrow+justNext+"\x0b")); err != nil {
		t.Fatal(err)
	}
	p.check(t, "_start", 0)
	p.check(t, "_start", 1)
}

func TestContinuingTakesNoMemory(t *testing.T) {
	p := compile(t, compiler, false, traps)
	s, i := p.state(t, "_start", 0)
	g := p.guest(t, "_start")
	ctx, results := g.context(), []uint64{0}
	global := g.ExportedGlobal("g0").(api.MutableGlobal)
	g.notes = make([]uint64, 0, 20)
	once := func() {
		global.Set(i.globals[0])
		g.notes = g.notes[:0]
		if err := s.Resume(ctx, g.fn, results); err != nil || len(g.notes) != 1 {
			t.Fatal(err, g.notes)
		}
	}
	if n := testing.AllocsPerRun(10000, once); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// BenchmarkResume compares a call that continues with one that begins. Of the large ones, one has the stack of an
// interpreter, and returns from all of its frames.
func BenchmarkResume(b *testing.B) {
	small := compile(b, compiler, false, traps)
	large := compile(b, compiler, false, `(memory 1 1) (func (export "_start") (call $down (i32.const 180)))
		(func $down (param $n i32) (if (local.get $n)
			(then (call $down (i32.sub (local.get $n) (i32.const 1))) (call $down (i32.const 0)) (return)))
			(if (i32.eqz (global.get 0)) (then (global.set 0 (i32.const 1)) (drop (call $next)))))
		(global (export "g0") (mut i32) (i32.const 0))`)
	for _, p := range []*program{small, large} {
		s, i := p.state(b, "_start", 0)
		g := p.guest(b, "_start")
		ctx, results := g.context(), []uint64{0}
		g.notes = make([]uint64, 0, 20)
		b.Run(fmt.Sprintf("resume/stack=%d/replaced=%d", s.Size().Stack, s.Size().Replaced), func(b *testing.B) {
			g.ExportedGlobal("g0").(api.MutableGlobal).Set(i.globals[0])
			for b.Loop() {
				g.notes = g.notes[:0]
				_ = s.Resume(ctx, g.fn, results)
			}
		})
		b.Run("call", func(b *testing.B) {
			for b.Loop() {
				g.notes = g.notes[:0]
				_ = g.fn.CallWithStack(ctx, nil)
			}
		})
	}
}

// wat makes a module of its text.
func wat(t testing.TB, text string) []byte {
	t.Helper()
	if _, err := exec.LookPath("wat2wasm"); err != nil && testing.Short() {
		t.Skip("wat2wasm is missing: apt-get install wabt")
	}
	out := filepath.Join(t.TempDir(), "module.wasm")
	assemble := exec.Command("wat2wasm", "--enable-tail-call", "--enable-threads", "-", "-o", out)
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
