package sandbox

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// osPage is the size of a page of the kernel, which tracks writes by page.
var osPage = uint64(os.Getpagesize())

// image is the memory that every request of a module finds: what the module's
// initialization left. It is a sealed memory file that no process can change. All sandboxes
// of the module map private copies of it.
type image struct {
	fd      int
	size    uint64 // bytes, in whole pages of the guest
	view    []byte // the image, read-only
	budget  *budget
	charged int64 // bytes taken from the budget
}

// newImage copies memory, and takes what that needs from the budget. Pages of zeros need
// nothing.
func newImage(memory []byte, b *budget) (_ *image, err error) {
	filled := int64(0)
	for at := uint64(0); at < uint64(len(memory)); at += osPage {
		if !isZero(memory[at : at+osPage]) {
			filled += int64(osPage)
		}
	}
	if !b.take(filled, b.limit) {
		return nil, errNoMemory
	}
	im := &image{fd: -1, size: uint64(len(memory)), budget: b, charged: filled}
	defer func() {
		if err != nil {
			im.close()
		}
	}()
	fd, err := unix.MemfdCreate("sandbox", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, fmt.Errorf("make an image: %w", err)
	}
	im.fd = fd
	if err := unix.Ftruncate(fd, int64(len(memory))); err != nil {
		return nil, fmt.Errorf("size an image: %w", err)
	}
	for at := uint64(0); at < im.size; at += osPage {
		page := memory[at : at+osPage]
		if isZero(page) {
			continue
		}
		if n, err := unix.Pwrite(fd, page, int64(at)); err != nil || n != len(page) {
			return nil, fmt.Errorf("write an image (%d of %d bytes): %w", n, len(page), err)
		}
	}
	const never = unix.F_SEAL_SEAL | unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_WRITE
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, never); err != nil {
		return nil, fmt.Errorf("seal an image: %w", err)
	}
	if im.size == 0 {
		return im, nil
	}
	if im.view, err = unix.Mmap(fd, 0, len(memory), unix.PROT_READ, unix.MAP_SHARED); err != nil {
		return nil, fmt.Errorf("map an image: %w", err)
	}
	return im, nil
}

// close releases the image. Sandboxes that map it keep their copies.
func (im *image) close() {
	if im.view != nil {
		if err := unix.Munmap(im.view); err != nil {
			panic("BUG: unmap an image: " + err.Error())
		}
	}
	if im.fd >= 0 {
		if err := unix.Close(im.fd); err != nil {
			panic("BUG: close an image: " + err.Error())
		}
	}
	im.budget.give(im.charged)
}
