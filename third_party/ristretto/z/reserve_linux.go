package z

import (
	"os"

	"golang.org/x/sys/unix"
)

// Reserve has the file system set aside n bytes of f from off, beyond its end
// too, so that a write to a mapping of them does not fail for lack of room. The
// size of f stays as it is. If it fails, a part may have been set aside. The
// error matches errors.ErrUnsupported where the file system cannot do so.
func Reserve(f *os.File, off, n int64) error {
	fd := int(f.Fd())
	for {
		err := unix.Fallocate(fd, unix.FALLOC_FL_KEEP_SIZE, off, n)
		if err == unix.EINTR {
			continue
		}
		return os.NewSyscallError("fallocate", err)
	}
}

// Release unmaps the pages of b, a mapping of a file that begins with a page. They stay in
// the page cache, with what was written to them, and are mapped again when they are touched.
// So it changes nothing but the memory of the process.
func Release(b []byte) { _ = unix.Madvise(b, unix.MADV_DONTNEED) }

// mapMemory returns n bytes of zeroed memory, nil if there is none.
func mapMemory(n int) []byte {
	b, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return nil
	}
	return b
}

// unmapMemory unmaps b if mapMemory returned it.
func unmapMemory(b []byte) { _ = unix.Munmap(b) }
