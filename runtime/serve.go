package runtime

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"runner.example/entity"
	"runner.example/hostabi"
	"runner.example/hostabi/abi"
	"runner.example/internal/caller"
	"runner.example/internal/fault"
	"runner.example/runtime/auth"
	"runner.example/runtime/front"
	"runner.example/runtime/limit"
	"runner.example/runtime/router"
	"runner.example/runtime/sandbox"
	"runner.example/store"
	"runner.example/webhook"
)

// visit is what serving one request needs beside the exchange. It is pooled.
type visit struct {
	match router.Match
	uses  []limit.Use
	names []byte // of the callers in uses
	state []byte // of the limits, for the RateLimit header
	body  []byte // with defaults filled in
	// session is what the client's cookie is of, where it matters.
	session string
	// allowed: the answer says which pages may read it. It does so once, as counted.
	allowed bool
	call    hostabi.Call
	work    sandbox.Work // for the request beside the call
	// counted: the request has been counted against its limits. It is once, also
	// when it is served by one release after another.
	counted bool
	// deadline is the request's, and attempts counts its runs, over all releases
	// that it goes through.
	deadline *hostabi.Deadline
	attempts int
}

// keptBodyBytes is the most that an idle visit keeps of its body.
const keptBodyBytes = 64 << 10

// stop is the end of the request.
func (v *visit) stop() {
	if v.deadline != nil {
		v.deadline.Stop()
		v.deadline = nil
	}
	if cap(v.body) > keptBodyBytes {
		v.body = nil
	}
	if cap(v.call.Response.Body) > keptBodyBytes { // it may be the exchange's
		v.call.Response.Body = nil
	}
}

// maxReleases is how many releases a request goes through whose rows changed
// their schema under it.
const maxReleases = 3

// maxSwap is how long a request waits for the release after its own.
const maxSwap = time.Second

// serve lets a request walk the corridor of the active release, and of the one
// after it when the schema was changed meanwhile.
func (r *Runtime) serve(x *front.Exchange) {
	started := time.Now()
	if r.serveHealth(x) {
		return
	}
	v := r.visits.Get().(*visit)
	defer r.visits.Put(v)
	v.counted, v.allowed, v.attempts = false, false, 0
	defer v.stop()
	for tries := 1; ; tries++ {
		outdated := r.try(v, x, started, tries == maxReleases)
		if outdated == nil {
			return
		}
		r.await(outdated)
	}
}

// try lets a request walk the corridor of the active release, and gives it back when
// that is outdated. It leaves the release whatever happens there.
func (r *Runtime) try(v *visit, x *front.Exchange, started time.Time, last bool) (outdated *release) {
	rel := r.enter()
	if rel == nil {
		x.Refuse(errNotReady, front.Extra{RetryAfter: 1})
		r.logAccess(x, v, nil, nil, errNotReady, time.Since(started))
		return nil
	}
	defer rel.leave()
	if r.walk(rel, v, x, started, last) {
		return rel
	}
	return nil
}

// await waits until the release is no longer the active one. The store has the
// next one's schema already, so that is a matter of moments.
func (r *Runtime) await(rel *release) {
	limit := time.NewTimer(maxSwap)
	defer limit.Stop()
	select {
	case <-rel.replaced:
	case <-limit.C:
	}
}

// walk is the corridor: each step either refuses or hands on. It reports, with
// nothing answered yet, that the release is outdated; when this is the last one,
// that is refused too.
func (r *Runtime) walk(rel *release, v *visit, x *front.Exchange, started time.Time, last bool) (outdated bool) {
	x.Realm = rel.schema.App

	rt, who, err := r.admit(rel, v, x, started)
	if err == nil && rt != nil {
		err = r.run(rel, rt, who, v, x)
	}
	if errors.Is(err, entity.ErrOutdated) && !last {
		return true
	}
	if err != nil {
		x.Refuse(err, extra(err, v))
	}
	r.logAccess(x, v, rt, who, err, time.Since(started))
	return false
}

// admit finds the route and decides whether the caller may take it now. With
// neither a route nor an error the host itself has answered.
func (r *Runtime) admit(rel *release, v *visit, x *front.Exchange, now time.Time) (*route, *caller.Caller, error) {
	if preflight(rel, v, x) {
		return nil, nil, nil
	}
	v.match.Params = x.Request.Params[:0]
	switch rel.router.Match(x.Request.Method, x.Request.Path, &v.match) {
	case router.Found:
	case router.Options:
		x.AddHeader("Allow", []byte(v.match.Allow))
		x.Send(&noContent)
		return nil, nil, nil
	case router.MethodNotAllowed:
		return nil, nil, errMethodNotAllowed
	case router.BadPath:
		return nil, nil, errBadPath
	default:
		return nil, nil, errRouteNotFound
	}
	rt := &rel.routes[v.match.Route]
	x.Request.Route, x.Request.Params = rt.Path, v.match.Params

	if !v.allowed {
		rt.allowOrigin(x)
		v.allowed = true
	}

	credentials := x.Credentials()
	presented := auth.Presented{
		Authorization: credentials.Authorization, AuthorizationLines: credentials.AuthorizationLines,
		APIKey: credentials.APIKey, APIKeyLines: credentials.APIKeyLines,
		Address: x.Address(), RequestID: x.Request.ID,
	}
	epoch := r.opt.Keystore.Epoch()
	if !rt.Auth.None {
		x.Private = true
		x.StripCredentials(rel.cookie)
	}
	if (rt.Auth.Session || rt.CreatesSession) && rel.cookie != "" {
		presented.Cookie, presented.Cookies = x.Cookie(rel.cookie)
		presented.Method = x.Request.Method
		presented.Host, _ = x.Header("host")
		presented.Origin, presented.OriginLines = x.Header("origin")
		presented.FetchSite, presented.FetchSiteLines = x.Header("sec-fetch-site")
	}
	who, err := r.auth.Check(r.serving, rel.schema, rel.tokens, rt.Route, presented, now)
	if err != nil {
		return rt, nil, err
	}
	if err := r.count(rt, &who, v, x, now); err != nil {
		return rt, &who, err
	}
	if r.opt.Keystore.Epoch() != epoch { // a key changed since: was it this one?
		if who, err = r.auth.Check(r.serving, rel.schema, rel.tokens, rt.Route, presented, now); err != nil {
			return rt, nil, err
		}
	}
	v.session = who.SessionID
	if rt.Auth.None && rt.CreatesSession {
		v.session = r.auth.SessionOf(rel.schema, presented)
	}
	return rt, &who, nil
}

// count asks the route's limits, and tells the caller what is left.
func (r *Runtime) count(rt *route, who *caller.Caller, v *visit, x *front.Exchange, now time.Time) error {
	if len(rt.limits) == 0 || v.counted {
		return nil
	}
	v.counted = true
	v.uses, v.names = v.uses[:0], v.names[:0]
	address := x.Address()
	for _, l := range rt.limits {
		start := len(v.names)
		v.names = l.AppendCaller(v.names, who, address)
		v.uses = append(v.uses, limit.Use{Limit: l, Caller: v.names[start:]})
	}
	allowed := r.limiter.Take(now, v.uses)
	v.state = limit.AppendState(v.state[:0], v.uses)
	x.AddHeader("RateLimit-Policy", rt.policy)
	x.AddHeader("RateLimit", v.state)
	if !allowed {
		return errRateLimited
	}
	return nil
}

// run reads the body and runs the handler in a transaction, again when another
// request changed what it had read, and sends its answer after the commit.
func (r *Runtime) run(rel *release, rt *route, who *caller.Caller, v *visit, x *front.Exchange) error {
	if err := x.ReadBody(rt.bodyBytes); err != nil {
		return err
	}
	x.BuildHeaders()
	sent := x.Request.Body
	if sent == nil {
		sent = []byte{}
	}
	if v.deadline == nil {
		v.deadline = hostabi.NewDeadline(r.serving, time.Now().Add(rt.timeout)) // the handler's time: a slow sender has had its own
	}
	ctx, call := v.deadline, &v.call
	var delivery webhook.Delivery
	call.Used = 0
	if rt.verify != nil {
		var err error
		now := time.Now() // the sender's time is compared with the wall clock
		m := rt.module.BeginWork(ctx, &v.work, rt.Handler, rel.host.CPU())
		delivery, err = rt.verify.Verify(x.Request.Header, sent, now, m)
		if call.Used = v.work.End(); err != nil {
			r.opt.Logger.Info("signature refused", "requestId", x.Request.ID, "route", rt.Path, "address", x.Address().String(), "cause", err)
			return err
		}
		// How long it is known does not depend on it: else a jump would permit replays.
		delivery.Until = delivery.Until.Add(r.opt.Keystore.Now().Sub(now))
	}
	body, used, err := rt.checkBody(v, &rel.host, x.Request.Headers, x.Request.Body, rt.Auth.None && rt.verify == nil)
	if err != nil {
		return err
	}
	x.Request.Body = body
	call.Used += used
	call.Context, call.Host, call.Request, call.Caller = ctx, &rel.host, &x.Request, *who
	call.SentBody, call.Address, call.Bodies = sent, x.Address(), x
	_, err = r.opt.Store.Update(ctx, func(tx *store.Tx) error {
		if v.attempts > 0 && call.Sent() {
			return errSent
		}
		v.attempts++
		call.Tx, call.Attempt, call.Mints, call.ClientSession = tx, v.attempts, rt.CreatesSession, v.session
		call.HostCORS = rt.CORS != nil || rt.Auth.Session && rel.cookie != ""
		if rt.verify != nil {
			switch before, err := delivery.Handled(tx, rt.id, r.opt.Keystore.Now()); {
			case err != nil:
				return err
			case before:
				return errHandled
			}
		}
		if err := rt.answer(call, &v.work); err != nil {
			return err
		}
		if rt.verify != nil && call.Response.Status < 400 {
			return delivery.Record(tx, rt.id)
		}
		return nil
	})
	switch err {
	case nil, errWritesDropped:
	case errHandled:
		call.Response = noContent // that of an earlier request is not this one's
		x.Send(&call.Response)
		return nil
	default:
		return storeFault(err)
	}
	if cookie := call.SetCookie(); cookie != "" && err == nil {
		x.Private, x.NoStore = true, true
		x.AddHeader("Set-Cookie", []byte(cookie))
	}
	x.Send(&call.Response)
	return nil
}

// storeFault says what an error of the store means to a caller; the sandbox's
// are faults already.
func storeFault(err error) error {
	switch {
	case errors.Is(err, store.ErrConflict):
		return errConflict
	case errors.Is(err, store.ErrUnavailable) && !errors.Is(err, store.ErrUnknown):
		return fault.Wrap(err, fault.Unavailable, "the store is unavailable; nothing of the request was stored")
	case errors.Is(err, store.ErrUnknown):
		return fault.Wrap(err, fault.Unavailable, "the store did not answer; what the request wrote may or may not hold")
	}
	return err
}

// noContent is an answer of the host itself; nothing changes it.
var noContent = abi.Response{Status: 204}

var (
	errNotReady         = fault.New(fault.NotReady, "there is nothing to serve yet")
	errRouteNotFound    = fault.New(fault.RouteNotFound, "no route has this path")
	errMethodNotAllowed = fault.New(fault.MethodNotAllowed, "this path has other methods: see Allow")
	errBadPath          = fault.New(fault.BadPath, "the path has a character, an escape or a segment that is not accepted")
	errRateLimited      = fault.New(fault.RateLimited, "too many requests: wait as long as Retry-After says")
	errConflict         = fault.New(fault.Conflict, "other requests kept changing what this one had read; try again")
	errHandled          = errors.New("the delivery was handled before")
	errSent             = fault.New(fault.Conflict, "other requests changed what this one had read, and it cannot be run again: it has sent a request elsewhere")
	errAnswerMemory     = fault.New(fault.Overloaded, "there is no memory for an answer of this size at the moment")
	errWritesDropped    = errors.New("the handler answered an error: its writes are dropped")
)

// extra is what the headers of a refusal have to say.
func extra(err error, v *visit) front.Extra {
	switch err {
	case errMethodNotAllowed:
		return front.Extra{Allow: v.match.Allow}
	case errRateLimited:
		return front.Extra{RetryAfter: limit.RetryAfter(v.uses)}
	}
	if refusal, ok := errors.AsType[*auth.Refusal](err); ok {
		return front.Extra{Scope: refusal.Scopes, RetryAfter: refusal.RetryAfter}
	}
	if wrong, ok := errors.AsType[*inputError](err); ok {
		return front.Extra{Errors: wrong.errors}
	}
	if unavailable, ok := errors.AsType[*sandbox.Unavailable](err); ok {
		return front.Extra{RetryAfter: unavailable.RetryAfter}
	}
	return front.Extra{}
}

// logAccess tells how a request was answered; err is why it was refused.
func (r *Runtime) logAccess(x *front.Exchange, v *visit, rt *route, who *caller.Caller, err error, took time.Duration) {
	if !r.opt.AccessLog {
		return
	}
	attrs := []slog.Attr{
		slog.String("requestId", x.Request.ID),
		slog.String("method", string(x.Request.Method)),
		slog.Int("status", x.Status()),
		slog.Duration("took", took),
	}
	if rt != nil {
		attrs = append(attrs, slog.String("route", rt.Path))
	}
	if who != nil && who.KeyID != "" {
		attrs = append(attrs, slog.String("keyId", who.KeyID))
	}
	if r.opt.AccessDetail {
		attrs = append(attrs, slog.String("path", string(x.Request.Path)))
	}
	if r.opt.AccessDetail && err != nil {
		f := fault.Of(err)
		attrs = append(attrs, slog.String("code", string(f.Code)), slog.String("detail", f.Detail))
		if wrong, ok := errors.AsType[*inputError](err); ok {
			attrs = append(attrs, slog.String("errors", string(wrong.errors)))
		}
	}
	if answer := &v.call.Response; r.opt.AccessDetail && err == nil && rt != nil && answer.Code != "" {
		attrs = append(attrs, slog.String("code", answer.Code), slog.String("detail", answer.Detail))
	}
	r.opt.Logger.LogAttrs(context.Background(), slog.LevelInfo, "request", attrs...)
}
