package runtime

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"runner.example/hostabi"
	"runner.example/hostabi/abi"
	"runner.example/internal/caller"
	"runner.example/internal/clock"
	"runner.example/internal/deadline"
	"runner.example/internal/fault"
	"runner.example/runtime/sandbox"
	"runner.example/state/entity"
	"runner.example/state/store"
	"runner.example/state/webhook"
)

// invocation is one call of a handler, by an HTTP request or by an operator, with all its
// runs: again after a conflict, and again on the next active bundle. Its buffers are kept.
type invocation struct {
	input    input
	call     hostabi.Call
	work     sandbox.Work      // of the host beside the call
	deadline *deadline.Context // of all runs
	filled   []byte            // the body with its defaults
	delivery webhook.Delivery  // on routes that verify signatures
	failure  *hostabi.Failure  // of the handler, after the last invoke; nil: it did not fail
	recorder recorder
	form     *hostabi.Form // the body on routes with upload, whose files are stored; nil: it is not read
	uploads  []func()      // release the files of form
}

// input is what a handler is called with.
type input struct {
	request *abi.Request // its Body is set by invoke
	body    []byte       // as it was sent
	caller  *caller.Caller
	address netip.Addr
	// answerMemory is for the bodies of large answers; nil: the heap.
	answerMemory hostabi.BodyMemory
	// opensSessions lets the handler create sessions, and list and revoke the sessions of users
	// that it names; session is that of the client's cookie.
	opensSessions bool
	session       string
	// stream sends an answer in parts; nil: its parts become the body of an ordinary answer.
	stream hostabi.AnswerStream
	// bodyStream is the body, if it has not arrived yet; nil: it is body.
	bodyStream hostabi.BodyStream
	// sendsFiles: the answer may be a file.
	sendsFiles bool
	// readOnly: it is a run of a live route, which changes nothing and for which no client waits.
	readOnly bool
	// hostCORS forbids the handler to set Access-Control-* headers.
	hostCORS bool
	// ownChallenge lets the handler set WWW-Authenticate.
	ownChallenge bool
	// open: any client can make the host check a body.
	open bool
	// used is the CPU time that the request has used before.
	used time.Duration
	// beforeRun and afterRun are called in the transaction of each run, if not nil:
	// before the handler, and after it when its writes are to be committed.
	beforeRun, afterRun func(tx *store.Tx) error
}

// maxKeptBody is the largest body that an idle invocation keeps as a buffer.
const maxKeptBody = 64 << 10

func (inv *invocation) begin() {
	inv.call.Attempt, inv.call.Spent, inv.failure = 0, hostabi.Spent{}, nil
}

// end stops the deadline, and drops large buffers and what belongs to the request.
func (inv *invocation) end() {
	if inv.deadline != nil {
		inv.deadline.Stop()
		inv.deadline = nil
	}
	inv.input = input{}
	inv.releaseFiles()
	if cap(inv.filled) > maxKeptBody {
		inv.filled = nil
	}
	if cap(inv.call.Response.Body) > maxKeptBody { // it may be the exchange's
		inv.call.Response.Body = nil
	}
}

// releaseFiles releases the files that the request has uploaded and made: those that no committed row names are deleted.
func (inv *invocation) releaseFiles() {
	inv.call.ReleaseFiles()
	for _, release := range inv.uploads {
		release()
	}
	inv.form, inv.uploads = nil, nil
}

// startDeadline starts the time of the handler, unless it runs already.
func (inv *invocation) startDeadline(ctx context.Context, timeout time.Duration) {
	if inv.deadline == nil {
		inv.deadline = deadline.New(ctx, clock.In(timeout))
	}
}

// invoke checks the body and runs the handler of a route in a transaction, again when
// another request has changed what it read. The answer is in inv.call.Response. The error
// is errWritesDiscarded for an answer whose writes were not committed, matches
// entity.ErrOutdated when a is outdated, and else is a fault, or an error of the hooks.
func (r *Runtime) invoke(ctx context.Context, a *activeBundle, rt *route, inv *invocation) error {
	inv.startDeadline(ctx, rt.timeout)
	in, call := &inv.input, &inv.call
	if err := rt.prepare(a, inv); err != nil {
		return err
	}
	r.startRecording(inv)
	ran := false // else the call is as its last run, perhaps of another request, left it
	_, err := r.opt.Store.Update(inv.deadline, func(tx *store.Tx) error {
		switch {
		case call.Attempt > 0 && len(call.Sent()) > 0:
			return errSent
		case call.Attempt > 0 && call.HasReadParts():
			return errPartsRead
		}
		call.ReleaseFiles() // of a run that met a conflict
		call.Tx = tx
		call.Attempt++
		if in.beforeRun != nil {
			if err := in.beforeRun(tx); err != nil {
				return err
			}
		}
		err := rt.runOnce(call, &inv.work)
		ran = true
		inv.noteCommit(tx, err)
		if err != nil {
			return err
		}
		if in.afterRun != nil {
			return in.afterRun(tx)
		}
		return nil
	})
	if ran && call.Streaming() && err != nil && (inv.call.Gone() || inv.deadline.Err() != nil) {
		err = errStreamOver
	}
	err = r.recordFailure(ctx, a, rt, inv, rt.invokeFault(ctx, err))
	r.keepRecording(a, rt, inv, err)
	return err
}

// identify sets the caller and its address.
func (inv *invocation) identify() {
	inv.call.Caller, inv.call.Address = *inv.input.caller, inv.input.address
}

// prepare checks the body of the input, and sets what the handler is called with.
func (rt *route) prepare(a *activeBundle, inv *invocation) error {
	in, call := &inv.input, &inv.call
	inv.identify()
	body, used, err := rt.checkBody(inv, a.host)
	if a.host.Observe != nil {
		observeInput(a.host.Observe, rt, err)
	}
	if err != nil {
		return err
	}
	in.request.Body = body
	call.Context, call.Host, call.Request = inv.deadline, a.host, in.request
	call.SentBody, call.Bodies = nonNil(in.body), in.answerMemory
	call.CreatesSession, call.ClientSession, call.HostCORS = in.opensSessions, in.session, in.hostCORS
	call.ReadOnly, call.Background = in.readOnly, in.readOnly
	call.OwnChallenge, call.Stream, call.StreamsOutput = in.ownChallenge, in.stream, rt.Stream > 0
	call.SendsFiles = in.sendsFiles
	call.BodyStream, call.Form = in.bodyStream, inv.form
	call.Used = in.used + used
	return nil
}

// invokeFault returns the fault that a caller sees of an error of the transaction of a handler.
func (rt *route) invokeFault(ctx context.Context, err error) error {
	if fault.CodeOf(err) == fault.HandlerTimeout && !errors.Is(err, hostabi.ErrCPUSpent) && ctx.Err() == nil {
		return rt.tookTooLong(err)
	}
	return storeFault(err)
}

// tookTooLong adds to err the setting that limits the time of the handler.
func (rt *route) tookTooLong(err error) error {
	setting := "[runtime] timeout"
	if rt.Route.Timeout > 0 {
		setting = "timeout: of the route"
	}
	f := fault.Of(err)
	return fault.Wrap(fmt.Errorf("handler took longer than %s (%s): %w", rt.timeout, setting, f.Cause), f.Code,
		"%s", f.Detail)
}

// nonNil returns an empty body instead of nil, which means another body to hostabi.
func nonNil(body []byte) []byte {
	if body == nil {
		return []byte{}
	}
	return body
}

// runOnce runs the handler once in the transaction of call. The error is errWritesDiscarded
// for an answer whose writes must not be committed.
func (rt *route) runOnce(call *hostabi.Call, w *sandbox.Work) error {
	err := rt.module.Run(call, rt.Handler)
	if call.Streaming() { // nothing can be changed about its answer
		return cmp.Or(err, call.BrokenOff())
	}
	switch {
	case call.Outdated():
		return entity.ErrOutdated
	case call.Overloaded():
		return errAnswerMemory
	case err != nil:
		return err
	}
	if call.Response.Status >= 400 && !call.KeepsWrites() {
		return errWritesDiscarded
	}
	if status := call.Response.Status; rt.result != nil && (status == 200 || status == 201) {
		m := rt.module.BeginWork(call.Context, w, call, rt.Handler, call.CPULeft())
		defer func() { call.AddCPU(w.End()) }()
		err := checkResult(rt.result, call.Response.Body, &call.Caller, m)
		if fault.CodeOf(err) == fault.HandlerFailed {
			call.SetFailure(hostabi.Failure{Kind: "wrong result"}, true)
		}
		return err
	}
	return nil
}

// verifyDelivery checks the signature of a webhook delivery. In the transaction of the
// handler it is refused with errHandled if it was handled before, and recorded otherwise.
func (r *Runtime) verifyDelivery(ctx context.Context, a *activeBundle, rt *route, inv *invocation) error {
	inv.startDeadline(ctx, rt.timeout)
	in := &inv.input
	now := a.host.Calendar() // the sender's time is compared with it, not with the credential time
	inv.identify()
	m := rt.module.BeginWork(inv.deadline, &inv.work, &inv.call, rt.Handler, a.host.Limits.CPU)
	delivery, err := rt.verify.Verify(in.request.Header, in.body, now, m)
	in.used = inv.work.End()
	if err != nil {
		r.opt.Logger.Info("signature refused", in.request.LogID(), "route", rt.Path,
			"address", in.address.String(), "cause", err)
		return err
	}
	// It is remembered by the credential time: with the machine's clock a jump would
	// permit replays.
	delivery.Until = delivery.Until.Add(r.opt.Keystore.Now().Sub(now))
	inv.delivery = delivery
	in.beforeRun = func(tx *store.Tx) error {
		handled, err := inv.delivery.Handled(tx, rt.id, r.opt.Keystore.Now())
		if err == nil && handled {
			err = errDuplicateDelivery
		}
		return err
	}
	in.afterRun = func(tx *store.Tx) error {
		if inv.call.Response.Status >= 400 {
			return nil
		}
		return inv.delivery.Record(tx, rt.id)
	}
	return nil
}

// noteRepeated counts a delivery that was handled before. Senders repeat deliveries as a matter of course, so
// the line is for debugging.
func (r *Runtime) noteRepeated(rt *route, in *input) {
	r.measureRepeated(rt)
	r.opt.Logger.Debug("webhook delivery ignored: it was handled before", in.request.LogID(), "route", rt.Path, "address", in.address.String())
}

// storeFault returns the fault that a client sees of an error of the store. Other errors
// are returned unchanged.
func storeFault(err error) error {
	switch {
	case errors.Is(err, store.ErrConflict):
		return errConflict
	case errors.Is(err, store.ErrUnavailable) && !errors.Is(err, store.ErrUnknown):
		return fault.Wrap(err, fault.Unavailable, "store unavailable; nothing of the request was stored")
	case errors.Is(err, store.ErrUnknown):
		return fault.Wrap(err, fault.Unavailable,
			"the store did not answer; the writes of the request may or may not be stored")
	}
	return err
}
