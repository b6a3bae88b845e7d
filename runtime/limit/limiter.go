package limit

import (
	"fmt"
	"hash/maphash"
	"math"
	"math/bits"
	"sync"
	"sync/atomic"
	"time"

	"runner.example/internal/settings"
)

// shards is the number of locks that callers are distributed over: the bits of a word, so
// that a set of them is one word.
const shards = 64

// Options configure a Limiter. They are settings (package settings). The counter of a quiet
// caller takes about 250 bytes, one with 1,000 stamps 8 KiB.
type Options struct {
	// Counters is the number of callers that rate limits count exactly; it limits their
	// memory. Further ones are counted approximately (docs/limits.md).
	Counters int `toml:"limit.counters" default:"100000" min:"1" max:"100000000"`
	// AcrossNodes says what the rate limits of the schema are in a cluster. each: every node admits the
	// whole limit. divided: a node admits its part of it, so that all nodes together admit no more than
	// the limit. A node without a cluster has the whole limit.
	AcrossNodes string `toml:"limit.across" default:"each" oneof:"each|divided"`
}

// sweepEvery is the time between two searches of all shards for free memory, in
// nanoseconds.
const sweepEvery = int64(time.Millisecond)

// Use is a request's use of one limit; Take fills in the result.
type Use struct {
	Limit *Limit
	// Caller is the name to count for, from AppendCaller. It is not kept.
	Caller []byte

	// Refused: the limit is used up.
	Refused bool
	// Remaining is the number of requests that would be admitted now.
	Remaining int
	// Reset is the time until the oldest counted request leaves the window; if Refused,
	// until one more would be admitted.
	Reset time.Duration

	counter *counter
	hash    uint64
	shard   uint8
	slot    slot     // reserved for a counter that is created if the request is admitted
	found   estimate // the sketch's estimate for a caller without a counter
}

// slot is the part of the memory that a counter is in.
type slot uint8

const (
	noSlot slot = iota
	ownSlot
	sharedSlot
)

// Limiter holds the counters of all limits of a process.
type Limiter struct {
	start time.Time
	seed  maphash.Seed
	max   int64
	// live is the number of counters, including reserved slots. shared is the number of
	// them outside the share of their pool.
	live, shared atomic.Int64
	maxShared    atomic.Int64
	shards       [shards]shard

	// sweeping is held by the only search for free memory; before fullUntil there is none.
	sweeping  sync.Mutex
	fullUntil atomic.Int64

	// part is the part of each limit that this node has, see Divide: its index and the number of
	// nodes, in 32 bits each; 0: the whole.
	part atomic.Uint64

	mu      sync.Mutex
	limits  map[Spec]*Limit
	classes map[class]int
}

// class is what limits have in common whose counters become empty in the order of their
// last admission.
type class struct{ per, bucket int64 }

// New returns a limiter. Time is counted from now; pass times with a monotonic reading here
// and to Take, or with none to both.
func New(now time.Time, opt Options) *Limiter {
	settings.FillZero(&opt)
	l := &Limiter{
		start: now, seed: maphash.MakeSeed(), max: int64(opt.Counters),
		limits: map[Spec]*Limit{}, classes: map[class]int{},
	}
	for i := range l.shards {
		l.shards[i].counters = map[key]*counter{}
		l.shards[i].maxColumns = columnsFor(opt.Counters)
	}
	return l
}

// Limit returns the limit of a spec. For the same spec it returns the same limit, so that a
// new release keeps the counters of unchanged limits. It panics unless count and window are
// positive; a count above 2^31-1 is reduced to that.
func (l *Limiter) Limit(spec Spec) *Limit {
	if spec.Count < 1 || spec.Per < 1 {
		panic(fmt.Sprintf("BUG: limiter given the limit %+v", spec))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if lim := l.limits[spec]; lim != nil {
		return lim
	}
	asked := spec
	spec.Count = min(spec.Count, math.MaxInt32)
	lim := newLimit(spec)
	lim.limiter = l
	lim.salt = maphash.String(l.seed, spec.ID)
	cl := class{lim.per, lim.bucket}
	if _, known := l.classes[cl]; !known {
		l.classes[cl] = len(l.classes)
	}
	lim.class = l.classes[cl]
	l.limits[asked] = lim
	l.shareLocked()
	return lim
}

// shareLocked divides half of the slots between the pools of all limits; the other half is
// for pools that need more.
func (l *Limiter) shareLocked() {
	pools := int64(max(len(l.limits), 1) * len(Limit{}.pools))
	share := max(l.max/2/pools, 1)
	for _, lim := range l.limits {
		for i := range lim.pools {
			lim.pools[i].share.Store(share)
		}
	}
	l.maxShared.Store(max(l.max-pools*share, 0))
}

// Divide gives this Limiter the part of node, from 0 on, of so many nodes that count the same callers.
// Of each limit it admits as many requests as count / nodes, rounded down or up, so that the parts of
// all nodes together are the limit: with more nodes than requests, the last nodes admit none. One
// node has the whole limit. The headers tell the part. What was admitted before still counts.
func (l *Limiter) Divide(node, nodes int) {
	if node < 0 || node >= nodes || nodes > math.MaxInt32 {
		panic(fmt.Sprintf("BUG: limiter given the part %d of %d", node, nodes))
	}
	part := uint64(0)
	if nodes > 1 {
		part = uint64(node)<<32 | uint64(nodes)
	}
	l.part.Store(part)
}

// IsDivided reports whether Divide has given this Limiter less than the whole.
func (l *Limiter) IsDivided() bool { return l.part.Load() != 0 }

// count returns the number of requests that this node admits in a window.
func (lim *Limit) count() int {
	part := lim.limiter.part.Load()
	if part == 0 {
		return lim.spec.Count
	}
	node, nodes := int(part>>32), int(part&math.MaxUint32)
	count := lim.spec.Count / nodes
	if node < lim.spec.Count%nodes {
		count++
	}
	return count
}

// Retain discards all other limits with their counters: those of releases that are no
// longer active. Requests that still hold one may use it to their end.
func (l *Limiter) Retain(limits []*Limit) {
	keep := make(map[*Limit]bool, len(limits))
	for _, lim := range limits {
		keep[lim] = true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for spec, lim := range l.limits {
		if !keep[lim] {
			delete(l.limits, spec)
		}
	}
	l.shareLocked()
	for i := range l.shards {
		s := &l.shards[i]
		s.mu.Lock()
		for _, c := range s.counters {
			if !keep[c.limit] {
				l.remove(s, c)
			}
		}
		s.dropSketches(func(sk *sketch) bool { return !keep[sk.pool.limit] })
		s.mu.Unlock()
	}
}

// Counters returns the number of counters.
func (l *Limiter) Counters() int { return int(l.live.Load()) }

// Take checks all limits of one request at once. If each admits the request, all count it
// and Take returns true; otherwise none counts it. Every use is filled in either way. No
// limit may be in uses twice. For known callers it does not allocate.
//
// Times of concurrent goroutines may be slightly out of order; the limit is never exceeded.
func (l *Limiter) Take(now time.Time, uses []Use) bool {
	t := max(int64(now.Sub(l.start)), 0)
	locked := l.lock(uses)
	if !l.findCounters(t, uses) && t >= l.fullUntil.Load() {
		l.unlock(locked)
		l.sweep(t)
		l.lock(uses)
		l.findCounters(t, uses)
	}
	allowed := true
	for i := range uses {
		allowed = l.check(t, &uses[i]) && allowed
	}
	for i := range uses {
		use := &uses[i]
		if allowed {
			l.admit(t, use)
		} else if use.slot != noSlot {
			l.releaseSlot(use.Limit.poolOf(use.Caller), use.slot)
		}
		use.counter, use.slot = nil, noSlot
	}
	l.unlock(locked)
	return allowed
}

// lock locks the shards of all uses in order and returns the set.
func (l *Limiter) lock(uses []Use) (set uint64) {
	for i := range uses {
		use := &uses[i]
		use.hash = maphash.Bytes(l.seed, use.Caller) ^ use.Limit.salt
		use.shard = uint8(use.hash % shards)
		set |= 1 << use.shard
	}
	for rest := set; rest != 0; rest &= rest - 1 {
		l.shards[bits.TrailingZeros64(rest)].mu.Lock()
	}
	return set
}

// unlock unlocks the shards of a set.
func (l *Limiter) unlock(set uint64) {
	for ; set != 0; set &= set - 1 {
		l.shards[bits.TrailingZeros64(set)].mu.Unlock()
	}
}

// findCounters finds the counter of every use, or reserves a slot for a new one. It returns
// false if a use got neither and must use the sketch of its pool; called again, it
// continues from there.
func (l *Limiter) findCounters(t int64, uses []Use) bool {
	for i := range uses {
		use := &uses[i]
		use.counter = l.shards[use.shard].counters[key{use.Limit, string(use.Caller)}]
		if use.counter != nil && use.slot != noSlot {
			l.releaseSlot(use.counter.pool, use.slot) // another request has created it meanwhile
			use.slot = noSlot
		}
	}
	all := true
	for i := range uses {
		use := &uses[i]
		if use.counter != nil || use.slot != noSlot {
			continue
		}
		// Two are removed for each new one, so that idle counters do not stay.
		s := &l.shards[use.shard]
		if l.evict(s, t, uses) {
			l.evict(s, t, uses)
		}
		use.slot = l.acquireSlot(use.Limit.poolOf(use.Caller))
		all = all && use.slot != noSlot
	}
	return all
}

// acquireSlot takes a slot for a counter of the pool, from the pool's share if possible.
func (l *Limiter) acquireSlot(p *pool) slot {
	if l.live.Add(1) <= l.max {
		if p.own.Add(1) <= p.share.Load() {
			return ownSlot
		}
		p.own.Add(-1)
		if l.shared.Add(1) <= l.maxShared.Load() {
			return sharedSlot
		}
		l.shared.Add(-1)
	}
	l.live.Add(-1)
	return noSlot
}

// releaseSlot returns a slot.
func (l *Limiter) releaseSlot(p *pool, from slot) {
	if from == ownSlot {
		p.own.Add(-1)
	} else {
		l.shared.Add(-1)
	}
	l.live.Add(-1)
}

// remove drops a counter of s.
func (l *Limiter) remove(s *shard, c *counter) {
	s.remove(c)
	l.releaseSlot(c.pool, c.slot)
}

// sweep removes empty counters in all shards. It takes their locks one by one; the caller
// holds none.
func (l *Limiter) sweep(t int64) {
	if !l.sweeping.TryLock() {
		return // another request sweeps
	}
	defer l.sweeping.Unlock()
	if t < l.fullUntil.Load() {
		return
	}
	l.fullUntil.Store(math.MaxInt64) // counters created from here on lower it
	next := int64(math.MaxInt64)
	for i := range l.shards {
		s := &l.shards[i]
		s.mu.Lock()
		for l.evict(s, t, nil) {
			next = t
		}
		next = min(next, s.nextEmpty(t))
		s.mu.Unlock()
	}
	l.emptyAt(max(next, t+sweepEvery))
}

// emptyAt records that a counter may be empty at t.
func (l *Limiter) emptyAt(t int64) {
	for {
		known := l.fullUntil.Load()
		if t >= known || l.fullUntil.CompareAndSwap(known, t) {
			return
		}
	}
}

// check fills in the use without counting it and reports whether it may be admitted.
func (l *Limiter) check(t int64, use *Use) bool {
	count := use.Limit.count()
	use.Refused, use.Remaining, use.Reset = false, count, 0
	if c := use.counter; c != nil {
		c.expire(t)
		use.Remaining = max(use.Remaining-c.used, 0)
		use.Reset = time.Duration(c.wait(t, count))
	} else {
		use.found = estimate{}
		if sk := use.Limit.poolOf(use.Caller).sketches[use.shard]; sk != nil && t < sk.until {
			use.found = sk.estimate(use.hash, t)
			use.Remaining = max(use.Remaining-use.found.count, 0)
			use.Reset = time.Duration(use.found.wait(count, t))
		}
	}
	use.Refused = use.Remaining <= 0
	if count == 0 { // the part of another node may admit a request then
		use.Reset = use.Limit.spec.Per
	}
	return !use.Refused
}

// admit counts the use.
func (l *Limiter) admit(t int64, use *Use) {
	use.Remaining--
	count := use.Limit.count()
	s, c := &l.shards[use.shard], use.counter
	switch {
	case c != nil:
		c.admit(t)
		s.touch(c)
	case use.slot != noSlot:
		c = &counter{limit: use.Limit, pool: use.Limit.poolOf(use.Caller), slot: use.slot, caller: string(use.Caller)}
		c.debt, c.used, c.debtUntil = use.found.count, use.found.count, use.found.until
		c.admit(t)
		s.add(c)
		l.emptyAt(t + use.Limit.per)
	default:
		sk := s.sketchOf(use.Limit.poolOf(use.Caller), use.shard, t)
		sk.add(use.hash, t)
		use.Reset = time.Duration(sk.estimate(use.hash, t).wait(count, t))
		return
	}
	use.Reset = time.Duration(c.wait(t, count))
}

// evict removes one counter of s whose window is empty and that no use has. It reports
// whether there was one.
func (l *Limiter) evict(s *shard, t int64, uses []Use) bool {
	for i := range s.lists {
		for c := s.lists[i].first; c != nil && c.empty(t); c = c.next {
			if !taken(c, uses) {
				l.remove(s, c)
				return true
			}
		}
	}
	return false
}

// taken reports whether c is the counter of a use.
func taken(c *counter, uses []Use) bool {
	for i := range uses {
		if uses[i].counter == c {
			return true
		}
	}
	return false
}
