package datadir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Make makes the directory unless it exists, for its owner alone. It refuses the directory
// of another user: its owner could not read what this process would write there as root.
func Make(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	owner := info.Sys().(*syscall.Stat_t).Uid
	if uid := os.Geteuid(); int(owner) != uid {
		return fmt.Errorf(
			"the directory belongs to user %d, and this process runs as user %d: run as its owner, or give the directory and its content to this user (chown -R)",
			owner, uid)
	}
	return os.Chmod(dir, 0o700)
}

// Restrict makes all files below dir accessible to their owner alone. Badger creates files
// as the umask of the process leaves them, in directories that only the owner can enter.
func Restrict(dir string) error {
	return filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil {
			mode := fs.FileMode(0o600)
			if e.IsDir() {
				mode = 0o700
			}
			err = os.Chmod(path, mode)
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil // Badger deletes what it has recovered meanwhile
		}
		return err
	})
}
