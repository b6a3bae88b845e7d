package pages

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// reserve returns the addresses of n bytes of zeros, of which none is allocated before it is used.
func reserve(n uint64) ([]byte, error) {
	at, err := mapZeros(nil, uintptr(n), 0)
	if err != nil {
		return nil, err
	}
	return unsafe.Slice((*byte)(at), n), nil
}

func mapZeros(at unsafe.Pointer, n uintptr, more int) (unsafe.Pointer, error) {
	return unix.MmapPtr(-1, 0, at, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE|more)
}

// commit makes reserved pages usable. They are zeros if they were not committed since they were reserved or decommitted.
func commit([]byte) error { return nil }

// decommit releases pages. They must not be used until they are committed again. Pages that are released by madvise
// may keep their bytes on macOS, so others are mapped there.
func decommit(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	if _, err := mapZeros(unsafe.Pointer(&b[0]), uintptr(len(b)), unix.MAP_FIXED); err != nil {
		return fmt.Errorf("release memory: %w", err)
	}
	return nil
}

// protect makes pages readable only.
func protect(b []byte) error { return unix.Mprotect(b, unix.PROT_READ) }

// free ends the use of addresses, all that were reserved at once.
func free(b []byte) error { return unix.MunmapPtr(unsafe.Pointer(&b[0]), uintptr(len(b))) }
