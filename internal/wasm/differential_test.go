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

// forms are those that a module is run in; the first, nil, is the original.
var forms = []*wasm.Options{
	nil,
	{},
	{Prefix: "\x00", Detach: true},
	{Fuel: &wasm.FuelImport{Module: "host", Name: "fuel"}},
	{MaxStack: 1 << 28, Prefix: "\x00"},
	{Fuel: &wasm.FuelImport{Module: "host", Name: "fuel"}, MaxStack: 1 << 28, Prefix: "\x00", Detach: true},
	{Fuel: &wasm.FuelImport{Module: "host", Name: "fuel"}, MaxStack: 1 << 28, Prefix: "\x00", Target: "arm64"},
	// so little that the host is asked often; it answers that nothing is in use
	{
		Fuel: &wasm.FuelImport{Module: "host", Name: "fuel"}, Stack: &wasm.StackImport{Module: "host", Name: "stack"},
		MaxStack: 40 << 10, Prefix: "\x00", Detach: true,
	},
}

// outcome is all that can be seen of a module that was run.
type outcome struct {
	Start   string
	Calls   []string // results or traps, in order
	Memory  []string // its size and hash after each call
	Globals [][]uint64
}

// run calls every export of a generated module a few times.
func run(t *testing.T, config wazero.RuntimeConfig, seed uint64, original []byte, o *wasm.Options) (seen outcome) {
	ctx := context.Background()
	h := newHost(t, config)
	defer h.Close(ctx) // now: there are a great many
	_, err := h.NewHostModuleBuilder("env").NewFunctionBuilder().
		WithGoFunction(api.GoFunc(func(_ context.Context, stack []uint64) { stack[0] = uint64(uint32(stack[0])*3 + 1) }),
			[]api.ValueType{api.ValueTypeI32}, []api.ValueType{api.ValueTypeI32}).Export("host").Instantiate(ctx)
	if err != nil {
		t.Fatal(err)
	}
	bytes, done := original, &wasm.Rewritten{}
	if o != nil {
		bytes, done = mustRewrite(t, original, *o)
	}
	m, err := h.InstantiateWithConfig(ctx, bytes, wazero.NewModuleConfig().WithName("").WithStartFunctions())
	if err == nil && o != nil && o.Detach {
		for _, d := range done.Data {
			if !m.Memory().Write(d.Offset, d.Bytes) {
				t.Fatal("data does not fit")
			}
		}
		if done.Start != "" {
			_, err = m.ExportedFunction(done.Start).Call(ctx)
		}
	}
	if err != nil {
		seen.Start = trap(err)
		return seen
	}
	budget := m.ExportedGlobal("budget").(api.MutableGlobal)
	random := rand.New(rand.NewPCG(seed, 1))
	for name, definition := range exports(m) {
		f := m.ExportedFunction(name)
		for range 2 {
			args := make([]uint64, len(definition.ParamTypes()))
			for i, p := range definition.ParamTypes() {
				args[i] = random.Uint64() >> random.IntN(64)
				if p == api.ValueTypeI32 || p == api.ValueTypeF32 {
					args[i] &= 1<<32 - 1
				}
			}
			budget.Set(100)
			results, err := f.Call(ctx, args...)
			if err != nil {
				seen.Calls = append(seen.Calls, fmt.Sprintf("%s%x: %s", name, args, trap(err)))
			} else {
				seen.Calls = append(seen.Calls, fmt.Sprintf("%s%x = %x", name, args, results))
				if done.Depth != "" && m.ExportedGlobal(done.Depth).Get() != 0 {
					t.Errorf("seed %d: %s came back and left the depth at %d", seed, name, m.ExportedGlobal(done.Depth).Get())
				}
			}
			if done.Depth != "" {
				m.ExportedGlobal(done.Depth).(api.MutableGlobal).Set(0)
			}
			all, _ := m.Memory().Read(0, m.Memory().Size())
			seen.Memory = append(seen.Memory, fmt.Sprintf("%d %x", len(all), sha256.Sum256(all)))
			var globals []uint64
			for _, g := range done.Globals {
				if g.Type != wasm.FuncRef { // which is an address
					globals = append(globals, m.ExportedGlobal(g.Name).Get())
				}
			}
			if globals != nil {
				seen.Globals = append(seen.Globals, globals)
			}
		}
	}
	return seen
}

// exports are a generated module's functions that a test can call, in order.
func exports(m api.Module) func(func(string, api.FunctionDefinition) bool) {
	all := m.ExportedFunctionDefinitions()
	return func(yield func(string, api.FunctionDefinition) bool) {
	next:
		for c := 'a'; c < 'a'+40; c++ {
			definition, ok := all["f"+string(c)]
			if !ok {
				continue
			}
			for _, t := range append(definition.ParamTypes(), definition.ResultTypes()...) {
				if t != api.ValueTypeI32 && t != api.ValueTypeI64 && t != api.ValueTypeF32 && t != api.ValueTypeF64 {
					continue next
				}
			}
			if !yield("f"+string(c), definition) {
				return
			}
		}
	}
}

// trap is the first line of an error, without where it was met.
func trap(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	for _, before := range []string{"wasm error: ", "failed: "} {
		if _, after, ok := strings.Cut(line, before); ok {
			line = after
		}
	}
	return line
}

// TestARewrittenModuleBehavesLikeTheOriginal runs generated modules in all
// forms, and wants the same results, traps, memory and globals. RUNNER_SOAK=1
// runs many more.
func TestARewrittenModuleBehavesLikeTheOriginal(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: left out by -short")
	}
	n := 100
	if os.Getenv("RUNNER_SOAK") != "" {
		n = 20_000
	}
	first := rand.Uint64() >> 16
	t.Logf("seeds %d to %d", first, first+uint64(n)-1)
	seeds := []uint64{89429429602697} // has a select that package wazerofix corrects
	for i := range uint64(n) {
		seeds = append(seeds, first+i)
	}
	trapped, returned := 0, 0
	for _, seed := range seeds {
		original := generate(seed)
		for engine, config := range map[string]wazero.RuntimeConfig{
			"compiler":    wazero.NewRuntimeConfigCompiler(),
			"interpreter": wazero.NewRuntimeConfigInterpreter(),
		} {
			want := run(t, config, seed, original, nil)
			for _, call := range want.Calls {
				if strings.Contains(call, " = ") {
					returned++
				} else {
					trapped++
				}
			}
			parsed, err := wasm.Parse(original, wasm.DefaultLimits())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, run(t, config, seed, parsed.Interruptible(), nil)); diff != "" {
				t.Fatalf("seed %d, %s: (-original +interruptible)\n%s", seed, engine, diff)
			}
			var globals [][]uint64
			for _, o := range forms[1:] {
				got := run(t, config, seed, original, o)
				if got.Globals != nil && globals == nil {
					globals = got.Globals
				}
				if got.Globals != nil {
					want.Globals = globals
				} else {
					want.Globals = nil
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Fatalf("seed %d, %s, %+v: (-original +rewritten)\n%s", seed, engine, *o, diff)
				}
			}
		}
	}
	t.Logf("%d calls returned, %d trapped", returned, trapped)
	if returned < trapped/2 {
		t.Error("too many calls trapped to tell much")
	}
}
