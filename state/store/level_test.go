package store_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"runner.example/internal/fault"
	"runner.example/internal/level"
	"runner.example/state/store"
)

var (
	firstLevel  = level.Range{Oldest: 1, Newest: 1}
	bothLevels  = level.Range{Oldest: 1, Newest: 2}
	laterLevels = level.Range{Oldest: 2, Newest: 3}
)

// raise raises the level of s.
func raise(s *store.Store, to int) (before int, err error) {
	_, err = s.Update(context.Background(), func(tx *store.Tx) error {
		before, err = tx.RaiseLevel(to)
		return err
	})
	return before, err
}

func TestTheLevelIsRaisedAtOneEntryOfTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := store.NewSimLog(nil)
		t.Cleanup(log.Close)
		open := func(dir string, known level.Range) *store.Store {
			t.Helper()
			s, err := log.OpenKnowing(store.Options{Dir: dir}, 100, known)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = s.Close() })
			return s
		}
		dirs := []string{t.TempDir(), t.TempDir(), t.TempDir()}
		a, b, old := open(dirs[0], bothLevels), open(dirs[1], bothLevels), open(dirs[2], firstLevel)
		put(t, a, "k", "1")
		if a.Level() != 1 {
			t.Errorf("it begins with level %d", a.Level())
		}
		levels := map[store.Seq]int{} // that a follower of the other store saw with each commit
		b.OnApply(nil, func(seq store.Seq, _ store.Change) { levels[seq] = b.Level() })
		// A transaction that depends on the level runs again if the level is raised before it commits.
		runs := 0
		_, err := b.Update(t.Context(), func(tx *store.Tx) error {
			runs++
			l, err := tx.Level()
			if runs == 1 && err == nil {
				if before, err := raise(a, 2); before != 1 || err != nil {
					t.Errorf("raised from %d, %v", before, err)
				}
			}
			return errors.Join(err, tx.Set([]byte("form"), []byte{byte(l)}))
		})
		if err != nil || runs != 2 || read(t, b, "form") != "\x02" {
			t.Errorf("%d runs, %v, and it wrote the form of level %q", runs, err, read(t, b, "form"))
		}
		if a.Level() != 2 || b.Level() != 2 || levels[2] != 2 {
			t.Errorf("the levels are %d and %d, and at each commit %v", a.Level(), b.Level(), levels)
		}
		// A store that does not know the level applies the entry that raises it, and no later one.
		if err := old.WaitFor(t.Context(), 2); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		h := old.Health()
		if h.Writable || h.Applied != 2 ||
			!strings.Contains(h.Reason.Error(), "the data has level 2, and this runner knows level 1: install a newer runner") ||
			strings.Contains(h.Reason.Error(), "restart") {
			t.Errorf("the old store: %+v", h)
		}
		if got := read(t, old, "k"); got != "1" {
			t.Errorf("it reads %s", got)
		}
		_ = old.Close()
		if _, err := log.OpenKnowing(store.Options{Dir: dirs[2]}, 100, firstLevel); fault.CodeOf(err) != fault.Invalid {
			t.Errorf("opened by a program that does not know the level: %v", err)
		}
		again := open(dirs[2], bothLevels)
		if err := again.Barrier(t.Context()); err != nil || again.Chain() != b.Chain() || again.Level() != 2 {
			t.Errorf("with a newer program: %v, chain %.8s of %.8s, level %d", err, again.Chain(), b.Chain(), again.Level())
		}
	})
}

func TestTheLevelIsRaisedOnlyToWhatTheProgramKnows(t *testing.T) {
	s, err := store.OpenKnowing(store.Options{}, bothLevels)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	put(t, s, "k", "1")
	for _, row := range []struct {
		to   int
		code fault.Code
	}{{3, fault.Invalid}, {1, fault.Conflict}, {2, ""}} {
		if _, err := raise(s, row.to); fault.CodeOf(err) != row.code {
			t.Errorf("raised to %d: %v", row.to, err)
		}
	}
}

func TestADataDirectoryOfAnUnknownLevelIsRefused(t *testing.T) {
	dir := t.TempDir()
	open := func(known level.Range) (*store.Store, error) {
		return store.OpenKnowing(store.Options{Dir: dir}, known)
	}
	use := func(known level.Range, value string) {
		t.Helper()
		s, err := open(known)
		if err != nil {
			t.Fatal(err)
		}
		put(t, s, "k", value)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	use(firstLevel, "1")
	use(bothLevels, "2")
	use(firstLevel, "3") // until the level is raised, the older program can be used again
	if _, err := open(laterLevels); err == nil || !strings.Contains(err.Error(), "use the release before, which knows both") {
		t.Errorf("opened by a program that does not know the first level any more: %v", err)
	}
	s, err := open(bothLevels)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := raise(s, 2); err != nil || s.Level() != 2 {
		t.Errorf("raised to %d, %v", s.Level(), err)
	}
	copied := backup(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := open(firstLevel); fault.CodeOf(err) != fault.Invalid || errors.Is(err, store.ErrDamaged) {
		t.Errorf("opened by the older program: %v", err)
	}
	use(laterLevels, "4")
	restored, err := store.OpenKnowing(store.Options{Dir: t.TempDir()}, firstLevel)
	if err != nil {
		t.Fatal(err)
	}
	defer restored.Close()
	if err := restore(t, restored, bytes.NewReader(copied)); fault.CodeOf(err) != fault.Invalid {
		t.Errorf("restored by the older program: %v", err)
	}
	if h := restored.Health(); h.Applied != 0 || restored.Level() != 1 {
		t.Errorf("it has level %d and %+v", restored.Level(), h)
	}
}

func TestANewStoreHasTheNewestLevel(t *testing.T) {
	dir := t.TempDir()
	s, err := store.OpenKnowing(store.Options{Dir: dir}, bothLevels)
	if err != nil {
		t.Fatal(err)
	}
	put(t, s, "k", "1")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := store.OpenKnowing(store.Options{Dir: dir}, firstLevel); fault.CodeOf(err) != fault.Invalid {
		t.Errorf("opened by the older program: %v", err)
	}
	again, err := store.OpenKnowing(store.Options{Dir: dir}, bothLevels)
	if err != nil || again.Level() != 2 || again.Health().Applied != 1 || read(t, again, "k") != "1" {
		t.Fatalf("opened again: %v", err)
	}
	defer again.Close()
	// A restored backup keeps its level.
	one, err := store.OpenKnowing(store.Options{Dir: t.TempDir()}, firstLevel)
	if err != nil {
		t.Fatal(err)
	}
	defer one.Close()
	put(t, one, "k", "1")
	restored, err := store.OpenKnowing(store.Options{Dir: t.TempDir()}, bothLevels)
	if err != nil {
		t.Fatal(err)
	}
	defer restored.Close()
	if err := restore(t, restored, bytes.NewReader(backup(t, one))); err != nil || restored.Level() != 1 {
		t.Errorf("restored: %v, level %d", err, restored.Level())
	}
}
