package store

import (
	"time"

	"runner.example/internal/telemetry"
	"runner.example/state/store/commitlog"
)

// metrics are what a Store measures of transactions with writes.
type metrics struct {
	committed, conflict, tooLarge, unavailable telemetry.Counter
	duration                                   telemetry.Histogram
}

func newMetrics(m *telemetry.Metrics) metrics {
	outcomes := m.Counters("commits_total", "Transactions with writes, by outcome.", "outcome")
	return metrics{
		committed: outcomes.With("committed"), conflict: outcomes.With("conflict"),
		tooLarge: outcomes.With("too_large"), unavailable: outcomes.With("unavailable"),
		duration: m.Histograms("commit_seconds", "Time from the proposal of a transaction to its outcome.",
			telemetry.Times()).With(),
	}
}

// proposed counts a proposal that ended with err after so long.
func (m *metrics) proposed(p *proposal, err error, took time.Duration) {
	outcome := m.conflict
	switch {
	case err != nil || p == nil:
		outcome = m.unavailable
	case p.outcome() == commitlog.Committed:
		outcome = m.committed
	case p.outcome() == commitlog.TooLarge:
		outcome = m.tooLarge
	}
	outcome.Inc()
	m.duration.Observe(took.Seconds())
}
