package runtime

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"runner.example/hostabi"
	"runner.example/hostabi/abi"
	"runner.example/internal/clock"
	"runner.example/internal/fairqueue"
	"runner.example/internal/fault"
	"runner.example/runtime/auth"
	"runner.example/runtime/front"
	"runner.example/runtime/live"
	"runner.example/runtime/router"
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

// take counts another watch of a caller; false: there are too many.
func (ws *watchers) take(who string) bool {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if ws.ended || !fairqueue.Share(ws.held[who], ws.free) {
		return false
	}
	ws.held[who]++
	ws.free--
	return true
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
	longest   time.Duration

	mu      sync.Mutex // guards what follows, and the use of the exchange by other goroutines
	ended   bool       // it is over, or the client has hung up
	watches map[string]*watch
	epoch   uint64        // of the keystore, at the last check
	bundle  *activeBundle // of the last check; only compared
	checked time.Time
}

// watch is one watch of a connection.
type watch struct {
	query liveQuery
	sub   *live.Subscription[liveQuery]
	party string // whose watches are counted together
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
		epoch: r.opt.Keystore.Epoch(), bundle: a, checked: clock.Mark(),
		presented: a.present(x),
	}
	a.presentCookie(&w.presented, x)
	w.presented.Method = methodGet
	return w
}

// watchOne begins to watch the route of an admitted request.
func (r *Runtime) watchOne(a *activeBundle, s *requestState, x *front.Exchange) (*watcher, error) {
	w := r.newWatcher(a, s, x)
	q, err := newLiveQuery(x.Request.Path, x.Request.RawQuery, s.caller)
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
	var request watchRequest
	decoder := json.NewDecoder(bytes.NewReader(x.Request.Body))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&request); err != nil {
		return nil, fault.New(fault.InvalidJSON, `the body must be {"watches": [{"name", "path", "lastEventId"}]}, or {"connection", "add", "remove"}: %v`, err)
	}
	if request.Connection == "" {
		w := r.newWatcher(a, s, x)
		w.token = rand.Text()
		if err := w.add(a, request.Watches); err != nil {
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
	if err := w.change(a, presented, &request); err != nil {
		return nil, err
	}
	x.Send(&noContent)
	return nil, nil
}

// change adds and removes watches, for a sender who presents the same as that of the connection.
func (w *watcher) change(a *activeBundle, presented auth.Presented, request *watchRequest) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended || !bytes.Equal(w.presented.Authorization, presented.Authorization) ||
		!bytes.Equal(w.presented.APIKey, presented.APIKey) || !bytes.Equal(w.presented.Cookie, presented.Cookie) {
		return errNoConnection
	}
	for _, name := range request.Remove {
		w.remove(name, nil)
	}
	return w.add(a, request.Add)
}

// add adds watches. One that is refused gets an event that says so. The error is about the whole request.
func (w *watcher) add(a *activeBundle, specs []watchSpec) error {
	if len(w.watches)+len(specs) > maxWatches {
		return errManyWatches
	}
	for _, spec := range specs {
		if !watchName.MatchString(spec.Name) {
			return errWatchName
		}
		if !strings.HasPrefix(spec.Path, w.route.Prefix+"/") {
			return errSharedPath
		}
	}
	for _, spec := range specs {
		w.remove(spec.Name, nil)
		if err := w.admit(a, spec); err != nil {
			e := problemEvent(eventEnd, err, "")
			w.listener.Refuse(spec.Name, &e)
		}
	}
	return nil
}

// admit adds one watch of a shared connection, as a request for its path is admitted.
func (w *watcher) admit(a *activeBundle, spec watchSpec) error {
	r := w.runtime
	path, raw, has := strings.Cut(spec.Path, "?")
	s := r.requests.Get().(*requestState)
	defer r.requests.Put(s)
	s.begin()
	defer s.end()
	rt, err := a.liveRoute([]byte(path), &s.match)
	if err != nil {
		return err
	}
	s.route = rt
	if s.caller, err = r.auth.Check(r.serving, a.schema, a.tokens, rt.Route, w.presentedTo(rt), r.opt.Calendar()); err != nil {
		return err
	}
	if !r.takeLimits(a, s, w.presented.Address) {
		return errRateLimited
	}
	var query []byte
	if has {
		query = []byte(raw)
	}
	q, err := newLiveQuery([]byte(path), query, s.caller)
	if err == nil {
		err = q.check(r, a, rt, &s.match)
	}
	if err != nil {
		return err
	}
	return w.join(spec.Name, spec.LastEventID, q)
}

// join subscribes to a query, whose value the client has already if last has its hash.
func (w *watcher) join(name, last string, q liveQuery) error {
	one := &watch{query: q, party: string(q.caller.AppendIdentity(nil, w.presented.Address))}
	if !w.runtime.watchers.take(one.party) {
		return errWatches
	}
	_, text, _ := strings.Cut(last, "-")
	hash, err := strconv.ParseUint(text, 16, 64)
	one.sub = w.listener.Subscribe(name, q.key(), q, hash, err == nil)
	w.watches[name] = one
	return nil
}

// remove ends a watch, if there is one of this name. If last is not nil, the client gets it.
func (w *watcher) remove(name string, last *live.Event) {
	if one := w.watches[name]; one != nil {
		delete(w.watches, name)
		one.sub.End(last)
		w.runtime.watchers.giveBack(one.party)
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
		w.remove(name, nil)
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
	if epoch == w.epoch && a == w.bundle && now.Sub(w.checked) < recheckEvery {
		return
	}
	if w.exchange.Gone() { // a client that gets no event is not missed otherwise
		w.ended = true
		w.listener.Alert()
		return
	}
	w.epoch, w.bundle, w.checked = epoch, a, now
	for name, one := range w.watches {
		if err := w.recheck(a, one); err != nil {
			e := problemEvent(eventEnd, err, "")
			w.remove(name, &e)
		}
	}
}

// recheck moves a watch to the query of its caller, whose authority may have changed. The error says why it must end.
func (w *watcher) recheck(a *activeBundle, one *watch) error {
	r := w.runtime
	var m router.Match
	rt, err := a.liveRoute(one.query.path, &m)
	if err != nil {
		return err
	}
	who, err := r.auth.Check(r.serving, a.schema, a.tokens, rt.Route, w.presentedTo(rt), r.opt.Calendar())
	switch fault.CodeOf(err) {
	case fault.Unavailable, fault.Overloaded, fault.KeyStoreStale:
		return nil
	}
	if err != nil {
		return err
	}
	if !sameCaller(&who, &one.query.caller) {
		one.query.caller = who
		one.sub.Move(one.query.key(), one.query)
	}
	return nil
}

// serve sends the events of the connection until it ends: its time is over, its client is gone, or no watch is left of
// the only one.
func (w *watcher) serve() {
	defer w.leave()
	defer w.listener.Wait()
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
		w.listener.Rest()
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
		out = append(out, e.Data...)
		if !e.Last {
			continue
		}
		w.mu.Lock()
		if one := w.watches[sub.Name]; one != nil && one.sub == sub { // its query has ended
			w.remove(sub.Name, nil)
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
			w.listener.Wait()
			err = w.exchange.Flush()
		}
		if err != nil {
			return err
		}
	}
	return nil
}
