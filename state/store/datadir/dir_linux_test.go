package datadir_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"runner.example/state/store/datadir"
)

func TestADirectoryIsMadeForItsOwnerAlone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	for range 2 {
		if err := datadir.Make(dir); err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(dir); err != nil || info.Mode() != fs.ModeDir|0o700 {
			t.Fatalf("the directory has mode %v, %v", info.Mode(), err)
		}
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := datadir.Make(file); err == nil {
		t.Error("a file is taken for a directory")
	}
}

func TestADirectoryOfAnotherUserIsRefused(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can give a directory to another user")
	}
	dir := t.TempDir()
	if err := os.Chown(dir, 12345, -1); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	err := datadir.Make(dir)
	if err == nil || !strings.Contains(err.Error(), "belongs to user 12345, and this process runs as user 0") {
		t.Errorf("accepted, or refused with: %v", err)
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("its mode was changed to %v, %v", info.Mode(), err)
	}
}

func TestAllFilesAreRestrictedToTheirOwner(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "a", "b"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"x", "a/y", "a/b/z"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := datadir.Restrict(dir); err != nil {
		t.Fatal(err)
	}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		want := fs.FileMode(0o600)
		if e.IsDir() {
			want = 0o700
		}
		if info, err := e.Info(); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s has mode %v, %v", path, info.Mode(), err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// A child that this process is starting may have a copy of the descriptor. It does not hold the lock.
func TestALockIsReleasedAlsoWhileItsDescriptorHasACopy(t *testing.T) {
	dir := t.TempDir()
	l, err := datadir.Acquire(dir)
	if err != nil {
		t.Fatal(err)
	}
	copies := 0
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range open {
		if target, err := os.Readlink("/proc/self/fd/" + e.Name()); err != nil || target != dir {
			continue
		}
		fd, err := strconv.Atoi(e.Name())
		if err != nil {
			t.Fatal(err)
		}
		held, err := syscall.Dup(fd)
		if err != nil {
			t.Fatal(err)
		}
		defer syscall.Close(held)
		copies++
	}
	if copies == 0 {
		t.Fatal("the descriptor of the lock is not found")
	}
	if err := l.Release(); err != nil {
		t.Fatal(err)
	}
	again, err := datadir.Acquire(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Release(); err != nil {
		t.Fatal(err)
	}
}
