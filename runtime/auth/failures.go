package auth

import (
	"net/netip"
	"sync"
	"time"
)

const (
	// maxFailures is the number of guesses of one network that are answered with 401 in a
	// failureWindow.
	maxFailures   = 20
	failureWindow = time.Minute
	// loggedEach is the number of refused credentials of one network that have a log line
	// each in a failureWindow.
	loggedEach = 5
	// maxNetworks limits the table, to about 2 MiB. When it is full, new networks are
	// counted together.
	maxNetworks = 8192
)

// failures counts refused credentials by network: exactly, in a ring of time stamps each.
// Valid credentials do not come here, so one lock is enough. The zero value is ready to
// use.
type failures struct {
	mu          sync.Mutex
	start       time.Time // stamps count from here
	slots       map[netip.Addr]*slot
	first, last *slot // in order of their newest stamp
	others      slot
}

// slot is the failures of one network.
type slot struct {
	network    netip.Addr
	prev, next *slot
	stamps     [maxFailures]time.Duration
	head, len  int
	// seen counts the failures since a time, including throttled ones.
	seen  int
	since time.Duration
}

// add counts a failure at now. If the network has had too many, wait is the number of
// seconds until the next one is answered with 401. repeated is the number of failures of
// the network in about the last minute.
func (f *failures) add(network netip.Addr, now time.Time) (wait, repeated int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.slots == nil {
		f.slots, f.start = map[netip.Addr]*slot{}, now
	}
	at := now.Sub(f.start)
	s := f.slotLocked(network, at)
	if at-s.since >= failureWindow {
		s.since, s.seen = at, 0
	}
	s.seen++
	for s.len > 0 && at-s.stamps[s.head] >= failureWindow {
		s.head = (s.head + 1) % maxFailures
		s.len--
	}
	if s.len == maxFailures {
		left := s.stamps[s.head] + failureWindow - at
		return int((left + time.Second - 1) / time.Second), s.seen
	}
	s.stamps[(s.head+s.len)%maxFailures] = at
	s.len++
	if s != &f.others {
		f.unlinkLocked(s)
		f.pushLocked(s)
	}
	return 0, s.seen
}

// slotLocked returns the network's slot. A new one replaces the slot that was inactive
// longest, if that was long enough.
func (f *failures) slotLocked(network netip.Addr, at time.Duration) *slot {
	if s := f.slots[network]; s != nil {
		return s
	}
	s := &slot{}
	if len(f.slots) == maxNetworks {
		if s = f.first; at-s.newest() < failureWindow {
			return &f.others
		}
		f.unlinkLocked(s)
		delete(f.slots, s.network)
		*s = slot{}
	}
	s.network = network
	f.slots[network] = s
	f.pushLocked(s)
	return s
}

// newest is the last stamp; a slot in the table has one.
func (s *slot) newest() time.Duration { return s.stamps[(s.head+s.len+maxFailures-1)%maxFailures] }

func (f *failures) pushLocked(s *slot) {
	s.prev, s.next = f.last, nil
	if f.last == nil {
		f.first = s
	} else {
		f.last.next = s
	}
	f.last = s
}

func (f *failures) unlinkLocked(s *slot) {
	if s.prev == nil {
		f.first = s.next
	} else {
		s.prev.next = s.next
	}
	if s.next == nil {
		f.last = s.prev
	} else {
		s.next.prev = s.prev
	}
}
