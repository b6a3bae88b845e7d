package store_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"runner.example/state/store"
)

func TestStoresOfOneLogHaveTheSameChain(t *testing.T) {
	const window, starts = 20, 8
	log := store.NewSimLog(nil)
	t.Cleanup(log.Close)
	dir := t.TempDir()
	open := func(dir string) *store.Store {
		s, err := log.Open(store.Options{Dir: dir}, window)
		return opened(t, s, err)
	}
	a, b := open(dir), open("")
	chains := map[store.Seq][32]byte{0: {}}
	for range starts { // Badger compacts only where there are tables on two levels
		for range window / 2 {
			put(t, a, "k", "v")
			seq, revision, chain := a.Position()
			if seq != store.Seq(len(chains)) || revision != uint64(seq) || chain == chains[seq-1] {
				t.Fatalf("after %d commits the position is %d, revision %d, %.8x", len(chains), seq, revision, chain)
			}
			chains[seq] = chain
		}
		if err := a.Close(); err != nil {
			t.Fatal(err)
		}
		a = open(dir)
		if _, err := a.Versions(); err != nil { // which compacts
			t.Fatal(err)
		}
	}
	const last = starts * window / 2
	catchUp(t, b)
	for name, s := range map[string]*store.Store{"a": a, "b": b} {
		newest, revision, chain := s.Position()
		if newest != last || revision != last || chain != chains[newest] {
			t.Errorf("%s is at %d, revision %d, %.8x", name, newest, revision, chain)
		}
		for seq, want := range chains {
			got, known, err := s.ChainAt(t.Context(), seq)
			switch {
			case err != nil:
				t.Errorf("%s, at %d: %v", name, seq, err)
			case known && got != want:
				t.Errorf("%s has the chain %.8x at %d, want %.8x", name, got, seq, want)
			case !known && (seq == 0 || seq > newest-window):
				t.Errorf("%s does not know its chain at %d", name, seq)
			}
		}
		if _, known, err := s.ChainAt(t.Context(), newest+1); known || err != nil {
			t.Errorf("%s knows the chain of the next entry: %v, %v", name, known, err)
		}
	}
	if _, known, err := a.ChainAt(t.Context(), 1); known || err != nil {
		t.Errorf("after a compaction the first entry is known: %v, %v", known, err)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := a.ChainAt(t.Context(), 1); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("closed: %v", err)
	}
}

func TestADivergedStoreAppliesNothingMore(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		log := store.NewSimLog(nil)
		t.Cleanup(log.Close)
		a, b := openNode(t, log, "a", dir), openNode(t, log, "b", "")
		put(t, a, "k", "1")
		a.StopDiverged("entry 1 of b has another chain")
		put(t, b, "k", "2")
		synctest.Wait() // it was delivered to a too
		if _, err := a.Update(t.Context(), setter("k", "3")); !errors.Is(err, store.ErrUnavailable) || !errors.Is(err, store.ErrDiverged) {
			t.Errorf("a commit: %v", err)
		}
		h := a.Health()
		if h.Writable || !errors.Is(h.Reason, store.ErrDiverged) || !strings.Contains(h.Reason.Error(), "diverged: entry 1 of b has another chain") {
			t.Errorf("writable %v, because %v", h.Writable, h.Reason)
		}
		if got := read(t, a, "k"); got != "1" || a.Health().Applied != 1 {
			t.Errorf("k reads %q at %d", got, a.Health().Applied)
		}
		if err := a.Close(); err != nil {
			t.Fatal(err)
		}
	})
	if found, err := filepath.Glob(filepath.Join(dir, "badger", "MANIFEST")); err != nil || len(found) != 1 {
		t.Errorf("files %v, %v", found, err)
	}
}
