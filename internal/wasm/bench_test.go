package wasm_test

import (
	"os"
	"testing"

	"runner.example/internal/wasm"
)

// everything is what the sandbox asks for.
var everything = wasm.Options{
	Fuel: &wasm.FuelImport{Module: "host", Name: "fuel"}, MaxStack: 1 << 20,
	Stack: &wasm.StackImport{Module: "host", Name: "stack"}, MemoryMaxPages: 1025, TableMax: 10_000, Prefix: "\x00", Detach: true,
}

// BenchmarkRewrite measures the way of a std-Go handler of about 4 MB
// (make examples) from its bytes to those that are compiled.
func BenchmarkRewrite(b *testing.B) {
	tracker, err := os.ReadFile("../../plugins/examples/tracker/build/tracker.wasm")
	if err != nil {
		b.Skip("make examples builds the module: ", err)
	}
	m, err := wasm.Parse(tracker, wasm.DefaultLimits())
	if err != nil {
		b.Fatal(err)
	}
	b.Run("parse", func(b *testing.B) {
		b.SetBytes(int64(len(tracker)))
		b.ReportAllocs()
		for b.Loop() {
			if _, err := wasm.Parse(tracker, wasm.DefaultLimits()); err != nil {
				b.Fatal(err)
			}
		}
	})
	for _, c := range []struct {
		name    string
		options wasm.Options
	}{
		{"identity", wasm.Options{}},
		{"fuel", wasm.Options{Fuel: everything.Fuel}},
		{"everything", everything},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			var out []byte
			var done *wasm.Rewritten
			for b.Loop() {
				if out, done, err = m.Rewrite(c.options); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(len(out))/float64(len(tracker)), "growth")
			b.ReportMetric(float64(done.FuelChecks), "fuelchecks")
			b.ReportMetric(float64(done.StackChecks), "stackchecks")
		})
	}
}
