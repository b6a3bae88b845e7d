package store

import (
	"slices"
	"strings"
	"sync"
)

// Change is what a commit did to one key. Its bytes are borrowed: valid until
// the follower returns, and not to be changed.
type Change struct {
	Key, Value []byte
	Deleted    bool // and Value is nil
}

// followers are the functions that hear of each change.
type followers struct {
	// mu is held from the first call about an entry until its version is
	// readable, so that a follower that comes later misses nothing.
	mu  sync.Mutex
	all []*follower
}

type follower struct {
	prefix string
	fn     func(Seq, Change)
}

// OnApply calls fn for every change of a key with the prefix (all keys if it
// is empty): in the order of the log, after the commit is durable, before its
// version is readable and before its Update returns. Caches follow the store
// so: register first, then read, and keep what has the higher sequence number;
// no change falls between the two. Transactions of one entry have the same
// sequence number and are told one after the other.
//
// Calls come from one goroutine. fn must not block, since every commit waits
// for it; it must not call Update, OnApply or stop, and may call View.
//
// After stop has returned, fn is not called again.
func (s *Store) OnApply(prefix []byte, fn func(Seq, Change)) (stop func()) {
	f := &follower{string(prefix), fn}
	s.followers.mu.Lock()
	defer s.followers.mu.Unlock()
	s.followers.all = append(s.followers.all, f)
	return func() { s.followers.remove(f) }
}

func (f *followers) remove(gone *follower) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.all = slices.DeleteFunc(f.all, func(have *follower) bool { return have == gone })
}

// tell calls the followers about entry seq and then readable.
func (f *followers) tell(seq Seq, e *entry, readable func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	defer readable()
	if len(f.all) == 0 {
		return
	}
	for _, p := range e.proposals {
		if p.verdict.outcome != committed {
			continue
		}
		for i := range p.writes {
			f.tellWrite(seq, &p.writes[i])
		}
	}
}

func (f *followers) tellWrite(seq Seq, w *write) {
	var c Change
	for _, one := range f.all {
		if !strings.HasPrefix(w.key, one.prefix) {
			continue
		}
		if c.Key == nil {
			c = Change{[]byte(w.key), w.value, w.deleted}
		}
		one.fn(seq, c)
	}
}
