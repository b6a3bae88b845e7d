package sandbox

import "runner.example/internal/telemetry"

// metrics are what an Engine measures.
type metrics struct {
	wait, restore, pages telemetry.Histogram
	overload             telemetry.Counters // by cause
}

func newMetrics(m *telemetry.Metrics) metrics {
	return metrics{
		wait: m.Histograms("sandbox_wait_seconds", "Time for which requests waited for an instance slot.",
			telemetry.Times()).With(),
		restore: m.Histograms("sandbox_restore_seconds", "Time for restoring a sandbox.",
			telemetry.Buckets(1e-6, 2.5, 12)).With(),
		pages: m.Histograms("sandbox_restored_pages", "Pages of memory that were restored after a request.",
			telemetry.Buckets(1, 2, 12)).With(),
		overload: m.Overload("breaker", "cpu", "instances", "memory", "streams", "waits"),
	}
}
