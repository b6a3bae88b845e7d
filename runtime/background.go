package runtime

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"runner.example/internal/clock"
	"runner.example/internal/diag"
	"runner.example/runtime/assets"
	"runner.example/state/entity/catalog"
	"runner.example/state/jobs"
	"runner.example/state/store"
	"runner.example/state/webhook"
)

// progressEvery is the time between two log lines about an index build.
const progressEvery = 5 * time.Second

// startBackground starts the background tasks of the active bundle: it refreshes the provider's keys,
// warns about orphaned keys, and builds indexes.
func (r *Runtime) startBackground(a *activeBundle, sources []diag.Source) {
	ctx, cancel := context.WithCancel(r.serving)
	a.stopBackground = cancel
	if a.tokens != nil {
		r.background.Go(func() { a.tokens.Run(ctx) })
	}
	if len(a.sites) > 0 && r.opt.Compressed != nil && r.opt.Tools == nil {
		r.background.Go(func() {
			var sites []*assets.Site
			for _, i := range a.sites {
				sites = append(sites, a.routes[i].site)
			}
			r.opt.Compressed.Fill(ctx, sites)
		})
	}
	r.background.Go(func() {
		var place diag.Span
		if len(sources) > 0 {
			place.File = sources[0].Name
		}
		orphaned, err := r.opt.Keystore.OrphanedKeys(ctx, a.schema, place)
		if err != nil && ctx.Err() == nil {
			r.opt.Logger.Error("key check failed", "cause", err)
		}
		for _, line := range orphaned.Excerpt().Lines() {
			r.opt.Logger.Warn("schema warning", "diagnostic", line)
		}
		if err := a.host.Entities.BuildIndexes(ctx, r.logProgress()); err != nil && ctx.Err() == nil {
			r.opt.Logger.Error("index build failed; queries fall back to scans", "cause", err)
		}
	})
}

// sweepDeliveries deletes expired webhook deliveries from the store until ctx ends.
func (r *Runtime) sweepDeliveries(ctx context.Context) {
	r.sweep(ctx, webhook.SweepEvery, webhook.Sweep, func(level slog.Level, err error) {
		r.opt.Logger.Log(ctx, level, "delivery sweep failed", "cause", err)
	})
}

// sweepJobs deletes expired jobs from the store until ctx ends.
func (r *Runtime) sweepJobs(ctx context.Context) {
	r.sweep(ctx, jobs.SweepEvery, jobs.Sweep, func(level slog.Level, err error) {
		r.opt.Logger.Log(ctx, level, "job sweep failed", "cause", err)
	})
}

// sweep calls do at once and then at an interval, until ctx ends. failed logs its errors: at the level debug
// those that are conflicts with other transactions, after which the next call does the work.
func (r *Runtime) sweep(ctx context.Context, every time.Duration,
	do func(context.Context, *store.Store, time.Time) error, failed func(slog.Level, error)) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		if err := do(ctx, r.opt.Store, r.opt.Keystore.Now()); err != nil && ctx.Err() == nil {
			level := slog.LevelError
			if errors.Is(err, store.ErrConflict) {
				level = slog.LevelDebug
			}
			failed(level, err)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// logProgress returns a function that logs the progress of index builds, at most once in
// progressEvery.
func (r *Runtime) logProgress() func(catalog.Progress) {
	next := clock.In(progressEvery)
	return func(p catalog.Progress) {
		if now := clock.Mark(); p.Done || now.After(next) {
			next = now.Add(progressEvery)
			r.opt.Logger.Info("index build", slog.String("entity", p.Entity), slog.String("fields", p.Fields),
				slog.Int("rows", p.Rows), slog.Int("of", p.Total), slog.Bool("done", p.Done))
		}
	}
}
