package runtime_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"runner.example/internal/diag"
	"runner.example/internal/telemetry"
	"runner.example/keystore"
	"runner.example/runtime"
	"runner.example/schema/compiler"
	"runner.example/state/store"
	"runner.example/tests/guest"
)

// The metrics are served before the runtime exists, so that a long startup is visible.
func TestMetricsAreReadDuringStartup(t *testing.T) {
	st, err := store.Open(store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	keys, err := keystore.Open(t.Context(), st, keystore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer keys.Close()
	for range 5 {
		metrics := telemetry.NewMetrics()
		handler := metrics.Handler()
		started := make(chan struct{})
		var reader sync.WaitGroup
		reader.Go(func() {
			for {
				select {
				case <-started:
					return
				default:
					handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/metrics", nil))
				}
			}
		})
		rt, err := runtime.New(runtime.Options{Store: st, Keystore: keys, Logger: slog.New(slog.DiscardHandler), Metrics: metrics})
		close(started)
		reader.Wait()
		if err != nil {
			t.Fatal(err)
		}
		if err := rt.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// A request allocates no more with metrics than without.
func TestMetricsAllocateNothingForARequest(t *testing.T) {
	if raceDetector {
		t.Skip("a sync.Pool drops values at random under the race detector")
	}
	allocations := func(metrics *telemetry.Metrics) float64 {
		st, err := store.Open(store.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer st.Close()
		keys, err := keystore.Open(t.Context(), st, keystore.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer keys.Close()
		rt, err := runtime.New(runtime.Options{Store: st, Keystore: keys, Logger: slog.New(slog.DiscardHandler), Metrics: metrics})
		if err != nil {
			t.Fatal(err)
		}
		defer closes(t, rt)
		sources := []diag.Source{{Name: "a.schema", Text: []byte("app a\nroutes(\"/\", auth: none, rateLimit: none) { POST /hello -> hello }\n")}}
		s, found := compiler.Compile(sources, compiler.Options{})
		if s == nil {
			t.Fatal(found)
		}
		module := guest.Module{"hello": {guest.Respond(200, `{"hello":"world"}`)}}
		bundle := &runtime.Bundle{Schema: s, Sources: sources, Modules: []runtime.ModuleFile{{Name: "build/a.wasm", Wasm: module.Wasm()}}}
		if err := rt.Activate(t.Context(), bundle, runtime.Activation{}); err != nil {
			t.Fatal(err)
		}
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		served := make(chan error, 1)
		go func() { served <- rt.Serve(ln) }()
		defer func() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			if err := errors.Join(rt.Shutdown(ctx), <-served); err != nil {
				t.Error(err)
			}
		}()
		conn, err := net.Dial("tcp", ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		request, reply := []byte("POST /hello HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello"), make([]byte, 4<<10)
		once := func() {
			if _, err := conn.Write(request); err != nil {
				t.Fatal(err)
			}
			if n, err := conn.Read(reply); err != nil || !bytes.HasPrefix(reply[:n], []byte("HTTP/1.1 200 ")) {
				t.Fatalf("%v %s", err, reply[:n])
			}
		}
		for range 20 {
			once()
		}
		return testing.AllocsPerRun(2000, once) // so many that those of background tasks round to 0
	}
	without, with := allocations(nil), allocations(telemetry.NewMetrics())
	t.Logf("%v allocations for a request, %v with metrics", without, with)
	if with > without {
		t.Errorf("%v allocations for a request with metrics, %v without", with, without)
	}
}
