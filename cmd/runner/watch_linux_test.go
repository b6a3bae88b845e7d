package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// watch returns a function that waits until a process opens a file in the data directory of
// app: a command that checks whether the store is free.
func watch(t *testing.T, app string) (seen func()) {
	t.Helper()
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := unix.InotifyAddWatch(fd, filepath.Join(app, "data"), unix.IN_OPEN); err != nil {
		t.Fatal(err)
	}
	events := os.NewFile(uintptr(fd), "inotify")
	t.Cleanup(func() { _ = events.Close() })
	return func() {
		t.Helper()
		for buf := make([]byte, 4096); ; {
			n, err := events.Read(buf)
			if err != nil {
				t.Fatal(err)
			}
			if bytes.Contains(buf[:n], []byte("lock\x00")) {
				return
			}
		}
	}
}
