package filelock_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"runner.example/internal/system/filelock"
)

// openFile opens a file as another process would.
func openFile(t *testing.T, path string) *os.File {
	t.Helper()
	return opened(t)(os.Open(path))
}

// openDir opens a directory likewise.
func openDir(t *testing.T, path string) *os.File {
	t.Helper()
	return opened(t)(filelock.OpenDir(path, "lock"))
}

func opened(t *testing.T) func(*os.File, error) *os.File {
	return func(f *os.File, err error) *os.File {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return f
	}
}

func TestOneOpenFileHasTheLock(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, open := range []func() *os.File{
		func() *os.File { return openDir(t, dir) },
		func() *os.File { return openFile(t, file) },
	} {
		first, second := open(), open()
		if err := filelock.Try(first); err != nil {
			t.Fatal(err)
		}
		if err := filelock.Try(second); err != filelock.ErrHeld {
			t.Errorf("a second file: %v", err)
		}
		if err := filelock.Unlock(first); err != nil {
			t.Fatal(err)
		}
		if err := filelock.Try(second); err != nil {
			t.Errorf("after Unlock: %v", err)
		}
		if err := second.Close(); err != nil {
			t.Fatal(err)
		}
		if err := filelock.Try(first); err != nil {
			t.Errorf("after Close: %v", err)
		}
		if err := filelock.Try(second); err == nil || errors.Is(err, filelock.ErrHeld) {
			t.Errorf("a closed file: %v", err)
		}
	}
}

func TestTheLockIsWaitedFor(t *testing.T) {
	dir := t.TempDir()
	first, second := openDir(t, dir), openDir(t, dir)
	if err := filelock.Wait(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if err := filelock.Wait(ended, second); !errors.Is(err, context.Canceled) {
		t.Errorf("the context has ended: %v", err)
	}
	done := make(chan error)
	go func() { done <- filelock.Wait(t.Context(), second) }()
	if err := filelock.Unlock(first); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	if err := filelock.Try(first); err != filelock.ErrHeld {
		t.Errorf("the waiting file has not got the lock: %v", err)
	}
}

func TestALockedFileCanBeReadAndWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte("before"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := filelock.Try(openFile(t, path)); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("after"), 0o600); err != nil {
		t.Error(err)
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "after" {
		t.Errorf("read %q: %v", text, err)
	}
}
