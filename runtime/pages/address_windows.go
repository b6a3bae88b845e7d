package pages

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/windows"
)

// reserve returns the addresses of n bytes. Windows counts memory when it is committed, and not before.
func reserve(n uint64) ([]byte, error) {
	at, err := windows.VirtualAlloc(0, uintptr(n), windows.MEM_RESERVE, windows.PAGE_NOACCESS)
	if err != nil {
		return nil, err
	}
	return unsafe.Slice((*byte)(*(*unsafe.Pointer)(unsafe.Pointer(&at))), n), nil // at is no address of Go's heap
}

func addressOf(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }

// commit makes reserved pages usable. They are zeros if they were not committed since they were reserved or decommitted.
func commit(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	if _, err := windows.VirtualAlloc(addressOf(b), uintptr(len(b)), windows.MEM_COMMIT, windows.PAGE_READWRITE); err != nil {
		return fmt.Errorf("allocate memory: %w", err)
	}
	return nil
}

// decommit releases pages. They must not be used until they are committed again.
func decommit(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	if err := windows.VirtualFree(addressOf(b), uintptr(len(b)), windows.MEM_DECOMMIT); err != nil {
		return fmt.Errorf("release memory: %w", err)
	}
	return nil
}

// protect makes pages readable only.
func protect(b []byte) error {
	var before uint32
	return windows.VirtualProtect(addressOf(b), uintptr(len(b)), windows.PAGE_READONLY, &before)
}

// free ends the use of addresses, all that were reserved at once.
func free(b []byte) error { return windows.VirtualFree(addressOf(b), 0, windows.MEM_RELEASE) }
