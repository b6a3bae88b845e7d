package sandbox

import (
	"encoding/binary"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"

	"runner.example/runtime/pages"
)

// PageOut moves the memory of idle sandboxes to swap space, and returns how many pages are there.
func (m *Module) PageOut() (swapped int, err error) {
	table, err := os.Open("/proc/self/pagemap")
	if err != nil {
		return 0, err
	}
	defer table.Close()
	m.pool.mu.Lock()
	defer m.pool.mu.Unlock()
	for _, s := range m.pool.idle {
		region := s.memory.Bytes()[:s.memory.Size()]
		if err := unix.Madvise(region, unix.MADV_PAGEOUT); err != nil {
			return 0, err
		}
		entries := make([]byte, uint64(len(region))/pages.Size*8)
		first := uint64(uintptr(unsafe.Pointer(&region[0]))) / pages.Size
		if _, err := table.ReadAt(entries, int64(first*8)); err != nil {
			return 0, err
		}
		for ; len(entries) > 0; entries = entries[8:] {
			if binary.LittleEndian.Uint64(entries)>>62&1 == 1 {
				swapped++
			}
		}
	}
	return swapped, nil
}
