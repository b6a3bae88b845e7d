package runtime

import (
	"time"

	"runner.example/keystore"
)

// unmatchedRoute is the name in metrics of all requests that match no route.
const unmatchedRoute = "unmatched"

// measure counts an answered request. Without metrics it does nothing.
func (r *Runtime) measure(s *requestState, status int, took time.Duration) {
	m := r.unmatched
	if s.route != nil {
		m = s.route.metrics
	}
	m.Request(status, took, s.call.Spent.Time, s.call.Spent.Fuel)
}

// attachMetrics gives each route of the next active bundle its metrics, and removes those of routes
// that it does not have.
func (r *Runtime) attachMetrics(a *active) {
	names := map[string]bool{unmatchedRoute: true}
	for i := range a.routes[:len(a.routes)-len(a.jobs)] { // jobs are the last
		rt := &a.routes[i]
		names[rt.id] = true
		rt.metrics = r.opt.Metrics.Route(rt.id)
	}
	jobNames := map[string]bool{}
	for name := range a.jobs {
		jobNames[name] = true
	}
	r.opt.Metrics.Retain(names, jobNames)
}

// addGauges adds the metrics whose values are computed when the metrics are read.
func (r *Runtime) addGauges() {
	m, st, keys := r.opt.Metrics, r.opt.Store, r.opt.Keystore
	one := func(read func() float64) func(func(string, float64)) {
		return func(set func(string, float64)) { set("", read()) }
	}
	m.Gauge("connections", "Open connections of clients.", "", one(func() float64 { return float64(r.front.Connections()) }))
	m.Gauge("ready", "1 if /_health/ready answers 200.", "", one(func() float64 { return truth(r.NotReady() == nil) }))
	m.Gauge("limit_counters", "Callers that rate limits count exactly.", "", one(func() float64 { return float64(r.limiter.Counters()) }))
	m.Gauge("sandbox_slots", "Handlers that run, wait for an instance slot, or wait for something else.", "state", func(set func(string, float64)) {
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
	m.Gauge("store_writable", "1 if the store accepts writes.", "", one(func() float64 { return truth(st.Health().Writable) }))
	m.Gauge("store_sequence", "Number of the newest commit.", "", one(func() float64 { return float64(st.Health().Applied) }))
	m.Gauge("store_queue", "Transactions that wait to be committed.", "", one(func() float64 { return float64(st.Health().Waiting) }))
	m.Gauge("jobs", "Jobs that wait and run, in the whole cluster; waiting jobs are missing until they are counted.", "state", func(set func(string, float64)) {
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
	m.Gauge("sessions", "Sessions by state.", "state", byState(func() map[keystore.Status]int { return keys.Counts().Sessions }))
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
