package conformance_test

import (
	"os"
	"path/filepath"
	"testing"

	"runner.example/hostabi"
	"runner.example/state/store"
)

// BenchmarkCall runs three handlers of every guest in warm sandboxes: one answers a constant,
// one reads and writes JSON, one passes on two rows of four. bytes is the module's size,
// memory-KiB the sandbox's memory, and pages the number of pages that a call changes and the
// sandbox restores. Run it with
//
//	go test ./tests/conformance -run '^$' -bench Call -count 10
func BenchmarkCall(b *testing.B) {
	for _, language := range languages(b) {
		g := newGuest(b, language)
		g.load(b, b.Context())
		files, err := filepath.Glob(filepath.Join(g.dir, "build", "*.wasm"))
		if err != nil || len(files) != 1 {
			b.Fatal(files, err)
		}
		info, err := os.Stat(files[0])
		if err != nil {
			b.Fatal(err)
		}
		for _, row := range []struct{ name, text string }{
			{"constant", "GET /answers/ok"},
			{"json", "POST /body\n\n{\"item\":\"tea\",\"qty\":3,\"ratio\":0.5}"},
			{"rows", "GET /orders"},
		} {
			b.Run(row.name+"/"+language, func(b *testing.B) {
				w := g.newWorld(b)
				w.serve(b, "POST /seed")
				r := parseRequest(b, w.schema, w.router, row.text, w.trace.filled)
				call := &hostabi.Call{Input: hostabi.Input{Context: b.Context(), Host: w.host, Request: &r.Request, Caller: r.caller, Attempt: 1}}
				m := w.modules[r.handler]
				err := w.store.View(b.Context(), func(tx *store.Tx) error {
					call.Tx = tx
					for b.Loop() {
						if err := m.Run(call, r.handler); err != nil || call.Response.Status > 201 {
							b.Fatalf("answers %d: %v", call.Response.Status, err)
						}
					}
					return nil
				})
				if err != nil {
					b.Fatal(err)
				}
				call.Attempt = 1
				err = w.store.View(b.Context(), func(tx *store.Tx) error {
					call.Tx = tx
					u, err := m.Measure(call, r.handler)
					b.ReportMetric(float64(u.MemoryBytes)/1024, "memory-KiB")
					b.ReportMetric(float64(u.ChangedPages), "pages")
					b.ReportMetric(float64(u.Fuel), "fuel")
					return err
				})
				if err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(float64(info.Size()), "bytes")
			})
		}
	}
}
