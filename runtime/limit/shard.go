package limit

import (
	"math"
	"sync"
)

// shard is a part of the counters under one lock.
type shard struct {
	mu       sync.Mutex
	counters map[key]*counter
	// lists hold the counters of each class in order of last admission.
	lists []list
	_     [64]byte // keeps the locks of neighbours off one cache line
}

type key struct {
	limit  *Limit
	caller string
}

// list is a chain of counters; the first is the first to become empty.
type list struct{ first, last *counter }

// add takes in a new counter.
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

// remove drops c.
func (s *shard) remove(c *counter) {
	delete(s.counters, key{c.limit, c.caller})
	s.lists[c.limit.class].unlink(c)
}

// nextEmpty tells when the first counter here will be empty, if nothing more
// is counted.
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
