package runtime

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"runner.example/hostabi/abi"
	"runner.example/internal/caller"
	"runner.example/internal/clock"
	"runner.example/internal/fault"
	"runner.example/internal/ids"
	"runner.example/internal/telemetry"
	"runner.example/internal/wait"
	"runner.example/schema"
	"runner.example/state/jobs"
	"runner.example/state/store"
)

// jobRunner claims jobs, and runs them.
type jobRunner struct {
	queue *jobs.Queue
	runs  sync.Pool // of *invocation

	mu      sync.Mutex
	started bool
	cancel  context.CancelFunc // ends claiming; nil before it began
	stopped bool
	ended   chan struct{} // closed when claiming and all runs have ended
}

func openJobs(opt Options) (*jobs.Queue, error) {
	o := opt.Jobs
	o.Now, o.Timeout, o.Logger, o.Metrics = opt.Keystore.Now, opt.Timeout, opt.Logger, opt.Metrics
	return jobs.Open(context.Background(), opt.Store, o)
}

// startJobs claims the jobs of a schema from now on.
func (r *Runtime) startJobs(s *schema.Schema) {
	r.jobs.queue.SetSchema(s)
	r.jobs.mu.Lock()
	defer r.jobs.mu.Unlock()
	if r.jobs.started || r.jobs.stopped {
		return
	}
	ctx, cancel := context.WithCancel(r.serving)
	r.jobs.started, r.jobs.cancel, r.jobs.ended = true, cancel, make(chan struct{})
	r.background.Go(func() {
		defer close(r.jobs.ended)
		r.jobs.queue.Run(ctx, r.runJob)
	})
	r.background.Go(func() {
		if err := r.jobs.queue.Count(ctx); err != nil && ctx.Err() == nil {
			r.opt.Logger.Error("jobs not counted", "cause", err)
		}
	})
}

// stop ends claiming.
func (j *jobRunner) stop() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.stopped = true
	if j.cancel != nil {
		j.cancel()
	}
}

// wait waits until all runs have ended, or returns the error of ctx.
func (j *jobRunner) wait(ctx context.Context) error {
	j.mu.Lock()
	ended := j.ended
	j.mu.Unlock()
	if ended == nil {
		return nil
	}
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// jobRun is one run of a job.
type jobRun struct {
	*jobs.Claimed
	requestID string
	declared  *schema.Job // in the release that ran it
	failure   string      // why the handler failed; empty: it did not
	// failed is the job after a failure that was written with the writes of the run.
	failed *jobs.Job
}

// errNotDeclared ends the run of a job that the active release does not declare.
var errNotDeclared = errors.New("the active release does not declare the job")

// releasedPause is how long a job waits that could not start, or that a shutdown stopped.
const releasedPause = time.Second

const (
	// recordTimeout limits the time of one attempt to record how a run has ended, recordPause is the time
	// between two.
	recordTimeout = 5 * time.Second
	recordPause   = time.Second
)

// runJob runs a claimed job, and records how that ended.
func (r *Runtime) runJob(c *jobs.Claimed) {
	started := clock.Mark()
	run := &jobRun{Claimed: c, requestID: ids.New(r.opt.Calendar()), declared: c.Declared}
	inv := r.jobs.runs.Get().(*invocation)
	inv.begin()
	defer func() {
		inv.end()
		r.jobs.runs.Put(inv)
	}()
	ctx, stop := context.WithCancel(r.serving)
	defer stop()
	defer context.AfterFunc(c.Lost(), stop)()
	err := r.invokeJob(ctx, run, inv)
	if err == errSent {
		err = sentConflict(inv.call.Sent())
	}
	outcome, why := r.recordRun(run, inv, err)
	took := time.Since(started)
	r.measureJob(c.Name, outcome, took)
	r.logRun(run, inv, outcome, why, took)
}

// invokeJob runs the handler of a job in a transaction that has its completion, until ctx ends.
func (r *Runtime) invokeJob(ctx context.Context, run *jobRun, inv *invocation) (err error) {
	defer func() { // as package front does for a request
		if p := recover(); p != nil {
			r.opt.Logger.Error("panic while running a job", "jobId", run.ID, "cause", fmt.Sprint(p),
				"stack", string(debug.Stack()))
			err = fault.Wrap(fmt.Errorf("panic: %v", p), fault.HandlerFailed, "the server failed while it ran the handler")
		}
	}()
	return r.onActive(func(a *activeBundle, _ int) error { return r.invokeJobOn(ctx, a, run, inv) })
}

func (r *Runtime) invokeJobOn(ctx context.Context, a *activeBundle, run *jobRun, inv *invocation) error {
	i, ok := a.jobs[run.Name]
	if !ok {
		return errNotDeclared
	}
	rt := &a.routes[i]
	run.declared = a.schema.Job(run.Name)
	actor, err := run.Actor(run.declared, a.schema)
	if err != nil {
		return fmt.Errorf("read who enqueued the job: %w", err)
	}
	inv.input = jobInput(run, rt, &actor)
	inv.input.beforeRun = run.Begin
	inv.input.afterRun = func(tx *store.Tx) (err error) {
		if got := &inv.call.Response; got.Status >= 400 { // the handler called keepWrites
			run.failed, err = run.Fail(tx, run.declared, answerText(got), r.opt.Keystore.Now(), r.opt.Jobs.Keep)
			return err
		}
		run.failed = nil
		return run.Complete(tx, r.opt.Keystore.Now(), r.opt.Jobs.Keep)
	}
	err = r.invoke(ctx, a, rt, inv)
	run.failure = describeFailure(a, inv)
	return err
}

// describeFailure describes the failure of a job's handler, without the secrets of the app; empty:
// it did not fail.
func describeFailure(a *activeBundle, inv *invocation) string {
	f := inv.failure
	if f == nil {
		return ""
	}
	var secrets telemetry.Values
	for _, name := range a.schema.Secrets {
		value, _ := a.host.Secrets.Get(name)
		secrets.Add(value.Reveal())
	}
	text := f.Kind
	if f.Message != "" {
		text += ": " + f.Message
	}
	for _, line := range frameLines(f)[:min(len(f.Frames), storedFrames)] {
		text += "\n    at " + line
	}
	return secrets.Hide(text)
}

// storedFrames is how many frames of a failure are stored with its job.
const storedFrames = 5

func jobInput(run *jobRun, rt *route, actor *caller.Caller) input {
	return input{
		request: &abi.Request{
			ID: run.requestID, Method: []byte(rt.Method), Path: []byte(rt.Path), Route: rt.Path,
			Headers: []abi.Pair{{Name: []byte("content-type"), Value: []byte("application/json")}},
			Job:     &abi.Job{ID: run.ID, Attempt: run.Attempt, ScheduledFor: run.ScheduledFor.String()},
		},
		body:   run.Params,
		caller: actor,
	}
}

// answerText describes an answer of 400 or above.
func answerText(got *abi.Response) string {
	text := fmt.Sprintf("the handler answered %d", got.Status)
	if got.Code != "" {
		text += " " + got.Code
	}
	if got.Detail != "" {
		text += ": " + got.Detail
	}
	return text
}

// recordRun records the end of a run, unless it was committed with its writes. It returns the outcome,
// and the cause if the job is not done.
func (r *Runtime) recordRun(run *jobRun, inv *invocation, err error) (outcome, why string) {
	switch {
	case err == nil && run.failed == nil:
		return jobDone, ""
	case err == nil:
		return outcomeOfFailure(run.failed), run.failed.Error
	case errors.Is(err, jobs.ErrLost) || run.Lost().Err() != nil:
		return jobLost, jobs.ErrLost.Error()
	case err == errNotDeclared || err == ErrNoRelease || r.serving.Err() != nil || fault.CodeOf(err) == fault.Overloaded:
		why, _ = r.record(run, err.Error(), func(tx *store.Tx) error {
			return run.Release(tx, run.declared, r.opt.Keystore.Now().Add(releasedPause))
		})
		return jobReleased, why
	case run.failure != "":
		why = run.failure
	case err == errWritesDiscarded:
		why = answerText(&inv.call.Response)
	default:
		why = reasonOf(err)
	}
	var after *jobs.Job
	text, recorded := r.record(run, why, func(tx *store.Tx) (err error) {
		after, err = run.Fail(tx, run.declared, why, r.opt.Keystore.Now(), r.opt.Jobs.Keep)
		return err
	})
	if !recorded {
		return jobLost, text
	}
	return outcomeOfFailure(after), why
}

// record writes how a run has ended. While the store is unavailable it retries, until the lease is over
// or the server stops. If the write fails, text has the cause and the error of the write, and the job runs
// again when its lease is over.
func (r *Runtime) record(run *jobRun, cause string, write func(*store.Tx) error) (text string, recorded bool) {
	for unknown := false; ; {
		err := r.recordOnce(run, write)
		if err == nil || unknown && errors.Is(err, jobs.ErrLost) {
			return cause, true
		}
		unknown = unknown || errors.Is(err, store.ErrUnknown)
		if again := unknown || errors.Is(err, store.ErrUnavailable); !again ||
			r.opt.Keystore.Now().After(run.Lease.Time()) || r.serving.Err() != nil {
			return fmt.Sprintf("%s; not recorded: %v", cause, err), false
		}
		_ = wait.For(r.serving, recordPause)
	}
}

func (r *Runtime) recordOnce(run *jobRun, write func(*store.Tx) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.serving), recordTimeout)
	defer cancel()
	_, err := r.opt.Store.Update(ctx, func(tx *store.Tx) error {
		if err := run.Begin(tx); err != nil {
			return err
		}
		return write(tx)
	})
	return err
}

func outcomeOfFailure(j *jobs.Job) string {
	if j.State == jobs.Failed {
		return jobFailed
	}
	return jobRetried
}

// reasonOf returns the text of an error for operators, who may know the cause.
func reasonOf(err error) string {
	if invalid, ok := errors.AsType[*inputError](err); ok {
		return "the parameters do not match the job in the active release: " + string(invalid.errors)
	}
	f := fault.Of(err)
	return string(f.Code) + ": " + f.Error()
}

// logRun writes the log line of a run.
func (r *Runtime) logRun(run *jobRun, inv *invocation, outcome, why string, took time.Duration) {
	level := slog.LevelInfo
	switch outcome {
	case jobFailed:
		level = slog.LevelError
	case jobRetried, jobLost:
		level = slog.LevelWarn
	}
	if level == slog.LevelInfo && !r.accessLog.Load() {
		return
	}
	attrs := []slog.Attr{
		slog.String("requestId", run.requestID), slog.String("jobId", run.ID), slog.String("job", run.Name),
		slog.Int("attempt", run.Attempt),
		slog.String("outcome", outcome), slog.Duration("took", took),
	}
	if tenant := run.Caller.Tenant; tenant != "" {
		attrs = append(attrs, slog.String("tenant", tenant))
	}
	if why, _, _ = strings.Cut(why, "\n"); why != "" { // the record of the failure has the frames
		attrs = append(attrs, slog.String("cause", why))
	}
	r.opt.Logger.LogAttrs(context.Background(), level, "job run", attrs...)
}
