package runtime_test

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"runner.example/internal/caller"
	"runner.example/internal/diag"
	"runner.example/runtime"
	"runner.example/schema/compiler"
)

// panicker is a log that panics at the line of an answer.
type panicker struct{ slog.Handler }

func (p panicker) Handle(ctx context.Context, r slog.Record) error {
	if r.Message == "request" {
		panic("a line of the access log")
	}
	return p.Handler.Handle(ctx, r)
}

// newPanicking serves an app whose answers all end in a panic.
func newPanicking(t *testing.T) *runtime.Runtime {
	t.Helper()
	st, keys := openStore(t, "")
	rt, err := runtime.New(runtime.Options{
		Store: st, Keystore: keys, Logger: slog.New(panicker{slog.NewJSONHandler(io.Discard, nil)}), AccessLog: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	sources := []diag.Source{{Name: "a.schema", Text: []byte("app a\nfunctions(auth: none, rateLimit: none) { nothing(month: int) }\n")}}
	s, diags := compiler.Compile(sources, compiler.Options{})
	if s == nil {
		t.Fatal(diags)
	}
	wasm := assemble(t, `(module (memory (export "memory") 1) (func (export "nothing")))`)
	bundle := &runtime.Bundle{Schema: s, Sources: sources, Modules: []runtime.ModuleFile{{Name: "build/a.wasm", Wasm: wasm}}}
	if err := rt.Activate(t.Context(), bundle, runtime.Activation{}); err != nil {
		t.Fatal(err)
	}
	return rt
}

func assemble(t testing.TB, wat string) []byte {
	t.Helper()
	if _, err := exec.LookPath("wat2wasm"); err != nil && testing.Short() {
		t.Skip("wat2wasm is missing: apt-get install wabt")
	}
	in, out := filepath.Join(t.TempDir(), "a.wat"), filepath.Join(t.TempDir(), "a.wasm")
	if err := os.WriteFile(in, []byte(wat), 0o600); err != nil {
		t.Fatal(err)
	}
	if text, err := exec.Command("wat2wasm", in, "-o", out).CombinedOutput(); err != nil {
		t.Fatalf("wat2wasm: %v (apt-get install wabt)\n%s", err, text)
	}
	wasm, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	return wasm
}

// closes fails the test when the runtime does not end.
func closes(t testing.TB, rt *runtime.Runtime) {
	t.Helper()
	ended := make(chan error, 1)
	go func() { ended <- rt.Close() }()
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Fatal("Close waits for a request that has panicked")
	}
}

func TestARequestThatPanickedDoesNotKeepTheRuntimeOpen(t *testing.T) {
	rt := newPanicking(t)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- rt.Serve(ln) }()
	resp, err := http.Get("http://" + ln.Addr().String() + "/nothing")
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusInternalServerError {
		t.Errorf("the answer was %s: there was no panic", resp.Status)
	}
	http.DefaultClient.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := rt.Shutdown(ctx); err != nil {
		t.Error(err)
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
	closes(t, rt)
}

func TestACallThatPanickedDoesNotKeepTheRuntimeOpen(t *testing.T) {
	rt := newPanicking(t)
	func() {
		defer func() {
			if recover() == nil {
				t.Error("there was no panic")
			}
		}()
		_, err := rt.Call(t.Context(), runtime.FunctionCall{Name: "nothing", Caller: caller.Caller{Kind: caller.System}})
		t.Error("the call gave", err)
	}()
	closes(t, rt)
}
