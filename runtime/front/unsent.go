package front

import (
	"math"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"runner.example/internal/clock"
)

// compared is the number of readers that the slowest is chosen from, at random if there are
// more: comparing thousands would take longer than an answer.
const compared = 64

// unsent is the part of a large answer that the kernel did not take at once.
type unsent struct {
	// address is the client's, or its network; the zero Addr: only the total limit applies.
	address netip.Addr
	since   time.Time
	// acked counts the bytes that the client has acknowledged, from any goroutine.
	acked func() uint64
	begun uint64 // acked before since
	// reset ends the connection, from any goroutine.
	reset func()

	held int64 // guarded by backlog.mu, like cut
	cut  bool
}

// share is a limit and what is used of it.
type share struct {
	limit  int64
	held   int64
	ending int64                // the part of held that disconnected answers will return
	all    map[*unsent]struct{} // those that are not disconnected
}

// backlog limits the memory of all large answers, and of the unsent parts of those to one
// address. An answer that does not wait for its reader takes no lock.
type backlog struct {
	used       atomic.Int64 // total.held, and memory of answers that do not wait
	limit      int64
	perAddress int64

	mu        sync.Mutex
	freed     sync.Cond
	total     share
	addresses map[netip.Addr]*share
}

func newBacklog(limit, perAddress int64) *backlog {
	b := &backlog{limit: limit, perAddress: perAddress, addresses: make(map[netip.Addr]*share)}
	b.total = share{all: make(map[*unsent]struct{})}
	b.freed.L = &b.mu
	return b
}

// take counts n bytes. If that exceeds the limit, it disconnects the slowest readers and
// waits until their memory is returned. If that is not enough, it counts nothing and
// returns false. A single answer is always allowed.
func (b *backlog) take(n int64) bool {
	if b.tryTake(n) {
		return true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for !b.tryTake(n) {
		used := b.used.Load()
		switch made := used - b.total.held; {
		case made > 0 && made+n > b.limit:
			return false // disconnecting all readers would not be enough
		case used-b.total.ending+n > b.limit && len(b.total.all) > 0:
			b.cut(b.total.slowest(clock.Mark()))
		case b.total.ending > 0:
			b.freed.Wait() // for a short time: the disconnected answers return their memory
		default:
			return false
		}
	}
	return true
}

func (b *backlog) tryTake(n int64) bool {
	for {
		used := b.used.Load()
		if used > 0 && used+n > b.limit {
			return false
		}
		if b.used.CompareAndSwap(used, used+n) {
			return true
		}
	}
}

// giveBack returns n bytes of an answer that does not wait.
func (b *backlog) giveBack(n int64) { b.used.Add(-n) }

// hold records that n taken bytes now wait for their reader. If its address exceeds its
// limit, the slowest reader of that address is disconnected.
func (b *backlog) hold(u *unsent, n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for u.address.IsValid() {
		s := b.addresses[u.address]
		if s == nil {
			b.addresses[u.address] = &share{limit: b.perAddress, all: make(map[*unsent]struct{})}
			break
		}
		if s.held == 0 || s.held+n <= s.limit {
			break
		}
		if s.held-s.ending+n > s.limit && len(s.all) > 0 {
			b.cut(s.slowest(clock.Mark()))
		} else {
			b.freed.Wait()
		}
	}
	u.held = n
	for _, s := range b.shares(u) {
		s.held += n
		s.all[u] = struct{}{}
	}
}

// shares returns the shares that u counts in.
func (b *backlog) shares(u *unsent) []*share {
	if s := b.addresses[u.address]; s != nil {
		return []*share{s, &b.total}
	}
	return []*share{&b.total}
}

// slowest returns the answer with the slowest reader. There must be one.
func (s *share) slowest(now time.Time) (u *unsent) {
	least, seen := math.Inf(1), 0
	for candidate := range s.all { // in random order
		if speed := candidate.speed(now); speed < least {
			u, least = candidate, speed
		}
		if seen++; seen == compared {
			break
		}
	}
	return u
}

// speed is the number of bytes that the reader took per second. A page and a second are
// added, so that of readers that take nothing the one that waits longest is the slowest.
func (u *unsent) speed(now time.Time) float64 {
	taken := max(u.acked(), u.begun) - u.begun // the connection may be closed
	return float64(taken+4096) / (now.Sub(u.since) + time.Second).Seconds()
}

func (b *backlog) cut(u *unsent) {
	u.cut = true
	for _, s := range b.shares(u) {
		s.ending += u.held
		delete(s.all, u)
	}
	u.reset()
}

// free returns n bytes that u holds.
func (b *backlog) free(u *unsent, n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used.Add(-n)
	u.held -= n
	for _, s := range b.shares(u) {
		s.held -= n
		if u.cut {
			s.ending -= n
		}
	}
	b.freed.Broadcast()
}

// drop ends u, which holds nothing any more. It reports whether u was disconnected.
func (b *backlog) drop(u *unsent) (cut bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range b.shares(u) {
		delete(s.all, u)
		if s.held == 0 && s != &b.total {
			delete(b.addresses, u.address)
		}
	}
	return u.cut
}
