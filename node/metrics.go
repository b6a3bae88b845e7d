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
	"runner.example/internal/system/disk"
	"runner.example/internal/telemetry"
	"runner.example/internal/version"
	"runner.example/node/admin"
	"runner.example/node/backup"
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

// addGauges adds the metrics of the node whose values are computed when the metrics are read.
func (n *Node) addGauges() {
	m, local := n.Local.Metrics, n.Local
	v := version.Read()
	m.Gauges("build_info", "1, with the version of the runner, the commit that it was built from, and the version of Go.",
		func(set func(float64, ...string)) { set(1, v.Version, v.Commit, v.Go) }, "version", "commit", "goversion")
	m.Gauge("disk_bytes", "Space of the file system of the data directory: its size, and what is free for the server.", "kind",
		func(set func(string, float64)) {
			if free, total, err := disk.Space(local.Data); err == nil {
				set("size", float64(total))
				set("free", float64(free))
			}
		})
	last := func() backup.Last {
		if last := local.LastBackup(); last != nil {
			return *last
		}
		return backup.Last{Created: time.Unix(0, 0)}
	}
	m.Gauge("backup_last_success_timestamp_seconds", "Time of the last good backup of this node; 0: there was none.", "",
		func(set func(string, float64)) { set("", float64(last().Created.Unix())) })
	m.Gauge("backup_last_success_bytes", "Size of the last good backup of this node; 0: there was none.", "",
		func(set func(string, float64)) { set("", float64(last().Bytes)) })
}

// addReleaseGauge adds the metric of the release that is served.
func (n *Node) addReleaseGauge(served func() admin.ActiveRelease) {
	n.Local.Metrics.Gauge("release_activated_timestamp_seconds", "When the release that is served was activated, by its id.", "release",
		func(set func(string, float64)) {
			if now := served(); now.Since != nil {
				set(now.ID, float64(now.Since.UnixMilli())/1000)
			}
		})
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
