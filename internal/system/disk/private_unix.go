//go:build unix

package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

func checkOwner(dir string) error {
	var s unix.Stat_t
	if err := unix.Stat(dir, &s); err != nil {
		return &fs.PathError{Op: "stat", Path: dir, Err: err}
	}
	if uid := os.Geteuid(); int(s.Uid) != uid {
		return fmt.Errorf(
			"the directory belongs to user %d, and this process runs as user %d: run as its owner, or give the directory and its content to this user (chown -R)",
			s.Uid, uid)
	}
	return nil
}

func createPrivate(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, privateMode(false))
}

func makePrivate(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	return os.Chmod(path, privateMode(info.IsDir()))
}

func makeTreePrivate(dir string) error {
	return filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil {
			err = os.Chmod(path, privateMode(e.IsDir()))
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
}

func privateMode(dir bool) fs.FileMode {
	if dir {
		return 0o700
	}
	return 0o600
}

func checkPrivate(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return fmt.Errorf("is accessible to users other than its owner (mode %04o): run chmod %o on it", mode, privateMode(info.IsDir()))
	}
	return nil
}
