package store_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"runner.example/state/store"
)

// TestWatchersReachTheFinalState lets many goroutines write while others read and watch what they have read. When
// the writers have ended, the last read of each watcher must equal a fresh one.
func TestWatchersReachTheFinalState(t *testing.T) {
	t.Run("disk", func(t *testing.T) {
		watchAndWrite(t, newRandom(t), 60, mustOpen(t, store.Options{Dir: t.TempDir()}))
	})
	t.Run("memory", func(t *testing.T) {
		watchAndWrite(t, newRandom(t), 300, mustOpen(t, store.Options{}))
	})
	t.Run("small window", func(t *testing.T) {
		watchAndWrite(t, newRandom(t), 300, mustOpen(t, store.Options{}, 3))
	})
	t.Run("fork", func(t *testing.T) {
		s := mustOpen(t, store.Options{Dir: t.TempDir()})
		put(t, s, "k00", "before", "k77", "before")
		watchAndWrite(t, newRandom(t), 300, mustFork(t, s))
	})
	t.Run("cluster", func(t *testing.T) {
		random := newRandom(t)
		synctest.Test(t, func(t *testing.T) {
			log := store.NewSimLog(random())
			t.Cleanup(log.Close)
			var nodes []*store.Store
			for range 3 {
				s, err := log.Open(store.Options{}, 50)
				nodes = append(nodes, opened(t, s, err))
			}
			watchAndWrite(t, random, 30, nodes...)
		})
	})
}

func watchAndWrite(t *testing.T, random func() *rand.Rand, writes int, nodes ...*store.Store) {
	ctx, cancel := context.WithCancel(t.Context())
	var watching, writing sync.WaitGroup
	defer watching.Wait()
	defer cancel()
	var watchers []*watcher
	for i := range 40 {
		w := &watcher{t: t, store: nodes[i%len(nodes)], random: random(), settled: make(chan struct{}), seed: random().Uint64()}
		watchers = append(watchers, w)
		watching.Go(func() { w.run(ctx) })
	}
	for i := range 8 {
		r, s := random(), nodes[i%len(nodes)]
		writing.Go(func() {
			for range writes {
				writeRandomly(t, s, r)
			}
		})
	}
	writing.Wait()
	for _, s := range nodes {
		passed(t, s)
	}
	calls, late := 0, 0
	for i, w := range watchers {
		w.wait()
		if want := w.read(w.store); w.last != want {
			t.Errorf("watcher %d has read %s, and a fresh read is %s", i, w.last, want)
		}
		calls, late = calls+int(w.calls.Load()), late+w.late
	}
	if calls == 0 {
		t.Error("no watch was called")
	}
	t.Logf("%d calls, %d reads were out of date before they were watched", calls, late)
}

func writeRandomly(t *testing.T, s *store.Store, r *rand.Rand) {
	if _, err := s.Update(context.Background(), func(tx *store.Tx) error {
		for range 1 + r.IntN(3) {
			key := fmt.Appendf(nil, "k%02d", r.IntN(100))
			if r.IntN(3) == 0 {
				if err := tx.Delete(key); err != nil {
					return err
				}
			} else if err := tx.Set(key, fmt.Append(nil, r.IntN(1000))); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
}

// watcher reads again whenever what it has read has changed.
type watcher struct {
	t      *testing.T
	store  *store.Store
	random *rand.Rand
	seed   uint64 // of what it reads
	calls  atomic.Int64
	late   int

	mu      sync.Mutex
	waits   bool          // last is watched, and has not changed
	settled chan struct{} // closed when waits becomes true, and made again when it becomes false
	last    string
}

// read returns what the watcher reads in s.
func (w *watcher) read(s *store.Store) (out string) {
	w.readIn(func(fn func(*store.Tx) error) error { return s.View(context.Background(), fn) }, &out)
	return out
}

func (w *watcher) readIn(view func(func(*store.Tx) error) error, out *string) {
	r := rand.New(rand.NewPCG(w.seed, 0))
	if err := view(func(tx *store.Tx) error {
		var all []string
		for range r.IntN(4) {
			all = append(all, get(tx, fmt.Sprintf("k%02d", r.IntN(100))))
		}
		for range r.IntN(3) {
			prefix, limit := fmt.Sprintf("k%d", r.IntN(10)), 1+r.IntN(12)
			for item, err := range tx.Scan([]byte(prefix), nil, r.IntN(2) == 0) {
				if err != nil {
					return err
				}
				all = append(all, string(item.Key)+"="+string(item.Value))
				if limit--; limit == 0 {
					break
				}
			}
		}
		*out = strings.Join(all, " ")
		return nil
	}); err != nil {
		w.t.Error(err)
	}
}

func (w *watcher) run(ctx context.Context) {
	for ctx.Err() == nil {
		var r *store.Reads
		var out string
		w.readIn(func(fn func(*store.Tx) error) (err error) {
			r, err = w.store.ViewReads(context.Background(), fn)
			return err
		}, &out)
		if w.random.IntN(4) == 0 {
			r.Widen(func(key string) string { return key[:2] })
		}
		changed := make(chan struct{})
		called := atomic.Bool{}
		watch, fresh, err := w.store.Watch(ctx, r, func(seq store.Seq) {
			w.calls.Add(1)
			if called.Swap(true) {
				w.t.Error("called twice")
			}
			if now := w.store.Health().Applied; seq <= r.Snapshot || seq > now {
				w.t.Errorf("the snapshot is %d, the commit %d, and %d can be read", r.Snapshot, seq, now)
			}
			w.set(false, "")
			close(changed)
		})
		if err != nil {
			if ctx.Err() == nil {
				w.t.Error(err)
			}
			return
		}
		if !fresh {
			w.late++
			continue
		}
		w.mu.Lock()
		if !called.Load() {
			w.setLocked(true, out)
		}
		w.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			if stopped := watch.Stop(); stopped && called.Load() {
				w.t.Error("called, although Stop says that it will not be")
			}
		}
	}
}

func (w *watcher) set(waits bool, last string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.setLocked(waits, last)
}

func (w *watcher) setLocked(waits bool, last string) {
	was := w.waits
	w.waits, w.last = waits, last
	switch {
	case waits && !was:
		close(w.settled)
	case !waits && was:
		w.settled = make(chan struct{})
	}
}

// wait returns when the watcher waits. Nothing is written meanwhile.
func (w *watcher) wait() {
	w.mu.Lock()
	settled := w.settled
	w.mu.Unlock()
	<-settled
}

func TestNoWatchIsCalledAfterClose(t *testing.T) {
	for range 20 {
		s, err := store.Open(store.Options{})
		if err != nil {
			t.Fatal(err)
		}
		var closed atomic.Bool
		var calls atomic.Int64
		for i := range 200 {
			r := reads(t, s, func(tx *store.Tx) { get(tx, fmt.Sprint(i)) })
			if _, fresh, err := s.Watch(t.Context(), r, func(store.Seq) {
				calls.Add(1)
				if closed.Load() {
					t.Error("called after Close has returned")
				}
			}); !fresh || err != nil {
				t.Fatal(fresh, err)
			}
		}
		begun := make(chan struct{})
		var all sync.WaitGroup
		all.Go(func() {
			for i := range 200 {
				if i == 20 {
					close(begun)
				}
				if _, err := s.Update(t.Context(), func(tx *store.Tx) error { return tx.Set(fmt.Append(nil, i), nil) }); err != nil {
					break // closed
				}
			}
		})
		<-begun
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		closed.Store(true)
		all.Wait()
	}
}
