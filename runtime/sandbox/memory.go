package sandbox

import (
	"errors"
	"fmt"
	"math"
	"unsafe"

	"github.com/tetratelabs/wazero/experimental"
	"golang.org/x/sys/unix"

	"runner.example/internal/settings"
)

// memory is the linear memory of one sandbox: address space for the most that the guest may
// have.
//
//	0 ............ image.size ............ size ............ len(region)
//	private copy of the image | zeros, as grown | not accessible to the guest
//
// The kernel allocates pages when they are written, and a written page stays private to the
// sandbox. A restore copies the image's bytes to it, which costs far less than another page
// fault. The memory lies outside the Go heap, so the garbage collector does not scan it.
type memory struct {
	space  space
	region []byte
	limit  uint64   // of the guest; the region may be longer
	spare  uint64   // that the guest may have beyond it after it was refused memory
	image  *image   // nil: the memory begins as zeros, and cannot be restored
	watch  *watcher // nil: the page table shows which pages were written
	budget *budget

	size    uint64 // what the guest has
	high    uint64 // the largest size since the last restore
	reached uint64 // the largest size since pages were given back
	charged int64  // bytes taken from the budget
	tail    int64  // bytes of private pages behind the image
	open    uint64 // bytes that can be accessed, if the space opens them one by one
	counted bool   // chargeWritten has counted the written pages
	// shrinking makes the next Reallocate return the image's size.
	shrinking bool
	// faulted means that a run since the last restore may have written to pages that no
	// earlier run wrote to (faults.go).
	faulted bool
	// restored is how many pages the last restore copied.
	restored int
	// refused says why the guest last got no more memory; nil: it always did.
	refused  error
	refusals int

	scan scanner
}

// reserve reserves a memory that may grow to limit bytes, with spare bytes more.
func (m *memory) reserve(in space, limit, spare uint64, b *budget) error {
	region, err := in.reserve(max(limit+spare, pageBytes))
	if err != nil {
		return fmt.Errorf("reserve %d KiB of memory for a sandbox: %w", limit>>10, err)
	}
	*m = memory{space: in, region: region, limit: limit, spare: spare, budget: b}
	return nil
}

// release unmaps the memory. The guest must not run any more.
func (m *memory) release() {
	if m.region == nil {
		return
	}
	m.space.release()
	m.budget.give(m.charged)
	*m = memory{}
}

// attach maps a private copy of the image over the memory's beginning. The guest must have exactly
// as much memory as the image. w watches for changed pages, unless it is nil.
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
func (m *memory) Allocate(_, _ uint64) experimental.LinearMemory {
	if s, ok := m.space.(*guardedSpace); ok {
		return guardedMemory{m, s}
	}
	return m
}

// guardedMemory has the methods of both that code for guarded memories needs: see guard.Region.
type guardedMemory struct {
	*memory
	*guardedSpace
}

// Reallocate changes the size in place; nil: it is refused.
func (m *memory) Reallocate(size uint64) []byte {
	if m.shrinking {
		size = m.image.size
	}
	limit := m.limit
	if m.refusals >= refusalsBeforeSpare {
		limit += m.spare
	}
	switch {
	case size > limit:
		m.refuse("handler needed more than %s of memory ([sandbox] memory)", settings.FormatSize(int64(m.limit)))
		return nil
	case !m.charge(int64(size)):
		m.refuse("handlers needed more memory together ([sandbox] total_memory)")
		return nil
	}
	if size > m.open {
		if err := m.setOpen(size); err != nil {
			m.refuse("the system refused a handler more memory: %v", err)
			return nil
		}
	}
	m.size, m.high, m.reached = size, max(m.high, size), max(m.reached, size)
	return m.region[:size:size]
}

// setOpen lets the guest access that many bytes, and no others.
func (m *memory) setOpen(size uint64) error {
	if size == m.open {
		return nil
	}
	err := m.space.open(m.open, size)
	if err == nil {
		m.open = size
	}
	return err
}

// look calls a function that reads up to m.reached, while the guest can access only m.size bytes.
func (m *memory) look(read func() error) error {
	if err := m.setOpen(max(m.size, m.reached)); err != nil {
		return err
	}
	return errors.Join(read(), m.setOpen(m.size))
}

func (m *memory) refuse(format string, args ...any) {
	m.refused = fmt.Errorf(format, args...)
	m.refusals++
}

// Free does nothing: wazero calls it while the guest is still being unwound, or not at all
// if an instance could not be made. The sandbox calls release.
func (m *memory) Free() {}

// cost is what a memory of so many bytes takes of the budget, with the private pages behind
// the image. A memory that grew includes those pages.
func (m *memory) cost(size int64) int64 {
	if m.image == nil {
		return size + m.tail
	}
	return max(size, int64(m.image.size)+m.tail)
}

// charge takes from the budget what a memory of so many bytes costs.
func (m *memory) charge(size int64) bool {
	more := m.cost(size) - m.charged
	if more <= 0 {
		return true
	}
	if !m.budget.take(more, size) {
		return false
	}
	m.charged += more
	return true
}

// settle returns to the budget what was charged for memory that is released.
func (m *memory) settle() {
	if less := m.charged - m.cost(int64(m.size)); less > 0 {
		m.budget.give(less)
		m.charged -= less
	}
}

// countPagesFrom is the size of the smallest image whose pages chargeWritten counts. Counting takes some microseconds.
const countPagesFrom = 1 << 20

// chargeWritten charges the guest only for the pages of the image that it has written, until chargeAll. It is for a
// guest that waits: one that runs can write to any page before the host knows.
func (m *memory) chargeWritten() {
	if m.counted || m.image == nil || m.watch == nil || m.image.size < countPagesFrom {
		return
	}
	m.counted = true
	written, err := m.scan.walkWatched(m, math.MaxInt, false)
	if err != nil {
		return // all of the image stays charged
	}
	if less := min(m.charged, int64(m.image.size)) - int64(written)*int64(osPage); less > 0 {
		m.charged -= less
		m.budget.give(less)
	}
}

// chargeAll charges the guest for all of its memory again, because it runs. If the budget does not suffice, the guest
// runs uncharged. Only as many guests run at once as there are instance slots, so this is at most one image each.
func (m *memory) chargeAll() {
	if m.counted {
		m.counted = false
		m.charge(int64(m.size))
	}
}
