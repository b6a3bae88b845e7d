package sandbox

import (
	"fmt"

	"github.com/tetratelabs/wazero/experimental"
	"golang.org/x/sys/unix"
)

// memory is the linear memory of one sandbox: address space for all that the
// guest may ever have, of which the kernel gives zeroed pages as they are
// touched. It lies outside the Go heap, so the collector neither scans nor
// copies it.
type memory struct {
	region []byte
	// refused is set when the guest asked for more than the limit.
	refused bool
}

// reserveMemory maps a memory that may grow to the given size.
func reserveMemory(bytes int64) (*memory, error) {
	region, err := unix.Mmap(-1, 0, int(bytes), unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE)
	if err != nil {
		return nil, fmt.Errorf("reserve %s of memory for a sandbox: %w", size(bytes), err)
	}
	return &memory{region: region}, nil
}

// release gives the memory back. Nothing of the guest may run any more.
func (m *memory) release() {
	if err := unix.Munmap(m.region); err != nil {
		panic("BUG: unmap a sandbox's memory: " + err.Error())
	}
	m.region = nil
}

// Allocate hands the memory to the one instance it was reserved for.
func (m *memory) Allocate(_, _ uint64) experimental.LinearMemory { return m }

// Reallocate gives the memory its new size in place; nil refuses.
func (m *memory) Reallocate(size uint64) []byte {
	if size > uint64(len(m.region)) {
		m.refused = true
		return nil
	}
	return m.region[:size:size]
}

// Free does nothing: it is called while the guest is still being unwound, or,
// when an instance could not be made, not at all. Who reserved releases.
func (m *memory) Free() {}
