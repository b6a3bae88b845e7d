package store_test

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"runner.example/state/store"
)

func TestAForkAndItsStoreDoNotSeeEachOthersLaterCommits(t *testing.T) {
	each(t, func(t *testing.T, open opener) {
		s := open(store.Options{})
		put(t, s, "a", "1", "b", "1", "c", "1", "d", strings.Repeat("long", 1<<20))
		update(t, s, deleter("c"))
		f := mustFork(t, s)
		if got, want := contentOf(t, f), contentOf(t, s); got != want {
			t.Errorf("the fork has %.200s, want %.200s", got, want)
		}
		before := s.Health().Applied
		put(t, s, "a", "store", "e", "store")
		if seq := put(t, f, "b", "fork", "c", "fork"); seq != before+1 {
			t.Errorf("the first commit of the fork is %d after %d", seq, before)
		}
		update(t, f, deleter("d"))
		if got := scanAll(t, f, ""); got != "a=1 b=fork c=fork" {
			t.Errorf("the fork has %.200s", got)
		}
		update(t, s, deleter("d"))
		if got := scanAll(t, s, ""); got != "a=store b=1 e=store" {
			t.Errorf("the store has %.200s", got)
		}
	})
}

// Commits of several keys are forked as a whole, and chains of forks in all orders of closing.
func TestForksBesideCommitsAreSnapshots(t *testing.T) {
	each(t, func(t *testing.T, open opener) {
		s := open(store.Options{})
		put(t, s, "a", "0", "z", "0")
		var writer, readers sync.WaitGroup
		stop := make(chan struct{})
		writer.Go(func() {
			for i := 1; ; i++ {
				select {
				case <-stop:
					return
				default:
					put(t, s, "a", fmt.Sprint(i), "m", fmt.Sprint(i), "z", fmt.Sprint(i))
				}
			}
		})
		for r := range 4 {
			readers.Go(func() {
				for range 25 {
					f, err := s.Fork(store.ForkOptions{})
					if err != nil {
						t.Error(err)
						return
					}
					g, err := f.Fork(store.ForkOptions{})
					if err != nil {
						t.Error(err)
						return
					}
					put(t, f, "a", "fork")
					first, second := f, g
					if r%2 == 0 {
						first, second = g, f
					}
					if err := first.Close(); err != nil {
						t.Error(err)
					}
					a, z := read(t, second, "a"), read(t, second, "z")
					if second == g && a != z || second == f && a != "fork" {
						t.Errorf("a is %s and z is %s", a, z)
					}
					if err := second.Close(); err != nil {
						t.Error(err)
					}
				}
			})
		}
		readers.Wait()
		close(stop)
		writer.Wait()
	})
}

func TestManyForksLeaveNothingBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := mustOpen(t, store.Options{Dir: t.TempDir()})
		put(t, s, "k", "1")
		synctest.Wait()
		before := runtime.NumGoroutine()
		for i := range 1000 {
			f, err := s.Fork(store.ForkOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if i%10 == 0 {
				put(t, f, "k", "2")
			}
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		if after := runtime.NumGoroutine(); after > before {
			t.Errorf("%d goroutines are left of %d", after, before)
		}
		if n := s.Readers(); n != 0 {
			t.Errorf("%d snapshots are left", n)
		}
	})
}

func TestAStoreIsClosedAfterItsForks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := mustOpen(t, store.Options{Dir: t.TempDir()})
		put(t, s, "k", "1")
		f := mustFork(t, s)
		g := mustFork(t, f)
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err == nil || !strings.Contains(err.Error(), "forks are still open") {
			t.Errorf("closed before a fork: %v", err)
		}
		if got := read(t, g, "k"); got != "1" {
			t.Errorf("the fork reads %s", got)
		}
		for _, closed := range []*store.Store{s, f} {
			if _, err := closed.Fork(store.ForkOptions{}); !errors.Is(err, store.ErrUnavailable) {
				t.Errorf("forked after Close: %v", err)
			}
		}
		if err := errors.Join(g.Close(), s.Close()); err != nil {
			t.Errorf("closed in order: %v", err)
		}
	})
}

func TestAForkHasTheBlobsOfItsStore(t *testing.T) {
	each(t, func(t *testing.T, open opener) {
		s := open(store.Options{})
		module := putBlob(t, s, "module")
		f := mustFork(t, mustFork(t, s))
		own := putBlob(t, f, "own")
		putBlob(t, f, "module")
		for d, want := range map[store.Digest]string{module: "module", own: "own"} {
			if got := readBlob(t, f, d); got != want {
				t.Errorf("%q reads %q", want, got)
			}
			if info, err := f.StatBlob(d); err != nil || info.Size != int64(len(want)) {
				t.Errorf("%q: %+v, %v", want, info, err)
			}
		}
		if all, err := f.Blobs(); err != nil || len(all) != 2 {
			t.Errorf("it has the blobs %v, %v", all, err)
		}
		if all, err := s.Blobs(); err != nil || len(all) != 1 {
			t.Errorf("the store has the blobs %v, %v", all, err)
		}
		for _, d := range []store.Digest{module, own} {
			for range 2 {
				if err := f.DeleteBlob(d); err != nil {
					t.Error(err)
				}
			}
		}
		if all, err := f.Blobs(); err != nil || len(all) != 1 || all[0].Digest != module {
			t.Errorf("after deletion it has the blobs %v, %v", all, err)
		}
	})
}

func TestAForkContinuesTheChainAndTheLevel(t *testing.T) {
	s, err := store.OpenKnowing(store.Options{Dir: t.TempDir()}, firstLevel)
	opened(t, s, err)
	put(t, s, "k", "1")
	f := mustFork(t, s)
	seq, _, chain := s.Position()
	if at, _, same := f.Position(); at != seq || same != chain || f.Level() != s.Level() {
		t.Errorf("the fork is at %d with chain %.8x and level %d, the store at %d with %.8x and %d", at, same, f.Level(), seq, chain, s.Level())
	}
	put(t, f, "k", "2")
	if got, known, err := f.ChainAt(t.Context(), seq); err != nil || !known || got != chain {
		t.Errorf("the chain at the fork is %.8x, %v, %v", got, known, err)
	}
	_, _, newest := f.Position()
	if got, known, err := f.ChainAt(t.Context(), seq+1); err != nil || !known || got != newest || got == chain {
		t.Errorf("the chain after the fork is %.8x, %v, %v", got, known, err)
	}
}

func TestAForkHasAClockOfItsOwn(t *testing.T) {
	zero := time.Unix(0, 0)
	s := mustOpen(t, store.Options{Clock: func() time.Time { return zero }})
	f, err := s.Fork(store.ForkOptions{Clock: func() time.Time { return zero.Add(time.Hour) }})
	opened(t, f, err)
	for store, want := range map[*store.Store]time.Time{s: zero, f: zero.Add(time.Hour), mustFork(t, f): zero.Add(time.Hour)} {
		if got := nowOf(t, store); !got.Equal(want) {
			t.Errorf("now is %v, want %v", got, want)
		}
	}
}

func nowOf(t *testing.T, s *store.Store) (now time.Time) {
	update(t, s, func(tx *store.Tx) error {
		now = tx.Now()
		return nil
	})
	return now
}

func TestDamageThatAForkMeetsIsThatOfItsStore(t *testing.T) {
	dir := t.TempDir()
	s := inTables(t, dir, 300, nil)
	f := mustFork(t, mustFork(t, s))
	put(t, f, "k0001", "own")
	defer damageBytes(t, tables(t, dir)[0], "old")() // in the first block
	if got := read(t, f, "k0001"); got != "own" {
		t.Errorf("the fork reads %s", got)
	}
	err := f.View(t.Context(), func(tx *store.Tx) error { _, err := tx.Get([]byte("k0000")); return err })
	if !errors.Is(err, store.ErrDamaged) || !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("the fork reads: %v", err)
	}
	for name, of := range map[string]*store.Store{"store": s, "fork": f} {
		if reason := of.Health().Reason; !errors.Is(reason, store.ErrDamaged) {
			t.Errorf("health of the %s: %v", name, reason)
		}
	}
}

// Deleted keys take memory only as long as a transaction may be older than the deletion.
func TestDeletedKeysLeaveTheMemory(t *testing.T) {
	s := mustOpen(t, store.Options{}, 4)
	err := s.View(t.Context(), func(tx *store.Tx) error {
		get(tx, "k0")
		for i := range 50 {
			put(t, s, fmt.Sprintf("k%d", i), "")
			update(t, s, deleter(fmt.Sprintf("k%d", i)))
		}
		if n := s.KeysInMemory(); n != 50 {
			t.Errorf("%d keys are in memory while a transaction is open, want 50", n)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second commit sees that no reader is older than the first
		put(t, s, "last", "")
	}
	if n := s.KeysInMemory(); n != 1 {
		t.Errorf("%d keys are in memory, want 1", n)
	}
}

func BenchmarkFork(b *testing.B) {
	disk := mustOpen(b, store.Options{Dir: b.TempDir()})
	update(b, disk, func(tx *store.Tx) error {
		for i := range 20_000 {
			if err := tx.Set(fmt.Appendf(nil, "key%05d", i), make([]byte, 200)); err != nil {
				return err
			}
		}
		return nil
	})
	fork := mustFork(b, disk)
	for i := range 100 {
		put(b, fork, fmt.Sprintf("key%05d", i), "fork")
	}
	fns := map[string]func(*store.Store){
		"empty":  func(*store.Store) {},
		"commit": func(f *store.Store) { put(b, f, "key00050", "new") },
	}
	for name, s := range map[string]*store.Store{"disk": disk, "fork": fork} {
		for _, use := range slices.Sorted(slices.Values([]string{"empty", "commit"})) {
			b.Run(name+"/"+use, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					f, err := s.Fork(store.ForkOptions{})
					if err != nil {
						b.Fatal(err)
					}
					fns[use](f)
					if err := f.Close(); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func TestAForkOfAnEarlierCommitHasItsContent(t *testing.T) {
	s, err := store.Open(store.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	at := put(t, s, "a", "1", "b", "1")
	put(t, s, "a", "2")
	update(t, s, deleter("b"))
	f, err := s.Fork(store.ForkOptions{At: at})
	if err != nil {
		t.Fatal(err)
	}
	put(t, f, "c", "fork")
	if got := scanAll(t, f, ""); got != "a=1 b=1 c=fork" {
		t.Errorf("the fork has %s", got)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	if got := scanAll(t, s, ""); got != "a=2" {
		t.Errorf("the store has %s", got)
	}
	if _, err := s.Fork(store.ForkOptions{At: at + 100}); !errors.Is(err, store.ErrGone) {
		t.Errorf("a later commit: %v", err)
	}
}
