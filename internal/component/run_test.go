package component_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"runner.example/hostabi"
	"runner.example/hostabi/wasi"
	"runner.example/internal/component"
	"runner.example/internal/wasm"
)

// runComponent runs the function "run" of a component. The error is the trap.
func runComponent(t testing.TB, file []byte) (result uint32, trap error) {
	t.Helper()
	plan, err := component.Read(file, wasm.DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	module, err := plan.LinkExports(wasm.DefaultLimits(), component.NewHost(nil, wasi.World()))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := wasm.Parse(module, wasm.DefaultLimits()); err != nil {
		t.Fatal("the linked module ", err)
	}
	return runLinked(t, context.Background(), wazero.NewRuntimeConfig(), module)
}

// runLinked runs the function "run" of a module that LinkExports has made.
func runLinked(t testing.TB, ctx context.Context, config wazero.RuntimeConfig, module []byte) (result uint32, trap error) {
	t.Helper()
	call := &hostabi.Call{Input: hostabi.Input{
		Context: ctx, Attempt: 1, Host: hostabi.NewHost(hostabi.Host{Logger: slog.New(slog.DiscardHandler)}),
	}}
	call.Begin()
	wasi.Begin(call, nil, nil)
	defer call.End()
	guest := &hostabi.Guest{Context: ctx}
	guest.Bind(call)
	runtime := wazero.NewRuntimeWithConfig(ctx, config)
	defer func() {
		if err := runtime.Close(ctx); err != nil {
			t.Error(err)
		}
	}()
	for _, m := range wasi.Modules() {
		builder := runtime.NewHostModuleBuilder(m.Name)
		for _, f := range m.Functions {
			builder.NewFunctionBuilder().WithGoModuleFunction(f.Fn, f.Params, f.Results).Export(f.Name)
		}
		if _, err := builder.Instantiate(guest); err != nil {
			t.Fatal(err)
		}
	}
	instance, err := runtime.InstantiateWithConfig(guest, module, wazero.NewModuleConfig().WithStartFunctions())
	if err != nil {
		return 0, err
	}
	run := instance.ExportedFunction("run")
	if run == nil || len(run.Definition().ParamTypes()) > 0 || len(run.Definition().ResultTypes()) != 1 {
		return 0, errors.New(`it has no function "run" with a number as its result`)
	}
	results, err := run.Call(guest)
	if err != nil {
		return 0, err
	}
	return api.DecodeU32(results[0]), nil
}

// TestComponentsInAFileCallEachOther as the canonical ABI says, and as code does that jco makes of them. That of jco
// 1.35 does not check all handles, and fails where a component calls itself.
func TestComponentsInAFileCallEachOther(t *testing.T) {
	same := 0
	defer func() {
		if same < 20 {
			t.Errorf("only %d cases do what jco's code does", same)
		}
	}()
	for _, c := range specCases(t, "run") {
		verdict, what, _ := strings.Cut(c.What, ": ")
		result, trap := runComponent(t, c.Wasm)
		if jco := strings.HasPrefix(c.JCO, "returns"); jco == (trap == nil) {
			same++
			if jco && c.JCO != verdict {
				t.Errorf("%s: it %s, and jco's code %s", what, verdict, c.JCO)
			}
		}
		if verdict != "traps" {
			if got := fmt.Sprint("returns ", result); trap != nil || got != verdict {
				t.Errorf("%s: %s, %v; it %s", what, got, trap, verdict)
			}
			continue
		}
		i := strings.LastIndex(what, ": ")
		want, what := what[:i], what[i+2:]
		if trap == nil || !strings.Contains(trap.Error(), want) {
			t.Errorf("%s: %d, %v; want the trap %q", what, result, trap, want)
		}
	}
}

// FuzzLink links components, and runs them: to a module that is valid, if their core modules are. The host traps, and
// never panics in another way.
func FuzzLink(f *testing.F) {
	for _, name := range []string{"run", "link", "cases"} {
		for _, c := range specCases(f, name) {
			f.Add(c.Wasm)
		}
	}
	runtime := wazero.NewRuntimeWithConfig(context.Background(), wazero.NewRuntimeConfigInterpreter())
	f.Fuzz(func(t *testing.T, file []byte) {
		plan, err := component.Read(file, wasm.DefaultLimits())
		if err != nil {
			return
		}
		module, err := plan.LinkExports(wasm.DefaultLimits(), component.NewHost(nil, wasi.World()))
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Fatalf("the error has several lines: %v", err)
			}
			return
		}
		compiled, err := runtime.CompileModule(context.Background(), module)
		if err != nil {
			if parts, err := merged(plan); err != nil || !compiles(runtime, parts) {
				return
			}
			t.Fatalf("the linked module is not valid: %v", err)
		}
		if err := compiled.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
		defer cancel()
		config := wazero.NewRuntimeConfigInterpreter().WithMemoryLimitPages(256).WithCloseOnContextDone(true)
		if _, err := runLinked(t, ctx, config, module); err != nil && strings.Contains(err.Error(), "runtime error") {
			t.Fatal(err)
		}
	})
}

func compiles(runtime wazero.Runtime, module []byte) bool {
	compiled, err := runtime.CompileModule(context.Background(), module)
	return err == nil && compiled.Close(context.Background()) == nil
}
