package filelock_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"runner.example/internal/filelock"
)

// open opens path as another process would.
func open(t *testing.T, path string) *os.File {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func TestOneOpenFileHasTheLock(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{dir, file} {
		first, second := open(t, path), open(t, path)
		if err := filelock.Try(first); err != nil {
			t.Fatal(err)
		}
		if err := filelock.Try(first); err != nil {
			t.Errorf("the holder again: %v", err)
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
	first, second := open(t, dir), open(t, dir)
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
