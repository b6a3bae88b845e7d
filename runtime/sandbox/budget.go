package sandbox

import "sync/atomic"

// budget bounds the memory of all guests together. Any goroutine may use it.
type budget struct {
	limit int64
	used  atomic.Int64
	// reclaim gives back what is not needed at the moment, until so much is free:
	// nothing, if that cannot be.
	reclaim func(n int64)
}

// take takes n bytes, after idle sandboxes have given back theirs if need be,
// and says whether they could be had.
func (b *budget) take(n int64) bool {
	if b.tryTake(n) {
		return true
	}
	b.reclaim(n)
	return b.tryTake(n)
}

func (b *budget) tryTake(n int64) bool {
	for {
		used := b.used.Load()
		if used+n > b.limit {
			return false
		}
		if b.used.CompareAndSwap(used, used+n) {
			return true
		}
	}
}

func (b *budget) give(n int64) { b.used.Add(-n) }
