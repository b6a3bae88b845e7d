package runtime

import (
	"context"
	"errors"
	"log/slog"

	"runner.example/hostabi"
	"runner.example/internal/fault"
	"runner.example/state/entity"
)

// recordFailure logs why the handler failed, if it did, and its uncaught errors. err is the error of
// the invocation. recordFailure returns it without the cause if it logged the cause, so that each
// failure is one record.
func (r *Runtime) recordFailure(ctx context.Context, a *activeBundle, rt *route, inv *invocation, err error) error {
	failure, others := inv.call.Failures()
	if errors.Is(err, entity.ErrOutdated) {
		return err // the handler runs again
	}
	if body := inv.bodyFault(err); body != nil {
		return body
	}
	for i := range others {
		r.opt.Logger.LogAttrs(ctx, slog.LevelWarn, "uncaught error", failureAttrs(a, rt, inv, &others[i])...)
	}
	code := fault.Code(inv.call.Response.Code)
	switch {
	case err == nil, err == errWritesDiscarded:
		if failure == nil {
			return err
		}
	case !isFailure(fault.CodeOf(err)):
		return err
	default:
		f := fault.Of(err)
		code, failure = f.Code, completed(failure, f)
		err = &fault.Fault{Code: f.Code, Detail: f.Detail}
	}
	inv.failure = failure
	level := slog.LevelError
	if ctx.Err() != nil && code == fault.HandlerTimeout {
		level, failure.Message = slog.LevelInfo, ctx.Err().Error()
	}
	attrs := append(failureAttrs(a, rt, inv, failure), slog.String("code", string(code)))
	r.opt.Logger.LogAttrs(ctx, level, "handler failed", attrs...)
	return err
}

func isFailure(code fault.Code) bool {
	return code == fault.HandlerFailed || code == fault.HandlerTimeout || code == fault.HandlerOutOfMemory
}

// completed fills in the kind and the message of a failure, which may be nil, from its fault.
func completed(failure *hostabi.Failure, f *fault.Fault) *hostabi.Failure {
	if failure == nil {
		failure = &hostabi.Failure{}
	}
	if failure.Kind == "" {
		switch {
		case errors.Is(f, hostabi.ErrCPUSpent):
			failure.Kind = "CPU limit"
		case f.Code == fault.HandlerTimeout:
			failure.Kind = "time limit"
		case f.Code == fault.HandlerOutOfMemory:
			failure.Kind = "memory limit"
		default:
			failure.Kind = "trap"
		}
	}
	switch {
	case f.Cause == nil:
	case failure.Message == "":
		failure.Message = f.Cause.Error()
	case f.Code != fault.HandlerFailed: // the guest has said what it did at a limit
		failure.Message = f.Cause.Error() + ": " + failure.Message
	}
	return failure
}

// failureAttrs returns the fields that the records of failures and of uncaught errors share.
func failureAttrs(a *activeBundle, rt *route, inv *invocation, f *hostabi.Failure) []slog.Attr {
	attrs := []slog.Attr{
		inv.input.request.LogID(), slog.String("route", rt.Path), slog.String("handler", rt.Handler),
		slog.String("module", rt.module.Name()),
	}
	if a.release != "" {
		attrs = append(attrs, slog.String("release", a.release))
	}
	attrs = append(attrs, slog.String("kind", f.Kind))
	if f.Message != "" {
		attrs = append(attrs, slog.String("cause", f.Message))
	}
	if len(f.Frames) > 0 {
		attrs = append(attrs, slog.Any("frames", frameLines(f)))
	}
	return attrs
}

// frameLines returns a line for each frame of a failure.
func frameLines(f *hostabi.Failure) []string {
	lines := make([]string, len(f.Frames))
	for i, frame := range f.Frames {
		lines[i] = frame.String()
	}
	return lines
}
