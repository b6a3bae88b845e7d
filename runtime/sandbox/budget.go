package sandbox

import "sync/atomic"

// budget bounds the memory of all guests together. Any goroutine may use it.
type budget struct {
	limit int64
	used  atomic.Int64
	// reclaim gives back what is not needed at the moment, until so much is free.
	reclaim func(n int64)
}

// take takes n bytes, after idle sandboxes have given back theirs if need be,
// and says whether they could be had.
func (b *budget) take(n int64) bool {
	if b.used.Add(n) <= b.limit {
		return true
	}
	b.used.Add(-n)
	b.reclaim(n)
	if b.used.Add(n) <= b.limit {
		return true
	}
	b.used.Add(-n)
	return false
}

func (b *budget) give(n int64) { b.used.Add(-n) }
