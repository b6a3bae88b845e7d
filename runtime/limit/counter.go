package limit

// counter counts one caller under one limit. The lock of its shard guards it.
type counter struct {
	limit      *Limit
	pool       *pool
	slot       slot
	caller     string
	prev, next *counter // in its shard's order of last admission

	// stamps is a ring of what was admitted and still counts, oldest at head:
	// one entry a request, or one a bucket with its count.
	stamps    []int64
	counts    []uint32
	head, len int
	// used is the number of requests in the ring.
	used int
	// last is when the last one was admitted: stamps never go back.
	last int64
	// debt is counted in used until debtUntil: what the sketch of the pool said of the
	// caller when this counter was made.
	debt      int
	debtUntil int64
}

// expire forgets what has left the window by now.
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

// wait tells how long after now something leaves the window.
func (c *counter) wait(now int64) int64 {
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

// admit counts one request at now. A bucket is stamped with its end, so that
// it leaves the window after the last request in it.
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

// grow makes the full ring longer, up to what its limit can fill: a quiet
// caller keeps a few entries, not a thousand.
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

// latest is the newest stamp, 0 without any.
func (c *counter) latest() int64 {
	if c.len == 0 {
		return 0
	}
	return c.stamps[(c.head+c.len-1)%len(c.stamps)]
}

// empty reports whether nothing counts any more at now.
func (c *counter) empty(now int64) bool {
	return c.len == 0 || now-c.latest() >= c.limit.per
}
