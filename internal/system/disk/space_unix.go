//go:build unix

package disk

import (
	"io"
	"io/fs"
	"math"
	"os"

	"golang.org/x/sys/unix"
)

const canReserve = true

func isFull(error) bool { return false }

func space(dir string) (free, total int64, err error) {
	var s unix.Statfs_t
	for {
		switch err := unix.Statfs(dir, &s); err {
		case nil:
			if s.Blocks == 0 {
				return math.MaxInt64, 0, nil
			}
			return int64(s.Bavail) * int64(s.Bsize), int64(s.Blocks) * int64(s.Bsize), nil
		case unix.EINTR:
		default:
			return 0, 0, &fs.PathError{Op: "statfs", Path: dir, Err: err}
		}
	}
}

func hole(f *os.File) (at, size int64, err error) {
	if size, err = f.Seek(0, io.SeekEnd); err != nil {
		return 0, 0, err
	}
	if at, err = f.Seek(0, unix.SEEK_HOLE); err != nil {
		at = size // a file system that has none
	}
	return min(at, size), size, nil
}
