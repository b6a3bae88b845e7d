package disk

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

func reserve(f *os.File, off, n int64) error {
	for {
		switch err := unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_KEEP_SIZE, off, n); {
		case err == unix.EINTR:
		case errors.Is(err, errors.ErrUnsupported):
			return nil
		default:
			return os.NewSyscallError("fallocate", err)
		}
	}
}
