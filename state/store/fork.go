package store

import (
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"

	"runner.example/internal/clock"
	"runner.example/state/store/commitlog"
)

// ForkOptions configure a fork.
type ForkOptions struct {
	// Clock is the source of Tx.Now; nil: that of the store.
	Clock clock.Calendar
	// Logger gets the log lines of the fork; nil discards them.
	Logger *slog.Logger
	// At is the commit whose content the fork begins with; 0: the newest. A store keeps the content of a commit as long as a
	// transaction that began then could commit, and that of commits before a restart seldom. A fork cannot be forked so.
	At Seq
}

// ErrGone: the store does not have the content of a commit any more.
var ErrGone = errors.New("the store does not have the content of that commit any more")

// Fork returns a store in memory that begins with the content of s at its newest commit, and costs microseconds,
// however much s has. Its commits are numbered from there, and are lost when it is closed. Neither store sees later
// commits of the other one. The fork is standalone, also if s is that of a node of a cluster.
//
// A fork reads the blobs of s. The blobs that it stores are in memory, and it deletes only these. A blob that s deletes
// is gone in its forks.
//
// The caller closes the fork. A fork of a fork may be closed before or after it; a store on disk must be closed after
// all of them, because until then they keep its versions from being discarded. The error matches ErrUnavailable if s
// is closed.
func (s *Store) Fork(o ForkOptions) (*Store, error) {
	f, err := s.fork(o)
	if err != nil {
		return nil, fmt.Errorf("fork store %q: %w", s.dir, err)
	}
	return f, nil
}

func (s *Store) fork(o ForkOptions) (*Store, error) {
	if s.isClosed() {
		return nil, errClosed
	}
	var chain commitlog.Digest
	seq, ok := s.snapshots.acquire(func() (seq Seq) {
		seq, _, chain = s.Position()
		return seq
	})
	if !ok {
		return nil, errClosed
	}
	if o.At != 0 && o.At != seq {
		_, inMemory := s.content.(*memory)
		has := !inMemory && o.At < seq && s.snapshots.acquireAt(o.At)
		s.snapshots.release(seq)
		if !has {
			return nil, ErrGone
		}
		seq = o.At
	}
	f := newStore(Options{Clock: o.Clock, Logger: o.Logger}, s.levels)
	if o.Clock == nil {
		f.clock = s.clock
	}
	f.blobs.Base, f.blobs.Fetch = &s.blobs, s.blobs.Fetch
	newest := logRecord{Record: commitlog.Record{Seq: seq}, floor: seq, chain: chain}
	if m, ok := s.content.(*memory); ok {
		f.base = m.base.share()
		f.content = newMemory(f.base, m.copyAt(seq), newest)
		s.snapshots.release(seq)
	} else {
		f.base = (&base{store: s, seq: seq}).share()
		f.content = newMemory(f.base, new(tree), newest)
	}
	f.resume(s.machine.window.Size(), newest)
	if err := f.openLevel(!s.InCluster()); err != nil {
		return nil, errors.Join(err, f.release())
	}
	startSequencer(f, nil, nil)
	return f, nil
}

// base is the snapshot of a store on disk that forks share. It is released with the last of them.
type base struct {
	store *Store
	seq   Seq
	forks atomic.Int64
}

// share counts another fork and returns b. b may be nil.
func (b *base) share() *base {
	if b != nil {
		b.forks.Add(1)
	}
	return b
}

func (b *base) release() {
	if b != nil && b.forks.Add(-1) == 0 {
		b.store.snapshots.release(b.seq)
	}
}
