package harness

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// SmallDisk mounts a new file system of the given kind (tmpfs or ext4) and size at dir until
// the test ends. It skips the test if it may not mount. Remount changes its options.
func SmallDisk(t testing.TB, kind, dir string, size int64) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("only root can mount the small file system of this test")
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	mount := []string{"-t", "tmpfs", "-o", fmt.Sprintf("size=%d", size), "none", dir}
	if kind == "ext4" {
		image := filepath.Join(t.TempDir(), "image")
		if err := os.WriteFile(image, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(image, size); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command("mkfs.ext4", "-q", "-m", "0", image).CombinedOutput(); err != nil {
			t.Skipf("cannot make an ext4 file system: %v: %s", err, out)
		}
		mount = []string{"-o", "loop", image, dir}
	}
	if out, err := exec.Command("mount", mount...).CombinedOutput(); err != nil {
		t.Skipf("cannot mount a %s: %v: %s", kind, err, out)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
}

// Remount mounts a SmallDisk again with an option such as ro.
func Remount(t testing.TB, dir, option string) {
	t.Helper()
	if out, err := exec.Command("mount", "-o", "remount,"+option, dir).CombinedOutput(); err != nil {
		t.Fatalf("remount %s with %s: %v: %s", dir, option, err, out)
	}
}

// FillDisk writes a file until the disk is full.
func FillDisk(t testing.TB, path string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for n := 1 << 20; n >= 1; n /= 16 {
		for err == nil {
			_, err = f.Write(make([]byte, n))
		}
		if !errors.Is(err, syscall.ENOSPC) {
			t.Fatal(err)
		}
		err = nil
	}
}
