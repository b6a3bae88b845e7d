package runtime_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"runner.example/internal/caller"
	"runner.example/internal/diag"
	"runner.example/internal/sourcemap"
	"runner.example/runtime"
	"runner.example/runtime/sandbox"
	"runner.example/schema/compiler"
)

// A release may differ from the one before it in debug files only. Its failures have their lines.
func TestAnActivationReplacesDebugFiles(t *testing.T) {
	wasm := assemble(t, `(module (memory (export "memory") 1) (func (export "fails") unreachable))`)
	at := bytes.LastIndex(wasm, []byte{0x03, 0x00, 0x00, 0x0b}) + 2 // size and locals of the body are before its instruction
	reads, line := 0, 0
	read := func(sum [sha256.Size]byte) (module, debug []byte, err error) {
		reads++
		mappings := sourcemap.AppendNumber(sourcemap.AppendNumber(sourcemap.AppendNumber(nil, at), 0), line-1)
		return wasm, fmt.Appendf(nil, `{"version":3,"sources":["handlers/a.c"],"mappings":"%sA"}`, mappings), nil
	}
	var log bytes.Buffer
	st, keys := openStore(t, "")
	rt, err := runtime.New(runtime.Options{
		Store: st, Keystore: keys, Logger: slog.New(slog.NewJSONHandler(&log, nil)), Sandbox: sandbox.Options{ReadModule: read},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer closes(t, rt)
	sources := []diag.Source{{Name: "a.schema", Text: []byte("app a\nfunctions(auth: none, rateLimit: none) { fails() }\n")}}
	s, diags := compiler.Compile(sources, compiler.Options{})
	if s == nil {
		t.Fatal(diags)
	}
	for _, line = range []int{3, 7} {
		bundle := &runtime.Bundle{Schema: s, Sources: sources, Modules: []runtime.ModuleFile{{Name: "build/a.wasm", Wasm: wasm}}}
		if err := rt.Activate(t.Context(), bundle, runtime.Activation{}); err != nil {
			t.Fatal(err)
		}
		log.Reset()
		for range 3 {
			if _, err := rt.Call(t.Context(), runtime.FunctionCall{Name: "fails", Caller: caller.Caller{Kind: caller.System}}); err != nil {
				t.Fatal(err)
			}
		}
		if want := fmt.Sprintf(`"frames":["fails (handlers/a.c:%d:1) at 0x`, line); strings.Count(log.String(), want) != 3 {
			t.Errorf("the log does not have %s three times:\n%s", want, &log)
		}
	}
	if reads != 2 {
		t.Errorf("symbols were read %d times, want once for each activation", reads)
	}
}
