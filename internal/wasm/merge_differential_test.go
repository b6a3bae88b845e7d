package wasm_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"runner.example/internal/wasm"
)

// mergedSet is a set that was instantiated in one of the two ways. After a trap of an instantiation it has nothing.
type mergedSet struct {
	start     string // the trap
	function  func(part int, name string) api.Function
	global    func(part int, name string) api.Global
	memory    api.Memory
	afterCall func()
}

// newMergeHost has the functions that merged modules import.
func newMergeHost(t *testing.T, config wazero.RuntimeConfig) *host {
	h := newHost(t, config)
	i32 := []api.ValueType{api.ValueTypeI32}
	_, err := h.NewHostModuleBuilder("env").NewFunctionBuilder().
		WithGoFunction(api.GoFunc(func(_ context.Context, stack []uint64) { stack[0] = uint64(uint32(stack[0])*3 + 1) }), i32, i32).
		Export("host").
		NewFunctionBuilder().WithFunc(func() uint32 { return 5 }).Export("five").
		NewFunctionBuilder().WithFunc(func() {}).Export("note").
		Instantiate(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// linkedByEngine makes an instance of each member.
func linkedByEngine(t *testing.T, h *host, set []*member) (s mergedSet) {
	var instances []api.Module
	for i, m := range set {
		config := wazero.NewModuleConfig().WithName(memberName(i)).WithStartFunctions()
		instance, err := h.InstantiateWithConfig(context.Background(), m.bytes, config)
		if err != nil {
			if s.start = instantiationTrap(err); s.start != outOfBounds && !strings.Contains(err.Error(), "wasm error") {
				t.Fatal(err)
			}
			return s
		}
		instances = append(instances, instance)
		if !m.empty {
			s.memory = instance.ExportedMemory("memory")
		}
	}
	s.function = func(part int, name string) api.Function { return instances[part].ExportedFunction(name) }
	s.global = func(part int, name string) api.Global { return instances[part].ExportedGlobal(name) }
	s.afterCall = func() {}
	return s
}

// merge makes one module of a set.
func merge(set []*member) ([]byte, error) {
	m := wasm.Merge{Imports: []wasm.Import{{Module: "env", Name: "host", Type: oneToOne}}}
	modules := map[int]*wasm.Module{}
	for i, x := range set {
		if modules[x.module] == nil {
			parsed, err := wasm.ParsePart(x.bytes, wasm.DefaultLimits())
			if err != nil {
				return nil, err
			}
			modules[x.module] = parsed
		}
		m.Parts = append(m.Parts, wasm.Part{Module: modules[x.module], Imports: x.sources})
		for f := range x.funcs {
			m.Exports = append(m.Exports, export(i, functionName(f)))
		}
		for g := range x.globals {
			m.Exports = append(m.Exports, export(i, fmt.Sprint("g", g)))
		}
		if !x.empty && len(m.Parts) == x.module+1 {
			m.Exports = append(m.Exports, export(i, "memory"))
		}
	}
	return m.Module(wasm.DefaultLimits())
}

func export(part int, name string) wasm.MergedExport {
	return wasm.MergedExport{Name: exportName(part, name), Source: wasm.Source{Part: part, Name: name}}
}

func exportName(part int, name string) string { return fmt.Sprint(part, ".", name) }

// mergedIn makes an instance of the merged module in one of the forms.
func mergedIn(t *testing.T, h *host, set []*member, merged []byte, o *wasm.Options) (s mergedSet) {
	parsed, err := wasm.Parse(merged, written())
	if err != nil {
		t.Fatal(err)
	}
	bytes, done := merged, &wasm.Rewritten{}
	if o != nil {
		if bytes, done, err = parsed.Rewrite(*o); err != nil {
			t.Fatal(err)
		}
	}
	instance, err := h.start(bytes, done)
	if err != nil {
		s.start = instantiationTrap(err)
		return s
	}
	s.memory = instance.Memory()
	s.function = func(part int, name string) api.Function { return instance.ExportedFunction(exportName(part, name)) }
	s.global = func(part int, name string) api.Global { return instance.ExportedGlobal(exportName(part, name)) }
	s.afterCall = func() {
		if done.Depth != "" {
			instance.ExportedGlobal(done.Depth).(api.MutableGlobal).Set(0)
		}
	}
	s.afterCall()
	return s
}

const outOfBounds = "out of bounds"

// instantiationTrap is trap, without which segment was out of bounds.
func instantiationTrap(err error) string {
	text := mergedTrap(err)
	if strings.Contains(err.Error()+text, outOfBounds) {
		return outOfBounds
	}
	return text
}

// observe calls every function of a set.
func observe(seed uint64, set []*member, s mergedSet) (seen outcome) {
	if seen.Start = s.start; s.start != "" {
		return seen
	}
	random := rand.New(rand.NewPCG(seed, 2))
	budget := s.global(0, "g0").(api.MutableGlobal)
	for part, m := range set {
		for i, t := range m.funcs {
			if strings.ContainsAny(t.params+t.results, "vre") {
				continue
			}
			args := make([]uint64, len(t.params))
			for i, p := range t.params {
				if args[i] = random.Uint64() >> random.IntN(64); p == 'i' || p == 'f' {
					args[i] &= 1<<32 - 1
				}
			}
			budget.Set(100)
			results, err := s.function(part, functionName(i)).Call(context.Background(), args...)
			text := fmt.Sprintf("%d.%s%x = %x", part, functionName(i), args, results)
			if err != nil {
				text = fmt.Sprintf("%d.%s%x: %s", part, functionName(i), args, mergedTrap(err))
			}
			s.afterCall()
			seen.Calls = append(seen.Calls, text)
			all, _ := s.memory.Read(0, s.memory.Size())
			seen.Memory = append(seen.Memory, fmt.Sprintf("%d %x", len(all), sha256.Sum256(all)))
			var globals []uint64
			for part, m := range set {
				for i, t := range m.globals {
					if t != 'r' { // which is an address
						globals = append(globals, s.global(part, fmt.Sprint("g", i)).Get())
					}
				}
			}
			seen.Globals = append(seen.Globals, globals)
		}
	}
	return seen
}

// TestAMergedModuleBehavesLikeItsLinkedParts links generated modules by the engine and merges them, in all
// forms, and wants the same results, traps, memory and globals. RUNNER_SOAK=1 runs many more.
func TestAMergedModuleBehavesLikeItsLinkedParts(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: left out by -short")
	}
	n := uint64(50)
	if os.Getenv("RUNNER_SOAK") != "" {
		n = 20_000
	}
	first := rand.Uint64() >> 16
	t.Logf("seeds %d to %d", first, first+n-1)
	count := map[string]int{}
	for seed := first; seed < first+n; seed++ {
		set := generateSet(seed)
		merged, err := merge(set)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		for engine, config := range map[string]wazero.RuntimeConfig{
			"compiler": wazero.NewRuntimeConfigCompiler(), "interpreter": wazero.NewRuntimeConfigInterpreter(),
		} {
			h := newMergeHost(t, config)
			want := observe(seed, set, linkedByEngine(t, h, set))
			_ = h.Close(context.Background()) // now: there are a great many
			if want.Start != "" {
				count["instantiations that trapped"]++
			}
			for _, call := range want.Calls {
				if strings.Contains(call, " = ") {
					count["calls that returned"]++
				} else {
					count["calls that trapped"]++
				}
			}
			for _, o := range forms {
				h := newMergeHost(t, config)
				got := observe(seed, set, mergedIn(t, h, set, merged, o))
				_ = h.Close(context.Background())
				if diff := cmp.Diff(want, got); diff != "" {
					t.Fatalf("seed %d, %s, %+v: (-linked +merged)\n%s", seed, engine, o, diff)
				}
			}
		}
	}
	t.Log(count)
	if count["calls that returned"] < count["calls that trapped"]/2 || count["instantiations that trapped"] > int(n)*3/2 {
		t.Error("too much trapped to tell much")
	}
}

// mergedTrap is trap without the order of two checks: the interpreter finds that an access is not aligned before it finds
// that the memory is empty, and the compiler after it.
func mergedTrap(err error) string {
	return strings.Replace(trap(err), "unaligned atomic", "out of bounds memory access", 1)
}
