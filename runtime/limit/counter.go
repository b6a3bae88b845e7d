package limit

import "math"

// counter counts one caller under one limit. The lock of its shard guards it.
type counter struct {
	limit      *Limit
	pool       *pool
	slot       slot
	caller     string
	prev, next *counter // in the order of the last admission in its shard

	// stamps is a ring of the admitted requests that still count, the oldest at head: one
	// entry per request, or one per bucket with its count.
	stamps    []int64
	counts    []uint32
	head, len int
	// used is the number of requests in the ring.
	used int
	// last is the time of the last admission: stamps never decrease.
	last int64
	// debt is included in used until debtUntil: the estimate of the pool's sketch when this
	// counter was created.
	debt      int
	debtUntil int64
}

// expire removes what is outside the window at now.
func (c *counter) expire(now int64) {
	if c.debt > 0 && now >= c.debtUntil {
		c.used -= c.debt
		c.debt = 0
	}
	for c.len > 0 && now-c.stamps[c.head] >= c.limit.per {
		if c.counts == nil {
			c.used--
		} else {
			c.used -= int(c.counts[c.head])
		}
		c.len--
		if c.head++; c.head == len(c.stamps) {
			c.head = 0
		}
	}
}

// wait returns the time from now until an entry leaves the window; if more than count requests are in
// it, until they are less than count.
func (c *counter) wait(now int64, count int) int64 {
	if c.used > count {
		return c.waitFor(count) - now
	}
	switch {
	case c.debt > 0 && c.len == 0:
		return c.debtUntil - now
	case c.debt > 0:
		return min(c.debtUntil, c.stamps[c.head]+c.limit.per) - now
	case c.len == 0:
		return 0
	}
	return c.stamps[c.head] + c.limit.per - now
}

// waitFor returns when less than count requests are in the window, or none: there are more than count
// because this node has a smaller part of the limit than before.
func (c *counter) waitFor(count int) (until int64) {
	left, debt := c.used, c.debt
	for i := 0; left > 0 && left >= count; i++ {
		next := int64(math.MaxInt64)
		at := (c.head + i) % max(len(c.stamps), 1)
		if i < c.len {
			next = c.stamps[at] + c.limit.per
		}
		if debt > 0 && c.debtUntil <= next {
			until, left, debt = c.debtUntil, left-debt, 0
			i-- // the entry leaves later
			continue
		}
		until = next
		if c.counts == nil {
			left--
		} else {
			left -= int(c.counts[at])
		}
	}
	return until
}

// admit counts one request at now. A bucket is stamped with its end, so that it leaves the
// window after its last request.
func (c *counter) admit(now int64) {
	now = max(now, c.last)
	c.last = now
	c.expire(now)
	c.used++
	if c.limit.bucket > 0 {
		now += c.limit.bucket - now%c.limit.bucket
		if c.len > 0 {
			if last := (c.head + c.len - 1) % len(c.stamps); c.stamps[last] == now {
				c.counts[last]++
				return
			}
		}
	}
	if c.len == len(c.stamps) {
		c.grow()
	}
	at := c.head + c.len
	if at >= len(c.stamps) {
		at -= len(c.stamps)
	}
	c.stamps[at] = now
	if c.counts != nil {
		c.counts[at] = 1
	}
	c.len++
}

// grow enlarges a full ring, up to the size that its limit needs: a quiet caller has a few
// entries, not a thousand.
func (c *counter) grow() {
	size := min(max(4, 2*len(c.stamps)), c.limit.entries())
	stamps := make([]int64, size)
	copy(stamps[copy(stamps, c.stamps[c.head:]):], c.stamps[:c.head])
	if c.limit.bucket > 0 {
		counts := make([]uint32, size)
		if c.counts != nil {
			copy(counts[copy(counts, c.counts[c.head:]):], c.counts[:c.head])
		}
		c.counts = counts
	}
	c.stamps, c.head = stamps, 0
}

// latest returns the newest stamp, 0 if there is none.
func (c *counter) latest() int64 {
	if c.len == 0 {
		return 0
	}
	return c.stamps[(c.head+c.len-1)%len(c.stamps)]
}

// empty reports whether nothing counts at now.
func (c *counter) empty(now int64) bool {
	return c.len == 0 || now-c.latest() >= c.limit.per
}
