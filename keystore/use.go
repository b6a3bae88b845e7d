package keystore

import "sync/atomic"

// use is when a key or a session was last used. Requests note it here, a writer in the
// background puts it into the store.
type use struct {
	id     string
	last   atomic.Int64 // ms; 0: never
	queued atomic.Bool  // it is in the list of uses to be written
	next   *use         // in that list; belongs to who queued it
}

// useStep is how exact a use is noted, in ms: a busy key's requests, on all
// CPUs, write the same word no more often.
const useStep = 1000

// atLeast sets the last use to at unless a later one is known.
func (u *use) atLeast(at int64) {
	for {
		last := u.last.Load()
		if at <= last || u.last.CompareAndSwap(last, at) {
			return
		}
	}
}

// uses is the list of what has to be written: a stack without a lock.
type uses struct{ head atomic.Pointer[use] }

// touch notes that the key was used at now.
func (l *uses) touch(u *use, now int64) {
	if now-u.last.Load() < useStep {
		return
	}
	u.last.Store(now)
	l.add(u)
}

// add puts a use into the list unless it is there.
func (l *uses) add(u *use) {
	if u.queued.Swap(true) {
		return
	}
	for {
		u.next = l.head.Load()
		if l.head.CompareAndSwap(u.next, u) {
			return
		}
	}
}

// take empties the list. What is noted while it runs is read by who writes what
// it returns, or is in the list again.
func (l *uses) take() []*use {
	var out []*use
	for u := l.head.Swap(nil); u != nil; {
		next := u.next // the next touch may queue it again
		u.queued.Store(false)
		out = append(out, u)
		u = next
	}
	return out
}
