package live

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"time"

	"runner.example/internal/clock"
	"runner.example/internal/settings"
	"runner.example/state/store"
)

// Options configure a Hub. Zero fields have their defaults.
type Options struct {
	// Interval is the least time between the beginnings of two runs of a query.
	Interval time.Duration `toml:"live.interval" default:"100ms" min:"1ms" max:"1h"`
	// Ranges is how many keys and ranges of the store a query may watch. One that has read more watches whole entities:
	// it runs more often, and misses nothing.
	Ranges int `toml:"live.ranges" default:"1000" min:"1" max:"1000000"`
	// ValueMemory limits the bytes of all values. A value beyond it is refused with a problem.
	ValueMemory int64 `toml:"live.value_memory" unit:"size" default:"256mb" min:"1mb" max:"1024gb"`
}

const (
	// timedEvery is the pause between two runs of a query whose answer depends on the time.
	timedEvery = time.Second
	// failedPause is the pause after a run that had no answer. After one that failed it is doubled each time, up to
	// longestPause.
	failedPause  = time.Second
	longestPause = time.Minute
	// maxRuns is how many queries run at the same time. The sandbox decides how many of these compute.
	maxRuns = 64
)

// Answer is what a run of a query gives.
type Answer struct {
	// Event is the value. Without a Kind there is none: the server could not run the query, and it runs again later.
	Event Event
	// Reads is what the run has read; nil: it was not known, and nothing is watched.
	Reads *store.Reads
	// Timed: the answer may change without a commit, because it depends on the time.
	Timed bool
	// Failed: the event says that the server or the handler has failed. The next run may succeed without a commit.
	Failed bool
}

// Host is what a Hub needs of its owner. Any goroutine calls its functions.
type Host[Q any] struct {
	// Run runs a query until ctx ends.
	Run func(ctx context.Context, q *Q) Answer
	// Watch calls changed when something of reads changes, as store.Store.Watch does.
	Watch func(ctx context.Context, reads *store.Reads, changed func(store.Seq)) (w *store.Watch, fresh bool, err error)
	// TooLarge is the event in place of a value for which there is no memory.
	TooLarge func(bytes int) Event
}

// Hub runs queries that are watched. Subscriptions with the same key share a query: its runs, and the bytes of its value.
// Any goroutine may use it.
type Hub[Q any] struct {
	opt  Options
	host Host[Q]
	ctx  context.Context
	stop context.CancelFunc
	runs chan struct{} // holds a value for each query that runs
	work sync.WaitGroup

	mu      sync.Mutex
	queries map[string]*query[Q]
	held    int64 // bytes of values
	started uint64
	sent    uint64

	// Listeners send in turn, see giveTurns.
	queue    []*Listener[Q]
	turns    int
	maxTurns int
}

// query is what several subscriptions may watch. The lock of the Hub guards it.
type query[Q any] struct {
	key     string
	q       Q
	subs    map[*Subscription[Q]]struct{} // empty: it is not in the Hub any more
	event   Event                         // the value; no Kind before the first run
	dirty   bool                          // it must run after the run that is under way, or planned
	pending bool                          // a run is planned or under way
	next    time.Time                     // no run begins before
	failed  int                           // how many runs have failed since one that has not
	watch   *store.Watch
	timer   *time.Timer // of the next run without a commit
}

// New returns a hub without queries. Close must be called.
func New[Q any](opt Options, host Host[Q]) *Hub[Q] {
	settings.FillZero(&opt)
	h := &Hub[Q]{opt: opt, host: host, queries: map[string]*query[Q]{}, runs: make(chan struct{}, maxRuns)}
	h.maxTurns = max(1, runtime.GOMAXPROCS(0)/2) // the other processors are for requests
	h.ctx, h.stop = context.WithCancel(context.Background())
	return h
}

// Close ends all runs, and waits for them. Later subscriptions get no value.
func (h *Hub[Q]) Close() {
	h.stop()
	h.mu.Lock()
	for _, q := range h.queries {
		q.end()
	}
	h.mu.Unlock()
	h.work.Wait()
}

// Stats are numbers of a Hub: its queries, the runs since New, and the events that listeners have taken.
type Stats struct {
	Queries, Subscriptions int
	Bytes                  int64
	Runs, Events           uint64
}

// Stats returns the numbers of the hub.
func (h *Hub[Q]) Stats() Stats {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := Stats{Queries: len(h.queries), Bytes: h.held, Runs: h.started, Events: h.sent}
	for _, q := range h.queries {
		s.Subscriptions += len(q.subs)
	}
	return s
}

// want plans a run of q: now, or when its interval is over.
func (h *Hub[Q]) want(q *query[Q]) {
	q.dirty = true
	if q.pending || len(q.subs) == 0 || h.ctx.Err() != nil {
		return
	}
	q.pending = true
	wait := time.Until(q.next)
	if wait <= 0 {
		h.work.Go(func() { h.run(q) })
		return
	}
	time.AfterFunc(wait, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.ctx.Err() == nil {
			h.work.Go(func() { h.run(q) })
		}
	})
}

// changed says that a commit has written what q has read.
func (h *Hub[Q]) changed(q *query[Q]) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.want(q)
}

// run runs q once, and watches what it has read.
func (h *Hub[Q]) run(q *query[Q]) {
	select {
	case h.runs <- struct{}{}:
		defer func() { <-h.runs }()
	case <-h.ctx.Done():
		return
	}
	if !h.begin(q) {
		return
	}
	began := clock.Mark()
	answer := h.host.Run(h.ctx, &q.q)
	var watch *store.Watch
	var fresh bool
	var err error
	if answer.Reads != nil {
		watch, fresh, err = h.host.Watch(h.ctx, answer.Reads, func(store.Seq) { h.changed(q) })
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	q.watch, q.pending, q.next = watch, false, began.Add(h.opt.Interval)
	if len(q.subs) == 0 || h.ctx.Err() != nil {
		q.end()
		return
	}
	switch {
	case answer.Event.Kind == "" || err != nil:
		q.dirty, q.next = true, began.Add(failedPause)
	case answer.Reads != nil && !fresh:
		q.dirty = true
	}
	fits := answer.Event.Kind == "" || h.put(q, answer.Event)
	switch {
	case q.dirty:
		h.want(q)
	case answer.Failed || !fits:
		pause := min(failedPause<<min(q.failed, 10), longestPause)
		q.failed++
		h.runAfter(q, began.Add(pause))
		return
	case answer.Timed:
		h.runAfter(q, began.Add(timedEvery))
	}
	q.failed = 0
}

// runAfter runs q again without a commit.
func (h *Hub[Q]) runAfter(q *query[Q], next time.Time) {
	q.timer = time.AfterFunc(time.Until(next), func() { h.changed(q) })
}

// begin says that q runs now; false: nobody watches it any more.
func (h *Hub[Q]) begin(q *query[Q]) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(q.subs) == 0 || h.ctx.Err() != nil {
		q.pending = false
		return false
	}
	q.end()
	q.dirty = false
	h.started++
	return true
}

// put makes e the value of q, if it is another one. fits is false if there is no memory for it now.
func (h *Hub[Q]) put(q *query[Q], e Event) (fits bool) {
	if q.event.Kind != "" && q.event.Hash == e.Hash {
		return true
	}
	if fits = h.held-q.event.size()+e.size() <= h.opt.ValueMemory; !fits {
		commit := e.Commit
		if e = h.host.TooLarge(len(e.Data)); q.event.Hash == e.Hash {
			return false
		}
		e.Commit = commit
	}
	h.held -= q.event.size()
	h.held += e.size()
	q.event = e
	for s := range q.subs {
		s.offer()
	}
	return fits
}

// end stops what would make q run again.
func (q *query[Q]) end() {
	if q.watch != nil {
		q.watch.Stop()
		q.watch = nil
	}
	if q.timer != nil {
		q.timer.Stop()
		q.timer = nil
	}
}

// Event is a value, or why there is none.
type Event struct {
	// Kind is the name of the event; "" is no event.
	Kind string
	// Commit is the commit that it reflects.
	Commit store.Seq
	// Hash is of the kind and the data: equal events are sent once.
	Hash uint64
	// Data is not changed.
	Data []byte
	// Last: no other event follows for its subscription.
	Last bool
}

func (e *Event) size() int64 { return int64(len(e.Data)) }

// ID is the event's id: its commit and its hash.
func (e *Event) ID() string { return fmt.Sprintf("%d-%016x", e.Commit, e.Hash) }
