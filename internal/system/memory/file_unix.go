//go:build unix

package memory

import (
	"os"

	"golang.org/x/sys/unix"
)

// Map returns the bytes of a file, which must not be written, and which the file must keep until Unmap.
func Map(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	return unix.Mmap(int(f.Fd()), 0, int(info.Size()), unix.PROT_READ, unix.MAP_SHARED)
}

// Unmap ends the use of what Map returned.
func Unmap(b []byte) error { return unix.Munmap(b) }
