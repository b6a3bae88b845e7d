//go:build unix

package disk

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

func rename(from, to string) error { return os.Rename(from, to) }

func renameNew(from, to string) error {
	err := renameExclusive(from, to)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.ENOTSUP) { // NFS, for example
		if err = unix.Link(from, to); err == nil {
			return os.Remove(from)
		}
	}
	if err != nil {
		return &os.LinkError{Op: "rename", Old: from, New: to, Err: err}
	}
	return nil
}

func renameDir(from, to string) error {
	if err := unix.Rename(from, to); err != nil { // os.Rename does not replace an empty directory
		return &os.LinkError{Op: "rename", Old: from, New: to, Err: err}
	}
	return nil
}

func isMountPoint(dir string) (bool, error) {
	here, err := device(dir)
	if err != nil {
		return false, err
	}
	above, err := device(dir + "/..")
	return err == nil && here != above, err
}

func device(path string) (uint64, error) {
	var s unix.Stat_t
	if err := unix.Lstat(path, &s); err != nil {
		return 0, &fs.PathError{Op: "lstat", Path: path, Err: err}
	}
	return uint64(s.Dev), nil
}
