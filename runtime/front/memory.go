package front

import (
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

var pageBytes = os.Getpagesize()

// BodyMemory allocates n bytes for the body of the answer. They are valid until the
// exchange is over, or until the next call. Send does not copy a body in this memory. It
// counts for MaxAnswerMemory; if that is used up, BodyMemory returns nil.
func (x *Exchange) BodyMemory(n int) []byte {
	if n > len(x.memory) {
		x.freeMemory()
		x.memory = x.srv.backlog.allocate(n)
	}
	return x.memory[:min(n, len(x.memory))]
}

func (x *Exchange) freeMemory() {
	if n := len(x.memory); n > 0 {
		unmap(x.memory)
		x.memory = nil
		x.srv.backlog.giveBack(int64(n))
	}
}

// allocate returns whole pages for n bytes; nil: the limit or the memory is exhausted. They
// are outside the heap, which would keep them until the next garbage collection.
func (b *backlog) allocate(n int) []byte {
	n = (n + pageBytes - 1) / pageBytes * pageBytes
	if !b.take(int64(n)) {
		return nil
	}
	at, err := unix.MmapPtr(-1, 0, nil, uintptr(n), unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_ANON|unix.MAP_PRIVATE|unix.MAP_POPULATE)
	if err != nil {
		b.giveBack(int64(n))
		return nil
	}
	return unsafe.Slice((*byte)(at), n)
}

// unmap frees whole pages.
func unmap(pages []byte) {
	if err := unix.MunmapPtr(unsafe.Pointer(&pages[0]), uintptr(len(pages))); err != nil {
		panic("BUG: front: munmap: " + err.Error())
	}
}
