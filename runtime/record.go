package runtime

import (
	"encoding/hex"

	"runner.example/hostabi/recording"
	"runner.example/internal/fault"
	"runner.example/runtime/front"
	"runner.example/state/store"
)

// recorder records the runs of an invocation. It is kept with it.
type recorder struct {
	events  recording.Recorder
	draws   recording.Draws
	records bool // the runs of this request
	sampled bool // they are kept even if they do not fail
	commit  uint64
}

// startRecording makes the runs of an invocation recorded, if the settings say so.
func (r *Runtime) startRecording(inv *invocation) {
	rec := &inv.recorder
	rec.records, rec.sampled = r.opt.Recorded.Records()
	if r.fork != nil {
		rec.records, rec.draws.Seeds = true, r.fork.Seeds
	}
	inv.call.Recorder, inv.call.Draws, rec.commit = nil, nil, 0
	if rec.records {
		inv.call.Recorder, inv.call.Draws = &rec.events, &rec.draws
	}
}

// noteCommit notes what a failed run has seen of the store. It is called in the transaction of the run.
func (inv *invocation) noteCommit(tx *store.Tx, err error) {
	if !inv.recorder.records || err == nil && inv.call.Response.Status < 500 {
		return
	}
	if seq, err := tx.Snapshot(); err == nil {
		inv.recorder.commit = uint64(seq)
	}
}

// keepRecording keeps what the last run of an invocation did, if it failed or is a sample. err is the error of the
// invocation.
func (r *Runtime) keepRecording(a *activeBundle, rt *route, inv *invocation, err error) {
	rec := &inv.recorder
	if !rec.records {
		return
	}
	failed := inv.hasFailed(err)
	if r.fork == nil && !rec.sampled && !(failed && r.opt.Recorded.KeepsFailures()) {
		return
	}
	in, call, sum := &inv.input, &inv.call, rt.module.Sum()
	kept := &recording.Recording{
		Format: recording.Format, ID: in.request.ID, Time: r.opt.Calendar().Add(-rec.events.Elapsed()), Kind: in.kind(), Release: a.release,
		Module: rt.module.Name(), Sum: hex.EncodeToString(sum[:]), Handler: rt.Handler, Runs: call.Attempt, Commit: rec.commit,
		Request: recording.RequestOf(in.request, call.SentBody), Caller: recording.CallerOf(&call.Caller, call.Address),
		Image: rt.module.Drawn(), Run: rec.draws.Drawn(),
	}
	kept.Deadline, _ = inv.deadline.Deadline()
	kept.Request.InParts = call.HasReadParts()
	kept.Request.CreatesSession, kept.Request.HostCORS, kept.Request.OwnChallenge = call.CreatesSession, call.HostCORS, call.OwnChallenge
	if len(kept.Request.Body) > recording.MaxBytes || kept.Request.Sent != nil && len(*kept.Request.Sent) > recording.MaxBytes {
		kept.Request.Body, kept.Request.Sent, kept.Truncated = nil, nil, true
	}
	rec.events.Take(kept)
	kept.Outcome = inv.outcome(err)
	kept.Outcome.Failed, kept.Outcome.Streamed = failed, in.stream != nil && call.Streaming()
	if r.fork != nil {
		if r.fork.Trace != nil {
			r.fork.Trace(kept)
		}
		return
	}
	kept.Hide(a.secrets())
	r.opt.Recorded.Keep(kept)
}

// kind is that of a Recording.
func (in *input) kind() string {
	switch {
	case in.request.Job != nil:
		return "job"
	case in.answerMemory == nil:
		return "call"
	}
	return "request"
}

// hasFailed reports whether the invocation counts as a failure: the handler failed, spent a limit, met conflicts until it
// was given up, or answered an error of the server; of a job, also any other error.
func (inv *invocation) hasFailed(err error) bool {
	code := fault.CodeOf(err)
	switch {
	case inv.failure != nil, err != nil && isFailure(code), code == fault.WriteConflict && err != nil:
		return true
	case err != nil && err != errWritesDiscarded:
		return false
	}
	status := inv.call.Response.Status
	return status >= 500 || status >= 400 && inv.input.request.Job != nil
}

// outcome describes how the invocation ended.
func (inv *invocation) outcome(err error) (o recording.Outcome) {
	response := &inv.call.Response
	if err == nil || err == errWritesDiscarded {
		o.Status, o.Code, o.Detail = response.Status, response.Code, response.Detail
		o.SetAnswer(response)
	} else {
		f := fault.Of(err)
		o.Status, o.Code, o.Detail = front.StatusOf(f.Code), string(f.Code), f.Detail
		o.Limit = f.Code == fault.HandlerTimeout || f.Code == fault.HandlerOutOfMemory
	}
	if inv.failure != nil {
		o.Failure, o.Message, o.Frames = inv.failure.Kind, inv.failure.Message, frameLines(inv.failure)
	}
	return o
}

// secrets are the values of the secrets that the schema declares, by their names.
func (a *activeBundle) secrets() map[string]string {
	values := map[string]string{}
	for _, name := range a.schema.Secrets {
		if value, ok := a.host.Secrets.Get(name); ok && value.Reveal() != "" {
			values[name] = value.Reveal()
		}
	}
	return values
}
