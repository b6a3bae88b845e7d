package disk

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

func reserve(f *os.File, off, n int64) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	beyond := off + n - info.Size()
	if beyond <= 0 {
		return nil
	}
	for {
		err := unix.FcntlFstore(f.Fd(), unix.F_PREALLOCATE, &unix.Fstore_t{
			Flags: unix.F_ALLOCATEALL, Posmode: unix.F_PEOFPOSMODE, Length: beyond,
		})
		switch {
		case err == unix.EINTR:
		case errors.Is(err, errors.ErrUnsupported), err == unix.EINVAL:
			return nil
		default:
			return os.NewSyscallError("fcntl F_PREALLOCATE", err)
		}
	}
}
