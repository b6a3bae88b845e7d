package runtime

import (
	"context"
	"time"

	"runner.example/internal/clock"
	"runner.example/state/store"
)

// Each is a batch of calls of a function by an operator, all in one transaction.
type Each struct {
	// FunctionCall has the function and the caller; its Params are not used.
	FunctionCall
	// Params returns the parameters of each call, in the transaction. It may be called several
	// times, like the next.
	Params func(tx *store.Tx) ([][]byte, error)
	// Skip reports whether to omit call n, counted from 0, because of what earlier calls have done.
	Skip func(tx *store.Tx, n int) (bool, error)
	// AfterCalls is called in the transaction after n calls, skipped ones included. If it returns an
	// error, none of them is committed.
	AfterCalls func(tx *store.Tx, n int) error
}

// EachAnswer is the answer of a batch.
type EachAnswer struct {
	// Answer is that of the last call. If its status is 400 or above, nothing was committed.
	*Answer
	// N is the number of calls that were committed or skipped, or the index of the one that was refused.
	N int
	// Sent: a call has sent requests.
	Sent bool
}

// CallEach is Call for several calls in one transaction. Each has the limits of a request; together
// they have the function's timeout: after half of it, the calls so far are committed. The commit has
// time of its own: with a slow disk no batch would be short enough otherwise.
func (r *Runtime) CallEach(ctx context.Context, e Each) (got EachAnswer, err error) {
	got.Answer, err = r.callOn(ctx, e.FunctionCall, func(ctx context.Context, a *activeBundle, rt *route, inv *invocation) error {
		return r.invokeEach(ctx, a, rt, inv, e, &got)
	})
	return got, err
}

func (r *Runtime) invokeEach(ctx context.Context, a *activeBundle, rt *route, inv *invocation, e Each, got *EachAnswer) error {
	inv.startDeadline(ctx, rt.timeout)
	inv.input = functionInput(rt, e.FunctionCall)
	started := clock.Mark()
	commit, cancel := context.WithTimeout(ctx, rt.timeout+recordTimeout)
	defer cancel()
	_, err := r.opt.Store.Update(commit, func(tx *store.Tx) error {
		if got.Sent {
			return errSent
		}
		inv.call.ReleaseFiles() // of calls that met a conflict
		got.N = 0
		bodies, err := e.Params(tx)
		if err != nil {
			return err
		}
		for _, body := range bodies {
			if got.N > 0 && time.Since(started) > rt.timeout/2 {
				break
			}
			if skipped, err := e.Skip(tx, got.N); err != nil {
				return err
			} else if skipped {
				got.N++
				continue
			}
			inv.input.body = body
			err := rt.prepare(a, inv)
			if err == nil {
				inv.call.Tx, inv.call.Attempt = tx, 1
				err = rt.runOnce(&inv.call, &inv.work)
				got.Sent = got.Sent || len(inv.call.Sent()) > 0
			}
			if err == nil && inv.call.Response.Status >= 400 { // the handler called keepWrites
				err = errWritesDiscarded
			}
			if err == nil && len(inv.call.Response.Body) > maxCallAnswer {
				err = errAnswerTooLarge
			}
			if err != nil {
				return err
			}
			got.N++
		}
		return e.AfterCalls(tx, got.N)
	})
	return rt.invokeFault(ctx, err)
}
