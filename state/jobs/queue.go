package jobs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"runner.example/internal/clock"
	"runner.example/internal/settings"
	"runner.example/internal/telemetry"
	"runner.example/schema"
	"runner.example/state/store"
)

// Options configure a Queue. Fields with a toml tag are settings (package settings).
type Options struct {
	// Slots is how many jobs run at once on a node, beside requests. One tenant, or one caller without a
	// tenant, can have at most seven eighths of them, and one of its jobs three quarters.
	Slots int `toml:"jobs.slots" default:"16" min:"1" max:"10000"`
	// MaxWaiting is how many jobs of one tenant may wait before its requests cannot enqueue more; 0: any
	// number. Callers without a tenant share it. Schedules and operators enqueue nevertheless.
	MaxWaiting int `toml:"jobs.max_waiting" default:"1000000" min:"0" max:"1000000000"`
	// MaxWaitingPerJob is how many jobs of one name of one tenant may wait, within max_waiting; 0: any number.
	// So a handler or a job that enqueues without end leaves the rest to the other names.
	MaxWaitingPerJob int `toml:"jobs.max_waiting_per_job" default:"100000" min:"0" max:"1000000000"`
	Keep

	// Now is the time, which must not go back; nil: the machine's calendar.
	Now clock.Calendar
	// Timeout limits the run of a job that declares none.
	Timeout time.Duration
	// Logger gets what cannot be returned as an error; nil: it is discarded.
	Logger *slog.Logger
	// Metrics counts conflicts; nil: nothing is counted.
	Metrics *telemetry.Metrics
}

const (
	// leaseMargin is how much longer than its run the lease of a job is.
	leaseMargin = 5 * time.Second
	// clockSkew is how long nodes wait after the lease of another node, whose clock may be behind.
	clockSkew = 2 * time.Second
	// originFirst is how long other nodes leave a job to the node that has enqueued it.
	originFirst = 100 * time.Millisecond
	// longestWait is how long Run waits at most, because the clock may be set ahead.
	longestWait = 5 * time.Second
	// afterFailure is the pause after an error of the store, afterConflict that after a conflict.
	afterFailure  = time.Second
	afterConflict = 100 * time.Millisecond
	// bufferedJobs is how many waiting jobs of a group are read at once.
	bufferedJobs = 64
)

// Queue claims waiting jobs for this node. It follows the store. Any goroutine may use it.
type Queue struct {
	store *store.Store
	node  string // its name; empty without a cluster
	opt   Options
	stop  []func() // of following
	wake  chan struct{}

	mu sync.Mutex
	applied
	seen      store.Seq      // the newest commit with a waiting job
	schema    *schema.Schema // nil: no job is claimed
	synced    bool           // the schedules in the store are those of the schema
	schedules map[string]*activeSchedule
	groups    map[hash]*group
	later     laterGroups
	ready     rotation[owner, *rotation[string, *rotation[hash, *group]]] // by owner, job, group
	blocked   map[hash][]*group                                           // by the concurrency or the pause that blocks them
	paused    map[hash]pause                                              // by pauseHash
	unknown   []*group                                                    // of jobs that the schema does not declare
	slots     slots
	waiting   counter
	conflicts telemetry.Counter
}

// Open returns the queue of a store. Claim claims nothing before SetSchema.
func Open(ctx context.Context, st *store.Store, opt Options) (*Queue, error) {
	var node string
	if err := st.View(ctx, func(tx *store.Tx) error { node = tx.Node(); return nil }); err != nil {
		return nil, err
	}
	settings.FillZero(&opt)
	if opt.Now == nil {
		opt.Now = clock.System
	}
	if opt.Logger == nil {
		opt.Logger = slog.New(slog.DiscardHandler)
	}
	q := &Queue{
		store: st, node: node, opt: opt, wake: make(chan struct{}, 1), schedules: map[string]*activeSchedule{},
		groups:  map[hash]*group{},
		blocked: map[hash][]*group{}, paused: map[hash]pause{}, slots: newSlots(opt.Slots),
		conflicts: opt.Metrics.Counters("job_claim_conflicts_total",
			"Attempts to claim jobs that other transactions prevented; they are repeated.").With(),
		applied: applied{used: map[hash]map[int]bool{}, running: map[string]lease{}, changed: map[string]bool{}},
	}
	q.stop = []func(){
		st.OnApply([]byte(waitingPrefix), q.followWaiting), st.OnApply([]byte(runningPrefix), q.followRunning),
		st.OnApply([]byte(countPrefix), q.followSlot), st.OnApply([]byte(schedulePrefix), q.followSchedule),
		st.OnApply([]byte(pausePrefix), q.followPause),
	}
	if err := st.View(ctx, q.load); err != nil {
		q.Close()
		return nil, fmt.Errorf("open the queue of jobs: %w", err)
	}
	q.mu.Lock()
	q.changed = nil
	q.mu.Unlock()
	return q, nil
}

// Close stops following the store.
func (q *Queue) Close() {
	for _, stop := range q.stop {
		stop()
	}
}

// load reads the groups, the leases and the slots. The followers may have seen newer ones: a group that
// is read again does no harm, and leases and slots that have changed are not taken from this reading.
func (q *Queue) load(tx *store.Tx) error {
	for from := []byte(nil); ; {
		var last []byte
		for item, err := range tx.Scan([]byte(waitingPrefix), from, false) {
			if err != nil {
				return err
			}
			if q.loadGroup(item.Key, item.Value) {
				last = append(last, item.Key[:len(waitingPrefix)+hashBytes]...)
				break
			}
		}
		if last == nil {
			break
		}
		from = append(last, 0xff) // after every due time of the group: its first byte is 0x00
	}
	for item, err := range tx.Scan([]byte(runningPrefix), nil, false) {
		if err != nil {
			return err
		}
		id, l := string(item.Key[len(runningPrefix):]), readLease(item.Value)
		l.old = true
		if l.node == q.node { // of this node before it was started: the process has ended
			l.until = 0
		}
		q.mu.Lock()
		if !q.changed[string(item.Key)] {
			q.running[id] = l
		}
		q.mu.Unlock()
	}
	for item, err := range tx.Scan([]byte(countPrefix), nil, false) {
		if err != nil {
			return err
		}
		q.mu.Lock()
		if !q.changed[string(item.Key)] {
			q.setSlotLocked(item.Key, true)
		}
		q.mu.Unlock()
	}
	return q.loadPauses(tx)
}

// SetSchema sets the schema whose jobs are claimed and whose schedules fire. Waiting jobs that it does
// not declare go on waiting.
func (q *Queue) SetSchema(s *schema.Schema) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.schema, q.synced = s, false
	for _, g := range q.unknown {
		q.putLocked(g, inReady, 0)
	}
	q.unknown = nil
	for h := range q.blocked {
		q.unblockLocked(h)
	}
	q.signal()
}

// lease is how long the lease of a job is.
func (q *Queue) lease(declared *schema.Job) time.Duration {
	timeout := q.opt.Timeout
	if declared.Timeout > 0 {
		timeout = declared.Timeout
	}
	return timeout + leaseMargin
}

// Claim claims due jobs for the free slots of this node. It first takes over jobs whose lease is over, and
// fires schedules. The caller must call Ended for each returned job, even if Claim also returns an error.
// Only one goroutine at a time may call it.
func (q *Queue) Claim(ctx context.Context) ([]*Claimed, error) {
	now := q.opt.Now()
	// Other jobs are claimed nevertheless.
	failed := errors.Join(q.takeOver(ctx, now), q.syncSchedules(ctx, now), q.fire(ctx, now))
	now = q.opt.Now() // when the leases begin
	picked, err := q.pick(ctx, timeOf(now))
	if len(picked) == 0 || err != nil {
		q.putBack(picked)
		return nil, errors.Join(failed, err)
	}
	q.mu.Lock()
	seen := q.seen
	q.mu.Unlock()
	var results []claimed
	if err = q.store.WaitFor(ctx, seen); err == nil { // they may have come just now
		results, err = q.claim(ctx, candidatesOf(picked), now)
	}
	if err != nil {
		q.putBack(picked)
		return nil, errors.Join(failed, err)
	}
	for i, r := range results {
		if r.unreadable != nil { // it waits until this node is started again
			failed = errors.Join(failed, q.dropUnreadable(ctx, picked[i].id, r.unreadable))
		}
	}
	return q.settle(picked, results), failed
}

// taken is an entry that pick has taken out of its group.
type taken struct {
	candidate
	entry entry
}

func candidatesOf(picked []taken) (all []candidate) {
	for _, p := range picked {
		all = append(all, p.candidate)
	}
	return all
}

// pick takes entries that are due out of their groups, in turn.
func (q *Queue) pick(ctx context.Context, now Time) (picked []taken, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.later) > 0 && q.later[0].at <= now {
		q.putLocked(q.later[0], inReady, 0)
	}
	q.endPausesLocked(now)
	counted := map[hash]int{}
	for q.schema != nil && q.slots.free() > 0 {
		g := q.nextLocked()
		if g == nil {
			break
		}
		if by, paused := q.pausedByLocked(g); paused {
			q.blockLocked(g, by)
			continue
		}
		if len(g.buffer) == 0 {
			if !g.more {
				q.putLocked(g, idle, 0)
			} else if err := q.fillLocked(ctx, g); err != nil {
				return picked, err
			}
			continue
		}
		declared := q.schema.Job(g.name)
		switch {
		case g.buffer[0].due > now:
			q.putLocked(g, inLater, g.buffer[0].due)
			continue
		case declared == nil:
			if !slices.ContainsFunc(q.unknown, func(other *group) bool { return other.name == g.name }) {
				q.opt.Logger.Warn("waiting jobs not declared by the active release", "job", g.name)
			}
			q.putLocked(g, inUnknown, 0)
			q.unknown = append(q.unknown, g)
			continue
		case declared.Concurrency != nil && g.count != nil:
			if len(q.used[*g.count])+counted[*g.count] >= declared.Concurrency.Max {
				q.blockLocked(g, *g.count)
				continue
			}
			counted[*g.count]++
		}
		q.rotateLocked()
		e := g.take(q.choose(g, now))
		q.slots.add(g.share(), 1)
		picked = append(picked, taken{candidate{e.id, declared, g}, e})
	}
	return picked, nil
}

// settle takes the results of a claim into account, and returns the jobs to run.
func (q *Queue) settle(picked []taken, results []claimed) (jobs []*Claimed) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for i, p := range picked {
		switch r := results[i]; {
		case r.job != nil:
			r.job.share = p.group.share()
			jobs = append(jobs, r.job)
			if l := q.running[r.job.ID]; l.until == r.job.Lease && l.node == r.job.Node {
				l.run = r.job
				q.running[r.job.ID] = l
			} else { // it has changed already
				r.job.lose()
			}
			continue
		case r.blocked != nil:
			g := q.returnLocked(p)
			if len(q.used[*r.blocked]) >= p.declared.Concurrency.Max && g.state == inReady {
				q.blockLocked(g, *r.blocked)
			}
		default: // it does not wait any more, or cannot be read: others may be due
			q.signal()
		}
		q.slots.add(p.group.share(), -1)
	}
	for h := range q.blocked { // by others that were picked, and not claimed
		if _, paused := q.paused[h]; paused {
			continue
		}
		for _, g := range q.blocked[h] {
			if declared := q.schema.Job(g.name); declared == nil || declared.Concurrency == nil ||
				len(q.used[h]) < declared.Concurrency.Max {
				q.unblockLocked(h)
				break
			}
		}
	}
	return jobs
}

// returnLocked makes an entry available again, and returns its group, which may have been dropped
// meanwhile.
func (q *Queue) returnLocked(p taken) *group {
	g := q.groups[p.group.id]
	if g == nil {
		g = p.group
		q.groups[g.id] = g
	}
	if string(p.entry.key) < g.bufferEnd {
		g.insert(p.entry)
	} else {
		g.more = true
	}
	if g.state == idle || g.state == inLater {
		q.putLocked(g, inReady, 0)
	}
	return g
}

// putBack makes entries available again that could not be claimed.
func (q *Queue) putBack(picked []taken) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, p := range picked {
		q.returnLocked(p)
		q.slots.add(p.group.share(), -1)
	}
	for h := range q.blocked {
		q.unblockLocked(h)
	}
}

// Ended gives the slot of a claimed job back.
func (q *Queue) Ended(c *Claimed) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.slots.add(c.share, -1)
	q.signal()
}

// Run claims jobs until ctx ends, and calls do for each in a goroutine of its own. It returns when all
// have returned. After an error of the store it tries again.
func (q *Queue) Run(ctx context.Context, do func(*Claimed)) {
	var all sync.WaitGroup
	defer all.Wait()
	failed := false // the last time
	for ctx.Err() == nil {
		jobs, err := q.Claim(ctx)
		for _, c := range jobs {
			all.Go(func() {
				defer q.Ended(c)
				do(c)
			})
		}
		if err != nil && ctx.Err() == nil {
			if isConflict(err) { // another node was faster, or a job is being changed
				q.conflicts.Inc()
				q.opt.Logger.Debug("jobs not claimed; trying again", "cause", err)
				q.sleep(ctx, afterConflict)
				continue
			}
			if !failed {
				q.opt.Logger.Error("jobs not claimed; trying again", "cause", err)
			}
			failed = true
			q.sleep(ctx, afterFailure)
			continue
		}
		failed = false
		if len(jobs) == 0 {
			q.sleep(ctx, q.pause())
		}
	}
}

// isConflict reports whether err, or each of the errors that it joins, is a conflict.
func isConflict(err error) bool {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return !slices.ContainsFunc(joined.Unwrap(), func(one error) bool { return !isConflict(one) })
	}
	return errors.Is(err, store.ErrConflict)
}

// sleep waits for d, or until there may be something to do.
func (q *Queue) sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-q.wake:
	case <-timer.C:
	}
}

// pause is how long there is nothing to do, unless the store changes.
func (q *Queue) pause() time.Duration {
	now := timeOf(q.opt.Now())
	q.mu.Lock()
	defer q.mu.Unlock()
	next := now + Time(longestWait.Milliseconds())
	if len(q.later) > 0 && q.slots.free() > 0 {
		next = min(next, q.later[0].at)
	}
	for _, l := range q.running {
		if q.isOrphan(l) {
			return 0
		}
		next = min(next, l.until+q.skewOf(l)+1)
	}
	for _, s := range q.schedules {
		if s.next > 0 {
			next = min(next, s.next)
		}
	}
	for _, p := range q.paused {
		next = min(next, p.Until+1)
	}
	return max(0, next.Time().Sub(now.Time()))
}

// Counts are the numbers of jobs that wait and run, on all nodes. waiting is -1 until it is known.
func (q *Queue) Counts() (waiting, running int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.waiting.value(), len(q.running)
}
