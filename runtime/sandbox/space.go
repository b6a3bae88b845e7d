package sandbox

import (
	"errors"

	"golang.org/x/sys/unix"

	"runner.example/runtime/guard"
)

// space is the address space of one memory. It begins as zeros; nothing of it is allocated before it is
// written. Parts of it may be mapped from an image.
type space interface {
	// reserve returns the addresses of so many bytes.
	reserve(bytes uint64) ([]byte, error)
	// open lets the guest access the first size bytes of them. It could access have.
	open(have, size uint64) error
	// release unmaps the memory. No code may access it any more.
	release()
}

// mappedSpace is memory whose accesses are compared with its size: the process could access all of it.
type mappedSpace struct{ region []byte }

func (s *mappedSpace) reserve(bytes uint64) (_ []byte, err error) {
	// The address space of a process is large enough for some hundred thousand of these,
	// and no page is allocated before it is written.
	s.region, err = unix.Mmap(-1, 0, int(bytes), unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE)
	if err != nil {
		return nil, err
	}
	// The kernel would clear a whole huge page for the first byte that is written.
	_ = unix.Madvise(s.region, unix.MADV_NOHUGEPAGE) // fails if the kernel has no huge pages
	return s.region, nil
}

func (s *mappedSpace) open(uint64, uint64) error { return nil }

func (s *mappedSpace) release() {
	if err := unix.Munmap(s.region); err != nil {
		panic("BUG: unmap a sandbox's memory: " + err.Error())
	}
}

// guardedSpace is memory beyond whose size an access faults.
type guardedSpace struct{ *guard.Region }

func (s *guardedSpace) reserve(bytes uint64) (_ []byte, err error) {
	if s.Region, err = guard.Take(bytes); errors.Is(err, guard.ErrNone) {
		return nil, errNoMemory
	} else if err != nil {
		return nil, err
	}
	return s.Memory, nil
}

func (s *guardedSpace) open(have, size uint64) error { return s.Open(have, size) }

func (s *guardedSpace) release() { s.Release() }

// newSpace returns the address space for a memory.
func (e *Engine) newSpace() space {
	if e.optimizations.guard {
		return &guardedSpace{}
	}
	return &mappedSpace{}
}
