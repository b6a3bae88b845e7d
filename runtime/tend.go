package runtime

import (
	"context"
	"log/slog"
	"time"

	"runner.example/entity"
	"runner.example/internal/diag"
	"runner.example/webhook"
)

// progressEvery is how often the log tells how far the building of indexes is.
const progressEvery = 5 * time.Second

// tend does for a new release what need not be done before it serves: it builds
// its indexes and warns of orphaned keys.
func (r *Runtime) tend(rel *release, sources []diag.Source) {
	ctx, cancel := context.WithCancel(r.serving)
	rel.tending = cancel
	if rel.tokens != nil {
		r.running.Go(func() { rel.tokens.Run(ctx) })
	}
	r.running.Go(func() {
		var place diag.Span
		if len(sources) > 0 {
			place.File = sources[0].Name
		}
		orphaned, err := r.opt.Keystore.OrphanedKeys(ctx, rel.schema, place)
		if err != nil && ctx.Err() == nil {
			r.opt.Logger.Error("compare keys with the schema", "cause", err)
		}
		for _, d := range orphaned {
			r.opt.Logger.Warn("schema", "about", d.String())
		}
		if err := rel.host.Entities.BuildIndexes(ctx, r.tellProgress()); err != nil && ctx.Err() == nil {
			r.opt.Logger.Error("build indexes: queries do without them until the next start", "cause", err)
		}
	})
}

// forgetDeliveries keeps the store free of deliveries that nobody asks for any more,
// until ctx ends.
func (r *Runtime) forgetDeliveries(ctx context.Context) {
	ticker := time.NewTicker(webhook.SweepEvery)
	defer ticker.Stop()
	for {
		if err := webhook.Sweep(ctx, r.opt.Store, r.opt.Keystore.Now()); err != nil && ctx.Err() == nil {
			r.opt.Logger.Error("forget old deliveries", "cause", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// tellProgress logs what it is told, seldom.
func (r *Runtime) tellProgress() func(entity.Progress) {
	next := time.Now().Add(progressEvery)
	return func(p entity.Progress) {
		if now := time.Now(); p.Done || now.After(next) {
			next = now.Add(progressEvery)
			r.opt.Logger.Info("building an index", slog.String("entity", p.Entity), slog.String("fields", p.Fields),
				slog.Int("rows", p.Rows), slog.Int("of", p.Total), slog.Bool("done", p.Done))
		}
	}
}
