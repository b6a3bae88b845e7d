package runtime_test

import (
	"log/slog"
	"net/http/httptest"
	"sync"
	"testing"

	"runner.example/internal/telemetry"
	"runner.example/keystore"
	"runner.example/runtime"
	"runner.example/store"
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
	for range 20 {
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
