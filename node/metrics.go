package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"runner.example/internal/connlimit"
	"runner.example/internal/telemetry"
)

// metricsTimeout limits the time of one reading of the metrics.
const metricsTimeout = 10 * time.Second

// maxMetricsConns limits the connections of those who read the metrics.
const maxMetricsConns = 32

// metricsServer answers GET /metrics on its own address.
type metricsServer struct {
	url   string
	http  http.Server
	ended chan error
}

// serveMetrics serves the metrics on address until close.
func serveMetrics(address string, m *telemetry.Metrics, logger *slog.Logger) (*metricsServer, error) {
	ln, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen on %s, set by [metrics] listen: %w", address, err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", m.Handler())
	s := &metricsServer{url: "http://" + ln.Addr().String() + "/metrics", ended: make(chan error, 1)}
	s.http = http.Server{
		Handler: mux, ReadTimeout: metricsTimeout, WriteTimeout: metricsTimeout, IdleTimeout: time.Minute,
		MaxHeaderBytes: 16 << 10, ErrorLog: slog.NewLogLogger(logger.Handler(), slog.LevelDebug),
	}
	go func() { s.ended <- s.http.Serve(connlimit.Listen(ln, maxMetricsConns, "metrics", logger)) }()
	logger.Info("metrics served", "url", s.url)
	return s, nil
}

// close stops the server after the requests in flight.
func (s *metricsServer) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	if err := s.http.Shutdown(ctx); err != nil {
		_ = s.http.Close()
	}
	if err := <-s.ended; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve the metrics: %w", err)
	}
	return nil
}
