package store_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"runner.example/state/store"
)

// wrote opens the store in dir, makes commits, calls more with it and closes it.
func wrote(t *testing.T, dir string, commits int, more ...func(*store.Store)) {
	t.Helper()
	s, err := store.Open(store.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	for i := range commits {
		put(t, s, "k", fmt.Sprint(i))
	}
	for _, fn := range more {
		fn(s)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func mustOpenAt(t *testing.T, dir string, seq store.Seq) {
	t.Helper()
	s, err := store.Open(store.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if got := s.Health().Applied; got != seq {
		t.Errorf("opened at commit %d, want %d", got, seq)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func mustRefuse(t *testing.T, dir, says string) {
	t.Helper()
	s, err := store.Open(store.Options{Dir: dir})
	if err == nil {
		t.Errorf("opened at commit %d", s.Health().Applied)
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		return
	}
	if !errors.Is(err, store.ErrDamaged) || !strings.Contains(err.Error(), says) {
		t.Errorf("refused with %v, want %q", err, says)
	}
}

func markOf(dir string) string { return filepath.Join(dir, "commit-mark") }

func leaveMark(s *store.Store) { s.LeaveMark() }

func TestAStoreOfAVersionWithoutMarksGetsOne(t *testing.T) {
	dir := t.TempDir()
	wrote(t, dir, 0, leaveMark, func(s *store.Store) { put(t, s, "k", "1"); put(t, s, "k", "2") })
	if err := os.Remove(markOf(dir)); err != nil {
		t.Fatal(err)
	}
	wrote(t, dir, 3)
	mustOpenAt(t, dir, 5)
	if err := os.Rename(markOf(dir), markOf(dir)+".old"); err != nil {
		t.Fatal(err)
	}
	mustRefuse(t, dir, "commit-mark")
}

func TestAVersionWithoutMarksMayContinueTheLog(t *testing.T) {
	dir := t.TempDir()
	wrote(t, dir, 3, leaveMark, func(s *store.Store) { put(t, s, "k", "1"); put(t, s, "k", "2") })
	mustOpenAt(t, dir, 5)
	wrote(t, dir, 1)
	mustOpenAt(t, dir, 6)
}

func TestTheMarkNamesTheAcknowledgedCommitsAfterAKill(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: left out by -short")
	}
	dir := t.TempDir()
	var killed string
	wrote(t, dir, 0, func(s *store.Store) {
		for i := range 5 {
			put(t, s, "k", fmt.Sprint(i))
		}
		killed = copyOf(t, dir)
	})
	wal := filepath.Join(killed, "badger", "00001.mem")
	text, err := os.ReadFile(wal)
	if err != nil {
		t.Fatal(err)
	}
	last := int64(bytes.LastIndex(text, []byte("!badger!txn")))
	mustOpenAt(t, copyOf(t, killed), 5)
	if err := change(wal, last, func(b []byte) { b[0] ^= 1 }, 1); err != nil {
		t.Fatal(err)
	}
	mustRefuse(t, killed, "commit 5 was acknowledged")
	mustOpenAt(t, dir, 5)
}

func TestALogThatEndsBeforeTheMarkIsRefused(t *testing.T) {
	dir := t.TempDir()
	wrote(t, dir, 3, func(s *store.Store) {
		if err := s.MarkNext(); err != nil {
			t.Error(err)
		}
	})
	mustRefuse(t, dir, "commit 3 is the last that can be read, and commit 4 was acknowledged")
}

// After a loss of power the mark may be older than the log.
func TestTheLogMayBeAheadOfTheMark(t *testing.T) {
	for _, ahead := range []int{0, 1, 2, 50} {
		dir := t.TempDir()
		wrote(t, dir, 0)
		mustOpenAt(t, dir, 0)
		wrote(t, dir, 3)
		early, err := os.ReadFile(markOf(dir))
		if err != nil {
			t.Fatal(err)
		}
		wrote(t, dir, ahead)
		if err := os.WriteFile(markOf(dir), early, 0o600); err != nil {
			t.Fatal(err)
		}
		mustOpenAt(t, dir, store.Seq(3+ahead))
		wrote(t, dir, 1)
		mustOpenAt(t, dir, store.Seq(4+ahead))
	}
}

func TestATornMarkLeavesThePreviousOne(t *testing.T) {
	dir := t.TempDir()
	wrote(t, dir, 3)
	for _, slot := range []int64{0, 4096} {
		dir := copyOf(t, dir)
		if err := change(markOf(dir), slot+30, func(b []byte) { clear(b) }, 512); err != nil {
			t.Fatal(err)
		}
		mustOpenAt(t, dir, 3)
	}
	if err := change(markOf(dir), 0, func(b []byte) { clear(b) }, 5000); err != nil {
		t.Fatal(err)
	}
	mustRefuse(t, dir, "both copies are damaged")
}

func TestFilesFromDifferentTimesAreRefused(t *testing.T) {
	dir := t.TempDir()
	wrote(t, dir, 3)
	early := copyOf(t, dir)
	wrote(t, dir, 3)
	late := copyOf(t, dir)
	exchange := func(name string) {
		t.Helper()
		a, b := filepath.Join(early, name), filepath.Join(late, name)
		if err := errors.Join(os.Rename(a, a+".old"), os.Rename(b, a), os.Rename(a+".old", b)); err != nil {
			t.Fatal(err)
		}
	}
	exchange("badger")
	mustOpenAt(t, copyOf(t, early), 6) // as after a loss of power
	mustRefuse(t, late, "commit 6 was acknowledged")
	exchange("commit-mark")
	mustOpenAt(t, early, 6)
	mustOpenAt(t, late, 3)
	other := t.TempDir()
	wrote(t, other, 5)
	wrote(t, other, 0, func(s *store.Store) { put(t, s, "other", "1") })
	if err := os.Rename(markOf(other), markOf(early)); err != nil {
		t.Fatal(err)
	}
	mustRefuse(t, early, "another history")
}

func TestARemovedDatabaseIsNotCreatedAgain(t *testing.T) {
	for _, name := range []string{"badger", "badger/MANIFEST"} {
		dir := t.TempDir()
		wrote(t, dir, 3)
		if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
		mustRefuse(t, dir, "MANIFEST")
	}
}

func TestAStoreOpensWithALogThatBadgerWasRemoving(t *testing.T) {
	dir := t.TempDir()
	wrote(t, dir, 3)
	if err := os.WriteFile(filepath.Join(dir, "badger", "00009.mem"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	wrote(t, dir, 1)
	mustOpenAt(t, dir, 4)
}

func copyOf(t *testing.T, dir string) string {
	t.Helper()
	to := t.TempDir()
	save(t, dir).restoreTo(t, to)
	return to
}

func TestAnInterruptedRestoreIsRefused(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: left out by -short")
	}
	s := mustOpen(t, store.Options{Dir: t.TempDir()})
	fill(t, s)
	backup := backup(t, s)
	dir := t.TempDir()
	into := mustOpen(t, store.Options{Dir: dir})
	var interrupted saved
	last := readerFunc(func([]byte) (int, error) {
		interrupted = save(t, dir) // as a kill would leave it
		return 0, io.EOF
	})
	if err := restore(t, into, io.MultiReader(bytes.NewReader(backup[:len(backup)-1]), last)); err == nil {
		t.Error("restored a backup without its end")
	}
	left := t.TempDir()
	interrupted.restoreTo(t, left)
	mustRefuse(t, left, "did not finish")

	if err := restore(t, into, bytes.NewReader(backup)); err != nil {
		t.Fatal(err)
	}
	killed := copyOf(t, dir) // just after it
	mustOpenAt(t, killed, s.Health().Applied)
	put(t, into, "k", "after")
	killed = copyOf(t, dir)
	mustOpenAt(t, killed, s.Health().Applied+1)
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(b []byte) (int, error) { return f(b) }
