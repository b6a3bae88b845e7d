package runtime_test

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"

	"runner.example/internal/diag"
	"runner.example/keystore"
	"runner.example/runtime"
	"runner.example/schema/compiler"
	"runner.example/state/store"
)

func TestHealth(t *testing.T) {
	st, err := store.Open(store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	keys, err := keystore.Open(t.Context(), st, keystore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = keys.Close() })
	rt, err := runtime.New(runtime.Options{Store: st, Keystore: keys, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closes(t, rt) })
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- rt.Serve(ln) }()
	t.Cleanup(func() {
		if err := rt.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	want := func(method, path string, status int, text string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, "http://"+ln.Addr().String()+path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		if resp.StatusCode != status || !strings.Contains(string(body), text) {
			t.Errorf("%s %s: %d %s, want %d %s", method, path, resp.StatusCode, body, status, text)
		}
	}
	want("GET", "/_health", 200, `{"status":"ok"}`)
	want("GET", "/_health/live", 200, `{"status":"ok"}`)
	want("HEAD", "/_health/ready", 503, "")
	want("GET", "/_health/ready", 503, "no release is active")
	want("POST", "/_health/ready", 405, "method_not_allowed")
	want("GET", "/_health/write", 503, "no release is active")
	want("POST", "/_health/write", 405, "method_not_allowed")
	want("GET", "/_health/other", 503, "not_ready") // a route like others

	sources := []diag.Source{{Name: "a.schema", Text: []byte("app a\nfunctions(auth: none, rateLimit: none) { nothing() }\n")}}
	s, diags := compiler.Compile(sources, compiler.Options{})
	if s == nil {
		t.Fatal(diags)
	}
	wasm := assemble(t, `(module (memory (export "memory") 1) (func (export "nothing")))`)
	bundle := &runtime.Bundle{Schema: s, Sources: sources, Modules: []runtime.ModuleFile{{Name: "build/a.wasm", Wasm: wasm}}}
	if err := rt.Activate(t.Context(), bundle, runtime.Activation{}); err != nil {
		t.Fatal(err)
	}
	want("GET", "/_health/ready", 200, `{"status":"ready"}`)
	want("GET", "/_health/write", 200, `{"status":"writable"}`)
	want("GET", "/_health/other", 404, "route_not_found")

	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	want("GET", "/_health/live", 200, `{"status":"ok"}`)
	want("GET", "/_health/ready", 503, "closed")
	want("GET", "/_health/write", 503, "closed")
}
