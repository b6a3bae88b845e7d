package disk

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	// blockBytes is the unit of st_blocks (stat(2)).
	blockBytes = 512
	// allocatePersist is F_ALLOCATEPERSIST: the space stays reserved when the file is closed.
	allocatePersist = 8
)

func reserve(f *os.File, off, n int64) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	// F_PREALLOCATE allocates after the last block of the file, also if that was reserved: what the file has is not
	// reserved again. A file with holes has fewer blocks than its size says.
	end := info.Size()
	if more, ok := info.Sys().(*syscall.Stat_t); ok {
		end = max(end, more.Blocks*blockBytes)
	}
	beyond := off + n - end
	if beyond <= 0 {
		return nil
	}
	for {
		err := unix.FcntlFstore(f.Fd(), unix.F_PREALLOCATE, &unix.Fstore_t{
			Flags: unix.F_ALLOCATEALL | allocatePersist, Posmode: unix.F_PEOFPOSMODE, Length: beyond,
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
