package runner

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"runner.example/sdk/go/internal/codec"
	"runner.example/sdk/go/internal/host"
)

// Context is what a handler knows and may do beside the request itself.
type Context struct {
	// Client reaches the services of the runner.
	Client Client

	host  host.Host
	facts *facts
}

// facts is the host's context document.
type facts struct {
	RequestID string    `json:"requestId"`
	Route     string    `json:"route"`
	Deadline  time.Time `json:"deadline"`
	Auth      Auth      `json:"auth"`
	Job       *Job      `json:"job"`
}

// Auth says who calls, as the host found out; it is the only place to learn
// it: no header tells.
type Auth struct {
	// Kind is "anonymous", "session", "apiKey" or, for an operator who runs a
	// function, "system".
	Kind       string          `json:"kind"`
	UserID     string          `json:"userId"`
	Tenant     string          `json:"tenant"`
	Roles      []string        `json:"roles"`
	KeyID      string          `json:"keyId"`
	Scope      string          `json:"scope"`
	Capability string          `json:"capability"`
	Metadata   json.RawMessage `json:"metadata"`
	// Claims is what the caller's JWT claims, a JSON object; nil for every other
	// caller.
	Claims json.RawMessage `json:"claims"`
}

// RequestID is the id that stands on the answer and in the log.
func (c *Context) RequestID() string { return c.read().RequestID }

// Route is the template of the matched route: "/v1/orders/:id".
func (c *Context) Route() string { return c.read().Route }

// Deadline is when the request's time is over.
func (c *Context) Deadline() time.Time { return c.read().Deadline }

// Job is the job that the handler runs for; nil for a request.
func (c *Context) Job() *Job { return c.read().Job }

// Auth says who calls.
func (c *Context) Auth() Auth { return c.read().Auth }

// Secret gives the value of a secret that the schema declares.
func (c *Context) Secret(name string) (string, error) {
	var result struct {
		Value string `json:"value"`
	}
	err := callHost(c.host, "secret", map[string]string{"name": name}, &result)
	return result.Value, err
}

// Var gives the value of a variable that the schema declares, as a T: a string for a string, a
// url, a decimal or a rate, an integer for an int, a bool, and a time.Duration, or seconds as a
// number, for a duration.
func Var[T any](c *Context, name string) (value T, err error) {
	args := map[string]string{"name": name}
	if span, ok := any(&value).(*time.Duration); ok {
		var result struct {
			Value float64 `json:"value"`
		}
		err = callHost(c.host, "var", args, &result)
		*span = time.Duration(result.Value * float64(time.Second))
		return value, err
	}
	var result struct {
		Value T `json:"value"`
	}
	err = callHost(c.host, "var", args, &result)
	return result.Value, err
}

// Call runs an operation by its name, for what has no function here. Its arguments
// are made to JSON, its result is read of it; nil for the result leaves that with the
// host. A *HostError says why it failed.
func (c *Context) Call(op string, args, result any) error {
	return callHost(c.host, op, args, result)
}

// KeepWrites commits what this request writes whatever status it answers; by
// default a status of 400 or above drops it.
func (c *Context) KeepWrites() { c.host.KeepWrites() }

// Log writes to the server's log, under the request's id. Lines are bounded in
// number and size for each request.
func (c *Context) Log() *slog.Logger { return slog.New(logHandler{host: c.host}) }

func (c *Context) read() *facts {
	if c.facts == nil {
		c.facts = new(facts)
		if err := codec.Unmarshal(c.host.Context(), c.facts); err != nil {
			panic("runner: read the request's context: " + err.Error())
		}
	}
	return c.facts
}

// logHandler turns records into the host's log lines: message key=value.
type logHandler struct {
	host  host.Host
	attrs []slog.Attr
	group string
}

func (logHandler) Enabled(context.Context, slog.Level) bool { return true }

func (h logHandler) Handle(_ context.Context, record slog.Record) error {
	var line bytes.Buffer
	text := slog.NewTextHandler(&line,
		&slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: onlyAttrs}).WithAttrs(h.attrs)
	if h.group != "" {
		text = text.WithGroup(h.group)
	}
	if err := text.Handle(context.Background(), record); err != nil {
		return err
	}
	message := record.Message
	if rest := bytes.TrimSpace(line.Bytes()); len(rest) > 0 {
		message += " " + string(rest)
	}
	h.host.Log(level(record.Level), message)
	return nil
}

func (h logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	h.attrs = append(h.attrs[:len(h.attrs):len(h.attrs)], attrs...)
	return h
}

func (h logHandler) WithGroup(name string) slog.Handler {
	h.group = name
	return h
}

// onlyAttrs leaves out what the host writes itself.
func onlyAttrs(groups []string, a slog.Attr) slog.Attr {
	if len(groups) == 0 && (a.Key == slog.TimeKey || a.Key == slog.LevelKey || a.Key == slog.MessageKey) {
		return slog.Attr{}
	}
	return a
}

// level is the ABI's number of a level.
func level(l slog.Level) int {
	switch {
	case l < slog.LevelInfo:
		return 0
	case l < slog.LevelWarn:
		return 1
	case l < slog.LevelError:
		return 2
	}
	return 3
}
