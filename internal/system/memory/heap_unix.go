//go:build unix

package memory

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

func allocate(n int) []byte {
	at, err := unix.MmapPtr(-1, 0, nil, uintptr(n), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE|populate)
	if err != nil {
		return nil
	}
	return unsafe.Slice((*byte)(at), n)
}

func free(pages []byte) {
	if err := unix.MunmapPtr(unsafe.Pointer(&pages[0]), uintptr(len(pages))); err != nil {
		panic("BUG: memory: munmap: " + err.Error())
	}
}
