package store_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"runner.example/state/store"
)

// reads returns what fn reads.
func reads(t testing.TB, s *store.Store, fn func(*store.Tx)) *store.Reads {
	t.Helper()
	r, err := s.ViewReads(t.Context(), func(tx *store.Tx) error { fn(tx); return nil })
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// watch watches r. The channel gets the number of each call of changed.
func watch(t testing.TB, s *store.Store, r *store.Reads) (*store.Watch, <-chan store.Seq) {
	t.Helper()
	w, changed, fresh := tryWatch(t, s, r)
	if !fresh {
		t.Fatal("it has changed already")
	}
	return w, changed
}

func tryWatch(t testing.TB, s *store.Store, r *store.Reads) (*store.Watch, <-chan store.Seq, bool) {
	t.Helper()
	changed := make(chan store.Seq, 10)
	w, fresh, err := s.Watch(t.Context(), r, func(seq store.Seq) { changed <- seq })
	if err != nil || fresh != (w != nil) {
		t.Fatalf("watch %v, fresh %v, %v", w, fresh, err)
	}
	return w, changed, fresh
}

// passed returns when the matcher has looked at all commits up to now.
func passed(t testing.TB, s *store.Store) {
	t.Helper()
	_, changed := watch(t, s, reads(t, s, func(tx *store.Tx) { get(tx, "passed") }))
	put(t, s, "passed", "")
	<-changed
}

// remove deletes keys.
func remove(t testing.TB, s *store.Store, keys ...string) store.Seq {
	t.Helper()
	return update(t, s, func(tx *store.Tx) error {
		for _, key := range keys {
			if err := tx.Delete([]byte(key)); err != nil {
				return err
			}
		}
		return nil
	})
}

func TestAWatchIsCalledForAWriteOfWhatWasRead(t *testing.T) {
	key := func(k string) func(*store.Tx) { return func(tx *store.Tx) { get(tx, k) } }
	prefix := func(p string, reverse bool) func(*store.Tx) {
		return func(tx *store.Tx) { scan(tx, p, "", reverse) }
	}
	first := func(reverse bool) func(*store.Tx) { // the first key of the prefix b
		return func(tx *store.Tx) {
			for range tx.Scan([]byte("b"), nil, reverse) {
				break
			}
		}
	}
	put := func(k string) func(*testing.T, *store.Store) store.Seq {
		return func(t *testing.T, s *store.Store) store.Seq { return put(t, s, k, "new") }
	}
	del := func(k string) func(*testing.T, *store.Store) store.Seq {
		return func(t *testing.T, s *store.Store) store.Seq { return remove(t, s, k) }
	}
	for name, c := range map[string]struct {
		read  func(*store.Tx)
		write func(*testing.T, *store.Store) store.Seq
		want  bool
	}{
		"a key":                            {key("b2"), put("b2"), true},
		"a key, deleted":                   {key("b2"), del("b2"), true},
		"an absent key":                    {key("x"), put("x"), true},
		"another key":                      {key("b2"), put("b20"), false},
		"a range, updated":                 {prefix("b", false), put("b2"), true},
		"a range, inserted":                {prefix("b", false), put("b5"), true},
		"a range, deleted":                 {prefix("b", true), del("b2"), true},
		"an empty range":                   {prefix("x", false), put("x"), true},
		"below the range":                  {prefix("b", false), put("az"), false},
		"above the range":                  {prefix("b", true), put("c"), false},
		"everything":                       {prefix("", false), put("\xff\xff"), true},
		"read in part, in the part":        {first(false), put("b"), true},
		"read in part, after it":           {first(false), put("b11"), false},
		"read backwards, in the part":      {first(true), put("bz"), true},
		"read backwards, in the rest":      {first(true), put("b2"), false},
		"nothing":                          {func(*store.Tx) {}, put("b2"), false},
		"only the time, and what was read": {func(tx *store.Tx) { tx.Now() }, put("b2"), false},
	} {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, open opener) {
				s := open(store.Options{})
				before := update(t, s, func(tx *store.Tx) error {
					for _, k := range []string{"a", "b1", "b2", "b3", "c1"} {
						if err := tx.Set([]byte(k), nil); err != nil {
							return err
						}
					}
					return nil
				})
				r := reads(t, s, c.read)
				if r.Snapshot != before {
					t.Errorf("the snapshot is %d, want %d", r.Snapshot, before)
				}
				w, changed := watch(t, s, r)
				seq := c.write(t, s)
				passed(t, s)
				c.write(t, s)
				passed(t, s)
				var want []store.Seq
				if c.want {
					want = []store.Seq{seq}
				}
				if got := received(changed); !slices.Equal(got, want) {
					t.Errorf("called for %v, want %v", got, want)
				}
				if w.Stop() == c.want || w.Stop() {
					t.Error("Stop reports otherwise")
				}
				if _, _, fresh := tryWatch(t, s, r); fresh == c.want { // too late
					t.Errorf("after the write, fresh is %v", fresh)
				}
			})
		})
	}
}

// received returns what is in the buffer of c.
func received(c <-chan store.Seq) (all []store.Seq) {
	for len(c) > 0 {
		all = append(all, <-c)
	}
	return all
}

func TestAStoppedWatchIsNotCalled(t *testing.T) {
	s := mustOpen(t, store.Options{})
	w, changed := watch(t, s, reads(t, s, func(tx *store.Tx) { get(tx, "k") }))
	if !w.Stop() || w.Stop() {
		t.Error("Stop does not say that it ended the watch")
	}
	put(t, s, "k", "1")
	passed(t, s)
	if got := received(changed); got != nil {
		t.Errorf("called for %v", got)
	}
}

func TestReadsBeforeTheWindowAreNotFresh(t *testing.T) {
	each(t, func(t *testing.T, open opener) {
		s := open(store.Options{}, 4)
		put(t, s, "k", "1")
		old := reads(t, s, func(tx *store.Tx) { get(tx, "k") })
		none := reads(t, s, func(tx *store.Tx) {})
		for range 6 {
			put(t, s, "other", "1")
		}
		if _, _, fresh := tryWatch(t, s, old); fresh {
			t.Error("they are fresh")
		}
		if _, _, fresh := tryWatch(t, s, none); !fresh {
			t.Error("nothing was read, and has changed")
		}
	})
}

func TestWhatIsReadTwiceCountsOnce(t *testing.T) {
	s := mustOpen(t, store.Options{})
	put(t, s, "a", "", "b1", "", "b2", "", "b3", "", "c", "")
	r := reads(t, s, func(tx *store.Tx) {
		get(tx, "a")
		scan(tx, "b", "", false)
		get(tx, "a")
		get(tx, "b2")
		scan(tx, "b", "b2", true)
		scan(tx, "c", "", false)
		get(tx, "d")
	})
	if r.Len() != 3 { // a, the range from b to d, d
		t.Errorf("%d keys and ranges", r.Len())
	}
}

func TestWidenedReadsAreTheRangesOfPrefixes(t *testing.T) {
	s := mustOpen(t, store.Options{})
	put(t, s, "k", "")
	read := func() *store.Reads {
		return reads(t, s, func(tx *store.Tx) {
			for _, key := range []string{"a/1", "a/2", "b/1", "alone"} {
				get(tx, key)
			}
			scan(tx, "b/2", "", false)
			scan(tx, "c/1", "", true)
		})
	}
	r := read()
	w, narrow := watch(t, s, r)
	r.Widen(func(key string) string {
		if len(key) > 2 && key[1] == '/' {
			return key[:2]
		}
		return key
	})
	if r.Len() != 4 { // a/, b/, c/, alone
		t.Errorf("%d keys and ranges", r.Len())
	}
	for key, want := range map[string]bool{"a/3": true, "b/": true, "c/2": true, "alone": true, "alone2": false, "a": false, "d": false} {
		t.Run(key, func(t *testing.T) {
			r := read()
			r.Widen(func(key string) string {
				if len(key) > 2 && key[1] == '/' {
					return key[:2]
				}
				return key
			})
			_, changed := watch(t, s, r)
			put(t, s, key, "1")
			passed(t, s)
			if got := received(changed); (got != nil) != want {
				t.Errorf("called for %v", got)
			}
		})
	}
	if got := received(narrow); got == nil { // for alone
		t.Error("the watch from before has changed with the reads")
	}
	w.Stop()
}

func TestReadsAreReturnedWithTheErrorOfTheFunction(t *testing.T) {
	s := mustOpen(t, store.Options{})
	failed := errors.New("failed")
	r, err := s.ViewReads(t.Context(), func(tx *store.Tx) error { get(tx, "k"); return failed })
	if !errors.Is(err, failed) || r.Len() != 1 {
		t.Errorf("%v, %v", r, err)
	}
	_, changed := watch(t, s, r)
	put(t, s, "k", "1")
	<-changed
}

func TestAClosedStoreIsNotWatched(t *testing.T) {
	s := mustOpen(t, store.Options{})
	r := reads(t, s, func(tx *store.Tx) { get(tx, "k") })
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	release := hold(s)
	if w, fresh, err := s.Watch(ended, r, nil); w != nil || fresh || !errors.Is(err, store.ErrUnavailable) || !errors.Is(err, context.Canceled) {
		t.Errorf("the context has ended: %v, %v, %v", w, fresh, err)
	}
	release()
	w, changed := watch(t, s, r)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if w, fresh, err := s.Watch(t.Context(), r, nil); w != nil || fresh || !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("watched %v, %v, %v", w, fresh, err)
	}
	if r, err := s.ViewReads(t.Context(), func(*store.Tx) error { return nil }); r != nil || !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("read %v, %v", r, err)
	}
	if !w.Stop() || len(changed) > 0 {
		t.Error("the watch was called")
	}
}

// hold keeps entries from being applied until release is called.
func hold(s *store.Store) (release func()) {
	held, end, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		s.BetweenEntries(func() { close(held); <-end })
	}()
	<-held
	return func() { close(end); <-ended }
}

// While the function of a watch blocks, commits continue. Then more keys are written than the store keeps for the
// watches, so all are called.
func TestAllWatchesAreCalledAfterABurstOfCommits(t *testing.T) {
	s := mustOpen(t, store.Options{})
	key := func(k string) func(*store.Tx) { return func(tx *store.Tx) { get(tx, k) } }
	begun, end := make(chan struct{}), make(chan struct{})
	if _, fresh, err := s.Watch(t.Context(), reads(t, s, key("block")), func(store.Seq) { close(begun); <-end }); !fresh || err != nil {
		t.Fatal(fresh, err)
	}
	put(t, s, "block", "")
	<-begun
	var calls []<-chan store.Seq
	for i := range 50 {
		_, changed := watch(t, s, reads(t, s, key(fmt.Sprint("idle", i))))
		calls = append(calls, changed)
	}
	var last store.Seq
	for n := range 5 {
		last = update(t, s, func(tx *store.Tx) error {
			for i := range 42_000 {
				if err := tx.Set(fmt.Appendf(nil, "%d/%05d", n, i), nil); err != nil {
					return err
				}
			}
			return nil
		})
	}
	_, later := watch(t, s, reads(t, s, key("later")))
	close(end)
	for i, changed := range calls {
		if seq := <-changed; seq != last {
			t.Errorf("watch %d is called for %d, want %d", i, seq, last)
		}
	}
	passed(t, s)
	if got := received(later); got != nil {
		t.Errorf("a watch of what was read afterwards is called for %v", got)
	}
	if want, got := put(t, s, "later", ""), <-later; got != want {
		t.Errorf("called for %d, want %d", got, want)
	}
}

func TestARestoreChangesWhatIsWatched(t *testing.T) {
	from := mustOpen(t, store.Options{Dir: t.TempDir()})
	want := put(t, from, "k", "1")
	s := mustOpen(t, store.Options{Dir: t.TempDir()})
	_, changed := watch(t, s, reads(t, s, func(tx *store.Tx) { get(tx, "k") }))
	if err := restore(t, s, bytes.NewReader(backup(t, from))); err != nil {
		t.Fatal(err)
	}
	if got := <-changed; got != want || read(t, s, "k") != "1" {
		t.Errorf("called for %d, want %d", got, want)
	}
}
