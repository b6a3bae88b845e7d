package runtime

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"runner.example/audit"
	"runner.example/entity"
	"runner.example/hostabi"
	"runner.example/hostabi/abi"
	"runner.example/internal/caller"
	"runner.example/internal/diag"
	"runner.example/internal/fault"
	"runner.example/runtime/front"
	"runner.example/runtime/sandbox"
	"runner.example/store"
)

// maxCallAnswer is the largest body that a function may answer an operator with.
const maxCallAnswer = 8 << 20

// FunctionCall is the call of a function by an operator.
type FunctionCall struct {
	Name string
	// Params is a JSON object of the parameters; nothing is an empty one.
	Params []byte
	// Caller is of kind System. One with a tenant is within it.
	Caller caller.Caller
	// RequestID is a lower-case ULID.
	RequestID string
}

// Answer is what a function answered, or why the host refused in its place.
type Answer struct {
	Status int
	// Code and Detail are set when an error helper or the host has answered.
	Code, Detail string
	// Errors is a list of what is wrong with the parameters: [{field, message}].
	Errors  json.RawMessage
	Headers []abi.Pair
	Body    []byte
}

// errTooMuch refuses an answer that is too large for an operator.
var errTooMuch = fault.New(fault.HandlerFailed, "the answer has more than %d MiB, the most that a function can answer to an operator", maxCallAnswer>>20)

// Call runs a function of the active app for an operator, exposed or not: with its
// checks and its time, without its auth, its limits of rate and without `mints`. What
// it writes is committed as that of a request is, with one record of the audit. The
// error, NotFound or NotReady, says that nothing was run: all else is an Answer.
func (r *Runtime) Call(ctx context.Context, c FunctionCall) (*Answer, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(r.serving, cancel)()
	started := time.Now()
	v := new(visit)
	defer v.stop()
	for tries := 1; ; tries++ {
		answer, outdated, err := r.tryCall(ctx, v, c, started, tries == maxReleases)
		if outdated == nil {
			return answer, err
		}
		r.await(outdated)
	}
}

// tryCall is try for an operator's call.
func (r *Runtime) tryCall(ctx context.Context, v *visit, c FunctionCall, started time.Time, last bool) (_ *Answer, outdated *release, _ error) {
	rel := r.enter()
	if rel == nil {
		return nil, nil, errNotReady
	}
	defer rel.leave()
	rt, err := rel.function(c.Name)
	if err != nil {
		return nil, nil, err
	}
	answer, err := r.callOn(ctx, rel, rt, v, c)
	if errors.Is(err, entity.ErrOutdated) && !last {
		return nil, rel, nil
	}
	if err != nil {
		answer = r.refused(ctx, c, err)
	}
	r.logCall(c, rt, answer, time.Since(started))
	return answer, nil, nil
}

// function gives the function of that name.
func (rel *release) function(name string) (*route, error) {
	if i, ok := rel.functions[name]; ok {
		return &rel.routes[i], nil
	}
	var names []string
	for i := range rel.schema.Functions {
		names = append(names, rel.schema.Functions[i].Name)
	}
	return nil, fault.New(fault.NotFound, "the schema declares no function %q%s", name, diag.DidYouMean(name, names))
}

// callOn runs the function in a transaction, again when a request changed what it had
// read.
func (r *Runtime) callOn(ctx context.Context, rel *release, rt *route, v *visit, c FunctionCall) (*Answer, error) {
	if int64(len(c.Params)) > rt.bodyBytes {
		return nil, fault.New(fault.BodyTooLarge, "the parameters have more than the %d bytes that the function takes", rt.bodyBytes)
	}
	if v.deadline == nil {
		v.deadline = hostabi.NewDeadline(ctx, time.Now().Add(rt.timeout))
	}
	call := &v.call
	body, used, err := rt.checkBody(v, &rel.host, nil, c.Params, false)
	if err != nil {
		return nil, err
	}
	call.Used = used
	call.Context, call.Host, call.Caller = v.deadline, &rel.host, c.Caller
	call.Request = &abi.Request{
		ID: c.RequestID, Method: []byte(rt.Method), Path: []byte(rt.Path), Route: rt.Path,
		Headers: []abi.Pair{{Name: []byte("content-type"), Value: []byte("application/json")}},
		Body:    body,
	}
	_, err = r.opt.Store.Update(v.deadline, func(tx *store.Tx) error {
		if v.attempts > 0 && call.Sent() {
			return errSent
		}
		v.attempts++
		call.Tx, call.Attempt = tx, v.attempts
		if err := rt.answer(call, &v.work); err != nil {
			return err
		}
		if len(call.Response.Body) > maxCallAnswer {
			return errTooMuch
		}
		record := audit.Record{
			RequestID: c.RequestID, Actor: audit.ActorOf(c.Caller), Action: "functions.call", Target: c.Name, Result: audit.OK,
		}
		if c.Caller.Tenant != "" {
			record.Reason = fmt.Sprintf("tenant %q", c.Caller.Tenant)
		}
		return audit.Append(tx, record)
	})
	if err != nil && err != errWritesDropped {
		return nil, storeFault(err)
	}
	got := &call.Response
	return &Answer{Status: got.Status, Code: got.Code, Detail: got.Detail, Headers: got.Headers, Body: got.Body}, nil
}

// refused is the answer of the host to what the function was not run for, or failed
// with. The cause is logged here, at the level info when it is the end of ctx.
func (r *Runtime) refused(ctx context.Context, c FunctionCall, err error) *Answer {
	f := fault.Of(err)
	if f.Cause != nil {
		level, cause := slog.LevelError, f.Cause.Error()
		if ctx.Err() != nil && (errors.Is(f.Cause, hostabi.ErrTimeOver) || errors.Is(f.Cause, context.Canceled)) {
			level, cause = slog.LevelInfo, ctx.Err().Error()
		}
		r.opt.Logger.Log(ctx, level, "request refused", "requestId", c.RequestID, "code", string(f.Code), "cause", cause)
	}
	answer := &Answer{Status: front.StatusOf(f.Code), Code: string(f.Code), Detail: f.Detail}
	if wrong, ok := errors.AsType[*inputError](err); ok {
		answer.Errors = wrong.errors
	}
	return answer
}

// logCall is logAccess for an operator's call.
func (r *Runtime) logCall(c FunctionCall, rt *route, answer *Answer, took time.Duration) {
	if !r.opt.AccessLog {
		return
	}
	attrs := []slog.Attr{
		slog.String("requestId", c.RequestID), slog.String("method", rt.Method), slog.Int("status", answer.Status),
		slog.Duration("took", took), slog.String("route", rt.Path), slog.String("operator", c.Caller.UserID),
	}
	if r.opt.AccessDetail {
		attrs = append(attrs, slog.String("path", rt.Path))
	}
	if r.opt.AccessDetail && answer.Code != "" {
		attrs = append(attrs, slog.String("code", answer.Code), slog.String("detail", answer.Detail))
	}
	if r.opt.AccessDetail && answer.Errors != nil {
		attrs = append(attrs, slog.String("errors", string(answer.Errors)))
	}
	r.opt.Logger.LogAttrs(context.Background(), slog.LevelInfo, "request", attrs...)
}

// answer runs the handler in the transaction of call. The error is errWritesDropped
// for an answer whose writes are not to be committed.
func (rt *route) answer(call *hostabi.Call, w *sandbox.Work) error {
	err := rt.module.Run(call, rt.Handler)
	switch {
	case call.Outdated():
		return entity.ErrOutdated
	case call.Overloaded():
		return errAnswerMemory
	case err != nil:
		return err
	}
	if call.Response.Status >= 400 && !call.KeepsWrites() {
		return errWritesDropped
	}
	if rt.result != nil && call.Response.Status == 200 {
		m := rt.module.BeginWork(call.Context, w, rt.Handler, call.CPULeft())
		defer func() { call.AddCPU(w.End()) }()
		return checkResult(rt.result, call.Response.Body, &call.Caller, m)
	}
	return nil
}

// Load puts the app in place for Call, in a Runtime that serves nothing. It changes
// nothing in the store: rows tells how the rows lie there, which obey the schema
// already. The errors are Activate's.
func (r *Runtime) Load(ctx context.Context, app App, rows *entity.Model) error {
	r.activating.Lock()
	defer r.activating.Unlock()
	rel, err := r.bind(ctx, app)
	if err != nil {
		return err
	}
	rel.host.Entities, rel.tending = rows, func() {}
	if old := r.active.Swap(rel); old != nil {
		r.retire(old)
	}
	return nil
}
