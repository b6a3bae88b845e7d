//go:build unix

package app

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

func TestANewFileHasTheModeOfTheUmask(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0))
	dir := t.TempDir()
	for umask, want := range map[int]fs.FileMode{0o002: 0o664, 0o027: 0o640, 0o077: 0o600} {
		syscall.Umask(umask)
		kept := filepath.Join(dir, "kept")
		if err := os.WriteFile(kept, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(kept, 0o604); err != nil {
			t.Fatal(err)
		}
		link := filepath.Join(dir, "link"+want.String())
		if err := os.Symlink("behind"+want.String(), link); err != nil {
			t.Fatal(err)
		}
		for path, want := range map[string]fs.FileMode{filepath.Join(dir, want.String()): want, link: want, kept: 0o604} {
			if err := WriteFile(path, []byte("text")); err != nil {
				t.Fatal(err)
			}
			if info, err := os.Stat(path); err != nil || info.Mode() != want {
				t.Errorf("umask %04o: %s is made as %v, %v; want %v", umask, filepath.Base(path), info.Mode(), err, want)
			}
		}
	}
	left, err := filepath.Glob(filepath.Join(dir, ".*-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("files that are left over: %q, %v", left, err)
	}
}
