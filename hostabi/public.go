package hostabi

import (
	"context"
	"log/slog"
	"math"

	"runner.example/hostabi/outbound"
	"runner.example/internal/fault"
)

// publicBytes is the size of a log line of logPublic without its values.
const publicBytes = len(
	`{"time":"2006-01-02T15:04:05.000Z","level":"WARN","msg":"public request refused","requestId":"","host":"","tenant":""}` + "\n")

var errPublicRate = fault.New(fault.Limit,
	"the callers of this tenant have sent too many requests to public hosts: try again in a minute, or raise [outbound] public_rate")

// admitPublic counts and logs a request to a public host, and refuses it beyond the tenant's rate. It admits all
// requests to declared origins.
func (c *Call) admitPublic(r *outbound.Request) error {
	host := r.PublicHost()
	if host == "" {
		return nil
	}
	take := c.Host.TakePublic
	refused := take != nil && !take(c.Caller.Tenant)
	c.logPublic(host, refused)
	if refused {
		return errPublicRate
	}
	return nil
}

// logPublic logs a request to a public host, within the run's log budget.
func (c *Call) logPublic(host string, refused bool) {
	_, size := fits([]byte(host+c.Caller.Tenant), math.MaxInt)
	if !c.log.admit(c.limits, publicBytes+traceBytes+len(c.Request.ID)+size) {
		return
	}
	attrs := []slog.Attr{c.Request.LogID(), slog.String("host", host)}
	if c.Caller.Tenant != "" {
		attrs = append(attrs, slog.String("tenant", c.Caller.Tenant))
	}
	if refused {
		c.Host.Logger.LogAttrs(context.Background(), slog.LevelWarn, "public request refused", attrs...)
		return
	}
	c.Host.Logger.LogAttrs(context.Background(), slog.LevelInfo, "public request sent", attrs...)
}
