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
	// Interval is the minimum time between the starts of two runs of the handler for the same path, query and caller.
	Interval time.Duration `toml:"live.interval" default:"100ms" min:"1ms" max:"1h"`
	// Ranges is how many keys and ranges of the store one run may watch. A run that has read more watches whole entities:
	// its handler runs more often, and misses nothing.
	Ranges int `toml:"live.ranges" default:"1000" min:"1" max:"1000000"`
	// ValueMemory limits the memory of all watched answers. A client gets a problem in place of an answer beyond it, and the
	// handler runs again later.
	ValueMemory int64 `toml:"live.value_memory" unit:"size" default:"256mb" min:"1mb" max:"1024gb"`
}

const (
	// timedInterval is the time between the starts of two runs of a query whose answer depends on the time.
	timedInterval = time.Second
	// minRetryInterval is the time between the start of a run without an event and that of the next run. After runs that
	// failed it is doubled each time, up to maxRetryInterval.
	minRetryInterval = time.Second
	maxRetryInterval = time.Minute
	// maxRuns is how many queries run at the same time. The sandbox limits how many of them use a processor.
	maxRuns = 64
)

// Answer is the result of one run of a query.
type Answer struct {
	// Event is the value. Without a Kind there is no event: the server could not run the query, and runs it again later.
	Event Event
	// Reads is what the run has read; nil if that is not known: then nothing is watched.
	Reads *store.Reads
	// Timed: the answer may change without a commit, because it depends on the time.
	Timed bool
	// Failed: the event reports a failure of the server or the handler. The next run may succeed without a commit.
	Failed bool
}

// Host has the functions that the owner of a Hub provides. Any goroutine may call them, also several at the same time.
type Host[Q any] struct {
	// Run runs a query until ctx ends.
	Run func(ctx context.Context, q *Q) Answer
	// Watch calls changed when something in reads changes, as store.Store.Watch does.
	Watch func(ctx context.Context, reads *store.Reads, changed func(store.Seq)) (w *store.Watch, fresh bool, err error)
	// TooLarge returns the event to send in place of a value of this size, for which there is no memory.
	TooLarge func(bytes int) Event
}

// Hub runs the queries that have subscriptions. Subscriptions with the same key share a query: its runs, and the bytes of
// its value. Any goroutine may use it.
type Hub[Q any] struct {
	opt  Options
	host Host[Q]
	ctx  context.Context
	stop context.CancelFunc
	runs chan struct{} // a semaphore: holds a value for each query that runs
	work sync.WaitGroup

	mu         sync.Mutex // guards what follows
	queries    map[string]*query[Q]
	valueBytes int64  // of all values
	started    uint64 // runs
	sent       uint64 // events

	// Few listeners send at the same time, see grantSlots.
	queue    []*Listener[Q] // those that wait for a slot
	slots    int            // that are taken
	maxSlots int
}

// query has the value that its subscriptions share. The lock of the Hub guards it.
type query[Q any] struct {
	key     string
	q       Q
	subs    map[*Subscription[Q]]struct{} // empty: it is not in the Hub any more
	event   Event                         // the value; no Kind before the first run
	dirty   bool                          // it must run again after the current run
	pending bool                          // a run is scheduled or under way
	next    time.Time                     // the earliest start of the next run
	failed  int                           // consecutive failed runs
	watch   *store.Watch
	timer   *time.Timer // starts the next run without a commit
}

// New returns a hub without queries, which the caller must close.
func New[Q any](opt Options, host Host[Q]) *Hub[Q] {
	settings.FillZero(&opt)
	h := &Hub[Q]{opt: opt, host: host, queries: map[string]*query[Q]{}, runs: make(chan struct{}, maxRuns)}
	h.maxSlots = max(1, runtime.GOMAXPROCS(0)/2) // the other processors are for requests
	h.ctx, h.stop = context.WithCancel(context.Background())
	return h
}

// Close cancels all runs and waits for them. Later subscriptions get no value.
func (h *Hub[Q]) Close() {
	h.stop()
	h.mu.Lock()
	for _, q := range h.queries {
		q.stop()
	}
	h.mu.Unlock()
	h.work.Wait()
}

// Stats has the counts of a Hub.
type Stats struct {
	Queries, Subscriptions int
	Bytes                  int64  // of all values
	Runs, Events           uint64 // since New: runs started, and events that Next has returned
}

// Stats returns the current counts.
func (h *Hub[Q]) Stats() Stats {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := Stats{Queries: len(h.queries), Bytes: h.valueBytes, Runs: h.started, Events: h.sent}
	for _, q := range h.queries {
		s.Subscriptions += len(q.subs)
	}
	return s
}

// schedule makes q run: now, or when its interval is over. The hub's lock is held.
func (h *Hub[Q]) schedule(q *query[Q]) {
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

// changed schedules q after a commit that has written something that q has read.
func (h *Hub[Q]) changed(q *query[Q]) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.schedule(q)
}

// run runs q once, and watches what the run has read.
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
		q.stop()
		return
	}
	switch {
	case answer.Event.Kind == "" || err != nil:
		q.dirty, q.next = true, began.Add(minRetryInterval)
	case answer.Reads != nil && !fresh:
		q.dirty = true
	}
	fits := answer.Event.Kind == "" || h.setValue(q, answer.Event)
	switch {
	case q.dirty:
		h.schedule(q)
	case answer.Failed || !fits:
		interval := min(minRetryInterval<<min(q.failed, 10), maxRetryInterval)
		q.failed++
		h.scheduleAt(q, began.Add(interval))
		return
	case answer.Timed:
		h.scheduleAt(q, began.Add(timedInterval))
	}
	q.failed = 0
}

// scheduleAt makes q run at a time without a commit. A commit before makes it run earlier.
func (h *Hub[Q]) scheduleAt(q *query[Q], at time.Time) {
	q.timer = time.AfterFunc(time.Until(at), func() { h.changed(q) })
}

// begin prepares a run of q. It returns false if q has no subscriptions any more, or the hub is closed.
func (h *Hub[Q]) begin(q *query[Q]) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(q.subs) == 0 || h.ctx.Err() != nil {
		q.pending = false
		return false
	}
	q.stop()
	q.dirty = false
	h.started++
	return true
}

// setValue makes e the value of q, if it differs from the current one. fits is false if there is no memory for it now.
func (h *Hub[Q]) setValue(q *query[Q], e Event) (fits bool) {
	if q.event.Kind != "" && q.event.Hash == e.Hash {
		return true
	}
	if fits = h.valueBytes-q.event.size()+e.size() <= h.opt.ValueMemory; !fits {
		commit := e.Commit
		if e = h.host.TooLarge(len(e.Data)); q.event.Hash == e.Hash {
			return false
		}
		e.Commit = commit
	}
	h.valueBytes += e.size() - q.event.size()
	q.event = e
	for s := range q.subs {
		s.markReady()
	}
	return fits
}

// stop stops the watch and the timer, so that q does not run again.
func (q *query[Q]) stop() {
	if q.watch != nil {
		q.watch.Stop()
		q.watch = nil
	}
	if q.timer != nil {
		q.timer.Stop()
		q.timer = nil
	}
}

// Event is a value, or the reason why there is none.
type Event struct {
	// Kind is the name of the event; "" means that there is no event.
	Kind string
	// Commit is the commit that the event reflects.
	Commit store.Seq
	// Hash is a hash of the kind and the data. An event with the hash of the one before is not sent.
	Hash uint64
	// Data must not be changed: several subscriptions share it.
	Data []byte
	// Last: no other event of the subscription follows.
	Last bool
}

func (e *Event) size() int64 { return int64(len(e.Data)) }

// ID returns the id of the event: its commit and its hash.
func (e *Event) ID() string { return fmt.Sprintf("%d-%016x", e.Commit, e.Hash) }
