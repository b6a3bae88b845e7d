package disk

import (
	"errors"
	"io"
	"io/fs"
	"math"
	"os"

	"golang.org/x/sys/windows"
)

const canReserve = false

func isFull(err error) bool {
	return errors.Is(err, windows.ERROR_DISK_FULL) || errors.Is(err, windows.ERROR_HANDLE_DISK_FULL) ||
		errors.Is(err, windows.ERROR_DISK_QUOTA_EXCEEDED)
}

func space(dir string) (free, total int64, err error) {
	name, err := windows.UTF16PtrFromString(dir)
	if err != nil {
		return 0, 0, err
	}
	var freeBytes, totalBytes uint64
	if err := windows.GetDiskFreeSpaceEx(name, &freeBytes, &totalBytes, nil); err != nil {
		return 0, 0, &fs.PathError{Op: "GetDiskFreeSpaceEx", Path: dir, Err: err}
	}
	if totalBytes == 0 {
		return math.MaxInt64, 0, nil
	}
	return int64(min(freeBytes, math.MaxInt64)), int64(min(totalBytes, math.MaxInt64)), nil
}

func hole(f *os.File) (at, size int64, err error) {
	size, err = f.Seek(0, io.SeekEnd)
	return size, size, err
}

func reserve(f *os.File, off, n int64) error { return nil }
