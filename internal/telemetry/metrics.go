package telemetry

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Metrics are the metrics of a server. Labels have values of the schema or of a closed list,
// never of a request. All methods may be called by any goroutine, and on nil, which measures
// nothing.
type Metrics struct {
	registry *prometheus.Registry

	requests, cpu, fuel *prometheus.CounterVec // by route and class
	duration            *prometheus.HistogramVec

	sandboxWait, restore, pages prometheus.Histogram
	commits                     map[string]prometheus.Counter // by outcome
	commit                      prometheus.Histogram
	credentials                 *prometheus.CounterVec
	refusals                    *prometheus.CounterVec
	overload                    *prometheus.CounterVec
	backups                     *prometheus.CounterVec
	jobRuns                     *prometheus.CounterVec // by job and outcome
	jobDuration                 *prometheus.HistogramVec
}

// Classes of the status codes of answers.
const (
	classes    = 4
	firstClass = 2
)

var classNames = [classes]string{"2xx", "3xx", "4xx", "5xx"}

// NewMetrics returns metrics that count from now on.
func NewMetrics() *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry()}
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		v := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "runner_" + name, Help: help}, labels)
		m.registry.MustRegister(v)
		return v
	}
	histogram := func(name, help string, buckets []float64) prometheus.Histogram {
		h := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "runner_" + name, Help: help, Buckets: buckets})
		m.registry.MustRegister(h)
		return h
	}
	times := prometheus.ExponentialBuckets(50e-6, 2.5, 14) // 50 µs to 7 s
	m.requests = counter("requests_total", "Requests by route and class of the status.", "route", "class")
	m.duration = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "runner_request_duration_seconds", Help: "Time from the end of a request's head to its answer.", Buckets: times,
	}, []string{"route", "class"})
	m.registry.MustRegister(m.duration)
	m.jobRuns = counter("job_runs_total", "Runs of jobs by job and outcome: done, retried, failed, lost or released.", "job", "outcome")
	m.jobDuration = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "runner_job_duration_seconds", Help: "Time of a run of a job.", Buckets: prometheus.ExponentialBuckets(1e-3, 4, 10), // to 4 minutes
	}, []string{"job"})
	m.registry.MustRegister(m.jobDuration)
	m.cpu = counter("handler_seconds_total", "Time in which handlers computed.", "route", "class")
	m.fuel = counter("handler_fuel_total", "Fuel that handlers used.", "route", "class")
	m.sandboxWait = histogram("sandbox_wait_seconds", "Time for which requests waited for an instance slot.", times)
	m.restore = histogram("sandbox_restore_seconds", "Time for restoring a sandbox.", prometheus.ExponentialBuckets(1e-6, 2.5, 12))
	m.pages = histogram("sandbox_restored_pages", "Pages of memory that were restored after a request.", prometheus.ExponentialBuckets(1, 2, 12))
	commits := counter("commits_total", "Transactions with writes, by outcome.", "outcome")
	m.commits = map[string]prometheus.Counter{}
	for _, outcome := range []string{Committed, Conflict, TooLarge, Unavailable} {
		m.commits[outcome] = commits.WithLabelValues(outcome)
	}
	m.commit = histogram("commit_seconds", "Time from the proposal of a transaction to its outcome.", times)
	m.credentials = counter("refused_credentials_total", "Credentials that were refused, by reason.", "reason")
	m.refusals = counter("refusals_total", "Requests that the server refused, by code.", "code")
	m.overload = counter("overload_total", "Requests and connections that were refused because of overload, by cause.", "cause")
	for _, cause := range []string{"answers", "bodies", "breaker", "connections", "cpu", "instances", "memory", "waits"} {
		m.overload.WithLabelValues(cause)
	}
	m.backups = counter("backups_total", "Backups, by outcome.", "outcome")
	m.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// Handler answers with all metrics in the text format of Prometheus, or OpenMetrics.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{EnableOpenMetrics: true})
}

// RouteMetrics are the metrics of one route.
type RouteMetrics struct {
	classes [classes]struct {
		requests, cpu, fuel prometheus.Counter
		duration            prometheus.Observer
	}
}

// Route returns the metrics of the route with that name, which is one of the schema's.
func (m *Metrics) Route(name string) *RouteMetrics {
	if m == nil {
		return nil
	}
	r := &RouteMetrics{}
	for i, class := range classNames {
		c := &r.classes[i]
		c.requests, c.cpu, c.fuel = m.requests.WithLabelValues(name, class), m.cpu.WithLabelValues(name, class), m.fuel.WithLabelValues(name, class)
		c.duration = m.duration.WithLabelValues(name, class)
	}
	return r
}

// Retain removes the metrics of routes and jobs that do not have one of the names.
func (m *Metrics) Retain(routes, jobs map[string]bool) {
	if m == nil {
		return
	}
	families, err := m.registry.Gather()
	if err != nil {
		return // the next call removes them
	}
	gone, goneJobs := map[string]bool{}, map[string]bool{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			for _, label := range metric.GetLabel() {
				switch name := label.GetValue(); {
				case label.GetName() == "route" && !routes[name]:
					gone[name] = true
				case label.GetName() == "job" && !jobs[name]:
					goneJobs[name] = true
				}
			}
		}
	}
	for name := range gone {
		labels := prometheus.Labels{"route": name}
		m.requests.DeletePartialMatch(labels)
		m.cpu.DeletePartialMatch(labels)
		m.fuel.DeletePartialMatch(labels)
		m.duration.DeletePartialMatch(labels)
	}
	for name := range goneJobs {
		m.jobRuns.DeletePartialMatch(prometheus.Labels{"job": name})
		m.jobDuration.DeleteLabelValues(name)
	}
}

// Outcomes of a run of a job.
const (
	JobDone     = "done"
	JobRetried  = "retried"  // it failed, and runs again
	JobFailed   = "failed"   // it failed for the last time
	JobLost     = "lost"     // it was cancelled, its lease was over, or its end could not be recorded
	JobReleased = "released" // the server ended or is overloaded, and it runs again
)

// JobRun counts a run of a job, which is one of the schema's.
func (m *Metrics) JobRun(job, outcome string, took time.Duration) {
	if m != nil {
		m.jobRuns.WithLabelValues(job, outcome).Inc()
		m.jobDuration.WithLabelValues(job).Observe(took.Seconds())
	}
}

// Request counts a request with its status, its time, and what its handler used.
func (r *RouteMetrics) Request(status int, took, cpu time.Duration, fuel int64) {
	if r == nil {
		return
	}
	c := &r.classes[min(max(status/100-firstClass, 0), classes-1)]
	c.requests.Inc()
	c.duration.Observe(took.Seconds())
	if cpu > 0 {
		c.cpu.Add(cpu.Seconds())
		c.fuel.Add(float64(fuel))
	}
}

// SandboxWait records for how long a request waited for an instance slot.
func (m *Metrics) SandboxWait(d time.Duration) {
	if m != nil {
		m.sandboxWait.Observe(d.Seconds())
	}
}

// Restored records the restore of a sandbox.
func (m *Metrics) Restored(d time.Duration, pages int) {
	if m != nil {
		m.restore.Observe(d.Seconds())
		m.pages.Observe(float64(pages))
	}
}

// Outcomes of a commit.
const (
	Committed   = "committed"
	Conflict    = "conflict"
	TooLarge    = "too_large"
	Unavailable = "unavailable"
)

// Commit records the outcome of a transaction with writes, and the time since its proposal.
func (m *Metrics) Commit(outcome string, d time.Duration) {
	if m != nil {
		m.commits[outcome].Inc()
		m.commit.Observe(d.Seconds())
	}
}

// CredentialRefused counts a refused credential; reason is one of a closed list.
func (m *Metrics) CredentialRefused(reason string) {
	if m != nil {
		m.credentials.WithLabelValues(reason).Inc()
	}
}

// Refused counts a request that the server refused with a fault code.
func (m *Metrics) Refused(code string) {
	if m != nil {
		m.refusals.WithLabelValues(code).Inc()
	}
}

// Overloaded counts a refusal because of overload; cause is one of a closed list.
func (m *Metrics) Overloaded(cause string) {
	if m != nil {
		m.overload.WithLabelValues(cause).Inc()
	}
}

// Backup counts a backup.
func (m *Metrics) Backup(err error) {
	if m == nil {
		return
	}
	outcome := "written"
	if err != nil {
		outcome = "failed"
	}
	m.backups.WithLabelValues(outcome).Inc()
}

// Gauge adds a metric. read is called each time that the metrics are read. The values have
// one label, or none if label is empty.
func (m *Metrics) Gauge(name, help, label string, read func(set func(labelValue string, value float64))) {
	if m == nil {
		return
	}
	var labels []string
	if label != "" {
		labels = []string{label}
	}
	m.registry.MustRegister(&gauge{prometheus.NewDesc("runner_"+name, help, labels, nil), label, read})
}

type gauge struct {
	desc  *prometheus.Desc
	label string
	read  func(set func(string, float64))
}

// Describe implements prometheus.Collector.
func (g *gauge) Describe(out chan<- *prometheus.Desc) { out <- g.desc }

// Collect implements prometheus.Collector.
func (g *gauge) Collect(out chan<- prometheus.Metric) {
	g.read(func(labelValue string, value float64) {
		if g.label == "" {
			out <- prometheus.MustNewConstMetric(g.desc, prometheus.GaugeValue, value)
		} else {
			out <- prometheus.MustNewConstMetric(g.desc, prometheus.GaugeValue, value, labelValue)
		}
	})
}
