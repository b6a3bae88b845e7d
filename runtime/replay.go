package runtime

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"runner.example/hostabi"
	"runner.example/hostabi/recording"
	"runner.example/internal/fault"
	"runner.example/keystore/credtime"
	"runner.example/schema"
	"runner.example/state/entity"
	"runner.example/state/store"
)

// Verdict is the result of a replay.
type Verdict string

// The verdicts.
const (
	// Passes: the recorded run failed, and this one does not.
	Passes Verdict = "passes"
	// Same: it ended as the recorded run. Other: it made the same host calls, and ended in another way.
	Same  Verdict = "same"
	Other Verdict = "other"
	// Reaches: it reached the call in which a limit ended the recorded run. Times are not compared.
	Reaches Verdict = "reaches"
	// Diverges: it made another host call than the recorded run, and ended there.
	Diverges Verdict = "diverges"
)

// Replayed is what a replay did. Secrets and credentials are replaced by their names.
type Replayed struct {
	Verdict Verdict `json:"verdict"`
	// Text describes the result, on one line.
	Text string `json:"text"`
	// Divergence is the host call that differs; null: none.
	Divergence *recording.Divergence `json:"divergence,omitempty"`
	// Left is how many recorded calls the run did not make.
	Left int `json:"left,omitempty"`
	// Against is the state that answered after a divergence; empty: none.
	Against string `json:"against,omitempty"`
	// Outcome is how the run ended, Events what it did.
	Outcome recording.Outcome `json:"outcome"`
	Events  []recording.Event `json:"events"`
}

// ReplayOptions say what a Recording is run with.
type ReplayOptions struct {
	// Bundle is the release that failed, or for a Recording without one what the app directory has now. Module, if not nil,
	// is used in place of the module that failed.
	Bundle *Bundle
	Module []byte
	// Against is the state that answers after a divergence; empty: none.
	Against Against
}

// Against is a state of the store.
type Against string

// LiveCopy is a copy of the store as it is now, Snapshot one as the recorded run has seen it.
const (
	LiveCopy Against = "live-copy"
	Snapshot Against = "snapshot"
)

// Replay runs the handler of a Recording on the recorded answers, and commits nothing. The module is loaded for it, with
// what it drew when it was recorded. The error says why there was no run.
func (r *Runtime) Replay(ctx context.Context, rec *recording.Recording, opt ReplayOptions) (_ *Replayed, err error) {
	bundle, err := replayBundle(rec, opt)
	if err != nil {
		return nil, err
	}
	player, err := recording.NewPlayer(rec, func(name string) (string, bool) {
		value, ok := bundle.Secrets.Get(name)
		return value.Reveal(), ok
	})
	if err != nil {
		return nil, fault.New(fault.Invalid, "%v", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(r.serving, cancel)()
	a, err := r.bind(ctx, bundle)
	if err != nil {
		return nil, bundle.Explain(err)
	}
	defer func() { err = errors.Join(err, a.close(context.WithoutCancel(ctx))) }()
	if opt.Against == "" {
		return r.replay(ctx, a, rec, player, func(run func(*store.Tx) error) error { return run(nil) })
	}
	return r.replayAgainst(ctx, a, rec, player, opt.Against)
}

// replayAgainst replays on a copy of the store, which is dropped with all that the run wrote.
func (r *Runtime) replayAgainst(
	ctx context.Context, a *activeBundle, rec *recording.Recording, player *recording.Player, against Against) (_ *Replayed, err error) {
	own := store.ForkOptions{Logger: r.opt.Logger}
	switch against {
	case LiveCopy:
	case Snapshot:
		if own.At = store.Seq(rec.Commit); own.At == 0 {
			return nil, fault.New(fault.Invalid, "the recording does not say which commit the run has seen: use --against live-copy")
		}
	default:
		return nil, fault.New(fault.Invalid, "a replay can go on against snapshot or live-copy, not %q", string(against))
	}
	copied, err := r.opt.Store.Fork(own)
	if errors.Is(err, store.ErrGone) {
		return nil, fault.New(fault.NotFound, "the store does not have the state of commit %d any more, which the run has seen: use --against live-copy", rec.Commit)
	}
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, copied.Close()) }()
	keys, err := r.opt.Keystore.Fork(ctx, copied, credtime.Machine{})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, keys.Close()) }()
	a.host.Keystore, a.host.Store, a.host.Jobs = keys, copied, nil
	a.host.Entities, err = entity.Current(ctx, copied, a.schema, entity.Options{CursorKey: keys.Derive("cursors"), Logger: r.opt.Logger})
	if err == nil && a.host.Entities == nil {
		err = fault.New(fault.Conflict, "the rows of the store have another schema than the release of the recording")
	}
	if err != nil {
		return nil, err
	}
	player.Live = true
	replayed, err := r.replay(ctx, a, rec, player, func(run func(*store.Tx) error) error {
		var outcome error
		_, err := copied.Update(ctx, func(tx *store.Tx) error {
			outcome = run(tx)
			return errDropped
		})
		if err != errDropped {
			return err
		}
		return outcome
	})
	if replayed != nil {
		replayed.Against = string(against)
	}
	return replayed, err
}

// errDropped ends the transaction of a replay.
var errDropped = errors.New("a replay stores nothing")

// replayBundle returns the bundle with the module of the replay, which draws what the recorded one drew.
func replayBundle(rec *recording.Recording, opt ReplayOptions) (*Bundle, error) {
	b := *opt.Bundle
	b.Modules = slices.Clone(b.Modules)
	i := slices.IndexFunc(b.Modules, func(m ModuleFile) bool { return m.Name == rec.Module })
	if i < 0 {
		return nil, fault.New(fault.Invalid, "the release has no module %s, which the recording is of", rec.Module)
	}
	m := &b.Modules[i]
	if opt.Module != nil {
		m.Wasm, m.Debug, m.DebugErr = opt.Module, nil, nil
	} else if sum := sha256.Sum256(m.Wasm); rec.Release != "" && hex.EncodeToString(sum[:]) != rec.Sum {
		return nil, fault.New(fault.Invalid, "%s of the release is not the module that the recording is of, whose SHA-256 is %s: name a module with --module",
			rec.Module, rec.Sum)
	}
	m.Draws = &rec.Image
	return &b, nil
}

// replay runs the handler of a bound bundle, in a transaction that begin calls its argument with, or nil.
func (r *Runtime) replay(ctx context.Context, a *activeBundle, rec *recording.Recording, player *recording.Player,
	begin func(func(*store.Tx) error) error) (*Replayed, error) {
	i := slices.IndexFunc(a.routes, func(rt route) bool { return rt.Handler == rec.Handler && rt.Path == rec.Request.Route })
	if i < 0 {
		return nil, fault.New(fault.Invalid, "the release has no handler %s for %s, which the recording is of", rec.Handler, rec.Request.Route)
	}
	rt, inv := &a.routes[i], &invocation{}
	host := *a.host
	host.Logger = slog.New(slog.DiscardHandler) // the events have what it logs
	request, sent := player.Recording.Request.Request(rec.ID)
	inv.begin()
	inv.startDeadline(ctx, rt.timeout)
	defer inv.end()
	inv.input.request = request
	call := &inv.call
	call.Input = hostabi.Input{
		Context: inv.deadline, Host: hostabi.NewHost(host), Request: request, SentBody: sent,
		Caller: player.Recording.Caller.Caller(), Address: rec.Caller.Address, Attempt: rec.Runs,
		CreatesSession: rec.Request.CreatesSession, HostCORS: rec.Request.HostCORS, OwnChallenge: rec.Request.OwnChallenge,
		Recorder: &inv.recorder.events, Draws: player.Draws, Player: player,
	}
	var err error
	if call.Caller.Claims != nil {
		if call.Caller.Claimed, err = schema.ReadClaims(call.Caller.Claims); err != nil {
			return nil, fault.New(fault.Invalid, "the claims of the recorded caller: %v", err)
		}
	}
	err = rt.invokeFault(ctx, begin(func(tx *store.Tx) error {
		call.Tx = tx
		return rt.runOnce(call, &inv.work)
	}))
	inv.failure, _ = call.Failures()
	if err != nil && isFailure(fault.CodeOf(err)) {
		inv.failure = completed(inv.failure, fault.Of(err))
	}
	made := &recording.Recording{Outcome: inv.outcome(err)}
	made.Outcome.Failed = inv.hasFailed(err)
	inv.recorder.events.Take(made)
	made.Rename(player.Hide)
	replayed := &Replayed{Divergence: player.Divergence(), Left: player.Left(), Outcome: made.Outcome, Events: made.Events}
	if replayed.Events == nil {
		replayed.Events = []recording.Event{}
	}
	replayed.judge(rec, player)
	return replayed, nil
}

// judge compares a replay with the recorded run.
func (p *Replayed) judge(rec *recording.Recording, player *recording.Player) {
	was, now := &rec.Outcome, &p.Outcome
	ended := now.Describe()
	switch {
	case p.Divergence != nil && player.Live:
		p.Verdict = Diverges
		p.Text = "diverges at " + p.Divergence.String() + "; against a copy of the store it ends with " + ended
	case p.Divergence != nil:
		p.Verdict, p.Text = Diverges, "diverges at "+p.Divergence.String()
	case player.Reached():
		p.Verdict = Reaches
		p.Text = fmt.Sprintf("reaches the place where the recorded run ended (%s): call %d of %d; times are not compared",
			was.Describe(), rec.Calls()-p.Left, rec.Calls())
		p.Outcome = recording.Outcome{}
	case was.Limit && now.Limit:
		p.Verdict, p.Text = Reaches, "ends at a limit again: "+ended+"; times are not compared"
	case was.Code == string(fault.WriteConflict) && !now.Failed:
		p.Verdict, p.Text = Passes, "answers "+ended+": the recorded run failed by a conflict with other requests, which a replay does not have"
	case was.Failed && !now.Failed:
		p.Verdict, p.Text = Passes, "now passes: "+ended
	case sameOutcome(was, now) && was.Failed:
		p.Verdict, p.Text = Same, "fails the same way: "+ended
	case sameOutcome(was, now):
		p.Verdict, p.Text = Same, "answers the same: "+ended
	case now.Failed:
		p.Verdict, p.Text = Other, "fails differently: "+ended+"; recorded: "+was.Describe()
	default:
		p.Verdict, p.Text = Other, "answers differently: "+ended+"; recorded: "+was.Describe()
	}
	if p.Left > 0 && p.Divergence == nil && p.Verdict != Reaches {
		p.Text += fmt.Sprintf("; %d recorded calls were not made", p.Left)
	}
}

// sameOutcome reports whether the replay b ended in the same way as a. Frames may differ: another build has other lines.
func sameOutcome(a, b *recording.Outcome) bool {
	same := a.Status == b.Status && a.Code == b.Code && a.Failure == b.Failure && a.Message == b.Message && (a.Streamed || string(a.Body) == string(b.Body))
	return same && slices.EqualFunc(a.Headers, b.Headers, func(x, y [2]recording.Text) bool {
		return string(x[0]) == string(y[0]) && string(x[1]) == string(y[1])
	})
}
