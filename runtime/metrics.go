package runtime

import (
	"sync"
	"sync/atomic"
	"time"

	"runner.example/internal/telemetry"
	"runner.example/keystore"
)

// unmatchedRoute is the name in metrics of all requests that match no route.
const unmatchedRoute = "unmatched"

// classes are those of the status codes of answers.
var classes = [...]string{"2xx", "3xx", "4xx", "5xx"}

// routeMetrics are the metrics of one route. A class has metrics once it was answered.
type routeMetrics struct {
	name    string
	classes [len(classes)]atomic.Pointer[classMetrics]
}

// classMetrics are the metrics of a route's answers of one class.
type classMetrics struct {
	requests, cpu, fuel telemetry.Counter
	duration            telemetry.Histogram
}

// Outcomes of a run of a job.
const (
	jobDone     = "done"
	jobRetried  = "retried"  // it failed, and runs again
	jobFailed   = "failed"   // it failed for the last time
	jobLost     = "lost"     // it was cancelled, its lease was over, or its end could not be recorded
	jobReleased = "released" // the server ended or is overloaded, and it runs again
)

// metrics are what the runtime counts of requests and jobs.
type metrics struct {
	requests, cpu, fuel telemetry.Counters // by route and class
	duration            telemetry.Histograms
	publicSent          telemetry.Counter  // requests to public hosts
	publicRefused       telemetry.Counter  // those beyond the rate
	repeated            telemetry.Counters // webhook deliveries that were handled before, by route
	unmatched           routeMetrics       // of requests without a route
	shown               shownRoutes
	jobRuns             telemetry.Counters   // by job and outcome
	jobDuration         telemetry.Histograms // by job
	liveRuns            telemetry.Counter
	liveEvents          map[string]telemetry.Counter // by kind
}

func newMetrics(m *telemetry.Metrics) *metrics {
	public := m.Counters("public_requests_total",
		"Requests of handlers to public hosts that the schema does not list, by outcome: sent, or refused beyond public_rate.", "outcome")
	all := &metrics{
		publicSent: public.With("sent"), publicRefused: public.With("refused"),
		requests: m.Counters("requests_total", "Requests by route and class of the status.", "route", "class"),
		duration: m.Histograms("request_duration_seconds", "Time from the end of a request's head to its answer.",
			telemetry.Times(), "route", "class"),
		cpu:  m.Counters("handler_seconds_total", "Time in which handlers computed.", "route", "class"),
		fuel: m.Counters("handler_fuel_total", "Fuel that handlers used.", "route", "class"),
		repeated: m.Counters("deliveries_repeated_total",
			"Webhook deliveries that were handled before, and answered without a run.", "route"),
		jobRuns: m.Counters("job_runs_total", "Runs of jobs by job and outcome: done, retried, failed, lost or released.",
			"job_name", "outcome"),
		jobDuration: m.Histograms("job_duration_seconds", "Time of a run of a job.",
			telemetry.Buckets(1e-3, 4, 10), "job_name"), // to 4 minutes
	}
	all.liveRuns = m.Counters("live_runs_total", "Runs of handlers of live routes.").With()
	events := m.Counters("live_events_total", "Events sent to watches of live routes, by kind: value, problem or end.", "kind")
	all.liveEvents = map[string]telemetry.Counter{}
	for _, kind := range []string{eventValue, eventProblem, eventEnd} {
		all.liveEvents[kind] = events.With(kind)
	}
	all.unmatched.name = unmatchedRoute
	all.shown.names = map[string]bool{unmatchedRoute: true}
	return all
}

// shownRoutes are the names of the routes that may have metrics: those of the active bundle. A request on
// the one before must not bring a removed route back.
type shownRoutes struct {
	mu    sync.Mutex
	names map[string]bool
}

// class returns the metrics of a class of answers, which are shown from then on. The zero value counts
// nothing: the route was removed.
func (m *metrics) class(r *routeMetrics, class int) *classMetrics {
	if c := r.classes[class].Load(); c != nil {
		return c
	}
	m.shown.mu.Lock()
	defer m.shown.mu.Unlock()
	if !m.shown.names[r.name] {
		return &classMetrics{}
	}
	name := classes[class]
	c := &classMetrics{
		requests: m.requests.With(r.name, name), duration: m.duration.With(r.name, name),
		cpu: m.cpu.With(r.name, name), fuel: m.fuel.With(r.name, name),
	}
	r.classes[class].Store(c)
	return c
}

// measure counts an answered request.
func (r *Runtime) measure(s *requestState, status int, took time.Duration) {
	m := &r.metrics.unmatched
	if s.route != nil {
		m = s.route.metrics
	}
	c := r.metrics.class(m, min(max(status/100-2, 0), len(classes)-1))
	c.requests.Inc()
	c.duration.Observe(took.Seconds())
	if spent := s.call.Spent; spent.Time > 0 {
		c.cpu.Add(spent.Time.Seconds())
		c.fuel.Add(float64(spent.Fuel))
	}
}

// measureRepeated counts a delivery of a webhook that was handled before.
func (r *Runtime) measureRepeated(rt *route) {
	r.metrics.shown.mu.Lock()
	defer r.metrics.shown.mu.Unlock()
	if r.metrics.shown.names[rt.id] {
		r.metrics.repeated.With(rt.id).Inc()
	}
}

// measureJob counts a run of a job.
func (r *Runtime) measureJob(job, outcome string, took time.Duration) {
	r.metrics.jobRuns.With(job, outcome).Inc()
	r.metrics.jobDuration.With(job).Observe(took.Seconds())
}

// attachMetrics prepares the metrics of each route of the next active bundle, and removes those of routes
// that it does not have.
func (r *Runtime) attachMetrics(a *activeBundle) {
	names := map[string]bool{unmatchedRoute: true}
	for i := range a.routes[:len(a.routes)-len(a.jobs)] { // jobs are the last
		rt := &a.routes[i]
		names[rt.id] = true
		rt.metrics = &routeMetrics{name: rt.id}
	}
	jobNames := map[string]bool{}
	for name := range a.jobs {
		jobNames[name] = true
	}
	r.metrics.shown.mu.Lock()
	defer r.metrics.shown.mu.Unlock()
	r.metrics.shown.names = names
	r.opt.Metrics.Retain(map[string]map[string]bool{"route": names, "job_name": jobNames})
}

// addGauges adds the metrics whose values are computed when the metrics are read.
func (r *Runtime) addGauges() {
	m, st, keys := r.opt.Metrics, r.opt.Store, r.opt.Keystore
	one := func(read func() float64) func(func(string, float64)) {
		return func(set func(string, float64)) { set("", read()) }
	}
	m.Gauge("connections", "Open connections of clients.", "",
		one(func() float64 { return float64(r.front.Connections()) }))
	m.Gauge("ready", "1 if /_health/ready answers 200.", "", one(func() float64 { return truth(r.NotReady() == nil) }))
	m.Gauge("limit_counters", "Callers that rate limits count exactly.", "",
		one(func() float64 { return float64(r.limiter.Counters()) }))
	m.Gauge("sandbox_slots", "Handlers that run, wait for an instance slot, or wait for something else.", "state",
		func(set func(string, float64)) {
			running, waiting, parked := r.engine.Slots()
			set("running", float64(running))
			set("waiting", float64(waiting))
			set("parked", float64(parked))
		})
	m.Gauge("sandbox_memory_bytes", "Memory of handlers, and its limit.", "kind", func(set func(string, float64)) {
		limit, used := r.engine.Memory()
		set("used", float64(used))
		set("limit", float64(limit))
	})
	m.Gauge("live_watches", "Open watches of live routes.", "",
		one(func() float64 { return float64(r.live.Stats().Subscriptions) }))
	m.Gauge("live_queries", "Watched answers; watches with the same path, query and caller share one.", "",
		one(func() float64 { return float64(r.live.Stats().Queries) }))
	m.Gauge("live_value_bytes", "Memory of the watched answers.", "",
		one(func() float64 { return float64(r.live.Stats().Bytes) }))
	m.Gauge("store_writable", "1 if the store accepts writes.", "",
		one(func() float64 { return truth(st.Health().Writable) }))
	m.Gauge("store_sequence", "Number of the newest commit.", "",
		one(func() float64 { return float64(st.Health().Applied) }))
	m.Gauge("store_queue", "Transactions that wait to be committed.", "",
		one(func() float64 { return float64(st.Health().Waiting) }))
	m.Gauge("jobs", "Jobs that wait and run, in the whole cluster; waiting jobs are missing until they are counted.",
		"state", func(set func(string, float64)) {
			waiting, running := r.jobs.queue.Counts()
			if waiting >= 0 {
				set("waiting", float64(waiting))
			}
			set("running", float64(running))
		})
	byState := func(counts func() map[keystore.Status]int) func(func(string, float64)) {
		return func(set func(string, float64)) {
			for state, n := range counts() {
				set(string(state), float64(n))
			}
		}
	}
	m.Gauge("keys", "API keys by state.", "state", byState(func() map[keystore.Status]int { return keys.Counts().Keys }))
	m.Gauge("sessions", "Sessions by state.", "state", byState(func() map[keystore.Status]int {
		return keys.Counts().Sessions
	}))
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
