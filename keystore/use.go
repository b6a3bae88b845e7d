package keystore

import (
	"errors"
	"strings"
	"sync/atomic"

	"runner.example/state/store"
)

// use is the last use of a key or a session. Requests record it here, a background task
// writes it to the store.
type use struct {
	id     string
	last   atomic.Int64 // ms; 0: never
	queued atomic.Bool  // it is in the list of uses to be written
	next   *use         // in that list; belongs to the goroutine that queued it
}

// useStep is the resolution of the last use, in ms: concurrent requests with a busy key
// write the same word at most that often.
const useStep = 1000

// atLeast sets the last use to at unless it is later.
func (u *use) atLeast(at int64) {
	for {
		last := u.last.Load()
		if at <= last || u.last.CompareAndSwap(last, at) {
			return
		}
	}
}

// write writes the last use, unless the store has a later one of another node, or the key or session
// was deleted.
func (u *use) write(tx *store.Tx) error {
	last := u.last.Load()
	stored, err := storedUse(tx, u.id)
	if err != nil || stored >= last {
		return err
	}
	if stored == 0 { // with the deletion of a key or session, its last use is deleted
		if _, err := tx.Get(u.recordKey()); err != nil {
			if errors.Is(err, store.ErrNotFound) {
				return nil
			}
			return err
		}
	}
	return tx.Set(useKeyOf(u.id), encodeTime(last))
}

// recordKey returns the key of the record of the key or session.
func (u *use) recordKey() []byte {
	switch {
	case strings.HasPrefix(u.id, sessionIDs):
		return sessionKeyOf(u.id)
	case strings.HasPrefix(u.id, platformIDs):
		return platformKeyOf(u.id)
	}
	return keyOf(u.id)
}

// storedUse returns the last use that the store has, in ms; 0: none.
func storedUse(tx *store.Tx, id string) (int64, error) {
	value, err := tx.Get(useKeyOf(id))
	if errors.Is(err, store.ErrNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return decodeTime(value)
}

// uses is the list of uses to be written: a lock-free stack.
type uses struct{ head atomic.Pointer[use] }

// touch records that the key was used at now.
func (l *uses) touch(u *use, now int64) {
	if now-u.last.Load() < useStep {
		return
	}
	u.last.Store(now)
	l.add(u)
}

// add adds a use to the list unless it is there.
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

// take empties the list. A use that is recorded meanwhile is seen by the caller when it
// reads last, or is in the list again.
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
