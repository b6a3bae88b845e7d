package storetest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"runner.example/state/store"
	"runner.example/state/store/commitlog"
)

// Log is a log in memory without faults. It is safe for concurrent use.
type Log struct {
	mu      sync.Mutex
	entries [][]byte // revision 1 and so on
	has     map[commitlog.ID]bool
	grown   chan struct{} // closed when entries grow, or a node may get more
	held    map[string]bool
	cut     bool
	refusal error
	before  func(node string)
}

// NewLog returns an empty log.
func NewLog() *Log {
	return &Log{has: map[commitlog.ID]bool{}, grown: make(chan struct{}), held: map[string]bool{}}
}

// Open opens the store of the node o.Name, which shares the log, and closes it when the test ends.
func (l *Log) Open(t testing.TB, o store.Options) *store.Store {
	t.Helper()
	o.Log = func(after uint64, deliver func(uint64, []byte) error) store.SharedLog {
		f := &follower{log: l, node: o.Name, stop: make(chan struct{}), stopped: make(chan struct{})}
		go f.run(after, deliver)
		return f
	}
	s, err := store.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// Nodes opens stores in memory with these names. The first one is the owner.
func (l *Log) Nodes(t testing.TB, names ...string) []*store.Store {
	t.Helper()
	var all []*store.Store
	for _, name := range names {
		all = append(all, l.Open(t, store.Options{Name: name}))
	}
	Own(t, all[0])
	return all
}

// Own makes the node of s the owner.
func Own(t testing.TB, s *store.Store) {
	t.Helper()
	if err := s.BecomeOwner(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// CatchUp returns when the stores have applied all that any of them acknowledged before.
func CatchUp(t testing.TB, stores ...*store.Store) {
	t.Helper()
	for _, s := range stores {
		if err := s.Barrier(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// Hold lets a node get no entries until release is called. It can append still.
func (l *Log) Hold(node string) (release func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held[node] = true
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.held[node] = false
		l.wake()
	}
}

// errCut is the error of a log that cannot be reached.
var errCut = errors.New("the log cannot be reached")

// Cut cuts all nodes off from the log, or connects them again.
func (l *Log) Cut(off bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = off
	l.wake()
}

// Refuse makes the log refuse all entries with this error, see store.SharedLog; with nil it takes them
// again.
func (l *Log) Refuse(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.refusal = err
}

func (l *Log) wake() {
	close(l.grown)
	l.grown = make(chan struct{})
}

// follower is the log as one store has it.
type follower struct {
	log           *Log
	node          string
	stop, stopped chan struct{}
	err           error // set before stopped is closed
}

func (f *follower) run(after uint64, deliver func(uint64, []byte) error) {
	defer close(f.stopped)
	for revision := after + 1; ; revision++ {
		entry := f.wait(revision)
		if entry == nil {
			return
		}
		if f.err = deliver(revision, entry); f.err != nil {
			return
		}
	}
}

// wait returns a copy of the entry at a revision when there is one; nil after Close.
func (f *follower) wait(revision uint64) []byte {
	l := f.log
	for {
		l.mu.Lock()
		grown := l.grown
		var entry []byte
		if revision <= uint64(len(l.entries)) && !l.held[f.node] && !l.cut {
			entry = slices.Clone(l.entries[revision-1])
		}
		l.mu.Unlock()
		select {
		case <-f.stop:
			return nil
		default:
		}
		if entry != nil {
			return entry
		}
		select {
		case <-grown:
		case <-f.stop:
			return nil
		}
	}
}

// BeforeAppend makes the log call fn before it appends an entry of a node; nil: nothing. fn may append others.
func (l *Log) BeforeAppend(fn func(node string)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.before = fn
}

func (f *follower) Append(_ context.Context, id commitlog.ID, entry []byte) error {
	l := f.log
	l.mu.Lock()
	before := l.before
	l.mu.Unlock()
	if before != nil {
		before(f.node)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.cut:
		return errCut
	case l.refusal != nil:
		return l.refusal
	case l.has[id]:
		return nil
	}
	l.has[id] = true
	l.entries = append(l.entries, slices.Clone(entry))
	l.wake()
	return nil
}

func (f *follower) Tip(context.Context) (revision uint64, err error) {
	f.log.mu.Lock()
	defer f.log.mu.Unlock()
	if f.log.cut {
		return 0, errCut
	}
	return uint64(len(f.log.entries)), nil
}

func (f *follower) Stopped() <-chan struct{} { return f.stopped }

func (f *follower) Err() error { return f.err }

func (f *follower) Close() {
	close(f.stop)
	<-f.stopped
}
