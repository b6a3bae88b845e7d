package filelock

import (
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/windows"

	"runner.example/internal/system/disk"
)

// lockedByte is the byte of a file that is locked: one that no file has, because nobody else could
// read or write a locked byte.
const lockedByte = 1 << 62

func try(f *os.File) error {
	const flags = windows.LOCKFILE_EXCLUSIVE_LOCK | windows.LOCKFILE_FAIL_IMMEDIATELY
	err := windows.LockFileEx(windows.Handle(f.Fd()), flags, 0, 1, 0, at())
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) || errors.Is(err, windows.ERROR_IO_PENDING) {
		return ErrHeld
	}
	return os.NewSyscallError("LockFileEx", err)
}

func unlock(f *os.File) error {
	return os.NewSyscallError("UnlockFileEx", windows.UnlockFileEx(windows.Handle(f.Fd()), 0, 1, 0, at()))
}

func at() *windows.Overlapped {
	offset := uint64(lockedByte)
	return &windows.Overlapped{Offset: uint32(offset), OffsetHigh: uint32(offset >> 32)}
}

func openDir(dir, name string) (*os.File, error) {
	return disk.Open(filepath.Join(dir, name), os.O_RDWR|os.O_CREATE, 0o600)
}
