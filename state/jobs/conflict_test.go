package jobs_test

import (
	"bytes"
	"context"
	"log/slog"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"runner.example/internal/telemetry"
	"runner.example/state/jobs"
	"runner.example/state/store"
	"runner.example/state/store/storetest"
)

// buffer is a log that may be written to by many.
type buffer struct {
	mu sync.Mutex
	bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.Write(p)
}

// runUntilOne runs the queue until it has claimed a job.
func runUntilOne(t *testing.T, q *jobs.Queue) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		q.Run(ctx, func(*jobs.Claimed) { stop() })
	}()
	<-ended
	if t.Context().Err() != nil {
		t.Fatal("no job was claimed")
	}
}

// TestAConflictOfAClaimIsUsual: another node changes the job each time that this node tries to claim it, until
// the transaction gives up. The claim is repeated, and that is counted and no error.
func TestAConflictOfAClaimIsUsual(t *testing.T) {
	shared := storetest.NewLog()
	w := &world{t: t, schema: compiled(t, app), clock: newClock(), stores: shared.Nodes(t, "a", "b")}
	var log buffer
	opt := w.clock.options()
	opt.Metrics = telemetry.NewMetrics()
	opt.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	q, err := jobs.Open(t.Context(), w.stores[0], opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(q.Close)
	q.SetSchema(w.schema)
	w.queues = []*jobs.Queue{q}
	w.claim(0) // writes the schedules
	e := w.enqueue(0, ada, mail("a"))
	var tries atomic.Int32
	shared.BeforeAppend(func(node string) {
		if node != "a" || tries.Add(1) > 5 {
			return
		}
		if _, err := w.stores[1].Update(t.Context(), func(tx *store.Tx) error {
			_, err := jobs.Retry(tx, w.schema, &ada, e.ID, w.clock.Now())
			return err
		}); err != nil {
			t.Error(err)
		}
	})
	runUntilOne(t, q)
	shared.BeforeAppend(nil)
	if n := tries.Load(); n != 6 {
		t.Errorf("%d transactions, want the five of one claim and another", n)
	}
	if text := log.String(); strings.Count(text, `level=DEBUG msg="jobs not claimed; trying again"`) != 1 || strings.Contains(text, "ERROR") {
		t.Errorf("the log:\n%s", text)
	}
	answer := httptest.NewRecorder()
	opt.Metrics.Handler().ServeHTTP(answer, httptest.NewRequest("GET", "/metrics", nil))
	if text := answer.Body.String(); !strings.Contains(text, "\nrunner_job_claim_conflicts_total 1\n") {
		t.Errorf("the metrics:\n%s", text)
	}
}

// TestAnErrorOfTheStoreIsLogged: it is none of the usual ones.
func TestAnErrorOfTheStoreIsLogged(t *testing.T) {
	shared := storetest.NewLog()
	w := &world{t: t, schema: compiled(t, app), clock: newClock(), stores: shared.Nodes(t, "a")}
	var log buffer
	opt := w.clock.options()
	opt.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	q, err := jobs.Open(t.Context(), w.stores[0], opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(q.Close)
	q.SetSchema(w.schema)
	w.queues = []*jobs.Queue{q}
	w.claim(0)
	w.enqueue(0, ada, mail("a"))
	shared.Refuse(store.ErrUnavailable)
	var tries atomic.Int32
	shared.BeforeAppend(func(string) {
		if tries.Add(1) == 3 {
			shared.Refuse(nil)
		}
	})
	runUntilOne(t, q)
	if text := log.String(); strings.Count(text, `level=ERROR msg="jobs not claimed; trying again"`) != 1 {
		t.Errorf("the log:\n%s", text)
	}
}
