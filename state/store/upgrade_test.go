package store_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"runner.example/state/store"
	"runner.example/state/store/commitlog"
)

// firstFormat extracts a data directory and a backup of the version before entries had
// proposers. Both have the keys k05 to k19 and "long", and 26 commits; k00 to k04 are deleted.
func firstFormat(t *testing.T) (dir string, backup []byte) {
	t.Helper()
	root := t.TempDir()
	f, err := os.Open("testdata/format1.tar.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	unzipped, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	for in := tar.NewReader(unzipped); ; {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(root, filepath.FromSlash(h.Name))
		if h.FileInfo().IsDir() {
			err = os.MkdirAll(path, 0o700)
		} else {
			var content []byte
			if content, err = io.ReadAll(in); err == nil {
				err = os.WriteFile(path, content, 0o600)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if backup, err = os.ReadFile(filepath.Join(root, "backup")); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(root, "data"), backup
}

func checkFirstFormat(t *testing.T, s *store.Store) {
	t.Helper()
	if got := s.Health().Applied; got != 26 {
		t.Errorf("it is at commit %d, want 26", got)
	}
	var want []string
	for i := 5; i < 20; i++ {
		want = append(want, fmt.Sprintf("k%02d=value %d", i, i))
	}
	if got := scanAll(t, s, "k"); got != strings.Join(want, " ") {
		t.Errorf("it has %s", got)
	}
	if got := read(t, s, "long"); got != strings.Repeat("long", 150_000) {
		t.Errorf("the long value has %d bytes", len(got))
	}
}

func TestAStoreAndABackupOfTheFirstFormatOpen(t *testing.T) {
	dir, old := firstFormat(t)
	restored := t.TempDir()
	s := mustOpen(t, store.Options{Dir: restored})
	if err := restore(t, s, bytes.NewReader(old)); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	chain := ""
	for _, dir := range []string{dir, restored} {
		s := mustOpen(t, store.Options{Dir: dir})
		checkFirstFormat(t, s)
		if chain == "" {
			chain = s.Chain()
		} else if s.Chain() != chain {
			t.Error("the restored store has another chain")
		}
		for range 3 { // the log continues, and is audited at each start
			runs := between(t, s, getter("k05"), setter("k05", "new"), setter("mine", ""))
			if runs != 2 {
				t.Errorf("the function ran %d times, want 2", runs)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			s = mustOpen(t, store.Options{Dir: dir})
		}
		if got := s.Health().Applied; got != 26+3*2 {
			t.Errorf("it is at commit %d, want 32", got)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAStoreOfANewerVersionIsRefusedAndNotDamaged(t *testing.T) {
	dir := t.TempDir()
	wrote(t, dir, 3, func(s *store.Store) {
		if err := s.WriteNewerRecord(3); err != nil {
			t.Error(err)
		}
	})
	s, err := store.Open(store.Options{Dir: dir})
	if !errors.Is(err, commitlog.ErrFormat) || errors.Is(err, store.ErrDamaged) || !strings.Contains(err.Error(), "entry 3: a newer runner wrote it: install that one") {
		t.Errorf("opened %v, %v", s, err)
	}
}

// A store of the first format becomes the first node, and a backup of it the second one.
func TestAStoreOfTheFirstFormatAndItsBackupDecideAlike(t *testing.T) {
	first, _ := firstFormat(t)
	s := mustOpen(t, store.Options{Dir: first})
	copied := backup(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	second := t.TempDir()
	s = mustOpen(t, store.Options{Dir: second})
	if err := restore(t, s, bytes.NewReader(copied)); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	inBubble(t, func(t *testing.T, log *store.SimLog) {
		c := &nodes{t: t, log: log, window: 100, dirs: []string{first, second}, stores: make([]*store.Store, 2)}
		t.Cleanup(log.Close)
		for i := range c.dirs {
			c.open(i)
			t.Cleanup(func() { c.close(i) })
		}
		for n := range 20 {
			put(t, c.stores[n%2], fmt.Sprintf("k%02d", n), "new")
		}
		c.agree()
	})
}
