package runtime

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"runner.example/hostabi"
	"runner.example/hostabi/abi"
	"runner.example/internal/caller"
	"runner.example/internal/clock"
	"runner.example/internal/diag"
	"runner.example/internal/fault"
	"runner.example/runtime/front"
	"runner.example/state/audit"
	"runner.example/state/store"
)

// maxCallAnswer is the largest body that a function may answer to an operator, in bytes.
const maxCallAnswer = 8 << 20

// FunctionCall is the call of a function by an operator.
type FunctionCall struct {
	Name string
	// Params is a JSON object of the parameters; empty means {}.
	Params []byte
	// Caller is of kind System. With a tenant it is limited to that tenant.
	Caller caller.Caller
	// RequestID is a lower-case ULID.
	RequestID string
	// Address is that of an operator on the network, for the audit; empty: on this machine.
	Address string
}

// Answer is the answer of a function, or the host's refusal.
type Answer struct {
	Status int
	// Code and Detail are set when an error helper or the host has answered.
	Code, Detail string
	// Errors lists the errors of the parameters: [{field, message}].
	Errors  json.RawMessage
	Headers []abi.Pair
	Body    []byte
}

var errAnswerTooLarge = fault.New(fault.HandlerFailed,
	"the response has more than %d MiB, the limit for operators' calls", maxCallAnswer>>20)

// Call runs a function of the active app for an operator, exposed or not: with its checks
// and its timeout, but without its auth, its rate limits and `mints`. Its writes are
// committed like those of a request, with one audit record. The error, NotFound or
// NotReady, means that nothing was run; everything else is an Answer.
func (r *Runtime) Call(ctx context.Context, c FunctionCall) (*Answer, error) {
	return r.callOn(ctx, c, func(ctx context.Context, a *activeBundle, rt *route, inv *invocation) error {
		return r.callFunction(ctx, a, rt, inv, c)
	})
}

// callOn runs a function by do, on the next active bundle again if the schema of the rows changes meanwhile.
func (r *Runtime) callOn(ctx context.Context, c FunctionCall,
	do func(context.Context, *activeBundle, *route, *invocation) error) (*Answer, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(r.serving, cancel)()
	started := clock.Mark()
	var rt *route // nil: nothing was run
	var inv invocation
	defer inv.end()
	err := r.onActive(func(a *activeBundle, _ int) (err error) {
		if rt, err = a.function(c.Name); err != nil {
			return err
		}
		return do(ctx, a, rt, &inv)
	})
	if rt == nil || err == ErrNoRelease {
		return nil, err
	}
	got := &inv.call.Response
	answer := &Answer{Status: got.Status, Code: got.Code, Detail: got.Detail, Headers: got.Headers, Body: got.Body}
	if err == errSent {
		err = sentConflict(inv.call.Sent())
	}
	if err != nil && err != errWritesDiscarded {
		answer = r.refuseCall(ctx, c, err)
	}
	if r.accessLog.Load() {
		r.logCall(c, rt, answer, time.Since(started))
	}
	return answer, nil
}

// sentConflict returns the conflict of a call that has sent requests and stored nothing.
func sentConflict(sent []string) error {
	const most = 10
	list, more := sent, ""
	if len(list) > most {
		list, more = list[:most], fmt.Sprintf(" and %d more", len(list)-most)
	}
	return fault.New(fault.WriteConflict,
		"nothing was recorded: other requests changed what the function had read. It was not run again, because it has sent %s%s: check what these have done before you repeat the call",
		strings.Join(list, ", "), more)
}

// function returns the function of that name.
func (a *activeBundle) function(name string) (*route, error) {
	if i, ok := a.functions[name]; ok {
		return &a.routes[i], nil
	}
	var names []string
	for i := range a.schema.Functions {
		names = append(names, a.schema.Functions[i].Name)
	}
	return nil, UnknownFunction(name, names)
}

// UnknownFunction returns the fault about a function that is not among those of the schema.
func UnknownFunction(name string, declared []string) error {
	return fault.New(fault.NotFound, "the schema declares no function %q%s", name, diag.DidYouMean(name, declared)).
		WithHint("functions are declared in the schema's functions block: runner call --help explains it")
}

// callFunction invokes the function, with an audit record in its transaction.
func (r *Runtime) callFunction(ctx context.Context, a *activeBundle, rt *route, inv *invocation, c FunctionCall) error {
	if int64(len(c.Params)) > rt.bodyBytes {
		return fault.New(fault.BodyTooLarge,
			"the parameters have more than %d bytes, the limit of the function", rt.bodyBytes)
	}
	inv.input = functionInput(rt, c)
	inv.input.afterRun = func(tx *store.Tx) error {
		if len(inv.call.Response.Body) > maxCallAnswer {
			return errAnswerTooLarge
		}
		record := audit.Record{
			RequestID: c.RequestID, Actor: audit.ActorOf(c.Caller), Action: "functions.call", Target: c.Name, Result: audit.OK,
			Address: c.Address,
		}
		if c.Caller.Tenant != "" {
			record.Reason = fmt.Sprintf("tenant %q", c.Caller.Tenant)
		}
		return audit.Append(tx, record)
	}
	return r.invoke(ctx, a, rt, inv)
}

// functionInput returns what a function is called with by an operator.
func functionInput(rt *route, c FunctionCall) input {
	return input{
		request: &abi.Request{
			ID: c.RequestID, Method: []byte(rt.Method), Path: []byte(rt.Path), Route: rt.Path,
			Headers: []abi.Pair{{Name: []byte("content-type"), Value: []byte("application/json")}},
		},
		body:   c.Params,
		caller: &c.Caller,
	}
}

// refuseCall returns the host's answer to a failed call and logs the cause, at level info
// when ctx has ended.
func (r *Runtime) refuseCall(ctx context.Context, c FunctionCall, err error) *Answer {
	f := fault.Of(err)
	if f.Cause != nil {
		level, cause := slog.LevelError, f.Cause.Error()
		if ctx.Err() != nil && (errors.Is(f.Cause, hostabi.ErrTimeOver) || errors.Is(f.Cause, context.Canceled)) {
			level, cause = slog.LevelInfo, ctx.Err().Error()
		}
		r.opt.Logger.Log(ctx, level, "request refused", "requestId", c.RequestID, "code", string(f.Code), "cause", cause)
	}
	answer := &Answer{Status: front.StatusOf(f.Code), Code: string(f.Code), Detail: f.Detail}
	if invalid, ok := errors.AsType[*inputError](err); ok {
		answer.Errors = invalid.errors
	}
	return answer
}
