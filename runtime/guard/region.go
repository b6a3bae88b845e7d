package guard

import (
	"errors"
	"unsafe"
)

// Region is the address space of one memory. One goroutine uses it at a time.
type Region struct {
	// Memory are the addresses that the memory can have. Which of them can be accessed says Open.
	Memory []byte

	slot int
}

// Base returns the address of the memory, also of an empty one.
func (r *Region) Base() uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(r.Memory))) }

// ExecutionContext returns where the compiler's runtime stores the address of the execution context
// while code of the region runs, and zero otherwise.
func (r *Region) ExecutionContext() *uintptr { return &running[r.slot].context }

// ErrNone means that all regions are in use.
var ErrNone = errors.New("all regions for guarded memories are in use")
