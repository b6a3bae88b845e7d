package wasm_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"runner.example/internal/wasm"
	_ "runner.example/internal/wazerofix"
)

// slice is how much fuel the tests' host gives at a time.
var slice = 10_000

// mustRewrite parses and rewrites a module.
func mustRewrite(t testing.TB, original []byte, o wasm.Options) ([]byte, *wasm.Rewritten) {
	t.Helper()
	m, err := wasm.Parse(original, wasm.DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	out, done, err := m.Rewrite(o)
	if err != nil {
		t.Fatal(err)
	}
	return out, done
}

// features are those of modules here. Rewritten modules do not need the last.
const features = api.CoreFeaturesV2 | experimental.CoreFeaturesTailCall | experimental.CoreFeaturesThreads |
	experimental.CoreFeaturesExtendedConst

// host is a runtime with the host function that gives fuel, and counts it.
type host struct {
	wazero.Runtime
	refills int
	places  []int32 // that the refills were told
	// atMost ends the guest at that refill, if it is not 0
	atMost int
	slice  int  // fuel that was last given
	quick  bool // refills are counted, and nothing else
	spent  int  // fuel that was used before the last refill
	debt   int  // the most by which a slice was overdrawn
	// running is the function whose stack size is returned when the guest asks; if nil,
	// the stack is reported as absent.
	running api.Function
	asked   int
	deepest uint64 // of these sizes
}

// errOutOfFuel is what ends a guest.
type errOutOfFuel struct{}

func (errOutOfFuel) Error() string { return "out of fuel" }

func newHost(t testing.TB, config wazero.RuntimeConfig) *host {
	t.Helper()
	ctx := context.Background()
	h := &host{Runtime: wazero.NewRuntimeWithConfig(ctx, config.WithCoreFeatures(features))}
	t.Cleanup(func() { _ = h.Close(ctx) })
	refill := api.GoModuleFunc(func(_ context.Context, m api.Module, stack []uint64) {
		h.refills++
		if len(h.places) < 100 {
			h.places = append(h.places, api.DecodeI32(stack[0]))
		}
		if h.quick {
			stack[0] = uint64(slice)
			return
		}
		if left := m.ExportedGlobal("\x00fuel"); left != nil {
			h.spent += h.slice - int(int32(left.Get()))
			h.debt = max(h.debt, -int(int32(left.Get())))
			h.slice = slice
		}
		if h.refills == h.atMost {
			panic(errOutOfFuel{})
		}
		stack[0] = uint64(slice)
	})
	used := api.GoModuleFunc(func(_ context.Context, _ api.Module, stack []uint64) {
		h.asked++
		stack[0] = 0
		if h.running != nil {
			stack[0] = stackUsed(h.running)
			h.deepest = max(h.deepest, stack[0])
		}
	})
	_, err := h.NewHostModuleBuilder("host").
		NewFunctionBuilder().WithGoModuleFunction(refill, []api.ValueType{api.ValueTypeI32}, []api.ValueType{api.ValueTypeI32}).Export("fuel").
		NewFunctionBuilder().WithGoModuleFunction(used, nil, []api.ValueType{api.ValueTypeI32}).Export("stack").Instantiate(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// call calls an export, and provides its stack size to the guest.
func (h *host) call(m api.Module, export string, args ...uint64) ([]uint64, error) {
	h.running = m.ExportedFunction(export)
	defer func() { h.running = nil }()
	return h.running.Call(context.Background(), args...)
}

// instantiate makes an instance, applying what was detached.
func (h *host) instantiate(t testing.TB, bytes []byte, done *wasm.Rewritten) api.Module {
	t.Helper()
	m, err := h.start(bytes, done)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// start is instantiate for a module that may trap.
func (h *host) start(bytes []byte, done *wasm.Rewritten) (api.Module, error) {
	ctx := context.Background()
	m, err := h.InstantiateWithConfig(ctx, bytes, wazero.NewModuleConfig().WithName("").WithStartFunctions())
	if err != nil {
		return nil, err
	}
	for _, d := range done.Data {
		if !m.Memory().Write(d.Offset, d.Bytes) {
			return nil, fmt.Errorf("data at %d is out of bounds", d.Offset)
		}
	}
	if done.Start != "" {
		_, err = m.ExportedFunction(done.Start).Call(ctx)
	}
	return m, err
}
