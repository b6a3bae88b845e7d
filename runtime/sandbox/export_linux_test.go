package sandbox

import (
	"encoding/binary"
	"os"
	"runtime"
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
		if err := pageOutOnEachProcessor(region); err != nil {
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

// pageOutOnEachProcessor writes the pages of a region to swap space. A page that was written to a moment ago is in a list
// of the processor that wrote it, where the kernel does not find it from another processor: madvise empties only the list
// of the processor it runs on (lru_add_drain in mm/madvise.c).
func pageOutOnEachProcessor(region []byte) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var all unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		return err
	}
	defer unix.SchedSetaffinity(0, &all)
	for n, left := 0, all.Count(); left > 0; n++ {
		if !all.IsSet(n) {
			continue
		}
		left--
		var one unix.CPUSet
		one.Set(n)
		if err := unix.SchedSetaffinity(0, &one); err != nil {
			return err
		}
		if err := unix.Madvise(region, unix.MADV_PAGEOUT); err != nil {
			return err
		}
	}
	return nil
}
