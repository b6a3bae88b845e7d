package store_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"runner.example/state/store"
)

// A child has a copy of every descriptor from its fork to its exec.
func TestAClosedDirectoryIsUnlockedWhileAChildStarts(t *testing.T) {
	dir := t.TempDir()
	s := mustOpen(t, store.Options{Dir: dir})
	if n := copyDescriptors(t, dir); n < 2 {
		t.Fatalf("only %d descriptors copied", n)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	mustOpen(t, store.Options{Dir: dir})
}

// copyDescriptors copies those of the files below dir until the test ends, and
// returns how many there are.
func copyDescriptors(t *testing.T, dir string) (n int) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		t.Fatal(err)
	}
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range open {
		path, err := os.Readlink("/proc/self/fd/" + e.Name())
		if err != nil || !strings.HasPrefix(path, dir) {
			continue // closed meanwhile, or not below dir
		}
		fd, err := strconv.Atoi(e.Name())
		if err != nil {
			t.Fatal(err)
		}
		held, err := syscall.Dup(fd)
		if err != nil {
			continue
		}
		t.Cleanup(func() { _ = syscall.Close(held) })
		n++
	}
	return n
}
