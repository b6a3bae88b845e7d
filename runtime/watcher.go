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
	// recheckEvery is the pause after which a watch asks for its authority again even if no key and no session has changed:
	// a session may have expired.
	recheckEvery = time.Second
)

var (
	errNoConnection = fault.New(fault.NotFound, "this server has no such connection: open another one with all its watches")
	errWatches      = fault.New(fault.RateLimited, "too many watches are open at the moment, or of this caller")
	errManyWatches  = fault.New(fault.InvalidRequest, "a connection may have %d watches", maxWatches)
	errWatchName    = fault.New(fault.InvalidRequest, "the name of a watch has 1 to 64 of these: A-Z a-z 0-9 . _ -")
	errSharedPath   = fault.New(fault.InvalidRequest, "a path of a watch is on this server, and begins with the prefix of its connection")
)

var watchName = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

// watchers are the connections that watch live routes. Any goroutine may use them.
type watchers struct {
	mu      sync.Mutex
	byToken map[string]*watcher // shared connections
	held    map[string]int      // watches by caller
	free    int                 // watches that may be added
	over    chan struct{}       // closed when no connection may go on
	ended   bool
}

func newWatchers(most int) *watchers {
	return &watchers{byToken: map[string]*watcher{}, held: map[string]int{}, free: most, over: make(chan struct{})}
}

// end ends all connections.
func (ws *watchers) end() {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if !ws.ended {
		ws.ended = true
		close(ws.over)
	}
}

// take counts another watch of a caller. The error says why there may be none.
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

func (ws *watchers) giveBack(who string) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	ws.free++
	if ws.held[who]--; ws.held[who] == 0 {
		delete(ws.held, who)
	}
}

// watcher is a connection that watches live routes.
type watcher struct {
	runtime   *Runtime
	exchange  *front.Exchange
	listener  *live.Listener[liveQuery]
	presented auth.Presented // for every route; see presentedTo
	route     *route         // the shared one, or that of the only watch
	token     string         // of a shared connection
	party     string         // with whose watches a shared connection is counted
	longest   time.Duration

	mu      sync.Mutex // guards what follows, and the use of the exchange by other goroutines
	ended   bool       // it is over, or the client has hung up
	watches map[string]*watch
	// Of the last check: the epoch of the keystore, the activation and the time.
	epoch, activation uint64
	checked           time.Time
}

// watch is one watch of a connection. It keeps its name until its last event is taken, so that they are not many.
type watch struct {
	query liveQuery
	sub   *live.Subscription[liveQuery]
	party string // whose watches are counted together; "" if it has ended
}

// verdict is what authentication says about the client of a connection, for one route.
type verdict struct {
	caller caller.Caller
	err    error
}

// verdicts are those that were found at a time, so that a credential that is refused counts once for a route.
type verdicts map[*route]verdict

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

// newWatcher returns the connection of a request.
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

// watchOne begins to watch the route of an admitted request.
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

// watchMany opens a shared connection, or changes one: then the watcher is nil, and the request is answered.
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
			w.leave()
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
		err = errors.New("watches opens a connection, add and remove change the one that connection names")
	}
	if err != nil {
		return nil, fault.New(fault.InvalidJSON, `the body must be {"watches": [{"name", "path", "lastEventId"}]}, or {"connection", "add", "remove"}: %v`, err)
	}
	return &request, nil
}

// isOf reports whether w is open, and the sender presents what its client has presented.
func (w *watcher) isOf(presented *auth.Presented) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.ended && bytes.Equal(w.presented.Authorization, presented.Authorization) &&
		bytes.Equal(w.presented.APIKey, presented.APIKey) && bytes.Equal(w.presented.Cookie, presented.Cookie)
}

// change removes and adds watches. One that is refused gets an event that says so. The error is about the whole request;
// unless the server ends, nothing has changed then.
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
	// This may wait, so the connection is not locked.
	all, seen := make([]admitted, len(specs)), verdicts{}
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

// isTransient reports whether the error says only that the server could not decide now.
func isTransient(err error) bool {
	switch fault.CodeOf(err) {
	case fault.Unavailable, fault.Overloaded, fault.KeyStoreStale, fault.NotReady:
		return true
	}
	return false
}

// check authenticates the client of the connection for a route.
func (w *watcher) check(a *activeBundle, rt *route, seen verdicts) (caller.Caller, error) {
	v, ok := seen[rt]
	if !ok {
		v.caller, v.err = w.runtime.auth.Check(w.runtime.serving, a.schema, a.tokens, rt.Route, w.presentedTo(rt), w.runtime.opt.Calendar())
		seen[rt] = v
	}
	return v.caller, v.err
}

// admit returns the query of a watch of a shared connection, which is admitted as a request for its path is.
func (w *watcher) admit(a *activeBundle, target string, seen verdicts) (q liveQuery, err error) {
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
	if s.caller, err = w.check(a, rt, seen); err != nil {
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

// join subscribes to a query, whose value the client has already if last has its hash.
func (w *watcher) join(name, last string, q liveQuery) error {
	one := &watch{query: q, party: string(q.caller.AppendIdentity(nil, w.presented.Address))}
	if err := w.runtime.watchers.take(one.party); err != nil {
		return err
	}
	_, text, _ := strings.Cut(last, "-")
	hash, err := strconv.ParseUint(text, 16, 64)
	one.sub = w.listener.Subscribe(name, q.key(), q, hash, err == nil)
	w.watches[name] = one
	return nil
}

// remove ends a watch, if there is one of this name. The client gets no more of it.
func (w *watcher) remove(name string) {
	if one := w.watches[name]; one != nil {
		delete(w.watches, name)
		w.end(one, nil)
	}
}

// end ends a watch. If last is not nil, the client gets it.
func (w *watcher) end(one *watch, last *live.Event) {
	one.sub.End(last)
	if one.party != "" {
		w.runtime.watchers.giveBack(one.party)
		one.party = ""
	}
}

// leave ends all watches.
func (w *watcher) leave() {
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
		w.runtime.watchers.giveBack(w.party)
	}
}

// presentedTo is what the client presents to a route: without its cookie, if the route does not read that.
func (w *watcher) presentedTo(rt *route) auth.Presented {
	p := w.presented
	if !rt.Auth.Session {
		p.Cookie, p.Cookies = nil, 0
	}
	return p
}

// judge implements held: each watch asks for its authority again.
func (w *watcher) judge() {
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
	if epoch == w.epoch && a.activation == w.activation && now.Sub(w.checked) < recheckEvery {
		return
	}
	if w.exchange.HungUp() { // a client that gets no event is not missed otherwise
		w.ended = true
		w.listener.Signal()
		return
	}
	w.epoch, w.activation, w.checked = epoch, a.activation, now
	seen := verdicts{}
	for _, one := range w.watches {
		if one.party == "" { // it has ended
			continue
		}
		if err := w.recheck(a, one, seen); err != nil {
			e := problemEvent(eventEnd, err, "")
			w.end(one, &e)
		}
	}
}

// recheck moves a watch to the query of its caller, whose authority may have changed. The error says why it must end.
func (w *watcher) recheck(a *activeBundle, one *watch, seen verdicts) error {
	var m router.Match
	rt, err := a.liveRoute(one.query.path, &m)
	if err != nil {
		return err
	}
	who, err := w.check(a, rt, seen)
	if isTransient(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if one.query.activation != a.activation || !sameCaller(&who, &one.query.caller) {
		one.query.activation, one.query.caller = a.activation, who
		one.sub.Move(one.query.key(), one.query)
	}
	return nil
}

// serve sends the events of the connection until it ends: its time is over, its client is gone, or no watch is left of
// the only one.
func (w *watcher) serve() {
	defer w.leave()
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
	over := time.NewTimer(w.longest)
	defer over.Stop()
	for err == nil && !w.over() {
		var last bool
		if last, err = w.send(); last || err != nil {
			break
		}
		w.listener.Arm()
		select {
		case <-w.listener.Wake:
			continue
		case <-over.C:
		case <-w.runtime.watchers.over:
		}
		break
	}
	w.mu.Lock()
	w.ended = true // nobody else uses the exchange any more
	w.mu.Unlock()
	x.EndStream(err == nil, nil)
}

// over reports whether the client has hung up.
func (w *watcher) over() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ended
}

// send sends the events that there are; last: the connection has ended with one.
func (w *watcher) send() (last bool, err error) {
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
		} else { // a slow reader has no copy of it
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

// write writes bytes to the client, and waits until they are sent.
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
