package sandbox

import "sync/atomic"

// budget limits the memory of all guests together. Any goroutine may use it.
type budget struct {
	limit int64
	used  atomic.Int64
	// reclaim releases memory of idle sandboxes until n bytes are free, or none if that is
	// not enough.
	reclaim func(n int64)
}

// take takes n bytes, after it reclaimed memory if necessary. It reports whether it could.
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
