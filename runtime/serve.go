package runtime

import (
	"bytes"
	"log/slog"
	"time"

	"runner.example/hostabi"
	"runner.example/internal/caller"
	"runner.example/runtime/assets"
	"runner.example/runtime/auth"
	"runner.example/runtime/front"
	"runner.example/runtime/limit"
	"runner.example/runtime/router"
)

// requestState is the state of one HTTP request beside its exchange. It is pooled.
type requestState struct {
	invocation
	stream      streamedAnswer
	streamsBody bool // its body has not arrived when the handler begins

	match  router.Match
	asset  assets.Answer // of the site of its route
	body   []byte        // as it was sent
	route  *route        // nil until it is found
	caller caller.Caller // the zero value until it is authenticated
	// session is the session of the client's cookie, on routes that open sessions.
	session string
	// clearsCookie reports that the answer removes the client's invalid cookie.
	clearsCookie bool

	uses      []limit.Use
	names     []byte // of the callers in uses
	presented auth.Presented
	remaining []byte // the RateLimit header
	policy    []byte // the RateLimit-Policy header, if limits are divided
	attrs     []slog.Attr
}

// serve answers one request.
func (r *Runtime) serve(x *front.Exchange) {
	if r.serveHealth(x) {
		return
	}
	if r.opt.Tools != nil && bytes.HasPrefix(x.Request.Path, []byte(ToolsPath)) {
		x.ServeHTTP(r.opt.Tools)
		return
	}
	s := r.requests.Get().(*requestState)
	defer r.requests.Put(s)
	s.begin()
	defer s.end()
	now := x.Started
	if r.fork != nil {
		now = r.opt.Calendar()
	}
	err := r.handle(s, x, now)
	if err == errRouteNotFound && r.opt.Unrouted != nil {
		x.ServeHTTP(r.opt.Unrouted)
		return
	}
	if err != nil {
		x.Refuse(err, refusalDetails(err, s))
	}
	if log := r.accessLog.Load(); log || r.opt.Metrics != nil {
		took := time.Since(x.Started)
		r.measure(s, x.Status(), took)
		if log {
			r.logRequest(s, x, err, took)
		}
	}
}

// end drops what belongs to the request. After a panic its streamed answer may not have ended.
func (s *requestState) end() {
	s.stream.stopChecks()
	s.stream = streamedAnswer{}
	s.invocation.end()
}

func (s *requestState) begin() {
	s.invocation.begin()
	s.body, s.route, s.caller, s.session, s.asset = nil, nil, caller.Caller{}, "", assets.Answer{}
	s.clearsCookie = false
}

// handle admits the request and runs its handler. When the schema of the rows has changed
// meanwhile, the handler runs again on the next active bundle: without counting the request
// again, but with the authority that the caller has there.
func (r *Runtime) handle(s *requestState, x *front.Exchange, now time.Time) error {
	var w *watcher
	err := r.onActive(func(a *activeBundle, n int) error {
		answered, err := r.admit(a, s, x, now, n == 1)
		switch {
		case answered || err != nil:
			return err
		case s.route.site != nil:
			return s.sendAsset(x)
		case s.route.shared:
			w, err = r.watchMany(a, s, x)
			return err
		case s.route.links:
			return r.serveLink(a, s, x)
		case s.wantsEvents(x):
			w, err = r.watchOne(a, s, x)
			return err
		}
		if s.route.File != nil {
			return r.serveFile(a, s, x)
		}
		if s.route.Upload {
			err = r.readUpload(s, x)
		} else {
			err = s.readBody(x)
		}
		if err != nil {
			return err
		}
		return r.respond(a, s, x)
	})
	if w != nil && err == nil { // it holds no bundle, so that the next one is active at once
		w.serve()
	}
	return err
}

// respond checks the signature and the body, runs the handler, and sends its answer after the
// commit.
func (r *Runtime) respond(a *activeBundle, s *requestState, x *front.Exchange) error {
	rt := s.route
	x.BuildHeaders()
	s.input = input{
		request: &x.Request, body: s.body, caller: &s.caller, address: x.Address(), answerMemory: x,
		opensSessions: rt.CreatesSession, session: s.session,
		hostCORS:     rt.CORS != nil || rt.Auth.Session && a.cookie != "",
		ownChallenge: !rt.Auth.ChecksCredentials(),
		open:         s.caller.Kind == caller.Anonymous && rt.Verify == nil,
		sendsFiles:   rt.result == nil,
	}
	if rt.Verify != nil {
		if err := r.verifyDelivery(r.serving, a, rt, &s.invocation); err != nil {
			return err
		}
	}
	if rt.result == nil && rt.Verify == nil {
		s.stream = streamedAnswer{runtime: r, bundle: a, request: s, exchange: x}
		s.input.stream = &s.stream
	}
	if s.streamsBody {
		s.input.bodyStream = streamedBody{&s.stream}
	}
	err := r.invoke(r.serving, a, rt, &s.invocation)
	if x.IsStreaming() {
		s.stream.end(err)
		return nil
	}
	switch err {
	case nil:
		s.addCookie(a, x, s.call.SetCookie())
	case errWritesDiscarded:
	case errDuplicateDelivery:
		r.noteRepeated(rt, &s.input)
		s.call.Response = noContent
	default:
		return err
	}
	if err != nil {
		s.addCookie(a, x, "")
	}
	if s.call.Response.File != nil {
		return r.sendFile(x, &s.call.Response)
	}
	x.Send(&s.call.Response)
	return nil
}

// addCookie adds the cookie of the session that the handler has opened. If there is none, it removes the client's invalid
// one.
func (s *requestState) addCookie(a *activeBundle, x *front.Exchange, cookie string) {
	if cookie == "" && s.clearsCookie {
		cookie = hostabi.ClearedCookie(a.schema.Auth.Cookie)
	}
	if cookie != "" {
		x.Private, x.NoStore = true, true
		x.AddHeader("Set-Cookie", []byte(cookie))
	}
}
