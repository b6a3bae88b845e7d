package store_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"runner.example/internal/fault"
	"runner.example/state/store"
)

func TestTheDataDirectoryOfAClusterOpensOnlyAsANode(t *testing.T) {
	dir := t.TempDir()
	wrote(t, dir, 1, func(s *store.Store) {
		if err := s.SetNode(true); err != nil {
			t.Error(err)
		}
	})
	refused := func() {
		t.Helper()
		if s, err := store.Open(store.Options{Dir: dir}); !errors.Is(err, store.ErrNode) || fault.CodeOf(err) != fault.Unavailable {
			t.Errorf("opened %v, %v", s, err)
		}
	}
	refused()
	refused() // and is not locked
	node := mustOpen(t, store.Options{Dir: dir, Node: true})
	put(t, node, "k", "1")
	if err := node.Close(); err != nil {
		t.Fatal(err)
	}
	refused()
	node = mustOpen(t, store.Options{Dir: dir, Node: true})
	if err := errors.Join(node.SetNode(false), node.SetNode(false), node.Close()); err != nil {
		t.Fatal(err)
	}
	if got := read(t, mustOpen(t, store.Options{Dir: dir}), "k"); got != "1" {
		t.Errorf("alone again, k reads %q", got)
	}
}

func TestAStoreThatIsNotAloneMarksItsDirectory(t *testing.T) {
	dir := t.TempDir()
	log := store.NewSimLog(nil)
	defer log.Close()
	s, err := log.Open(store.Options{Dir: dir}, 100)
	if err != nil {
		t.Fatal(err)
	}
	put(t, s, "k", "1")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if s, err := store.Open(store.Options{Dir: dir}); !errors.Is(err, store.ErrNode) {
		t.Errorf("opened %v, %v", s, err)
	}
	if info, err := os.Stat(filepath.Join(dir, "cluster-node")); err != nil || info.Mode().Perm() != 0o600 && runtime.GOOS != "windows" {
		t.Errorf("the mark is %v, %v", info, err)
	}
}

func TestAStoreInMemoryIsNotANode(t *testing.T) {
	if err := mustOpen(t, store.Options{}).SetNode(true); err == nil {
		t.Error("it was marked")
	}
}
