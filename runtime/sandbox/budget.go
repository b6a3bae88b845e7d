package sandbox

import "sync/atomic"

// budget limits the memory of all guests together. Any goroutine may use it.
//
// A reserve is for small guests that run, one for each instance slot. So a small guest finds
// memory, whatever large and parked guests hold.
type budget struct {
	limit   int64
	reserve int64
	small   int64 // the largest memory of a small guest
	used    atomic.Int64
	// reclaim releases memory of idle sandboxes until n bytes are free, or none if that is
	// not enough.
	reclaim func(n int64)
}

// 1/reservePart of all memory is reserved, or less, so that one guest can always have its limit.
const reservePart = 8

func (b *budget) set(total, guest int64, instances int) {
	b.limit, b.reserve = total, min(total/reservePart, total-guest)
	b.small = b.reserve / int64(instances)
}

// take takes n bytes for a guest that then has size bytes, and reclaims memory if necessary. It
// reports whether it could.
func (b *budget) take(n, size int64) bool {
	left := int64(0)
	if size > b.small {
		left = b.reserve
	}
	if b.tryTake(n, left) {
		return true
	}
	b.reclaim(n + left)
	return b.tryTake(n, left)
}

// hasReserve reports whether the reserve is free.
func (b *budget) hasReserve() bool { return b.take(0, b.limit) }

// tryTake takes n bytes if at least left bytes remain after that.
func (b *budget) tryTake(n, left int64) bool {
	for {
		used := b.used.Load()
		if used+n+left > b.limit {
			return false
		}
		if b.used.CompareAndSwap(used, used+n) {
			return true
		}
	}
}

func (b *budget) give(n int64) { b.used.Add(-n) }
