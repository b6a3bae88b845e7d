package node

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"

	"runner.example/admin"
	"runner.example/app"
	"runner.example/internal/console"
	"runner.example/internal/fault"
	"runner.example/internal/telemetry"
	"runner.example/runtime"
)

// Reloader reloads the app of a running server: the schema, the modules, the secrets, and the
// settings that need no restart. A reload applies all of it or nothing.
type Reloader struct {
	read      func() (*app.App, error)
	runtime   *runtime.Runtime
	logger    *slog.Logger
	configure func(telemetry.Options)

	mu      sync.Mutex // held during a reload
	app     *app.App   // with the settings in force
	content *app.Content
}

// NewReloader returns a reloader for a server that serves content with the settings of a.
// read reads the configuration again; configure gives the log new options.
func NewReloader(a *app.App, content *app.Content, rt *runtime.Runtime, logger *slog.Logger, read func() (*app.App, error), configure func(telemetry.Options)) *Reloader {
	return &Reloader{read: read, runtime: rt, logger: logger, configure: configure, app: a, content: content}
}

// OnSignal reloads at each SIGHUP, until end is called. Reloads have their own goroutine, so
// a slow one does not delay a shutdown.
func (r *Reloader) OnSignal(ctx context.Context) (end func()) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGHUP)
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() {
		for {
			select {
			case <-signals:
				_, _ = r.Reload(ctx) // it logs the result
			case <-ctx.Done():
				return
			}
		}
	})
	return func() {
		cancel()
		running.Wait()
	}
}

// Reload activates the present content of the app directory, takes the present settings, and
// logs the result. After an error the previous release and its settings stay in force. One
// reload runs at a time; others wait.
func (r *Reloader) Reload(ctx context.Context) (*admin.Reloaded, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	done, err := r.reload(ctx)
	if err != nil {
		for _, part := range console.Parts(err) {
			if p, ok := errors.AsType[*console.Problems](part); ok {
				for _, d := range p.List.Sorted() {
					r.logger.Error("reload failed", "diagnostic", d.String())
				}
			}
		}
		r.logger.Error("reload failed; previous release kept", "cause", err)
		return nil, err
	}
	r.logger.Info("reloaded", "routes", done.Routes, "modules", done.Modules, "changed", done.Changed)
	return done, nil
}

func (r *Reloader) reload(ctx context.Context) (*admin.Reloaded, error) {
	next, err := r.read()
	if err != nil {
		return nil, err
	}
	latest, err := next.Read() // reports the problems of the configuration too
	var settings []string
	if !next.Problems.HasErrors() {
		var refused error
		settings, refused = r.changedSettings(next)
		err = errors.Join(refused, err)
	}
	if err != nil {
		return nil, err
	}
	if err := latest.Activate(ctx, r.runtime); err != nil {
		return nil, err
	}
	// Nothing may fail any more.
	r.runtime.Reconfigure(next.Config.Runtime)
	r.configure(next.Config.Telemetry)
	changed := append(changedContent(r.content, latest), settings...)
	before, after := r.app.Config.Runtime.Front.Certificate, next.Config.Runtime.Front.Certificate
	if after != nil && !slices.EqualFunc(before.Certificate, after.Certificate, bytes.Equal) {
		changed = append(changed, "the TLS certificate")
	}
	r.app, r.content = next, latest
	return &admin.Reloaded{Changed: changed, Routes: len(latest.Schema.Routes), Modules: len(latest.Modules)}, nil
}

// changedSettings names the settings that differ and need no restart. The error names those that
// need one.
func (r *Reloader) changedSettings(next *app.App) (changed []string, err error) {
	changed, restart := r.app.Config.Changes(next.Config)
	if next.Data != r.app.Data && !slices.Contains(restart, "[store] dir") {
		restart = append(restart, "[store] dir")
	}
	if (r.app.Config.Runtime.Front.Certificate == nil) != (next.Config.Runtime.Front.Certificate == nil) {
		restart = append(restart, "[front] tls_cert")
	}
	if len(restart) > 0 {
		return nil, fault.New(fault.Invalid, "changed settings need a restart: %s", strings.Join(restart, ", "))
	}
	return changed, nil
}

// changedContent names the files and the secrets that differ.
func changedContent(before, after *app.Content) []string {
	old, now := digests(before), digests(after)
	changed := []string{}
	for name, sum := range now {
		if was, ok := old[name]; !ok {
			changed = append(changed, name+" (new)")
		} else if was != sum {
			changed = append(changed, name)
		}
	}
	for name := range old {
		if _, ok := now[name]; !ok {
			changed = append(changed, name+" (removed)")
		}
	}
	slices.Sort(changed)
	return changed
}

func digests(c *app.Content) map[string][sha256.Size]byte {
	all := map[string][sha256.Size]byte{}
	for _, s := range c.Sources {
		all[s.Name] = sha256.Sum256(s.Text)
	}
	for _, m := range c.Modules {
		all[m.Name] = sha256.Sum256(m.Wasm)
	}
	for _, name := range c.Schema.Secrets {
		if value, ok := c.Secrets.Get(name); ok {
			all[fmt.Sprintf("secret %s", name)] = sha256.Sum256([]byte(value.Reveal()))
		}
	}
	return all
}
