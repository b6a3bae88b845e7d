package live_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"runner.example/tests/harness"
)

// scenario runs the servers of a world, with writers and watchers.
type scenario struct {
	t       *testing.T
	world   *world
	seed    uint64
	servers []atomic.Pointer[harness.Server] // of each node, the newest
	writers []*who
	callers []*who
	watched string

	writing   context.Context
	stopWrite context.CancelFunc
	work      sync.WaitGroup // writers
	until     atomic.Int64   // unix milliseconds of the last time in a row
	written   atomic.Int64

	watching  context.Context
	stopWatch context.CancelFunc
	watchWork sync.WaitGroup
	connected atomic.Int64 // connections that were opened
	unchanged atomic.Int64 // comments ": unchanged"
	cutOff    atomic.Int64 // connections that ended without the last chunk

	mu       sync.Mutex
	seen     []seen
	watches  []*watched
	versions []anchor
}

// seen is an event of a watch.
type seen struct {
	ask *ask
	who *who
	event
}

// anchor is the version of a part at a commit, which a watch of the version has shown.
type anchor struct {
	commit  uint64
	part, n int
}

// watched is a watch. It may have several connections, one after the other.
type watched struct {
	ask  *ask
	who  *who
	node int

	mu   sync.Mutex
	last event // the newest event
}

func (w *watched) newest() event {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.last
}

// seeds returns the seeds of the worlds of a test: RUNNER_LIVE_SEED, or random ones.
func seeds(t *testing.T, short, long int) (all []uint64) {
	if text := os.Getenv("RUNNER_LIVE_SEED"); text != "" {
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return []uint64{n}
	}
	if harness.Soak {
		short = long
	}
	for range short {
		all = append(all, rand.Uint64N(1<<32))
	}
	return all
}

// eachWorld runs a test for several worlds. The names of the subtests have their seeds.
func eachWorld(t *testing.T, short, long int, run func(t *testing.T, seed uint64)) {
	t.Parallel()
	for _, seed := range seeds(t, short, long) {
		t.Run(fmt.Sprint("RUNNER_LIVE_SEED=", seed), func(t *testing.T) { run(t, seed) })
	}
}

// module builds the handlers of all worlds, once.
var module = sync.OnceValues(func() ([]byte, error) {
	return harness.BuildModule("live", map[string]string{
		"app.schema": newWorld(1).schema("1m"), "handlers/live.ts": handlers,
	})
})

// newApp returns the app of a world, whose handlers are built.
func (st *scenario) newApp() *harness.App {
	st.t.Helper()
	built, err := module()
	if err != nil {
		st.t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(st.seed, 2))
	a := harness.NewApp(st.t, st.world.schema(st.watched), fmt.Sprintf("[live]\ninterval = %q\nranges = %d\n",
		[]string{"1ms", "20ms", "100ms"}[r.IntN(3)], []int{1, 4, 1000}[r.IntN(3)]))
	a.Write("build/live.wasm", string(built))
	return a
}

// newScenario returns a scenario whose servers do not run yet.
func newScenario(t *testing.T, seed uint64, nodes int) *scenario {
	st := &scenario{t: t, world: newWorld(seed), seed: seed, servers: make([]atomic.Pointer[harness.Server], nodes)}
	st.watched = []string{"900ms", "30m"}[st.world.random.IntN(2)]
	st.writing, st.stopWrite = context.WithCancel(t.Context())
	st.watching, st.stopWatch = context.WithCancel(t.Context())
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("seed %d\n%s", seed, st.world.schema(st.watched))
		}
	})
	return st
}

// cast creates the credentials of writers and callers in a.
func (st *scenario) createCallers(a *harness.App) {
	tenants := []string{""}
	if st.world.tenants {
		tenants = []string{"t0", "t1"}
	}
	of := func(tenant string) (flags []string) {
		if tenant != "" {
			flags = []string{"--tenant", tenant}
		}
		return flags
	}
	for _, tenant := range tenants {
		key := &who{kind: "writer", tenant: tenant, header: "X-API-Key: " + a.Token("writer", of(tenant)...)}
		boss := &who{kind: sessions, user: "boss", tenant: tenant, boss: true,
			header: "Cookie: " + a.Session("boss", append(of(tenant), "--role", "boss")...).Cookie}
		st.writers = append(st.writers, key, boss)
		st.callers = append(st.callers, boss)
		for _, scope := range st.world.scopes {
			st.callers = append(st.callers, &who{kind: scope, tenant: tenant, header: "X-API-Key: " + a.Token(scope, of(tenant)...)})
		}
		for n := range users {
			user := userName(n)
			st.callers = append(st.callers, &who{kind: sessions, user: user, tenant: tenant, header: "Cookie: " + a.Session(user, of(tenant)...).Cookie})
		}
	}
	st.callers = append(st.callers, &who{kind: anonymous, header: "X-Nothing: presented"})
	for _, c := range slices.Concat(st.writers, st.callers) {
		c.name = strings.TrimSuffix(strings.Join([]string{c.kind, c.user, c.tenant}, " "), " ")
	}
}

// server returns the server of a node.
func (st *scenario) server(node int) *harness.Server { return st.servers[node].Load() }

// write starts writers, each of which writes random rows of a part.
func (st *scenario) write() {
	for i, c := range st.writers {
		for part := range st.world.parts {
			random := rand.New(rand.NewPCG(st.seed, uint64(1000+i*10+part)))
			st.work.Go(func() {
				for st.writing.Err() == nil {
					st.writeOnce(random, c, part)
					<-time.After(time.Duration(random.IntN(8)) * time.Millisecond) // so that watchers see versions between others
				}
			})
		}
	}
}

func (st *scenario) writeOnce(random *rand.Rand, c *who, part int) {
	st.until.Store(time.Now().Add(maxUntil).UnixMilli())
	body, err := json.Marshal(map[string]any{"part": part, "tenant": c.tenant, "changes": st.world.changes(random, part, c.tenant)})
	if err != nil {
		panic(err)
	}
	got, err := st.server(random.IntN(len(st.servers))).Try("POST", "/v1/write", string(body), c.header)
	switch {
	case err != nil || got.Status == 409 || got.Status >= 500: // the server was killed, or has no leader
		<-time.After(5 * time.Millisecond)
	case got.Status == 200:
		st.written.Add(1)
	default:
		st.t.Errorf("write as %s: %d %s", c.name, got.Status, got.Body)
		st.stopWrite()
	}
}

// watch starts n connections, each with one watch or several.
func (st *scenario) watch(n int) {
	for i := range n {
		random := rand.New(rand.NewPCG(st.seed, uint64(5000+i)))
		c := st.callers[random.IntN(len(st.callers))]
		node := random.IntN(len(st.servers))
		if random.IntN(2) == 0 {
			w := st.newWatched(random, c, node)
			st.watchWork.Go(func() { st.watchAlone(random, w) })
			continue
		}
		st.watchWork.Go(func() { st.watchTogether(random, c, node) })
	}
	for part := range st.world.parts {
		st.watchWork.Go(func() { st.watchVersion(part) })
	}
}

func (st *scenario) newWatched(random *rand.Rand, c *who, node int) *watched {
	w := &watched{ask: st.world.ask(random, c), who: c, node: node}
	st.mu.Lock()
	defer st.mu.Unlock()
	st.watches = append(st.watches, w)
	return w
}

// removeWatch removes a watch that ends from those that settle compares.
func (st *scenario) removeWatch(w *watched) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.watches = slices.DeleteFunc(st.watches, func(o *watched) bool { return o == w })
}

// hangUp returns a channel that has a value when the client must hang up; nil: it does not hang up by itself.
func (st *scenario) hangUp(random *rand.Rand) <-chan time.Time {
	if random.IntN(3) == 0 {
		return nil
	}
	return time.After(time.Duration(random.IntN(1500)) * time.Millisecond)
}

// reconnects reports whether to connect again. If the last attempt has failed, it waits before.
func (st *scenario) reconnects(failed bool) bool {
	if failed {
		select {
		case <-st.watching.Done():
		case <-time.After(10 * time.Millisecond):
		}
	}
	return st.watching.Err() == nil
}

// watchAlone keeps w on a connection of its own.
func (st *scenario) watchAlone(random *rand.Rand, w *watched) {
	for st.reconnects(false) {
		var last string
		if id := w.newest().ID; id != "" && random.IntN(5) > 0 {
			last = "Last-Event-ID: " + id
		}
		s, status, err := openStream(st.watching, st.t, "GET", st.server(w.node).URL+w.ask.path(w.who), "", w.who.header, last)
		if err != nil {
			if status != 0 && status != 503 && st.watching.Err() == nil {
				st.t.Errorf("watch %s as %s: %v", w.ask.path(w.who), w.who.name, err)
				return
			}
			st.reconnects(true)
			continue
		}
		st.connected.Add(1)
		st.follow(s, st.hangUp(random), st.writing.Done(), func(e event) { st.record(w, e) })
		s.stop()
	}
}

// follow calls record for the events of a stream, until the stream ends, or the client hangs up: when hangUp has a value,
// unless settled was closed before.
func (st *scenario) follow(s *stream, hangUp <-chan time.Time, settled <-chan struct{}, record func(event)) {
	for {
		select {
		case e, ok := <-s.events:
			if !ok {
				if !s.clean && st.watching.Err() == nil {
					st.cutOff.Add(1)
				}
				return
			}
			switch {
			case e.Comment == "unchanged":
				st.unchanged.Add(1)
			case e.Event != harness.Event{}: // else a comment of a silent connection
				record(e)
			}
		case <-hangUp:
			return
		case <-settled: // stay connected from now on
			hangUp, settled = nil, nil
		}
	}
}

// record keeps an event of a watch for check.
func (st *scenario) record(w *watched, e event) {
	if e.Kind != "value" && e.Kind != "problem" {
		st.t.Errorf("%s as %s: event %+v", w.ask.path(w.who), w.who.name, e)
		return
	}
	w.mu.Lock()
	w.last = e
	w.mu.Unlock()
	st.mu.Lock()
	st.seen = append(st.seen, seen{w.ask, w.who, e})
	st.mu.Unlock()
}

// watchVersion watches the version of a part.
func (st *scenario) watchVersion(part int) {
	for st.reconnects(false) {
		s, _, err := openStream(st.watching, st.t, "GET", fmt.Sprintf("%s/v1/version/%d", st.server(part%len(st.servers)).URL, part), "", st.writers[0].header)
		if err != nil {
			st.reconnects(true)
			continue
		}
		st.follow(s, nil, nil, func(e event) {
			if e.Kind == "problem" && e.status() == 404 { // before the first write
				return
			}
			commit, err := e.commit()
			n, wrong := strconv.Atoi(e.Data)
			if e.Kind != "value" || err != nil || wrong != nil {
				st.t.Errorf("the version of part %d: %+v", part, e)
				return
			}
			st.mu.Lock()
			st.versions = append(st.versions, anchor{commit, part, n})
			st.mu.Unlock()
		})
		s.stop()
	}
}

// watchTogether keeps random watches on one connection, and changes them.
func (st *scenario) watchTogether(random *rand.Rand, c *who, node int) {
	prefix := "/v1/_live"
	if c.kind == anonymous {
		prefix = "/open/_live"
	}
	type spec struct {
		Name        string `json:"name"`
		Path        string `json:"path"`
		LastEventID string `json:"lastEventId,omitempty"`
	}
	watches := map[string]*watched{}
	next := 0
	var mu sync.Mutex // guards watches
	specs := func(n int) (all []spec) {
		for range n {
			name := fmt.Sprint("w", next)
			next++
			w := st.newWatched(random, c, node)
			watches[name] = w
			all = append(all, spec{Name: name, Path: w.ask.path(c)})
		}
		return all
	}
	specs(1 + random.IntN(5))
	for st.reconnects(false) {
		var request struct {
			Watches []spec `json:"watches"`
		}
		for name, w := range watches {
			s := spec{Name: name, Path: w.ask.path(c)}
			if random.IntN(5) > 0 {
				s.LastEventID = w.newest().ID
			}
			request.Watches = append(request.Watches, s)
		}
		body, err := json.Marshal(request)
		if err != nil {
			panic(err)
		}
		s, status, err := openStream(st.watching, st.t, "POST", st.server(node).URL+prefix, string(body), c.header)
		if err != nil {
			if status != 0 && status != 503 && st.watching.Err() == nil {
				st.t.Errorf("%s as %s: %v", prefix, c.name, err)
				return
			}
			st.reconnects(true)
			continue
		}
		st.connected.Add(1)
		opened := make(chan string, 1)
		changed := make(chan struct{})
		url := st.server(node).URL + prefix
		go func() { // changes the watches once
			defer close(changed)
			var token string
			select {
			case token = <-opened:
			case <-st.watching.Done():
				return
			}
			if token == "" || st.writing.Err() != nil {
				return
			}
			mu.Lock()
			change := map[string]any{"connection": token}
			removed := map[string]*watched{}
			for name, w := range watches {
				if len(watches)-len(removed) > 1 && random.IntN(3) == 0 {
					removed[name] = w
				}
			}
			change["remove"] = slices.Collect(maps.Keys(removed))
			change["add"] = specs(random.IntN(3))
			mu.Unlock()
			for _, w := range removed {
				st.removeWatch(w)
			}
			text, err := json.Marshal(change)
			if err != nil {
				panic(err)
			}
			got, err := st.server(node).Try("POST", prefix, string(text), c.header, "Content-Type: application/json")
			if err == nil && got.Status != 204 && got.Status != 404 {
				st.t.Errorf("change %s as %s: %d %s", url, c.name, got.Status, got.Body)
				return
			}
			if err != nil || got.Status == 404 { // the server was killed, or the connection has ended: the next one has other watches
				s.stop()
			}
			mu.Lock()
			defer mu.Unlock()
			for name := range removed {
				delete(watches, name)
			}
		}()
		first := true
		st.follow(s, st.hangUp(random), st.writing.Done(), func(e event) {
			if first {
				first = false
				var open struct{ Connection string }
				if err := json.Unmarshal([]byte(e.Data), &open); err != nil || e.Kind != "open" {
					st.t.Errorf("the first event is %+v", e)
				}
				opened <- open.Connection
				return
			}
			mu.Lock()
			w := watches[e.Watch]
			mu.Unlock()
			if w == nil { // removed meanwhile
				return
			}
			st.record(w, e)
		})
		s.stop()
		if first {
			opened <- ""
		}
		<-changed
	}
}

// settle ends the writers, and waits until each watcher has what a request answers. It returns how long that took.
func (st *scenario) settle() time.Duration {
	st.t.Helper()
	st.stopWrite()
	st.work.Wait()
	began := time.Now()
	<-time.After(time.Until(time.UnixMilli(st.until.Load()).Add(time.Millisecond))) // then no rule changes by itself
	st.mu.Lock()
	watches := slices.Clone(st.watches)
	st.mu.Unlock()
	for _, w := range watches {
		var got harness.Answer
		var last event
		end := time.Now().Add(harness.Timeout)
		for {
			got = st.server(w.node).Do("GET", w.ask.path(w.who), "", w.who.header)
			last = w.newest()
			if got.Status == 200 && last.Kind == "value" && last.Data == got.Body || got.Status >= 400 && last.Kind == "problem" && last.status() == got.Status {
				break
			}
			if time.Now().After(end) {
				st.t.Errorf("%s as %s on node %d answers %d %s, and its watcher has %+v", w.ask.path(w.who), w.who.name, w.node+1, got.Status, got.Body, last)
				break
			}
			<-time.After(5 * time.Millisecond)
		}
		if st.t.Failed() {
			return 0
		}
		// What the request answers is true as well.
		st.mu.Lock()
		st.seen = append(st.seen, seen{w.ask, w.who, event{harness.Event{Kind: last.Kind, Data: last.Data, ID: fmt.Sprintf("%d-", uint64(1)<<60)}, time.Now()}})
		st.mu.Unlock()
	}
	return time.Since(began)
}

// end ends the watchers.
func (st *scenario) end() {
	st.stopWatch()
	st.watchWork.Wait()
}

// history has the states of a part by version.
type history []*state

// replay reads what the writers have done, from the app of one node.
func (st *scenario) replay(a *harness.App) []history {
	st.t.Helper()
	type entry struct {
		Part, N int
		Tenant  string
		Done    string
	}
	var all []entry
	for line := range strings.Lines(a.Must("data", "export", "Log")) {
		var e entry
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			st.t.Fatal(err)
		}
		all = append(all, e)
	}
	slices.SortFunc(all, func(a, b entry) int { return a.N - b.N })
	parts := make([]history, st.world.parts)
	for i := range parts {
		parts[i] = history{newState()}
	}
	for _, e := range all {
		var changes []done
		if err := json.Unmarshal([]byte(e.Done), &changes); err != nil {
			st.t.Fatal(err)
		}
		h := parts[e.Part]
		if e.N != len(h) {
			st.t.Fatalf("part %d has version %d after %d", e.Part, e.N, len(h)-1)
		}
		parts[e.Part] = append(h, st.world.next(h[len(h)-1], e.Tenant, changes))
	}
	return parts
}

// runTime is the maximum time between the computation of a value and its arrival at a client.
const runTime = 30 * time.Second

// check compares all events with the model. It looks for a version of each part at each commit, in ascending order, so that
// each event is the answer at the versions of its commit.
func (st *scenario) check(parts []history) {
	st.t.Helper()
	slices.SortStableFunc(st.seen, func(a, b seen) int {
		x, err := a.commit()
		y, wrong := b.commit()
		if err != nil || wrong != nil {
			st.t.Fatalf("an event without a commit: %+v %+v", a, b)
		}
		switch {
		case x < y:
			return -1
		case x > y:
			return 1
		}
		return 0
	})
	anchors := map[uint64]map[int]int{} // versions of parts by commit
	for _, a := range st.versions {
		if anchors[a.commit] == nil {
			anchors[a.commit] = map[int]int{}
		}
		if n, ok := anchors[a.commit][a.part]; ok && n != a.n {
			st.t.Errorf("commit %d has the versions %d and %d of part %d", a.commit, n, a.n, a.part)
		}
		anchors[a.commit][a.part] = a.n
	}
	commits := slices.Sorted(maps.Keys(anchors))
	c := &checker{scenario: st, parts: parts, at: make([]int, len(parts)), shares: map[shareOf]string{}, times: st.times(parts)}
	for i := 0; i < len(st.seen) && !st.t.Failed(); {
		commit, _ := st.seen[i].commit()
		for len(commits) > 0 && commits[0] < commit {
			c.anchor(anchors[commits[0]])
			commits = commits[1:]
		}
		if len(commits) > 0 && commits[0] == commit {
			c.anchor(anchors[commit])
		}
		end := i
		for end < len(st.seen) && st.seen[end].ID[:strings.Index(st.seen[end].ID, "-")] == st.seen[i].ID[:strings.Index(st.seen[i].ID, "-")] {
			end++
		}
		c.group(commit, st.seen[i:end], anchors[commit])
		i = end
	}
	values := 0
	for _, s := range st.seen {
		if s.Kind == "value" {
			values++
		}
	}
	if values < 20 {
		st.t.Errorf("only %d values were seen", values)
	}
	st.t.Logf("%d writes, %d versions seen of parts with %v, %d events, %d of them values, %d connections, of which %d were cut off, %d comments that nothing has changed",
		st.written.Load(), len(st.versions), c.at, len(st.seen), values, st.connected.Load(), st.cutOff.Load(), st.unchanged.Load())
}

// times returns the times at which the result of a rule may change, ascending.
func (st *scenario) times(parts []history) []time.Time {
	all := map[int64]bool{}
	for _, h := range parts {
		for _, s := range h {
			for _, rows := range s.rows {
				for _, r := range rows {
					if r.Until != nil {
						all[r.Until.UnixMilli()] = true
					}
				}
			}
		}
	}
	var times []time.Time
	for _, ms := range slices.Sorted(maps.Keys(all)) {
		times = append(times, time.UnixMilli(ms))
	}
	return times
}

type checker struct {
	scenario *scenario
	parts    []history
	at       []int // the versions of the commit before
	shares   map[shareOf]string
	times    []time.Time
}

type shareOf struct {
	ask     *ask
	who     *who
	part, n int
	at      int64
}

// anchor moves to known versions.
func (c *checker) anchor(known map[int]int) {
	for part, n := range known {
		if n < c.at[part] || n >= len(c.parts[part]) {
			c.scenario.t.Errorf("part %d has version %d, and version %d before", part, n, c.at[part])
			return
		}
		c.at[part] = n
	}
}

// group finds versions of the parts at which all events of a commit are true.
func (c *checker) group(commit uint64, events []seen, known map[int]int) {
	type claim struct {
		*seen
		shares []string
	}
	var claims []claim
	for i := range events {
		e := &events[i]
		if e.ask.refused(e.who) {
			if e.Kind != "problem" || e.status() != 403 {
				c.scenario.t.Errorf("%s as %s, who may not read that: %+v", e.ask.path(e.who), e.who.name, e.event)
			}
			continue
		}
		if e.Kind == "problem" {
			if e.status() != 404 || e.ask.how != "must" {
				c.scenario.t.Errorf("%s as %s: %+v", e.ask.path(e.who), e.who.name, e.event)
				continue
			}
			e.Data = "null"
		}
		shares, err := e.ask.divide(e.Data, len(c.parts))
		if err != nil {
			c.scenario.t.Errorf("%s as %s: %+v: %v", e.ask.path(e.who), e.who.name, e.event, err)
			continue
		}
		claims = append(claims, claim{e, shares})
	}
	for part, h := range c.parts {
		n := c.at[part]
		last := len(h) - 1
		if exact, ok := known[part]; ok {
			last = exact
		}
		if commit == 1<<60 { // after all writes
			n = last
		}
		var wrong *claim
		for ; n <= last; n++ {
			wrong = nil
			for i := range claims {
				if !c.holds(claims[i].seen, claims[i].shares[part], part, n) {
					wrong = &claims[i]
					break
				}
			}
			if wrong == nil {
				break
			}
		}
		if wrong != nil {
			share, _ := wrong.ask.answer(c.stateAt(part, c.at[part], wrong.event.at), wrong.who, part)
			c.scenario.t.Errorf("%s as %s: at commit %d the share of part %d is\n%s\nwhich is not true at any version from %d to %d; at the first one it is\n%s",
				wrong.ask.path(wrong.who), wrong.who.name, commit, part, wrong.shares[part], c.at[part], last, share)
			return
		}
		c.at[part] = n
	}
}

func (c *checker) stateAt(part, n int, at time.Time) *state {
	s := *c.parts[part][n]
	s.at = at
	return &s
}

// holds reports whether the share of an event is true at a version, at a time when its value may have been computed.
func (c *checker) holds(e *seen, share string, part, n int) bool {
	if c.share(e, part, n, e.event.at) == share {
		return true
	}
	if !e.ask.timed(e.who) {
		return false
	}
	for _, t := range slices.Backward(c.times) { // just before a rule changed
		if t.After(e.event.at) {
			continue
		}
		if c.share(e, part, n, t.Add(-time.Microsecond)) == share { // times are whole milliseconds
			return true
		}
		if e.event.at.Sub(t) > runTime {
			return false
		}
	}
	return false
}

func (c *checker) share(e *seen, part, n int, at time.Time) string {
	key := shareOf{e.ask, e.who, part, n, 0}
	if e.ask.timed(e.who) { // the rules that hold are those before the next time
		i, _ := slices.BinarySearchFunc(c.times, at, func(a, b time.Time) int { return a.Compare(b) })
		key.at = int64(i)
	}
	share, ok := c.shares[key]
	if !ok {
		share, _ = e.ask.answer(c.stateAt(part, n, at), e.who, part)
		c.shares[key] = share
	}
	return share
}
