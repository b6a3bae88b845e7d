package runtime

import "runner.example/runtime/limit"

// takePublic counts a request to a public host that the schema does not list, by the caller's tenant, and reports
// whether the request may be sent. Callers without a tenant share one budget. With a budget for each address, a client
// with many addresses could make the app send an unlimited number of requests.
func (r *Runtime) takePublic(l *limit.Limit, tenant string) bool {
	name := ""
	if tenant != "" {
		name = "t" + tenant
	}
	use := [1]limit.Use{{Limit: l, Caller: []byte(name)}}
	if !r.limiter.Take(r.opt.Calendar(), use[:]) {
		r.metrics.publicRefused.Inc()
		return false
	}
	r.metrics.publicSent.Inc()
	return true
}
