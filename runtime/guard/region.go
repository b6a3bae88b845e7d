package guard

import (
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Region is the address space of one memory. One goroutine uses it at a time.
type Region struct {
	// Memory are the addresses that the memory can have. Which of them can be accessed says Open.
	Memory []byte

	slot int
}

// Open lets the first size bytes be accessed of which have could, or only them. The size is in pages
// of the kernel.
func (r *Region) Open(have, size uint64) error {
	part, access := r.Memory[min(have, size):max(have, size)], unix.PROT_READ|unix.PROT_WRITE
	if size < have {
		access = unix.PROT_NONE
	}
	if len(part) == 0 {
		return nil
	}
	if err := unix.Mprotect(part, access); err != nil {
		if size > have { // a part of it may be accessible
			_ = unix.Mprotect(part, unix.PROT_NONE)
		}
		return fmt.Errorf("change the size of a guarded memory: %w", err)
	}
	return nil
}

// Base returns the address of the memory, also of an empty one.
func (r *Region) Base() uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(r.Memory))) }

// ExecutionContext returns where the compiler's runtime stores the address of the execution context
// while code of the region runs, and zero otherwise.
func (r *Region) ExecutionContext() *uintptr { return &running[r.slot].context }

// ErrNone means that all regions are in use.
var ErrNone = errors.New("all regions for guarded memories are in use")
