package node

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"runner.example/app"
	"runner.example/internal/console"
	"runner.example/runtime"
)

// ReloadOnSignal reloads the app at each SIGHUP, until end is called. Reloads have their own
// goroutine, so a slow one does not delay a shutdown.
func ReloadOnSignal(ctx context.Context, a *app.App, rt *runtime.Runtime, logger *slog.Logger) (end func()) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGHUP)
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() {
		for {
			select {
			case <-signals:
				reload(ctx, a, rt, logger)
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

// reload activates the present content of the app directory.
func reload(ctx context.Context, a *app.App, rt *runtime.Runtime, logger *slog.Logger) {
	latest, err := a.Read()
	if err == nil {
		err = latest.Activate(ctx, rt)
	}
	if m, ok := errors.AsType[*console.Problems](err); ok {
		for _, d := range m.List.Sorted() {
			logger.Error("reload failed", "diagnostic", d.String())
		}
	}
	if err != nil {
		logger.Error("reload failed; previous release kept", "cause", err)
		return
	}
	logger.Info("reloaded", "routes", len(latest.Schema.Routes), "modules", len(latest.Modules))
}
