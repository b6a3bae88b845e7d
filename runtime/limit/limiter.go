package limit

import (
	"fmt"
	"hash/maphash"
	"math"
	"math/bits"
	"sync"
	"sync/atomic"
	"time"
)

// shards is the number of locks that callers are spread over: the bits of a
// word, so that a set of them is one.
const shards = 64

// DefaultMaxCounters bounds the counters of a Limiter that is not told
// otherwise. A quiet caller's counter takes about 250 bytes; one that holds
// its whole limit of 1,000 stamps takes 8 KiB.
const DefaultMaxCounters = 1 << 16

// Use is one limit asked for one caller: Take fills in what came of it.
type Use struct {
	Limit *Limit
	// Caller is whom to count for, as AppendCaller makes it. It is not kept.
	Caller []byte

	// Refused: this limit has no room for the request.
	Refused bool
	// Remaining is how many more requests would pass now.
	Remaining int
	// Reset is how long until the oldest counted request leaves the window:
	// when Refused, until one more would pass.
	Reset time.Duration

	counter *counter
	shard   uint8
	isNew   bool // there is room for a counter, to be made when the request passes
	shared  bool // the shared counter of the limit has a say
}

// Limiter holds the counters of all limits of a process.
type Limiter struct {
	start time.Time
	seed  maphash.Seed
	max   int64
	// live is how many counters there are, those promised room included.
	live   atomic.Int64
	shards [shards]shard

	// overflow guards the shared counters of all limits. It is taken after the
	// shards.
	overflow sync.Mutex

	// sweeping admits one search for room at a time; before fullUntil there is
	// none to be found.
	sweeping  sync.Mutex
	fullUntil atomic.Int64

	mu      sync.Mutex
	limits  map[Spec]*Limit
	classes map[class]int
}

// class is what limits have in common whose counters become empty in the
// order of their last admission.
type class struct{ per, bucket int64 }

// New returns a limiter of at most maxCounters counters (0: DefaultMaxCounters).
// Time is counted from now; pass times with a monotonic reading here and to
// Take, or with none to both.
func New(now time.Time, maxCounters int) *Limiter {
	if maxCounters <= 0 {
		maxCounters = DefaultMaxCounters
	}
	l := &Limiter{
		start: now, seed: maphash.MakeSeed(), max: int64(maxCounters),
		limits: map[Spec]*Limit{}, classes: map[class]int{},
	}
	for i := range l.shards {
		l.shards[i].counters = map[key]*counter{}
	}
	return l
}

// Limit returns the limit of a spec. Asked again with the same spec it returns
// the same one, so that a new release keeps the counters of what it did not
// change. It panics unless count and window are positive; a count above
// 2^31-1 is counted as that.
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
	lim.salt = maphash.String(l.seed, spec.ID)
	cl := class{lim.per, lim.bucket}
	if _, known := l.classes[cl]; !known {
		l.classes[cl] = len(l.classes)
	}
	lim.class = l.classes[cl]
	l.limits[asked] = lim
	return lim
}

// Retain forgets every limit that is not among those given: the ones of
// releases that no request will begin in any more. Requests that still hold
// one may finish with it.
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
}

// Counters tells how many counters there are, the shared ones not among them.
func (l *Limiter) Counters() int { return int(l.live.Load()) }

// Take asks all limits of one request at once: when each has room the request
// is counted by all of them and Take reports true, else by none. It fills in
// every use either way. No limit may be in uses twice. It allocates nothing
// for callers that it knows.
//
// Times may come a little out of order from goroutines that race; they never
// let more than the count through.
func (l *Limiter) Take(now time.Time, uses []Use) bool {
	t := max(int64(now.Sub(l.start)), 0)
	locked := l.lock(uses)
	if !l.seat(t, uses) {
		l.unlock(locked)
		l.sweep(t)
		l.lock(uses)
		l.seat(t, uses)
	}
	if share(t, uses) {
		l.overflow.Lock()
		defer l.overflow.Unlock()
	}
	allowed := true
	for i := range uses {
		allowed = uses[i].check(t) && allowed
	}
	for i := range uses {
		if allowed {
			l.admit(t, &uses[i])
		} else if uses[i].isNew {
			l.live.Add(-1)
		}
		uses[i].counter, uses[i].isNew = nil, false
	}
	l.unlock(locked)
	return allowed
}

// lock takes the shards of all uses in their order and returns the set.
func (l *Limiter) lock(uses []Use) (set uint64) {
	for i := range uses {
		use := &uses[i]
		use.shard = uint8((maphash.Bytes(l.seed, use.Caller) ^ use.Limit.salt) % shards)
		set |= 1 << use.shard
	}
	for rest := set; rest != 0; rest &= rest - 1 {
		l.shards[bits.TrailingZeros64(rest)].mu.Lock()
	}
	return set
}

// unlock gives back the shards of a set.
func (l *Limiter) unlock(set uint64) {
	for ; set != 0; set &= set - 1 {
		l.shards[bits.TrailingZeros64(set)].mu.Unlock()
	}
}

// seat finds the counter of every use or promises it room for a new one. It
// reports false when some use got neither and is left to the shared counter;
// asked again, it goes on from there.
func (l *Limiter) seat(t int64, uses []Use) bool {
	for i := range uses {
		use := &uses[i]
		use.counter = l.shards[use.shard].counters[key{use.Limit, string(use.Caller)}]
		if use.counter != nil && use.isNew {
			l.live.Add(-1) // another request made it meanwhile
			use.isNew = false
		}
	}
	all := true
	for i := range uses {
		use := &uses[i]
		if use.counter != nil || use.isNew {
			continue
		}
		// Two go for one that comes, so that what fell idle does not stay.
		s := &l.shards[use.shard]
		if l.evict(s, t, uses) {
			l.evict(s, t, uses)
		}
		use.isNew = l.live.Add(1) <= l.max
		if !use.isNew {
			l.live.Add(-1)
			all = false
		}
	}
	return all
}

// sweep makes room in all shards. It takes their locks one by one: the caller
// holds none.
func (l *Limiter) sweep(t int64) {
	l.sweeping.Lock()
	defer l.sweeping.Unlock()
	if t < l.fullUntil.Load() {
		return
	}
	l.fullUntil.Store(math.MaxInt64) // counters made from here on lower it
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
	l.emptyAt(next)
}

// emptyAt notes that a counter may be empty at t.
func (l *Limiter) emptyAt(t int64) {
	for {
		known := l.fullUntil.Load()
		if t >= known || l.fullUntil.CompareAndSwap(known, t) {
			return
		}
	}
}

// share marks the uses that need the shared counter of their limit, to be
// counted there or because their caller was perhaps counted there before, and
// reports whether there are any.
func share(t int64, uses []Use) (some bool) {
	for i := range uses {
		use := &uses[i]
		use.shared = use.counter == nil && (!use.isNew || t < use.Limit.overflowUntil.Load())
		some = some || use.shared
	}
	return some
}

// check fills in the use without counting it and reports whether it may pass.
func (use *Use) check(t int64) bool {
	use.Refused, use.Remaining, use.Reset = false, use.Limit.spec.Count, 0
	c := use.counter
	if use.shared {
		c = &use.Limit.overflow
	}
	if c != nil {
		c.expire(t)
		use.Remaining -= c.used
		use.Reset = time.Duration(c.wait(t))
		use.Refused = use.Remaining <= 0
	}
	return !use.Refused
}

// admit counts the use.
func (l *Limiter) admit(t int64, use *Use) {
	c, shared := use.counter, &use.Limit.overflow
	switch {
	case use.isNew:
		c = &counter{limit: use.Limit, caller: string(use.Caller)}
		if use.shared {
			c.debt, c.used, c.debtUntil = shared.used, shared.used, use.Limit.overflowUntil.Load()
		}
		c.admit(t)
		l.shards[use.shard].add(c)
		l.emptyAt(t + use.Limit.per)
	case use.shared:
		c = shared
		c.admit(t)
		use.Limit.overflowUntil.Store(c.last + c.limit.per)
	default:
		c.admit(t)
		l.shards[use.shard].touch(c)
	}
	use.Remaining--
	use.Reset = time.Duration(c.wait(t))
}

// evict removes one counter of s whose window is empty and that no use has
// taken. It reports whether there was one.
func (l *Limiter) evict(s *shard, t int64, uses []Use) bool {
	for i := range s.lists {
		for c := s.lists[i].first; c != nil && c.empty(t); c = c.next {
			if !taken(c, uses) {
				s.remove(c)
				l.live.Add(-1)
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
