package runtime

import "runner.example/runtime/limit"

// takePublic counts a request of a tenant's caller to a public host that the schema does not list, and reports
// whether it may be sent. Callers without a tenant count together: an app without tenants could otherwise be made to
// send as many requests as its callers have addresses.
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
