package store

import (
	"slices"
	"strings"
	"sync"

	"runner.example/state/store/commitlog"
)

// Change is what a commit did to one key. Its bytes are borrowed: valid until
// the follower returns, and not to be changed.
type Change struct {
	Key, Value []byte
	Deleted    bool // and Value is nil
}

// followers are the functions that are called for each change.
type followers struct {
	// mu is held from the first call for an entry until its version is readable, so that
	// a follower that registers meanwhile misses no change.
	mu  sync.Mutex
	all []*follower
}

type follower struct {
	prefix string
	fn     func(Seq, Change)
}

// OnApply calls fn for every change of a key with the prefix (all keys if it
// is empty): in the order of the log, after the commit is durable, before its
// version is readable and before its Update returns. A cache registers first, then
// reads, and keeps the value with the higher sequence number: no change is missed.
// Transactions of one entry have the same sequence number and are reported one after
// the other.
//
// All calls are from one goroutine. fn must not block, since every commit waits for it. It
// may call View, but not Update, OnApply or stop.
//
// After stop has returned, fn is not called again.
func (s *Store) OnApply(prefix []byte, fn func(Seq, Change)) (stop func()) {
	f := &follower{string(prefix), fn}
	s.followers.mu.Lock()
	defer s.followers.mu.Unlock()
	s.followers.all = append(s.followers.all, f)
	return func() { s.followers.remove(f) }
}

func (f *followers) remove(old *follower) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.all = slices.DeleteFunc(f.all, func(have *follower) bool { return have == old })
}

// notify calls the followers for entry seq, and then readable.
func (f *followers) notify(seq Seq, e *commitlog.Entry, readable func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	defer readable()
	if len(f.all) == 0 {
		return
	}
	for p := range e.Committed {
		for i := range p.Writes {
			f.notifyWrite(seq, &p.Writes[i])
		}
	}
}

func (f *followers) notifyWrite(seq Seq, w *commitlog.Write) {
	var c Change
	for _, one := range f.all {
		if !strings.HasPrefix(w.Key, one.prefix) {
			continue
		}
		if c.Key == nil {
			c = Change{[]byte(w.Key), w.Value, w.Deleted}
		}
		one.fn(seq, c)
	}
}
