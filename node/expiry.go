package node

import (
	"context"
	"crypto/tls"
	"log/slog"
	"sync"
	"time"

	"runner.example/internal/clock"
	"runner.example/internal/telemetry"
	"runner.example/internal/wait"
)

const (
	// warnExpiry is how long before its end a certificate is logged.
	warnExpiry = 14 * 24 * time.Hour
	// expiryPause is the time between two looks at the certificates.
	expiryPause = 24 * time.Hour
)

// The listeners that have a certificate: values of a label.
const (
	frontListener = "front"
	adminListener = "admin"
)

// Expiry watches when the certificates of the listeners expire. Any goroutine may call its methods.
type Expiry struct {
	logger *slog.Logger
	now    clock.Calendar

	mu       sync.Mutex
	notAfter map[string]time.Time // by listener
}

// NewExpiry returns an Expiry of no certificates, with a metric of those that it gets.
func NewExpiry(logger *slog.Logger, now clock.Calendar, metrics *telemetry.Metrics) *Expiry {
	e := &Expiry{logger: logger, now: now, notAfter: map[string]time.Time{}}
	metrics.Gauge("certificate_expiry_seconds", "Seconds until the certificate of a listener expires; negative after that.",
		"listener", func(set func(string, float64)) {
			e.each(func(listener string, _ time.Time, left time.Duration) { set(listener, left.Seconds()) })
		})
	return e
}

// Set takes the certificate that the listener shows from now on; nil is ignored.
func (e *Expiry) Set(listener string, c *tls.Certificate) {
	if c == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.notAfter[listener] = c.Leaf.NotAfter
}

// Run logs certificates that have expired or expire soon: at once, and then each day until ctx ends.
func (e *Expiry) Run(ctx context.Context) {
	for {
		e.Warn()
		if wait.For(ctx, expiryPause) != nil {
			return
		}
	}
}

// Warn logs certificates that have expired or expire soon.
func (e *Expiry) Warn() {
	e.each(func(listener string, notAfter time.Time, left time.Duration) {
		switch {
		case left < 0:
			e.logger.Error("certificate expired", "listener", listener, "expired", notAfter)
		case left < warnExpiry:
			e.logger.Warn("certificate expires soon", "listener", listener, "expires", notAfter, "days", int(left/(24*time.Hour)))
		}
	})
}

func (e *Expiry) each(do func(listener string, notAfter time.Time, left time.Duration)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := e.now()
	for _, listener := range []string{frontListener, adminListener} {
		if notAfter, ok := e.notAfter[listener]; ok {
			do(listener, notAfter, notAfter.Sub(now))
		}
	}
}
