package telemetry

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"
)

// Options configure a logger.
type Options struct {
	// Level is the lowest level that is written: debug, info, warn or error.
	Level slog.Level `toml:"telemetry.level" default:"info" oneof:"debug|info|warn|error"`
	// Format is json, one object a line, or text, key=value pairs.
	Format string `toml:"telemetry.format" default:"json" oneof:"json|text"`
	// Queue is how much of the log may wait in memory while its reader is slow. Further
	// lines are discarded; a later line says how many.
	Queue int `toml:"telemetry.queue" unit:"size" default:"1mb" min:"64kb" max:"1gb"`
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
	handler := &slog.HandlerOptions{Level: opt.Level, ReplaceAttr: replace}
	out, ok := w.(*Redactor)
	if !ok {
		out = NewRedactor(w, nil)
	}
	if opt.Format == "text" {
		return slog.New(slog.NewTextHandler(out, handler))
	}
	return slog.New(slog.NewJSONHandler(out, handler))
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
