package component_test

import (
	"context"
	"encoding/binary"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"runner.example/internal/component"
	"runner.example/internal/component/canon"
	"runner.example/internal/component/canon/canontest"
	"runner.example/internal/wasm"
)

// Where things are in the memory of callee.
const (
	calleePages  = 64
	gotAt        = 1024 // what the callee has got: 8 bytes for each core value
	resultAt     = 512
	callerHeap   = 1 << 20
	calleeHeap   = 2 << 20
	valuesBudget = 1 << 20
)

// callee is a module with an allocator and three functions: f0 returns the list that it gets, f1 keeps its core
// parameters in memory, and f2 returns its one core parameter.
func callee(flat []wasm.ValueType) []byte {
	m := newBuild()
	m.Reset()
	m.WriteString("\x00asm\x01\x00\x00\x00")
	valueTypes := func(types []wasm.ValueType) []byte {
		b := binary.AppendUvarint(nil, uint64(len(types)))
		for _, t := range types {
			b = append(b, byte(t))
		}
		return b
	}
	function := func(params, results []byte) []byte { return append(append([]byte{0x60}, params...), results...) }
	one := valueTypes(flat[:1])
	m.section(1, 4, function([]byte{4, 0x7f, 0x7f, 0x7f, 0x7f}, []byte{1, 0x7f}), function([]byte{2, 0x7f, 0x7f}, []byte{1, 0x7f}),
		function(valueTypes(flat), []byte{0}), function(one, one))
	m.section(3, 4, []byte{0, 1, 2, 3})
	m.section(5, 1, []byte{0, calleePages})
	m.section(6, 1, []byte{0x7f, 1, 0x41, 0x80, 0x80, 0x80, 1, 0x0b}) // calleeHeap
	m.section(7, 5, []byte("\x06memory\x02\x00\x07realloc\x00\x00\x02f0\x00\x01\x02f1\x00\x02\x02f2\x00\x03"))
	// heap = (heap + 15) & -16; return heap, heap += size
	realloc := []byte{0, 0x23, 0, 0x41, 15, 0x6a, 0x41, 0x70, 0x71, 0x24, 0, 0x23, 0, 0x23, 0, 0x20, 3, 0x6a, 0x24, 0, 0x0b}
	list := []byte{0, 0x41, 0x80, 4, 0x20, 0, 0x36, 2, 0, 0x41, 0x80, 4, 0x20, 1, 0x36, 2, 4, 0x41, 0x80, 4, 0x0b}
	keep := []byte{0}
	for i, t := range flat {
		store := map[wasm.ValueType]byte{wasm.I32: 0x36, wasm.I64: 0x37, wasm.F32: 0x38, wasm.F64: 0x39}[t]
		keep = append(keep, 0x41, 0, 0x20, byte(i), store, 0)
		keep = binary.AppendUvarint(keep, uint64(gotAt+8*i))
	}
	keep = append(keep, 0x0b)
	var code [][]byte
	for _, body := range [][]byte{realloc, list, keep, {0, 0x20, 0, 0x0b}} {
		code = append(code, binary.AppendUvarint(nil, uint64(len(body))), body)
	}
	m.section(10, 4, code...)
	return m.Bytes()
}

// fusedCalls are the calls of the functions of a callee, with a type.
type fusedCalls struct {
	t      testing.TB
	typ    *component.ValueType
	list   *component.ValueType
	module api.Module
	memory []byte
}

func newFusedCalls(t testing.TB, runtime wazero.Runtime, typ *component.ValueType) *fusedCalls {
	flat, isFlat := typ.Flat()
	if !isFlat {
		flat = []wasm.ValueType{wasm.I32}
	}
	parsed, err := wasm.ParsePart(callee(flat), wasm.DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	list, err := component.New(component.ValueType{Kind: component.List, Element: typ})
	if err != nil {
		t.Fatal(err)
	}
	plan := &component.Plan{Instances: []*component.CoreInstance{{Module: &component.Module{Parsed: parsed}}}, Components: 1}
	add := func(name string, param, result *component.ValueType) {
		plan.Canons = append(plan.Canons, fusedCall(name, param, result))
	}
	add("f0", list, list)
	if isFlat {
		add("f1", typ, nil)
		if len(flat) == 1 {
			add("f2", typ, typ)
		}
	}
	linked, err := plan.LinkCanons(wasm.DefaultLimits())
	if err != nil {
		t.Fatalf("%s: %v", typ, err)
	}
	if _, err := wasm.Parse(linked, wasm.DefaultLimits()); err != nil {
		t.Fatalf("%s: %v", typ, err)
	}
	module, err := runtime.InstantiateWithConfig(context.Background(), linked, wazero.NewModuleConfig().WithName(""))
	if err != nil {
		t.Fatalf("%s: %v", typ, err)
	}
	memory, _ := module.Memory().Read(0, module.Memory().Size())
	return &fusedCalls{t, typ, list, module, memory}
}

// fusedCall is a call of a function of callee.
func fusedCall(name string, param, result *component.ValueType) *component.Canon {
	item := func(kind wasm.Kind, name string) component.CoreItem {
		return component.CoreItem{Kind: kind, Instance: 1, Name: name}
	}
	options := component.Options{Memory: item(wasm.MemoryKind, "memory"), Realloc: item(wasm.FunctionKind, "realloc")}
	f := &component.FuncType{Params: []component.Field{{Name: "a", Type: param}}, Result: result}
	lift := &component.Lift{Type: f, Core: item(wasm.FunctionKind, name), Shape: f.Lifted(false, false), Options: options}
	shape := f.Lowered(false)
	return &component.Canon{
		Op: component.Lower, Core: shape.FuncType, Shape: shape, Options: options, Func: &component.Func{Type: f, Lift: lift},
	}
}

func (f *fusedCalls) close() {
	if err := f.module.Close(context.Background()); err != nil {
		f.t.Error(err)
	}
}

func (f *fusedCalls) lifter() *canon.Lifter {
	return &canon.Lifter{Memory: f.memory, Budget: valuesBudget}
}

// call calls a function with core values, and compares what arrives with what the host lifts from the same values:
// the call traps if, and only if, the host refuses them.
func (f *fusedCalls) call(name string, t *component.ValueType, core []uint64) {
	f.t.Helper()
	want, _, err := f.lifter().Flat(t, core)
	if err == canon.ErrBudget {
		return
	}
	params := core
	if name == "0" {
		params = append(params[:len(params):len(params)], resultAt+64)
	}
	results, trap := f.module.ExportedFunction(name).Call(context.Background(), params...)
	if (err == nil) != (trap == nil) {
		f.t.Fatalf("%s: %#v: function %s: the host says %v, and the call %v", t, core, name, err, trap)
	}
	if err != nil {
		return
	}
	var got any
	switch name {
	case "0":
		got, err = f.lifter().Load(t, resultAt+64)
	case "1":
		var kept []uint64
		flat, _ := t.Flat()
		for i := range flat {
			kept = append(kept, binary.LittleEndian.Uint64(f.memory[gotAt+8*i:]))
		}
		got, _, err = f.lifter().Flat(t, kept)
	default:
		got, _, err = f.lifter().Flat(t, results)
	}
	if err != nil || !reflect.DeepEqual(show(got), show(want)) {
		f.t.Fatalf("%s: function %s: %#v arrived as %#v, %v", t, name, want, got, err)
	}
}

// show makes floats that are not numbers comparable.
func show(v any) any {
	switch v := v.(type) {
	case float64:
		if v != v {
			return "NaN"
		}
	case []any:
		all := make([]any, len(v))
		for i := range v {
			all[i] = show(v[i])
		}
		return all
	case []byte:
		return string(v)
	case canon.Case:
		return []any{v.Index, show(v.Value)}
	}
	return v
}

func hostRuntime(t testing.TB) wazero.Runtime {
	ctx := context.Background()
	runtime := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter())
	t.Cleanup(func() {
		if err := runtime.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	builder := runtime.NewHostModuleBuilder("component")
	builder.NewFunctionBuilder().WithFunc(func(code uint32) { panic("trap") }).Export("trap")
	builder.NewFunctionBuilder().WithFunc(func(_ context.Context, m api.Module, at, length uint32) {
		text, ok := m.Memory().Read(at, length)
		if !ok || !utf8.Valid(text) {
			panic("not UTF-8")
		}
	}).Export("utf8")
	if _, err := builder.Instantiate(ctx); err != nil {
		t.Fatal(err)
	}
	return runtime
}

// TestFusedCallsPassWhatTheHostLifts compares generated code with package canon, with values of random types and
// with random bytes.
func TestFusedCallsPassWhatTheHostLifts(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	runtime := hostRuntime(t)
	for i := range uint64(300) {
		comparePassed(t, runtime, seed+i, nil)
	}
}

func FuzzFusedCallsPassWhatTheHostLifts(f *testing.F) {
	f.Add(uint64(1), []byte("\x08\x00\x00\x00\x01\x00\x00\x00abcdefgh"))
	f.Fuzz(func(t *testing.T, seed uint64, bytes []byte) { comparePassed(t, hostRuntime(t), seed, bytes) })
}

func comparePassed(t testing.TB, runtime wazero.Runtime, seed uint64, bytes []byte) {
	g := canontest.Generator{T: t, Rand: rand.New(rand.NewPCG(seed, 0)), NoHandles: true}
	typ := g.Type(3)
	f := newFusedCalls(t, runtime, typ)
	defer f.close()
	heap := &canontest.Heap{Memory: f.memory, Free: callerHeap}
	f.call("0", f.list, heap.Flat(t, f.list, g.Value(f.list)))
	flat, isFlat := typ.Flat()
	if isFlat {
		core := heap.Flat(t, typ, g.Value(typ))
		f.call("1", typ, core)
		if len(flat) == 1 {
			f.call("2", typ, core)
		}
	}
	// values that are probably not valid
	for i := range 4096 {
		f.memory[callerHeap+i] = byte(g.Uint32()) >> g.IntN(8)
	}
	copy(f.memory[callerHeap:callerHeap+4096], bytes)
	f.call("0", f.list, []uint64{uint64(callerHeap + g.IntN(3)*8), uint64(g.IntN(3))})
	if isFlat {
		core := make([]uint64, len(flat))
		for i := range core {
			core[i] = g.Uint64() >> g.IntN(64)
			if flat[i] != wasm.I64 && flat[i] != wasm.F64 {
				core[i] = uint64(uint32(core[i]))
			}
		}
		f.call("1", typ, core)
		if len(flat) == 1 {
			f.call("2", typ, core)
		}
	}
}

// TestCodeOfFusedCallsIsBounded by the types of all of them together.
func TestCodeOfFusedCallsIsBounded(t *testing.T) {
	var fields []component.Field
	for range 9_000 {
		fields = append(fields, component.Field{Type: component.Primitive(component.U8)})
	}
	tuple, err := component.New(component.ValueType{Kind: component.Tuple, Fields: fields})
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := wasm.ParsePart(callee([]wasm.ValueType{wasm.I32}), wasm.DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	plan := &component.Plan{Instances: []*component.CoreInstance{{Module: &component.Module{Parsed: parsed}}}, Components: 1}
	for calls := 1; calls < 20; calls++ {
		plan.Canons = append(plan.Canons, fusedCall("f0", tuple, tuple))
		_, err := plan.LinkCanons(wasm.DefaultLimits())
		if err != nil {
			if !strings.Contains(err.Error(), "(maxFusedParts)") || calls != 6 {
				t.Errorf("%d calls: %v", calls, err)
			}
			return
		}
	}
	t.Error("it is not bounded")
}
