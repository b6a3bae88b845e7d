package limit

import (
	"math"
	"math/bits"
	"slices"
	"sync"
)

// shard is a part of the counters under one lock.
type shard struct {
	mu       sync.Mutex
	counters map[key]*counter
	// lists hold the counters of each class in order of last admission.
	lists []list
	// sketches are those of all pools in this shard, with at most maxColumns together.
	sketches   []*sketch
	maxColumns int
	_          [64]byte // keeps the locks of neighbours off one cache line
}

type key struct {
	limit  *Limit
	caller string
}

// list is a chain of counters; the first is the first to become empty.
type list struct{ first, last *counter }

// add adds a new counter.
func (s *shard) add(c *counter) {
	for len(s.lists) <= c.limit.class {
		s.lists = append(s.lists, list{})
	}
	s.counters[key{c.limit, c.caller}] = c
	s.lists[c.limit.class].push(c)
}

// touch moves c to the end of its list.
func (s *shard) touch(c *counter) {
	if l := &s.lists[c.limit.class]; l.last != c {
		l.unlink(c)
		l.push(c)
	}
}

// remove removes c.
func (s *shard) remove(c *counter) {
	delete(s.counters, key{c.limit, c.caller})
	s.lists[c.limit.class].unlink(c)
}

// sketchOf finds or creates the sketch of a pool here. Its memory is taken from the others:
// all are as wide as fits.
func (s *shard) sketchOf(p *pool, here uint8, t int64) *sketch {
	if p.sketches[here] != nil {
		return p.sketches[here]
	}
	s.dropSketches(func(sk *sketch) bool { return t >= sk.until })
	columns := max(1<<(bits.Len(uint(s.maxColumns/(len(s.sketches)+1)))-1), minColumns)
	for _, sk := range s.sketches {
		sk.narrow(columns)
	}
	sk := newSketch(p, here, columns)
	s.sketches = append(s.sketches, sk)
	p.sketches[here] = sk
	return sk
}

// dropSketches removes the sketches that drop selects.
func (s *shard) dropSketches(drop func(*sketch) bool) {
	s.sketches = slices.DeleteFunc(s.sketches, func(sk *sketch) bool {
		if !drop(sk) {
			return false
		}
		sk.pool.sketches[sk.shard] = nil
		return true
	})
}

// nextEmpty returns the time when the first counter here will be empty if no more requests
// are counted.
func (s *shard) nextEmpty(t int64) int64 {
	next := int64(math.MaxInt64)
	for _, l := range s.lists {
		if c := l.first; c != nil {
			next = min(next, max(t, c.latest()+c.limit.per))
		}
	}
	return next
}

func (l *list) push(c *counter) {
	c.prev, c.next = l.last, nil
	if l.last == nil {
		l.first = c
	} else {
		l.last.next = c
	}
	l.last = c
}

func (l *list) unlink(c *counter) {
	if c.prev == nil {
		l.first = c.next
	} else {
		c.prev.next = c.next
	}
	if c.next == nil {
		l.last = c.prev
	} else {
		c.next.prev = c.prev
	}
}
