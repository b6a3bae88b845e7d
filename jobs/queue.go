package jobs

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sort"
	"sync"
	"time"

	"runner.example/internal/fairqueue"
	"runner.example/schema"
	"runner.example/store"
)

// Options configure a Queue.
type Options struct {
	// Slots is how many jobs run at once on a node, beside requests. All runs of one job for one tenant
	// together leave a part of them to others.
	Slots int `toml:"jobs.slots" default:"16" min:"1" max:"10000"`
	// MaxWaiting is how many jobs of one tenant may wait before its requests cannot enqueue more; 0: any
	// number. Schedules and operators enqueue nevertheless.
	MaxWaiting int `toml:"jobs.max_waiting" default:"1000000" min:"0" max:"1000000000"`
	Keep

	// Now is the time, which must not go back; nil: time.Now.
	Now func() time.Time
	// Timeout limits the run of a job that declares none.
	Timeout time.Duration
	// Logger gets what cannot be returned as an error; nil: it is discarded.
	Logger *slog.Logger
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
	// afterFailure is the pause after an error of the store.
	afterFailure = time.Second
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
	schedules map[string]*timed
	groups    map[hash]*group
	later     laterGroups
	ready     rotation[string, *rotation[string, *rotation[hash, *group]]] // by tenant, job, group
	blocked   map[hash][]*group                                            // by the concurrency that blocks them
	unknown   []*group                                                     // of jobs that the schema does not declare
	held      map[share]int                                                // jobs that this node runs
	holding   int                                                          // sum of held
	waiting   counter
}

// applied is what the store says of the runs of all nodes.
type applied struct {
	used    map[hash]map[int]bool // slots of concurrency
	running map[string]lease      // by id
	changed map[string]bool       // keys of leases and slots that changed while Open reads them; nil afterwards
}

// share is what shares the slots with others.
type share struct{ tenant, name string }

// lease is that of a running job.
type lease struct {
	until Time
	node  string
	run   *Claimed // of this process; nil: it has none
	old   bool     // it was there when this process began
}

// neverBegan reports whether this process has claimed the job and does not know of it: the claim was committed
// after it had given up.
func (q *Queue) neverBegan(l lease) bool { return l.node == q.node && l.run == nil && !l.old }

// entry is a waiting job of a group.
type entry struct {
	key []byte
	due Time // when this node may claim it
	id  string
}

// group is a group with waiting jobs.
type group struct {
	id           hash
	name, tenant string
	count        *hash // what its jobs are counted under; nil: they are not limited
	// buffer are its first jobs, in order. Those at floor and after are not in it: more says that there
	// may be any. arrived is the least key that came during a scan.
	buffer   []entry
	floor    string
	more     bool
	scanning bool
	arrived  string
	// Where it is: in later, with at and index; in ready, blocked or unknown; or nowhere.
	place place
	at    Time
	index int
}

type place int

const (
	nowhere place = iota
	inLater
	inReady
	inBlocked
	inUnknown
)

// Open returns the queue of a store. Claim claims nothing before SetSchema.
func Open(ctx context.Context, st *store.Store, opt Options) (*Queue, error) {
	var node string
	if err := st.View(ctx, func(tx *store.Tx) error { node = tx.Node(); return nil }); err != nil {
		return nil, err
	}
	if opt.Now == nil {
		opt.Now = time.Now
	}
	if opt.Logger == nil {
		opt.Logger = slog.New(slog.DiscardHandler)
	}
	q := &Queue{
		store: st, node: node, opt: opt, wake: make(chan struct{}, 1), schedules: map[string]*timed{}, groups: map[hash]*group{},
		blocked: map[hash][]*group{}, held: map[share]int{},
		applied: applied{used: map[hash]map[int]bool{}, running: map[string]lease{}, changed: map[string]bool{}},
	}
	q.stop = []func(){
		st.OnApply([]byte(waitingPrefix), q.followWaiting), st.OnApply([]byte(runningPrefix), q.followRunning),
		st.OnApply([]byte(countPrefix), q.followSlot), st.OnApply([]byte(schedulePrefix), q.followSchedule),
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
		from = append(last, 0xff) // behind the last due time: that of 2262 begins with 0x00
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
	return nil
}

func readLease(value []byte) lease {
	if len(value) < 8 {
		return lease{}
	}
	return lease{until: Time(binary.BigEndian.Uint64(value)), node: string(value[8:])}
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

func (q *Queue) signal() {
	select {
	case q.wake <- struct{}{}:
	default: // it has a value
	}
}

// ---- following the store ----

func (q *Queue) followWaiting(seq store.Seq, c store.Change) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting.follow(seq, c.Key, c.Deleted)
	if !c.Deleted {
		q.seen = seq
		q.addWaitingLocked(c.Key, c.Value)
	}
}

// loadGroup adds a group by its first waiting job, and reports whether that can be read.
func (q *Queue) loadGroup(key, value []byte) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.addWaitingLocked(key, value) {
		return false
	}
	id, _, _, _ := readWaiting(key)
	q.groups[id].more = true
	return true
}

func (q *Queue) logNotWaiting(key []byte) {
	q.opt.Logger.Error("waiting job not readable", "key", fmt.Sprintf("%x", key))
}

// addWaitingLocked notes that a job waits, and reports whether its key and value can be read.
func (q *Queue) addWaitingLocked(key, value []byte) bool {
	id, due, job, ok := readWaiting(key)
	w, readable := decodeWaiting(value)
	if !ok || !readable {
		q.logNotWaiting(key)
		return false
	}
	at := q.claimable(due, w.origin)
	g, text := q.groups[id], string(key)
	if g == nil { // nothing waits in it
		g = &group{id: id, name: w.name, tenant: w.tenant, floor: text}
		if len(w.count) == hashBytes {
			g.count = new(hash)
			copy(g.count[:], w.count)
		}
		q.groups[id] = g
	}
	switch {
	case text < g.floor:
		g.insert(entry{[]byte(text), at, string(job)})
	case !g.more && !g.scanning && len(g.buffer) < bufferedJobs:
		g.buffer, g.floor = append(g.buffer, entry{[]byte(text), at, string(job)}), text+"\x00"
	default:
		g.more = true
		if g.scanning && (g.arrived == "" || text < g.arrived) {
			g.arrived = text
		}
	}
	if g.place == nowhere || g.place == inLater && at < g.at {
		q.putLocked(g, inLater, at)
		if q.later[0] == g {
			q.signal()
		}
	}
	return true
}

// insert adds a job that comes before the floor.
func (g *group) insert(e entry) {
	n := sort.Search(len(g.buffer), func(i int) bool { return string(g.buffer[i].key) >= string(e.key) })
	switch {
	case n < len(g.buffer) && string(g.buffer[n].key) == string(e.key): // it was read again
	case len(g.buffer) >= 2*bufferedJobs:
		g.cut(string(e.key))
	default:
		g.buffer = slices.Insert(g.buffer, n, e)
	}
}

// cut drops the buffered jobs from a key on: they are read again.
func (g *group) cut(key string) {
	n := sort.Search(len(g.buffer), func(i int) bool { return string(g.buffer[i].key) >= key })
	g.buffer, g.floor, g.more = g.buffer[:n], key, true
}

// claimable returns when this node may claim a job: jobs of another node later.
func (q *Queue) claimable(due Time, origin string) Time {
	if q.node != "" && origin != q.node {
		due += Time(originFirst.Milliseconds())
	}
	return due
}

func (q *Queue) followRunning(_ store.Seq, c store.Change) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.noteLocked(c.Key)
	id := string(c.Key[len(runningPrefix):])
	if run := q.running[id].run; run != nil && !run.ending.Load() { // another has changed the job
		run.lose()
	}
	if c.Deleted {
		delete(q.running, id)
		return
	}
	q.running[id] = readLease(c.Value)
	if q.running[id].node != q.node {
		q.signal() // the loop waits for its end
	}
}

func (q *Queue) followSlot(_ store.Seq, c store.Change) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.noteLocked(c.Key)
	q.setSlotLocked(c.Key, !c.Deleted)
}

// noteLocked remembers that a lease or a slot has changed, if Open has not ended.
func (q *Queue) noteLocked(key []byte) {
	if q.changed != nil {
		q.changed[string(key)] = true
	}
}

// setSlotLocked notes that a slot of a concurrency limit is taken, or is free.
func (q *Queue) setSlotLocked(key []byte, taken bool) {
	if len(key) != len(countPrefix)+hashBytes+2 {
		return
	}
	var h hash
	copy(h[:], key[len(countPrefix):])
	n := int(binary.BigEndian.Uint16(key[len(key)-2:]))
	if taken {
		if q.used[h] == nil {
			q.used[h] = map[int]bool{}
		}
		q.used[h][n] = true
		return
	}
	if delete(q.used[h], n); len(q.used[h]) == 0 {
		delete(q.used, h)
	}
	q.unblockLocked(h)
}

func (q *Queue) unblockLocked(h hash) {
	for _, g := range q.blocked[h] {
		q.putLocked(g, inReady, 0)
	}
	if q.blocked[h] != nil {
		delete(q.blocked, h)
		q.signal()
	}
}

// slotsByUse returns the numbers of the slots, those that seem free first.
func (q *Queue) slotsByUse(h hash, slots int) []int {
	q.mu.Lock()
	defer q.mu.Unlock()
	order := make([]int, 0, slots)
	for n := range slots {
		if !q.used[h][n] {
			order = append(order, n)
		}
	}
	for n := range slots {
		if q.used[h][n] {
			order = append(order, n)
		}
	}
	return order
}

// putLocked moves a group to a place. One that is in blocked or unknown is not removed from there.
func (q *Queue) putLocked(g *group, to place, at Time) {
	switch g.place {
	case inLater:
		q.later.remove(g)
	case inReady:
		q.unreadyLocked(g)
	}
	g.place, g.at = to, at
	switch to {
	case inLater:
		q.later.add(g)
	case inReady:
		inner(inner(&q.ready, g.tenant), g.name).put(g.id, g)
	case nowhere:
		if !g.more && len(g.buffer) == 0 && !g.scanning {
			delete(q.groups, g.id)
		}
	}
}

func (q *Queue) unreadyLocked(g *group) {
	names := inner(&q.ready, g.tenant)
	groups := inner(names, g.name)
	groups.remove(g.id)
	if groups.empty() {
		names.remove(g.name)
	}
	if names.empty() {
		q.ready.remove(g.tenant)
	}
}

// ---- claiming ----

// Claim claims jobs that are due for the free slots of this node. Before, it fires schedules, and takes
// over jobs whose lease is over. Each job that it returns needs an Ended, also beside an error. One goroutine at a time may
// call it.
func (q *Queue) Claim(ctx context.Context) ([]*Claimed, error) {
	now := q.opt.Now()
	failed := errors.Join(q.takeOver(ctx, now), q.syncSchedules(ctx, now), q.fire(ctx, now)) // other jobs are claimed nevertheless
	now = q.opt.Now()                                                                        // when the leases begin
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
	counted := map[hash]int{}
	for q.schema != nil && q.holding < q.opt.Slots {
		g := q.nextLocked()
		if g == nil {
			break
		}
		if len(g.buffer) == 0 {
			if !g.more {
				q.putLocked(g, nowhere, 0)
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
		e := g.take(q.choose(g, now))
		q.holding++
		q.held[share{g.tenant, g.name}]++
		picked = append(picked, taken{candidate{e.id, declared, g}, e})
	}
	return picked, nil
}

// nextLocked returns the group whose turn it is.
func (q *Queue) nextLocked() *group {
	free := q.opt.Slots - q.holding
	for range q.ready.len() {
		tenant, names := q.ready.next()
		for range names.len() {
			name, groups := names.next()
			if fairqueue.Share(q.held[share{tenant, name}], free) {
				_, g := groups.next()
				return g
			}
		}
	}
	return nil
}

// choose returns which of the buffered jobs that are due is claimed: the first, and in a cluster any,
// so that nodes with a full queue do not claim the same ones.
func (q *Queue) choose(g *group, now Time) int {
	if q.node == "" {
		return 0
	}
	due := sort.Search(len(g.buffer), func(i int) bool { return g.buffer[i].due > now })
	return rand.IntN(max(1, due))
}

func (g *group) take(i int) entry {
	e := g.buffer[i]
	if i == 0 {
		g.buffer = g.buffer[1:]
	} else {
		g.buffer = append(g.buffer[:i:i], g.buffer[i+1:]...)
	}
	return e
}

func (q *Queue) blockLocked(g *group, by hash) {
	q.putLocked(g, inBlocked, 0)
	q.blocked[by] = append(q.blocked[by], g)
}

// fillLocked reads the next jobs of a group. It unlocks the queue meanwhile.
func (q *Queue) fillLocked(ctx context.Context, g *group) error {
	from, seen := g.floor, q.seen
	g.scanning, g.arrived, g.more = true, "", false
	q.mu.Unlock()
	entries, whole, err := q.scan(ctx, g, from, seen)
	q.mu.Lock()
	g.scanning = false
	if err != nil {
		g.more = true
		return err
	}
	if g.floor < from { // cut meanwhile
		return nil
	}
	g.buffer = append(g.buffer, entries...) // behind those that came meanwhile
	if len(entries) > 0 {
		g.floor = string(append(entries[len(entries)-1].key, 0))
	}
	g.more = g.more || !whole
	if g.arrived != "" && g.arrived < g.floor {
		g.cut(g.arrived)
	}
	return nil
}

// scan reads some waiting jobs of a group from a key on, after a commit can be read. whole reports that
// these are all.
func (q *Queue) scan(ctx context.Context, g *group, from string, seen store.Seq) (entries []entry, whole bool, err error) {
	if err := q.store.WaitFor(ctx, seen); err != nil {
		return nil, false, err
	}
	err = q.store.View(ctx, func(tx *store.Tx) error {
		for item, err := range tx.Scan([]byte(waitingPrefix+string(g.id[:])), []byte(from), false) {
			if err != nil {
				return err
			}
			if len(entries) == bufferedJobs {
				return nil
			}
			_, due, id, ok := readWaiting(item.Key)
			w, readable := decodeWaiting(item.Value)
			if !ok || !readable {
				q.logNotWaiting(item.Key)
				continue
			}
			entries = append(entries, entry{append([]byte(nil), item.Key...), q.claimable(due, w.origin), string(id)})
		}
		whole = true
		return nil
	})
	return entries, whole, err
}

// settle takes the results of a claim into account, and returns the jobs to run.
func (q *Queue) settle(picked []taken, results []claimed) (jobs []*Claimed) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for i, p := range picked {
		switch r := results[i]; {
		case r.job != nil:
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
			if len(q.used[*r.blocked]) >= p.declared.Concurrency.Max && g.place == inReady {
				q.blockLocked(g, *r.blocked)
			}
		case r.unreadable != nil: // it waits until this node is started again
			q.logUnreadable(p.id, r.unreadable)
			q.signal()
		default: // it does not wait any more: others may be due
			q.signal()
		}
		q.endedLocked(share{p.group.tenant, p.group.name})
	}
	for h := range q.blocked { // by others that were picked, and not claimed
		for _, g := range q.blocked[h] {
			if declared := q.schema.Job(g.name); declared == nil || declared.Concurrency == nil || len(q.used[h]) < declared.Concurrency.Max {
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
	if string(p.entry.key) < g.floor {
		g.insert(p.entry)
	} else {
		g.more = true
	}
	if g.place == nowhere || g.place == inLater {
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
		q.endedLocked(share{p.group.tenant, p.group.name})
	}
	for h := range q.blocked {
		q.unblockLocked(h)
	}
}

// Ended gives the slot of a claimed job back.
func (q *Queue) Ended(c *Claimed) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.endedLocked(share{c.Caller.Tenant, c.Name})
	q.signal()
}

func (q *Queue) endedLocked(s share) {
	q.holding--
	if q.held[s]--; q.held[s] == 0 {
		delete(q.held, s)
	}
}

// takeOver ends the runs whose lease is over, and lets jobs wait again that were claimed and never began.
func (q *Queue) takeOver(ctx context.Context, now time.Time) (failed error) {
	q.mu.Lock()
	over := map[string]lease{}
	for id, l := range q.running {
		if l.until+q.skewOf(l) < timeOf(now) || q.neverBegan(l) {
			over[id] = l
		}
	}
	s := q.schema
	q.mu.Unlock()
	for id, l := range over {
		taken, unreadable := false, error(nil)
		_, err := q.store.Update(ctx, func(tx *store.Tx) error {
			taken, unreadable = false, nil
			r, err := read(tx, id)
			if errors.Is(err, ErrNotFound) || err == nil && r.State != Running {
				return tx.Delete(runningKey(id))
			}
			if errors.Is(err, errUnreadable) {
				unreadable = err
				return freeSlotOf(tx, id)
			}
			if err != nil || r.Lease >= timeOf(now) && r.Node != tx.Node() {
				return err
			}
			var declared *schema.Job
			if s != nil {
				declared = s.Job(r.Name)
			}
			taken = true
			if q.neverBegan(l) {
				return r.release(tx, declared, timeOf(now))
			}
			return r.fail(tx, declared, "the lease ended: the server stopped, or the run took too long", now, q.opt.Keep)
		})
		switch {
		case err != nil:
			failed = errors.Join(failed, fmt.Errorf("take over job %s: %w", id, err))
		case unreadable != nil:
			q.mu.Lock()
			delete(q.running, id)
			q.mu.Unlock()
			q.logUnreadable(id, unreadable)
		case taken:
			q.opt.Logger.Warn("job lease over", "jobId", id)
		}
	}
	return failed
}

// freeSlotOf frees the concurrency slot of a job whose record does not say which one it has.
func freeSlotOf(tx *store.Tx, id string) error {
	for item, err := range tx.Scan([]byte(countPrefix), nil, false) {
		if err != nil {
			return err
		}
		if string(item.Value) == id {
			return tx.Delete(bytes.Clone(item.Key))
		}
	}
	return nil
}

func (q *Queue) logUnreadable(id string, cause error) {
	q.opt.Logger.Error("job not readable", "jobId", id, "cause", cause)
}

func (q *Queue) skewOf(l lease) Time {
	if l.node == q.node {
		return 0
	}
	return Time(clockSkew.Milliseconds())
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
	if len(q.later) > 0 && q.holding < q.opt.Slots {
		next = min(next, q.later[0].at)
	}
	for _, l := range q.running {
		if q.neverBegan(l) {
			return 0
		}
		next = min(next, l.until+q.skewOf(l)+1)
	}
	for _, s := range q.schedules {
		if s.next > 0 {
			next = min(next, s.next)
		}
	}
	return max(0, next.Time().Sub(now.Time()))
}

// Counts are the numbers of jobs that wait and run, on all nodes. waiting is -1 until it is known.
func (q *Queue) Counts() (waiting, running int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.waiting.value(), len(q.running)
}
