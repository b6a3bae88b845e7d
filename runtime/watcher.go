package runtime

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"runner.example/hostabi"
	"runner.example/hostabi/abi"
	"runner.example/internal/caller"
	"runner.example/internal/clock"
	"runner.example/internal/fairqueue"
	"runner.example/internal/fault"
	"runner.example/runtime/auth"
	"runner.example/runtime/front"
	"runner.example/runtime/live"
	"runner.example/runtime/router"
	"runner.example/schema"
)

const (
	// maxWatches is how many live routes one connection may watch.
	maxWatches = 100
	// maxWatchBody limits the body of a request to a shared connection, in bytes.
	maxWatchBody = 256 << 10
	// recheckInterval is the time after which the authority of watches is checked even if no key and no session has changed:
	// a session may have expired.
	recheckInterval = time.Second
)

var (
	errNoConnection = fault.New(fault.NotFound, "the connection is not open on this server, or was opened with another credential: open another one with all its watches")
	errWatches      = fault.New(fault.RateLimited, "too many watches are open on this server, or by this caller: close some, or try again later")
	errManyWatches  = fault.New(fault.InvalidRequest, "a connection may have at most %d watches", maxWatches)
	errWatchName    = fault.New(fault.InvalidRequest, "the name of a watch must have 1 to 64 characters of A-Z a-z 0-9 . _ -")
	errSharedPath   = fault.New(fault.InvalidRequest, "the path of a watch must begin with the prefix of its connection, without scheme and host")
)

var watchName = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

// watchers has the shared connections that are open, and limits the number of watches. Any goroutine may use it.
type watchers struct {
	mu       sync.Mutex
	byToken  map[string]*watcher // shared connections
	held     map[string]int      // the number of watches of each caller
	free     int                 // the number of watches that may be added
	draining chan struct{}       // closed when all connections must end
	ended    bool                // draining is closed
}

func newWatchers(limit int) *watchers {
	return &watchers{byToken: map[string]*watcher{}, held: map[string]int{}, free: limit, draining: make(chan struct{})}
}

// end ends all connections.
func (ws *watchers) end() {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if !ws.ended {
		ws.ended = true
		close(ws.draining)
	}
}

// take counts another watch of a caller, which release must return. The error says why the caller may not have it.
func (ws *watchers) take(who string) error {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	switch {
	case ws.ended:
		return errDraining
	case !fairqueue.Share(ws.held[who], ws.free):
		return errWatches
	}
	ws.held[who]++
	ws.free--
	return nil
}

// release returns a watch of a caller that take has counted.
func (ws *watchers) release(who string) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	ws.free++
	if ws.held[who]--; ws.held[who] == 0 {
		delete(ws.held, who)
	}
}

// watcher is a connection with the watches of one client. A connection of GET has one watch, a shared one any number.
type watcher struct {
	runtime   *Runtime
	exchange  *front.Exchange
	listener  *live.Listener[liveQuery]
	presented auth.Presented // for every route; see presentedTo
	route     *route         // the shared one, or that of the only watch
	token     string         // of a shared connection; else empty
	party     string         // the caller whose watches a shared connection counts with, as one
	longest   time.Duration  // from the first event to the end of the connection

	mu      sync.Mutex // guards what follows, and the use of the exchange by other goroutines
	ended   bool       // serve has ended, or the client has hung up
	watches map[string]*watch
	// Of the last check: the epoch of the keystore, the activation and the time.
	epoch, activation uint64
	checked           time.Time
}

// watch is one watch of a connection. A watch that has ended keeps its name until its last event is sent, so that it counts
// for maxWatches.
type watch struct {
	query liveQuery
	key   string // of query, which the subscription has
	sub   *live.Subscription[liveQuery]
	party string // the caller whose watches it counts with; empty if it has ended
}

// authResult is the result of authentication of the client of a connection, for one route.
type authResult struct {
	caller caller.Caller
	err    error
}

// authResults are the results of one check by route, so that a refused credential counts once for a route.
type authResults map[*route]authResult

// admitted is a watch that may begin, unless err says why not.
type admitted struct {
	watchSpec
	query liveQuery
	err   error
}

// watchRequest is the body of a request to a shared connection: one that opens it, or one that changes it.
type watchRequest struct {
	Watches    []watchSpec `json:"watches"`
	Connection string      `json:"connection"`
	Add        []watchSpec `json:"add"`
	Remove     []string    `json:"remove"`
}

type watchSpec struct {
	Name        string `json:"name"`
	Path        string `json:"path"`
	LastEventID string `json:"lastEventId"`
}

// wantsEvents reports whether the request asks to watch its route.
func (s *requestState) wantsEvents(x *front.Exchange) bool {
	if s.route.Live == 0 || !bytes.Equal(x.Request.Method, methodGet) {
		return false
	}
	accept, _ := x.Header("accept")
	for one := range bytes.SplitSeq(accept, []byte{','}) {
		media, _, _ := bytes.Cut(one, []byte{';'})
		if bytes.EqualFold(bytes.TrimSpace(media), []byte("text/event-stream")) {
			return true
		}
	}
	return false
}

// newWatcher returns a connection without watches for a request.
func (r *Runtime) newWatcher(a *activeBundle, s *requestState, x *front.Exchange) *watcher {
	w := &watcher{
		runtime: r, exchange: x, listener: r.live.Listen(), route: s.route, longest: s.route.Live, watches: map[string]*watch{},
		epoch: r.opt.Keystore.Epoch(), activation: a.activation, checked: clock.Mark(),
		presented: a.present(x),
	}
	a.presentCookie(&w.presented, x)
	w.presented.Method = methodGet
	return w
}

// watchOne opens a connection with one watch, of the route of an admitted request.
func (r *Runtime) watchOne(a *activeBundle, s *requestState, x *front.Exchange) (*watcher, error) {
	w := r.newWatcher(a, s, x)
	q, err := newLiveQuery(a, x.Request.Path, x.Request.RawQuery, s.caller)
	if err == nil {
		err = q.check(r, a, s.route, &s.match)
	}
	if err != nil {
		return nil, err
	}
	last, _ := x.Header("last-event-id")
	return w, w.join("", string(last), q)
}

// watchMany opens a shared connection, or changes one. If it has changed one, the watcher is nil and the request is answered.
func (r *Runtime) watchMany(a *activeBundle, s *requestState, x *front.Exchange) (*watcher, error) {
	if err := x.ReadBody(maxWatchBody); err != nil {
		return nil, err
	}
	request, err := readWatchRequest(x.Request.Body)
	if err != nil {
		return nil, err
	}
	if request.Connection == "" {
		w := r.newWatcher(a, s, x)
		who := string(caller.AppendAddress(nil, w.presented.Address))
		if err := r.watchers.take(who); err != nil {
			return nil, err
		}
		w.token, w.party = rand.Text(), who
		if err := w.change(a, nil, request.Watches); err != nil {
			w.close()
			return nil, err
		}
		return w, nil
	}
	r.watchers.mu.Lock()
	w := r.watchers.byToken[request.Connection]
	r.watchers.mu.Unlock()
	if w == nil || w.route.Path != s.route.Path {
		return nil, errNoConnection
	}
	presented := a.present(x)
	a.presentCookie(&presented, x)
	if !w.isOf(&presented) {
		return nil, errNoConnection
	}
	if err := w.change(a, request.Remove, request.Add); err != nil {
		return nil, err
	}
	x.Send(&noContent)
	return nil, nil
}

// readWatchRequest reads the body of a request to a shared connection.
func readWatchRequest(body []byte) (*watchRequest, error) {
	var request watchRequest
	err := schema.CheckJSON(body)
	if err == nil {
		decoder := json.NewDecoder(bytes.NewReader(body))
		decoder.DisallowUnknownFields()
		err = decoder.Decode(&request)
	}
	if opens := request.Connection == ""; err == nil && (opens && (request.Add != nil || request.Remove != nil) || !opens && request.Watches != nil) {
		err = errors.New("watches opens a connection; add and remove change the one whose token is in connection")
	}
	if err != nil {
		return nil, fault.New(fault.InvalidJSON, `the body must be {"watches": [{"name", "path", "lastEventId"}]}, or {"connection", "add", "remove"}: %v`, err)
	}
	return &request, nil
}

// isOf reports whether w is open and was opened with the same credentials.
func (w *watcher) isOf(presented *auth.Presented) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.ended && bytes.Equal(w.presented.Authorization, presented.Authorization) &&
		bytes.Equal(w.presented.APIKey, presented.APIKey) && bytes.Equal(w.presented.Cookie, presented.Cookie)
}

// change removes and adds watches. A watch that is refused gets an event with the reason. An error concerns the whole
// request: then nothing has changed, unless the server is shutting down.
func (w *watcher) change(a *activeBundle, remove []string, specs []watchSpec) error {
	for _, spec := range specs {
		if !watchName.MatchString(spec.Name) {
			return errWatchName
		}
		if !strings.HasPrefix(spec.Path, w.route.Prefix+"/") {
			return errSharedPath
		}
	}
	if len(specs) > maxWatches {
		return errManyWatches
	}
	// Authentication may wait for the store, so the connection is not locked.
	all, seen := make([]admitted, len(specs)), authResults{}
	for i, spec := range specs {
		one := &all[i]
		one.watchSpec = spec
		if one.query, one.err = w.admit(a, spec.Path, seen); isTransient(one.err) {
			return one.err
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended {
		return errNoConnection
	}
	names := map[string]bool{}
	for name := range w.watches {
		names[name] = true
	}
	for _, name := range remove {
		delete(names, name)
	}
	for i := range all {
		names[all[i].Name] = true
	}
	if len(names) > maxWatches {
		return errManyWatches
	}
	for _, name := range remove {
		w.remove(name)
	}
	for i := range all {
		one := &all[i]
		w.remove(one.Name)
		err := one.err
		if err == nil {
			err = w.join(one.Name, one.LastEventID, one.query)
		}
		switch {
		case err == errDraining:
			return err
		case err != nil:
			e := problemEvent(eventEnd, err, "")
			w.watches[one.Name] = &watch{sub: w.listener.Refuse(one.Name, &e)}
		}
	}
	return nil
}

// isTransient reports whether the error means that the server could not decide, and may decide otherwise later.
func isTransient(err error) bool {
	switch fault.CodeOf(err) {
	case fault.Unavailable, fault.Overloaded, fault.KeyStoreStale, fault.NotReady:
		return true
	}
	return false
}

// authenticate authenticates the client of the connection for a route.
func (w *watcher) authenticate(a *activeBundle, rt *route, seen authResults) (caller.Caller, error) {
	result, ok := seen[rt]
	if !ok {
		result.caller, result.err = w.runtime.auth.Check(w.runtime.serving, a.schema, a.tokens, rt.Route, w.presentedTo(rt), w.runtime.opt.Calendar())
		seen[rt] = result
	}
	return result.caller, result.err
}

// admit returns the query of a watch of a shared connection. It admits the watch by the rules for a request for its path:
// credentials, rate limits and the type of the query.
func (w *watcher) admit(a *activeBundle, target string, seen authResults) (q liveQuery, err error) {
	r := w.runtime
	if err := r.front.CheckTarget([]byte(target)); err != nil {
		return q, err
	}
	path, raw, has := strings.Cut(target, "?")
	s := r.requests.Get().(*requestState)
	defer r.requests.Put(s)
	s.begin()
	defer s.end()
	rt, err := a.liveRoute([]byte(path), &s.match)
	if err != nil {
		return q, err
	}
	s.route = rt
	if s.caller, err = w.authenticate(a, rt, seen); err != nil {
		return q, err
	}
	if !r.takeLimits(a, s, w.presented.Address) {
		return q, errRateLimited
	}
	var query []byte
	if has {
		query = []byte(raw)
	}
	if q, err = newLiveQuery(a, []byte(path), query, s.caller); err == nil {
		err = q.check(r, a, rt, &s.match)
	}
	return q, err
}

// join adds a watch of a query. The client has the value already if its hash is in lastEventID.
func (w *watcher) join(name, lastEventID string, q liveQuery) error {
	one := &watch{query: q, key: q.key(), party: string(q.caller.AppendIdentity(nil, w.presented.Address))}
	if err := w.runtime.watchers.take(one.party); err != nil {
		return err
	}
	_, text, _ := strings.Cut(lastEventID, "-")
	hash, err := strconv.ParseUint(text, 16, 64)
	one.sub = w.listener.Subscribe(name, one.key, q, hash, err == nil)
	w.watches[name] = one
	return nil
}

// remove ends a watch, if there is one of this name. The client gets no further event of it.
func (w *watcher) remove(name string) {
	if one := w.watches[name]; one != nil {
		delete(w.watches, name)
		w.end(one, nil)
	}
}

// end ends a watch. If final is not nil, the client gets it.
func (w *watcher) end(one *watch, final *live.Event) {
	one.sub.End(final)
	if one.party != "" {
		w.runtime.watchers.release(one.party)
		one.party = ""
	}
}

// close ends all watches and removes the connection from those that are open.
func (w *watcher) close() {
	w.runtime.streams.remove(w)
	w.runtime.watchers.mu.Lock()
	delete(w.runtime.watchers.byToken, w.token)
	w.runtime.watchers.mu.Unlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = true
	for name := range w.watches {
		w.remove(name)
	}
	if w.party != "" {
		w.runtime.watchers.release(w.party)
	}
}

// presentedTo returns the credentials of the client for a route: without the cookie, if the route accepts no session.
func (w *watcher) presentedTo(rt *route) auth.Presented {
	p := w.presented
	if !rt.Auth.Session {
		p.Cookie, p.Cookies = nil, 0
	}
	return p
}

// check implements longAnswer: it checks the authority of each watch after a change of keys, sessions or the release, and
// after recheckInterval.
func (w *watcher) check() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended {
		return
	}
	r := w.runtime
	a := r.acquire()
	if a == nil {
		return
	}
	defer a.unref()
	epoch, now := r.opt.Keystore.Epoch(), clock.Mark()
	if epoch == w.epoch && a.activation == w.activation && now.Sub(w.checked) < recheckInterval {
		return
	}
	if w.exchange.HungUp() { // without events, no write would fail
		w.ended = true
		w.listener.Signal()
		return
	}
	w.epoch, w.activation, w.checked = epoch, a.activation, now
	seen := authResults{}
	for _, one := range w.watches {
		if one.party == "" { // it has ended
			continue
		}
		if err := w.checkWatch(a, one, seen); err != nil {
			e := problemEvent(eventEnd, err, "")
			w.end(one, &e)
		}
	}
}

// checkWatch authenticates the caller of a watch again, and moves the watch to another query if the caller's authority or
// the release has changed. The error says why the watch must end.
func (w *watcher) checkWatch(a *activeBundle, one *watch, seen authResults) error {
	var m router.Match
	rt, err := a.liveRoute(one.query.path, &m)
	if err != nil {
		return err
	}
	who, err := w.authenticate(a, rt, seen)
	if isTransient(err) {
		return nil
	}
	if err != nil {
		return err
	}
	one.query.activation, one.query.caller = a.activation, who
	if key := one.query.key(); key != one.key {
		one.key = key
		one.sub.Move(key, one.query)
	}
	return nil
}

// serve sends the events of the connection until its time is over, its client is gone, its only watch has ended, or the
// server shuts down.
func (w *watcher) serve() {
	defer w.close()
	defer w.listener.Disarm()
	x := w.exchange
	x.Private = x.Private || w.token != ""
	head := abi.Response{Status: 200}
	head.AddHeader([]byte("content-type"), []byte("text/event-stream"))
	waits, err := x.BeginStream(&head)
	if err == nil && waits {
		err = x.Flush()
	}
	w.runtime.streams.add(w)
	if err == nil && w.token != "" {
		w.runtime.watchers.mu.Lock()
		w.runtime.watchers.byToken[w.token] = w
		w.runtime.watchers.mu.Unlock()
		err = w.write(fmt.Appendf(nil, "event: open\ndata: {\"connection\":%q}\n\n", w.token))
	}
	timeout := time.NewTimer(w.longest)
	defer timeout.Stop()
	for err == nil && !w.hasEnded() {
		var final bool
		if final, err = w.send(); final || err != nil {
			break
		}
		w.listener.Arm()
		select {
		case <-w.listener.Wake:
			continue
		case <-timeout.C:
		case <-w.runtime.watchers.draining:
		}
		break
	}
	w.mu.Lock()
	w.ended = true // from here on check does not use the exchange
	w.mu.Unlock()
	x.EndStream(err == nil, nil)
}

// hasEnded reports whether check has found that the client has hung up.
func (w *watcher) hasEnded() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ended
}

// send sends all events that the listener has. final means that the only watch of the connection has ended with one.
func (w *watcher) send() (final bool, err error) {
	var out []byte
	for {
		sub, e, unchanged := w.listener.Next()
		if sub == nil || len(out) >= hostabi.StreamPart {
			if len(out) > 0 {
				err = w.write(out)
				out = out[:0]
			}
			if sub == nil || err != nil {
				return false, err
			}
		}
		if unchanged {
			out = append(out, ": unchanged\n\n"...)
			continue
		}
		w.runtime.metrics.liveEvents[e.Kind].Inc()
		out = append(append(append(out, "event: "...), e.Kind...), '\n')
		if sub.Name != "" {
			out = append(append(append(out, "watch: "...), sub.Name...), '\n')
		}
		out = append(append(append(out, "id: "...), e.ID()...), '\n')
		if len(e.Data) < hostabi.StreamPart {
			out = append(out, e.Data...)
		} else { // no copy: several connections may send a large value
			if err = w.write(out); err == nil {
				err = w.write(e.Data)
			}
			out = out[:0]
			if err != nil {
				return false, err
			}
		}
		if !e.Last {
			continue
		}
		w.mu.Lock()
		if one := w.watches[sub.Name]; one != nil && one.sub == sub {
			w.remove(sub.Name)
		}
		w.mu.Unlock()
		if w.token == "" {
			return true, w.write(out)
		}
	}
}

// write writes bytes to the client, and waits until the kernel has them.
func (w *watcher) write(b []byte) error {
	for len(b) > 0 {
		part := b[:min(len(b), hostabi.StreamPart)]
		b = b[len(part):]
		waits, err := w.exchange.WritePart(part)
		if err == nil && waits {
			w.listener.Disarm()
			err = w.exchange.Flush()
		}
		if err != nil {
			return err
		}
	}
	return nil
}
