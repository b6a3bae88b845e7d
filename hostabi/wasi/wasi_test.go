package wasi_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"runner.example/hostabi"
	"runner.example/hostabi/abi"
	"runner.example/hostabi/wasi"
	"runner.example/internal/component"
	"runner.example/internal/component/canon"
	"runner.example/internal/component/canon/canontest"
)

// memoryModule has 64 pages of memory, exported, and nothing else.
var memoryModule = []byte("\x00asm\x01\x00\x00\x00" + "\x05\x03\x01\x00\x40" + "\x07\x0a\x01\x06memory\x02\x00")

// guest is the other side of the host's functions: real guest memory, and calls as the module of a
// component makes them.
type guest struct {
	t         testing.TB
	module    api.Module
	memory    []byte
	functions map[string]hostabi.Function
	types     map[string]*component.FuncType
	call      *hostabi.Call
	program   *hostabi.Program
	log       *bytes.Buffer
}

func newGuest(t testing.TB, limits hostabi.Limits) *guest {
	t.Helper()
	ctx := context.Background()
	runtime := wazero.NewRuntime(ctx)
	t.Cleanup(func() {
		if err := runtime.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	module, err := runtime.Instantiate(ctx, memoryModule)
	if err != nil {
		t.Fatal(err)
	}
	g := &guest{t: t, module: module, log: new(bytes.Buffer),
		functions: map[string]hostabi.Function{}, types: map[string]*component.FuncType{}}
	g.memory, _ = module.Memory().Read(0, module.Memory().Size())
	for _, m := range wasi.Modules() {
		for _, f := range m.Functions {
			g.functions[m.Name+" "+f.Name] = f
		}
	}
	for _, i := range slices.Concat(wasi.World().Imports, wasi.App().Imports) {
		g.types[component.HostInterface(i.Interface)+" "+i.Name] = i.Func
	}
	g.call = &hostabi.Call{Input: hostabi.Input{
		Context: ctx, Attempt: 1,
		Host: hostabi.NewHost(hostabi.Host{
			Limits: limits,
			Logger: slog.New(slog.NewTextHandler(g.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		}),
		Request: &abi.Request{
			ID: "01j000000000000000000000aa", Method: []byte("POST"), Path: []byte("/v1/things/a%20b"), Route: "/v1/things/:id",
			RawQuery: []byte("q=1"),
			Headers: []abi.Pair{
				{Name: []byte("content-type"), Value: []byte("text/plain")},
				{Name: []byte("host"), Value: []byte("example.com")},
				{Name: []byte("x-a"), Value: []byte("1, \xff")},
			},
			Body: []byte("the body"),
		},
	}}
	g.begin(nil)
	return g
}

// begin begins another run of the guest.
func (g *guest) begin(handles *wasi.Handles) {
	g.call.Begin()
	wasi.Begin(g.call, g.program, handles)
}

// try calls a function. The error is the trap.
func (g *guest) try(name string, args ...any) (result any, trap error) {
	g.t.Helper()
	f, typ := g.functions[name], g.types[name]
	if f.Fn == nil || typ == nil || len(args) != len(typ.Params) {
		g.t.Fatalf("%s with %d arguments does not exist", name, len(args))
	}
	heap := &canontest.Heap{Memory: g.memory, Free: 1024}
	core := heap.Params(g.t, typ, args...)
	shape, at := typ.Lowered(false), uint32(0)
	if shape.ResultInMemory {
		at = heap.Realloc(typ.Result.Size(), typ.Result.Align())
		core = append(core, uint64(at))
	}
	if len(core) != len(f.Params) {
		g.t.Fatalf("%s has %d core parameters, not %d", name, len(f.Params), len(core))
	}
	core = append(core, make([]uint64, max(0, len(f.Results)-len(core)))...)
	if trap := g.raw(f, core); trap != nil || typ.Result == nil {
		return nil, trap
	}
	if trap := g.allocate(heap); trap != nil {
		return nil, trap
	}
	lifter := canon.Lifter{Memory: bytes.Clone(g.memory), Budget: 1 << 30}
	if shape.ResultInMemory {
		result, trap = lifter.Load(typ.Result, at)
	} else {
		result, _, trap = lifter.Flat(typ.Result, core)
	}
	if trap != nil {
		g.t.Fatalf("result of %s: %v", name, trap)
	}
	return result, nil
}

// raw calls a function with core values. Only a trap, or the end of the run, may end it.
func (g *guest) raw(f hostabi.Function, core []uint64) (trap error) {
	bound := &hostabi.Guest{Context: context.Background()}
	bound.Bind(g.call)
	defer func() {
		if p := recover(); p != nil {
			err, ok := p.(error)
			_, trapped := errors.AsType[*hostabi.Trap](err)
			_, exited := errors.AsType[*hostabi.Exit](err)
			if !ok || !trapped && !exited && !errors.Is(err, hostabi.ErrTimeOver) || g.call.HostFailed() {
				panic(p)
			}
			trap = err
		}
	}()
	f.Fn.Call(bound, g.module, core)
	return nil
}

// allocate allocates what a result needs.
func (g *guest) allocate(heap *canontest.Heap) error {
	core := make([]uint64, component.AllocatedAtOnce)
	for {
		if trap := g.raw(g.functions["component allocate"], core); trap != nil || core[0] == 0 {
			return trap
		}
		for i, block := range core {
			if block == 0 {
				break
			}
			core[i] = uint64(heap.Realloc(uint32(block), uint32(block>>32)))
		}
	}
}

// do is try for a call that must succeed.
func (g *guest) do(name string, args ...any) any {
	g.t.Helper()
	result, trap := g.try(name, args...)
	if trap != nil {
		g.t.Fatalf("%s: %v", name, trap)
	}
	return result
}

// traps fails the test unless the call traps with that text.
func (g *guest) traps(want, name string, args ...any) {
	g.t.Helper()
	if result, trap := g.try(name, args...); trap == nil || !strings.Contains(trap.Error(), want) {
		g.t.Errorf("%s: %v, %v; want a trap: %s", name, result, trap, want)
	}
}

// expect compares a result with how it looks.
func (g *guest) expect(want, name string, args ...any) any {
	g.t.Helper()
	result := g.do(name, args...)
	if got := show(result); got != want {
		g.t.Errorf("%s: %s, want %s", name, got, want)
	}
	return result
}

// value is the payload of a result that is a case, as of "ok" and "some".
func value(result any) any { return result.(canon.Case).Value }

func ok(v any) canon.Case   { return canon.Case{Value: v} }
func some(v any) canon.Case { return canon.Case{Index: 1, Value: v} }

var none = canon.Case{}

// show shows a value: a case as its number and payload, bytes as text.
func show(v any) string {
	switch v := v.(type) {
	case canon.Case:
		if v.Value == nil {
			return fmt.Sprintf("#%d", v.Index)
		}
		return fmt.Sprintf("#%d %s", v.Index, show(v.Value))
	case []any:
		var all []string
		for _, e := range v {
			all = append(all, show(e))
		}
		return "[" + strings.Join(all, " ") + "]"
	case []byte:
		return string(v)
	}
	return fmt.Sprint(v)
}

// Names of interfaces, with the blank before a function.
const (
	types    = "wasi:http/types@0.2 "
	outgoing = "wasi:http/outgoing-handler@0.2 "
	streams  = "wasi:io/streams@0.2 "
	poll     = "wasi:io/poll@0.2 "
	fs       = "wasi:filesystem/types@0.2 "
)

func (g *guest) drop(of, resource string, handle any) {
	g.t.Helper()
	if trap := g.raw(g.functions[of+"[resource-drop]"+resource], []uint64{uint64(handle.(uint32))}); trap != nil {
		g.t.Fatalf("drop %s: %v", resource, trap)
	}
}

func (g *guest) dropTraps(want, of, resource string, handle any) {
	g.t.Helper()
	trap := g.raw(g.functions[of+"[resource-drop]"+resource], []uint64{uint64(handle.(uint32))})
	if trap == nil || !strings.Contains(trap.Error(), want) {
		g.t.Errorf("drop %s: %v, want %s", resource, trap, want)
	}
}

// http begins the request, and returns the handles of it and of its response-outparam.
func (g *guest) http() (request, outparam uint32) {
	g.t.Helper()
	core := []uint64{0}
	if trap := g.raw(g.functions["component begin_http"], core); trap != nil {
		g.t.Fatal(trap)
	}
	return uint32(core[0]), uint32(core[0]) + 1
}

func (g *guest) end() error { return g.raw(g.functions["component end_http"], nil) }

// Every function of the interfaces has an implementation, and is used by its types only.
func TestAllFunctionsAreThere(t *testing.T) {
	g := newGuest(t, hostabi.Limits{})
	seen := 0
	for _, i := range slices.Concat(wasi.World().Imports, wasi.App().Imports) {
		of := component.HostInterface(i.Interface)
		names := []string{of + " " + i.Name}
		switch {
		case i.Resource != nil:
			names = []string{of + " [resource-drop]" + i.Name, of + " [resource-move]" + i.Name, of + " [resource-lend]" + i.Name}
		case i.Func.Async:
			names = append(names, of+" [async]"+i.Name)
		}
		base, _, _ := strings.Cut(of, "@")
		exported := base == "wasi:http/incoming-handler" || base == "wasi:http/handler" || base == "wasi:cli/run" || base == ""
		for _, name := range names {
			if _, there := g.functions[name]; there == exported {
				t.Errorf("%s: %v", name, there)
			}
			if !exported {
				seen++
			}
		}
	}
	others := 0
	for name := range g.functions {
		if strings.HasPrefix(name, "component ") {
			others++
		}
	}
	if seen < 369 || len(g.functions)-others != seen {
		t.Errorf("%d functions for %d", len(g.functions)-others, seen)
	}
	for _, missing := range wasi.WithoutFunction() {
		if !strings.HasPrefix(missing, "wasi:sockets/") {
			t.Errorf("%s has no implementation", missing)
		}
	}
	for _, unknown := range wasi.WithoutType() {
		t.Errorf("%s is not a function of World or App", unknown)
	}
}

func TestHandlesCannotBeForged(t *testing.T) {
	g := newGuest(t, hostabi.Limits{})
	first := g.do(types + "[constructor]fields").(uint32)
	if first != 1 {
		t.Errorf("the first handle is %d", first)
	}
	second := g.do(types + "[constructor]fields").(uint32)
	for _, h := range []uint32{0, 3, 1 << 31, 0xffffffff} {
		g.traps(fmt.Sprintf("handle %d of fields is unknown", h), types+"[method]fields.entries", h)
	}
	g.traps("handle 1 is of fields, not of pollable", poll+"[method]pollable.ready", first)
	g.dropTraps("handle 1 is of fields, not of incoming-body", types, "incoming-body", first)
	g.drop(types, "fields", first)
	g.traps("handle 1 of fields is unknown", types+"[method]fields.entries", first)
	g.dropTraps("handle 1 of fields is unknown", types, "fields", first)
	g.expect("1", types+"[constructor]fields") // a number that is free is used again
	g.call.End()
	g.begin(nil)
	g.traps("handle 2 of fields is unknown", types+"[method]fields.entries", second)
	g.expect("1", types+"[constructor]fields")
}

// What a component opens before its first request stays open in each, apart from the others.
func TestHandlesOfTheInitializationStay(t *testing.T) {
	g := newGuest(t, hostabi.Limits{})
	g.program = &hostabi.Program{Root: hostabi.NewRoot()}
	request := g.call.Request
	g.call.Request = nil
	g.begin(nil)
	g.call.Initializing(true)
	out := g.do("wasi:cli/stdout@0.2 get-stdout")
	in := g.do("wasi:cli/stdin@0.2 get-stdin")
	root := g.do("wasi:filesystem/preopens@0.2 get-directories").([]any)[0].([]any)[0]
	fields := g.do(types + "[constructor]fields")
	if _, err := wasi.HandlesOf(g.call); err == nil || !strings.Contains(err.Error(), "fields cannot be kept") {
		t.Errorf("fields are kept: %v", err)
	}
	g.drop(types, "fields", fields)
	handles, err := wasi.HandlesOf(g.call)
	if err != nil {
		t.Fatal(err)
	}
	g.call.Initializing(false)
	g.call.End()
	g.call.Request = request
	for range 2 {
		g.begin(handles)
		g.expect("#0", streams+"[method]output-stream.blocking-write-and-flush", out, []byte("hello\n"))
		g.expect("#1 #1", streams+"[method]input-stream.read", in, uint64(1))
		g.expect("#0 #3", fs+"[method]descriptor.get-type", root)
		g.drop("wasi:io/streams@0.2 ", "output-stream", out)
		incoming, outparam := g.http()
		g.do(types+"[method]incoming-request.method", incoming)
		g.do(types+"[static]response-outparam.set", outparam, ok(g.do(types+"[constructor]outgoing-response", g.do(types+"[constructor]fields"))))
		g.call.End()
	}
	if n := strings.Count(g.log.String(), "msg=hello"); n != 2 {
		t.Errorf("%d lines of output:\n%s", n, g.log)
	}
}

func TestBudgetsEndARun(t *testing.T) {
	g := newGuest(t, hostabi.Limits{HostCalls: 3, MovedBytes: 1000})
	g.do("wasi:random/random@0.2 get-random-bytes", uint64(600))
	g.traps("more than a request may move", "wasi:random/random@0.2 get-random-bytes", uint64(600))
	g.traps("moved too many bytes", "wasi:random/random@0.2 get-random-bytes", uint64(395))
	g.call.End()
	g.begin(nil)
	fields := g.do(types + "[constructor]fields")
	g.traps("the values have too many bytes", types+"[method]fields.append", fields, "a", make([]byte, 2000))
	g.do(types+"[method]fields.clone", fields)
	g.do("wasi:clocks/monotonic-clock@0.2 now") // is free
	g.drop(types, "fields", fields)
	g.traps("a request may call the host at most 3 times", types+"[constructor]fields")
	g.call.End()
	g.begin(nil)
	g.call.Stopping(false)
	g.traps("the run is over", types+"[constructor]fields")
}

func TestTheRequestsTimeEndsARun(t *testing.T) {
	g := newGuest(t, hostabi.Limits{})
	ctx, cancel := context.WithCancel(context.Background())
	g.call.Context = ctx
	g.begin(nil)
	timer := g.do("wasi:clocks/monotonic-clock@0.2 subscribe-duration", uint64(1<<63))
	cancel()
	if _, err := g.try(poll+"[method]pollable.block", timer); !errors.Is(err, hostabi.ErrTimeOver) {
		t.Errorf("the wait ended with %v", err)
	}
}

// The guest may not call the host while it allocates, and gets back what it needs only.
func TestResultsAreWrittenStepByStep(t *testing.T) {
	g := newGuest(t, hostabi.Limits{})
	request, _ := g.http()
	f := g.functions[types+"[method]incoming-request.path-with-query"]
	allocate := g.functions["component allocate"]
	begin := func() {
		if trap := g.raw(f, []uint64{uint64(request), 64}); trap != nil {
			t.Fatal(trap)
		}
	}
	begin()
	core := make([]uint64, component.AllocatedAtOnce)
	if trap := g.raw(allocate, core); trap != nil || core[0] != 1<<32|20 || core[1] != 0 {
		t.Errorf("%#x, %v", core, trap)
	}
	g.traps("while it allocates", types+"[constructor]fields")
	core[0] = uint64(len(g.memory)) - 19
	if trap := g.raw(allocate, core); trap == nil || !strings.Contains(trap.Error(), "outside of memory") {
		t.Errorf("%v", trap)
	}
	g.call.End()
	g.begin(nil)
	core[0] = 77
	if trap := g.raw(allocate, core); trap != nil || core[0] != 0 {
		t.Errorf("there is a result after the run: %#x, %v", core[0], trap)
	}
	request, _ = g.http()
	for at, want := range map[uint64]string{66: "not aligned", uint64(len(g.memory)) - 8: "outside of memory"} {
		trap := g.raw(f, []uint64{uint64(request), at})
		if trap == nil || !strings.Contains(trap.Error(), want) {
			t.Errorf("a result at %#x: %v, want %s", at, trap, want)
		}
	}
}

// stored are interfaces whose functions need a store, which a guest here does not have.
var stored = []string{"runner:app/rows@1", "runner:app/api-keys@1", "runner:app/sessions@1", "runner:app/jobs@1"}

// FuzzCalls calls functions with any core values, one after the other: the host traps, and never
// panics in another way.
func FuzzCalls(f *testing.F) {
	fuzzCalls(f, func(module string) bool { return !slices.Contains(stored, module) })
}

// FuzzTasks is FuzzCalls with what tasks of WASI 0.3 need only, which are long programs otherwise.
func FuzzTasks(f *testing.F) {
	fuzzCalls(f, func(module string) bool {
		return module == "component" || module == "wasi:http/types@0.3" || module == "wasi:http/client@0.3" || module == "wasi:cli/stdout@0.3"
	})
}

func fuzzCalls(f *testing.F, uses func(module string) bool) {
	f.Add([]byte("\x00\x01\x02\x03\x04\x05\x06\x07"))
	f.Add([]byte("\x03\x00\x40\x00\x00\x40\x04\x00\x40"))
	f.Fuzz(func(t *testing.T, program []byte) {
		g := newGuest(t, hostabi.Limits{})
		g.program = &hostabi.Program{Root: hostabi.NewRoot(), Args: []string{"a"}, Env: []string{"A=b"}}
		g.begin(nil)
		var all []hostabi.Function
		for _, m := range wasi.Modules() {
			if uses(m.Name) {
				all = append(all, m.Functions...)
			}
		}
		next := func() (b byte) {
			if len(program) > 0 {
				b, program = program[0], program[1:]
			}
			return b
		}
		for len(program) > 0 {
			f := all[(int(next())|int(next())<<8)%len(all)]
			switch f.Name { // they may wait for long
			case "[method]pollable.block", "poll", "wait-for", "wait-until", "task.next", "waitable-set.wait":
				continue
			}
			core := make([]uint64, max(len(f.Results), len(f.Params)))
			for i := range f.Params {
				core[i] = uint64(next())
				if core[i] >= 0x80 {
					core[i] = core[i] << (next() % 57)
				}
			}
			if trap := g.raw(f, core); trap != nil {
				g.call.End()
				g.begin(nil)
			}
		}
		g.call.End()
	})
}
