package front

import "runner.example/internal/telemetry"

// metrics are what a Server counts.
type metrics struct {
	refusals telemetry.Counters // by code
	overload telemetry.Counters // by cause
}

func newMetrics(m *telemetry.Metrics) metrics {
	return metrics{
		refusals: m.Counters("refusals_total", "Requests that the server refused, by code.", "code"),
		overload: m.Overload("answers", "bodies", "connections"),
	}
}
