package telemetry

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"runner.example/internal/netaddr"
)

// Options configure a logger.
type Options struct {
	// Level is the lowest level that is written: debug, info, warn or error.
	Level slog.Level `toml:"telemetry.level" default:"info" oneof:"debug|info|warn|error" reload:"true"`
	// Format is json, one object a line, or text, key=value pairs.
	Format string `toml:"telemetry.format" default:"json" oneof:"json|text" reload:"true"`
	// Queue is how much of the log may wait in memory while its reader is slow. Further
	// lines are discarded; a later line says how many.
	Queue int `toml:"telemetry.queue" unit:"size" default:"1mb" min:"64kb" max:"1gb" reload:"true"`
	// MetricsListen is the address of the metrics for Prometheus, host:port, at the path
	// /metrics. They need no credentials: keep it on loopback or a private network. Empty:
	// nothing is measured.
	MetricsListen string `toml:"metrics.listen"`
}

// CheckSetting checks the address of the metrics.
func (o *Options) CheckSetting(key, value string) error {
	if key != "metrics.listen" || value == "" {
		return nil
	}
	return netaddr.CheckListen(value, "127.0.0.1:9090")
}

// Validate returns an error for an unknown format.
func (o Options) Validate() error {
	switch o.Format {
	case "", "json", "text":
		return nil
	}
	return fmt.Errorf(`log format %q: use "json" or "text"`, o.Format)
}

// NewLogger returns the logger of a process, which writes whole redacted lines to w. If w is
// a Redactor, it redacts them. Times are UTC with milliseconds. An unknown format, which
// Validate refuses, is JSON.
func NewLogger(w io.Writer, opt Options) *slog.Logger {
	out, ok := w.(*Redactor)
	if !ok {
		out = NewRedactor(w, nil)
	}
	form := &form{}
	options := &slog.HandlerOptions{Level: &form.level, ReplaceAttr: replace}
	form.set(opt)
	return slog.New(&handler{form, slog.NewJSONHandler(out, options), slog.NewTextHandler(out, options)})
}

// Configure sets the level and format of a logger of NewLogger and of all loggers derived
// from it. It may be called by any goroutine.
func Configure(logger *slog.Logger, opt Options) { logger.Handler().(*handler).form.set(opt) }

// form is the level and the format of a logger.
type form struct {
	level slog.LevelVar
	text  atomic.Bool
}

func (f *form) set(opt Options) {
	f.level.Set(opt.Level)
	f.text.Store(opt.Format == "text")
}

// handler writes records in the present format.
type handler struct {
	form       *form
	json, text slog.Handler
}

// Enabled implements slog.Handler.
func (h *handler) Enabled(_ context.Context, level slog.Level) bool {
	return level >= h.form.level.Level()
}

// Handle implements slog.Handler.
func (h *handler) Handle(ctx context.Context, r slog.Record) error {
	if h.form.text.Load() {
		return h.text.Handle(ctx, r)
	}
	return h.json.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &handler{h.form, h.json.WithAttrs(attrs), h.text.WithAttrs(attrs)}
}

// WithGroup implements slog.Handler.
func (h *handler) WithGroup(name string) slog.Handler {
	return &handler{h.form, h.json.WithGroup(name), h.text.WithGroup(name)}
}

// Line returns one line as a logger with these options writes it, at any level.
func (o Options) Line(level slog.Level, text string, args ...any) []byte {
	var line bytes.Buffer
	o.Level = level
	NewLogger(&line, o).Log(context.Background(), level, text, args...)
	return line.Bytes()
}

// secretNames are the names of attributes, in any case, that are never written.
var secretNames = [...]string{
	"authorization", "proxy-authorization", "cookie", "set-cookie", "x-api-key", "token", "password", "pepper",
}

func isSecretName(name string) bool {
	for _, secret := range secretNames {
		if strings.EqualFold(name, secret) {
			return true
		}
	}
	return false
}

// replace formats times as the rest of the runner does, and hides attributes with secret
// names. A level becomes its text, which the JSON handler would have encoding/json make.
func replace(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindTime {
		a.Value = slog.StringValue(a.Value.Time().UTC().Format("2006-01-02T15:04:05.000Z07:00"))
		return a
	}
	if isSecretName(a.Key) && a.Value.Kind() != slog.KindGroup {
		a.Value = slog.StringValue(hidden)
	}
	switch a.Value.Kind() {
	case slog.KindDuration:
		a.Value = slog.StringValue(a.Value.Duration().Round(time.Microsecond).String())
	case slog.KindAny:
		if level, ok := a.Value.Any().(slog.Level); ok {
			a.Value = slog.StringValue(level.String())
		}
	}
	return a
}
