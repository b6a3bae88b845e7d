package memory

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

func replace(pages []byte, fill func([]byte) error) error {
	size := uintptr(len(pages))
	mem, err := unix.MmapPtr(-1, 0, nil, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return err
	}
	copied := unsafe.Slice((*byte)(mem), len(pages))
	if err = fill(copied); err == nil {
		if err = unix.Mprotect(copied, unix.PROT_READ); err == nil {
			_, err = unix.MremapPtr(mem, size, unsafe.Pointer(&pages[0]), size, unix.MREMAP_MAYMOVE|unix.MREMAP_FIXED)
		}
	}
	if err != nil {
		_ = unix.MunmapPtr(mem, size)
	}
	return err
}

func release(pages []byte) { _ = unix.Madvise(pages, unix.MADV_DONTNEED) }
