package sandbox

import (
	"fmt"
	"unsafe"

	"github.com/tetratelabs/wazero/experimental"
	"golang.org/x/sys/unix"
)

// memory is the linear memory of one sandbox: address space for all that the
// guest may ever have.
//
//	0 ............ image.size ............ size ............ len(region)
//	private copy of the image | zeros, as grown | not the guest's
//
// The kernel gives pages as they are touched, and a page that was written once
// stays the sandbox's own: restoring puts the right bytes back into it, which
// costs far less than to fault it in again. All of it lies outside the Go heap,
// so the collector neither scans nor copies it.
type memory struct {
	region []byte
	most   uint64   // what the guest may have; the region may be longer
	image  *image   // nil: the memory begins as zeros, and cannot be restored
	watch  *watcher // nil: the page table tells which pages were written
	budget *budget

	size    uint64 // what the guest has
	high    uint64 // the largest size since the last restore
	reached uint64 // the largest size since pages were given back
	charged int64  // bytes taken from the budget
	tail    int64  // bytes behind the image that are still the sandbox's own
	// shrinking makes the next Reallocate give the image's size, whatever is
	// asked for.
	shrinking bool
	// refused is set when the guest asked for more than it may have.
	refused bool

	scan scanner
}

// reserve maps a memory that may grow to most bytes.
func (m *memory) reserve(most uint64, b *budget) error {
	// An eighth of the address space of a process would already be a hundred
	// thousand sandboxes; nothing of it is taken before it is touched.
	region, err := unix.Mmap(-1, 0, int(max(most, pageBytes)), unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE)
	if err != nil {
		return fmt.Errorf("reserve %d KiB of memory for a sandbox: %w", most>>10, err)
	}
	// A huge page would be cleared whole for the first byte written to it.
	_ = unix.Madvise(region, unix.MADV_NOHUGEPAGE) // a kernel without them refuses
	*m = memory{region: region, most: most, budget: b}
	return nil
}

// release gives the memory back. Nothing of the guest may run any more.
func (m *memory) release() {
	if m.region == nil {
		return
	}
	if err := unix.Munmap(m.region); err != nil {
		panic("BUG: unmap a sandbox's memory: " + err.Error())
	}
	m.budget.give(m.charged)
	*m = memory{}
}

// attach maps a private copy of the image at the memory's beginning, whatever
// was there. The guest must have exactly as much memory as the image. w watches for changed
// pages, unless it is nil.
func (m *memory) attach(im *image, w *watcher) error {
	if m.size != im.size {
		return fmt.Errorf("attach an image of %d bytes to a memory of %d", im.size, m.size)
	}
	if im.size > 0 {
		_, err := unix.MmapPtr(im.fd, 0, unsafe.Pointer(&m.region[0]), uintptr(im.size),
			unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_FIXED|unix.MAP_NORESERVE)
		if err != nil {
			return fmt.Errorf("attach an image: %w", err)
		}
	}
	m.image, m.high, m.reached = im, im.size, max(m.reached, im.size)
	m.watch = w
	if w == nil || im.size == 0 {
		return nil
	}
	return w.add(m.region[:im.size])
}

// Allocate hands the memory to the one instance it was reserved for.
func (m *memory) Allocate(_, _ uint64) experimental.LinearMemory { return m }

// Reallocate gives the memory its new size in place; nil refuses.
func (m *memory) Reallocate(size uint64) []byte {
	if m.shrinking {
		size = m.image.size
	}
	if size > m.most || !m.charge(int64(size)) {
		m.refused = true
		return nil
	}
	m.size, m.high, m.reached = size, max(m.high, size), max(m.reached, size)
	return m.region[:size:size]
}

// Free does nothing: it is called while the guest is still being unwound, or,
// when an instance could not be made, not at all. Who reserved releases.
func (m *memory) Free() {}

// cost is what a memory of so many bytes takes, with the pages behind the image
// that are the sandbox's own: they lie within a memory that grew over them.
func (m *memory) cost(size int64) int64 {
	if m.image == nil {
		return size + m.tail
	}
	return max(size, int64(m.image.size)+m.tail)
}

// charge takes what a memory of so many bytes costs from the budget.
func (m *memory) charge(size int64) bool {
	more := m.cost(size) - m.charged
	if more <= 0 {
		return true
	}
	if !m.budget.take(more) {
		return false
	}
	m.charged += more
	return true
}

// settle gives back what was charged for memory that is no longer there.
func (m *memory) settle() {
	if less := m.charged - m.cost(int64(m.size)); less > 0 {
		m.budget.give(less)
		m.charged -= less
	}
}

// restore makes all bytes those of the image again, and zeros behind it. The
// guest must already have no more memory than the image. With more than keep
// private pages all of them are given back to the kernel.
func (m *memory) restore(keep int) error {
	m.refused, m.tail = false, 0
	pages, err := m.scan.restore(m, keep)
	if err != nil {
		return err
	}
	if pages > keep {
		return m.trim()
	}
	m.high = m.size
	m.settle()
	return nil
}

// trim restores by giving every page of the sandbox's own back.
func (m *memory) trim() error {
	if m.reached > 0 {
		if err := unix.Madvise(m.region[:m.reached], unix.MADV_DONTNEED); err != nil {
			return fmt.Errorf("give memory back: %w", err)
		}
	}
	if m.watch != nil && m.image.size > 0 { // the pages lost their marks
		if err := m.watch.mark(m.region[:m.image.size]); err != nil {
			return err
		}
	}
	m.tail, m.high, m.reached = 0, m.size, m.size
	m.settle()
	return nil
}

// put restores one range of pages.
func (m *memory) put(from, to uint64) {
	if from < m.image.size {
		end := min(to, m.image.size)
		copy(m.region[from:end], m.image.view[from:end])
		from = end
	}
	if from < to {
		clear(m.region[from:to])
		m.tail += int64(to - from)
	}
}
