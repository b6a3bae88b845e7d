package pages

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// reserve returns the addresses of n bytes of zeros, of which none is allocated before it is written.
func reserve(n uint64) ([]byte, error) {
	// The address space of a process is large enough for some hundred thousand of these.
	at, err := unix.MmapPtr(-1, 0, nil, uintptr(n), unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE)
	if err != nil {
		return nil, err
	}
	b := unsafe.Slice((*byte)(at), n)
	// The kernel would clear a whole huge page for the first byte that is written.
	_ = unix.Madvise(b, unix.MADV_NOHUGEPAGE) // fails if the kernel has no huge pages
	return b, nil
}

// commit makes reserved pages usable. They are zeros if they were not committed since they were reserved or decommitted.
func commit([]byte) error { return nil }

// decommit releases pages. They must not be used until they are committed again.
func decommit(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	if err := unix.Madvise(b, unix.MADV_DONTNEED); err != nil {
		return fmt.Errorf("release memory: %w", err)
	}
	return nil
}

// protect makes pages readable only.
func protect(b []byte) error { return unix.Mprotect(b, unix.PROT_READ) }

// free ends the use of addresses, all that were reserved at once.
func free(b []byte) error { return unix.MunmapPtr(unsafe.Pointer(&b[0]), uintptr(len(b))) }
