package wasm_test

import (
	"context"
	"os"
	"testing"

	"github.com/tetratelabs/wazero"

	"runner.example/internal/wasm"
)

func TestRewrittenGuestsCompile(t *testing.T) {
	modules := guests(t)
	if orders, err := os.ReadFile("../../plugins/examples/orders/build/orders.wasm"); err == nil {
		modules["orders.wasm"] = orders
	}
	r := wazero.NewRuntimeWithConfig(context.Background(), wazero.NewRuntimeConfigInterpreter())
	defer r.Close(context.Background())
	for name, original := range modules {
		for _, o := range []wasm.Options{{}, {Fuel: everything.Fuel}, {MaxStack: 1 << 20}, everything} {
			bytes, _ := mustRewrite(t, original, o)
			if _, err := r.CompileModule(context.Background(), bytes); err != nil {
				t.Errorf("%s, %+v: %v", name, o, err)
			}
		}
	}
}
