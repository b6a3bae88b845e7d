package disk

import (
	"errors"
	"os"
	"syscall"
)

// IsFull reports whether err says that the disk or a quota is full. An error of ours says so by matching
// syscall.ENOSPC.
func IsFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || isFull(err)
}

// Space returns how many bytes this process may still write in the file system of dir, and how many the
// file system has: math.MaxInt64 and 0 if it does not report that.
func Space(dir string) (free, total int64, err error) { return space(dir) }

// Hole returns the size of f, and where the first hole of a sparse file begins: at the size if it has none, or if the
// system does not tell. It moves the offset of f.
func Hole(f *os.File) (at, size int64, err error) { return hole(f) }

// CanReserve reports whether Reserve does something on this system.
const CanReserve = canReserve

// Reserve reserves space for n bytes of f from off on, in holes and beyond its end. The size of f stays as it is.
// If it fails, a part may have been reserved. It does nothing where the file system cannot do it. macOS
// reserves nothing in holes, and Windows nothing at all: NTFS reserves a file when its size is set.
func Reserve(f *os.File, off, n int64) error { return reserve(f, off, n) }
