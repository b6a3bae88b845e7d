package telemetry

import (
	"errors"
	"net/http"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Metrics are the metrics of a server. Each package registers those that it counts, under names
// that get the prefix runner_. Labels have values of the schema or of a closed list, never of a
// request. All methods may be called by any goroutine, and on nil, which measures nothing.
type Metrics struct {
	registry *prometheus.Registry
	mu       sync.Mutex
	vectors  []vector
}

// vector is a metric with labels.
type vector interface {
	prometheus.Collector
	DeletePartialMatch(prometheus.Labels) int
}

// NewMetrics returns metrics with those of the Go runtime and of the process.
func NewMetrics() *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry()}
	m.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m.backups()
	return m
}

// Handler answers with all metrics in the text format of Prometheus, or OpenMetrics.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{EnableOpenMetrics: true})
}

// register adds v, or returns the same metric if it was registered before: a process may open
// what counts it a second time.
func register[V vector](m *Metrics, v V) V {
	err := m.registry.Register(v)
	if before, ok := errors.AsType[prometheus.AlreadyRegisteredError](err); ok {
		return before.ExistingCollector.(V)
	}
	if err != nil {
		panic("BUG: register a metric: " + err.Error())
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.vectors = append(m.vectors, v)
	return v
}

// Counters are a counter for each value of their labels. The zero value counts nothing.
type Counters struct{ vector *prometheus.CounterVec }

// Counters registers counters.
func (m *Metrics) Counters(name, help string, labels ...string) Counters {
	if m == nil {
		return Counters{}
	}
	return Counters{
		register(m, prometheus.NewCounterVec(prometheus.CounterOpts{Name: "runner_" + name, Help: help}, labels)),
	}
}

// With returns the counter for the values of the labels, which is shown from then on.
func (c Counters) With(values ...string) Counter {
	if c.vector == nil {
		return Counter{}
	}
	return Counter{c.vector.WithLabelValues(values...)}
}

// Counter is one counter. The zero value counts nothing.
type Counter struct{ counter prometheus.Counter }

// Add counts n more.
func (c Counter) Add(n float64) {
	if c.counter != nil {
		c.counter.Add(n)
	}
}

// Inc counts one more.
func (c Counter) Inc() { c.Add(1) }

// Histograms are a histogram for each value of their labels. The zero value records nothing.
type Histograms struct{ vector *prometheus.HistogramVec }

// Histograms registers histograms; buckets are their upper bounds.
func (m *Metrics) Histograms(name, help string, buckets []float64, labels ...string) Histograms {
	if m == nil {
		return Histograms{}
	}
	options := prometheus.HistogramOpts{Name: "runner_" + name, Help: help, Buckets: buckets}
	return Histograms{register(m, prometheus.NewHistogramVec(options, labels))}
}

// With returns the histogram for the values of the labels, which is shown from then on.
func (h Histograms) With(values ...string) Histogram {
	if h.vector == nil {
		return Histogram{}
	}
	return Histogram{h.vector.WithLabelValues(values...)}
}

// Histogram is one histogram. The zero value records nothing.
type Histogram struct{ histogram prometheus.Observer }

// Observe records a value.
func (h Histogram) Observe(value float64) {
	if h.histogram != nil {
		h.histogram.Observe(value)
	}
}

// Buckets returns count upper bounds of buckets, each factor times the one before.
func Buckets(first, factor float64, count int) []float64 {
	return prometheus.ExponentialBuckets(first, factor, count)
}

// Times returns the buckets for the time of a request, or of a part of it: 50 µs to 7 s.
func Times() []float64 { return Buckets(50e-6, 2.5, 14) }

// Retain removes counters and histograms that have another value of a label than those to keep,
// which are by label.
func (m *Metrics) Retain(keep map[string]map[string]bool) {
	if m == nil {
		return
	}
	families, err := m.registry.Gather()
	if err != nil {
		return // the next call removes them
	}
	type value struct{ label, value string }
	gone := map[value]bool{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			for _, label := range metric.GetLabel() {
				if kept, ok := keep[label.GetName()]; ok && !kept[label.GetValue()] {
					gone[value{label.GetName(), label.GetValue()}] = true
				}
			}
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for old := range gone {
		for _, v := range m.vectors {
			v.DeletePartialMatch(prometheus.Labels{old.label: old.value})
		}
	}
}

// Overload registers what several packages count: refusals because of overload. causes are those
// of the caller.
func (m *Metrics) Overload(causes ...string) Counters {
	counters := m.Counters("overload_total",
		"Requests and connections that were refused because of overload, by cause.", "cause")
	for _, cause := range causes {
		counters.With(cause)
	}
	return counters
}

// Backup counts a backup.
func (m *Metrics) Backup(err error) {
	outcome := "written"
	if err != nil {
		outcome = "failed"
	}
	m.backups().With(outcome).Inc()
}

// backups registers the counters of backups, both from the start: a rate begins at 0.
func (m *Metrics) backups() Counters {
	counters := m.Counters("backups_total", "Backups that this process has sent, by outcome.", "outcome")
	counters.With("written")
	counters.With("failed")
	return counters
}

// Gauge adds a metric. read is called each time that the metrics are read. The values have
// one label, or none if label is empty.
func (m *Metrics) Gauge(name, help, label string, read func(set func(labelValue string, value float64))) {
	if label == "" {
		m.Gauges(name, help, func(set func(float64, ...string)) {
			read(func(_ string, value float64) { set(value) })
		})
		return
	}
	m.Gauges(name, help, func(set func(float64, ...string)) {
		read(func(labelValue string, value float64) { set(value, labelValue) })
	}, label)
}

// Gauges adds a metric with labels. read is called each time that the metrics are read; it sets a
// value for each combination of the labels' values.
func (m *Metrics) Gauges(name, help string, read func(set func(value float64, labelValues ...string)), labels ...string) {
	if m == nil {
		return
	}
	m.registry.MustRegister(&gauge{prometheus.NewDesc("runner_"+name, help, labels, nil), read})
}

type gauge struct {
	desc *prometheus.Desc
	read func(set func(float64, ...string))
}

// Describe implements prometheus.Collector.
func (g *gauge) Describe(out chan<- *prometheus.Desc) { out <- g.desc }

// Collect implements prometheus.Collector.
func (g *gauge) Collect(out chan<- prometheus.Metric) {
	g.read(func(value float64, labelValues ...string) {
		out <- prometheus.MustNewConstMetric(g.desc, prometheus.GaugeValue, value, labelValues...)
	})
}
