//go:build unix

package disk_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"runner.example/internal/system/disk"
)

func TestTheModeOfAPrivateFileIsChecked(t *testing.T) {
	path := write(t, filepath.Join(t.TempDir(), "file"), "text")
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	if err := disk.CheckPrivate(path); err == nil || !strings.Contains(err.Error(), "(mode 0640): run chmod 600") {
		t.Errorf("%v", err)
	}
}

func TestAPipeIsNotWaitedFor(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	if err := unix.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		f, err := os.OpenFile(path, os.O_RDONLY|disk.NoWait, 0)
		if err == nil {
			err = f.Close()
		}
		done <- err
	}()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(10 * time.Second):
		t.Error("it waits for a writer")
	}
}
