package pages

import (
	"encoding/binary"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// scanner finds the pages of a memory that were written. It has the buffers that the
// kernel writes to, so that a restore allocates nothing.
type scanner struct {
	table   int // file descriptor of /proc/self/pagemap
	arg     scanArg
	regions [32]pageRegion
	entries []byte // of the pagemap
	// found are the pages that the last restore found, in order. If all is false, there may
	// be more.
	found []pageRange
	all   bool
	// restores is the number of restores since the last review.
	restores int
}

// A page that was written stays private, and each restore copies to it, which costs a tenth
// of another page fault. Every reviewEvery restores they are compared with the image: if
// there are at least reviewPages and most have not changed, an earlier request wrote to
// them.
const (
	reviewEvery = 256
	reviewPages = 16
)

// pageRange are pages of a memory, as offsets.
type pageRange struct{ from, to uint64 }

// The arguments of the ioctl PAGEMAP_SCAN (linux/fs.h).
type scanArg struct {
	size, flags      uint64
	start, end       uint64
	walkEnd          uint64
	vec, vecLen      uint64
	maxPages         uint64
	categoryInverted uint64
	categoryMask     uint64
	categoryAnyOf    uint64
	returnMask       uint64
}

type pageRegion struct{ start, end, categories uint64 }

const (
	pagemapScan = 0xc0606610

	pageIsWritten = 1 << 1
	pageIsPresent = 1 << 3
	pageIsSwapped = 1 << 4
	pageIsPfnZero = 1 << 5
)

// openTable opens the page table of this process. It is not an os.File, whose finalizer
// would close it.
func openTable() (int, error) {
	fd, err := unix.Open("/proc/self/pagemap", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("open the page table: %w", err)
	}
	return fd, nil
}

// restore copies the image back to every page of m that was written, and returns their
// number. It stops when there are more than keep.
func (s *scanner) restore(m *Memory, watched bool, keep int, faulted bool) (pages int, err error) {
	if s.all && !faulted && m.high == m.image.Size() {
		for _, r := range s.found {
			m.put(r.from, r.to)
			pages += int((r.to - r.from) / Size)
		}
		return pages, nil
	}
	m.searches++
	s.found, s.all = s.found[:0], false
	if watched {
		pages, err = s.walkWatched(m, keep, true)
	} else {
		pages, err = s.restoreByTable(m, keep)
	}
	s.all = err == nil && pages <= keep && m.high == m.image.Size()
	return pages, err
}

// review reports whether it is time to release the pages that were found. It is called
// before a restore.
func (s *scanner) review(m *Memory) bool {
	if s.restores++; s.restores < reviewEvery || !s.all {
		return false
	}
	s.restores = 0
	pages, changed := 0, 0
	for _, r := range s.found {
		for at := r.from; at < r.to; at += Size {
			if pages++; !m.Same(at) {
				changed++
			}
		}
	}
	return pages >= reviewPages && changed < pages/2
}

// put restores pages that were found.
func (s *scanner) put(m *Memory, from, to uint64) {
	m.put(from, to)
	if last := len(s.found) - 1; last >= 0 && s.found[last].to == from {
		s.found[last].to = to
		return
	}
	s.found = append(s.found, pageRange{from, to})
}

// walkWatched asks the kernel for the pages that were written since they were marked
// (Linux 6.7), and puts the image's bytes there if restore is set. The kernel's page of zeros does not
// count. A scan may stop before the end; it continues where it stopped.
func (s *scanner) walkWatched(m *Memory, keep int, restore bool) (pages int, err error) {
	if m.high == 0 {
		return 0, nil
	}
	base := addressOf(m.bytes)
	s.arg = scanArg{
		size: uint64(unsafe.Sizeof(s.arg)), start: base, end: base + m.high,
		vec: uint64(uintptr(unsafe.Pointer(&s.regions[0]))), vecLen: uint64(len(s.regions)),
		categoryMask: pageIsWritten | pageIsPfnZero, categoryInverted: pageIsPfnZero,
		categoryAnyOf: pageIsPresent | pageIsSwapped,
	}
	for {
		n, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(s.table), pagemapScan, uintptr(unsafe.Pointer(&s.arg)))
		switch {
		case errno == unix.EINTR:
			continue
		case errno != 0:
			return pages, fmt.Errorf("scan a sandbox's pages: %w", errno)
		}
		for _, r := range s.regions[:n] {
			if pages += int((r.end - r.start) / Size); pages > keep {
				return pages, nil
			}
			if restore {
				s.put(m, r.start-base, r.end-base)
			}
		}
		if s.arg.walkEnd >= s.arg.end {
			return pages, nil
		}
		if s.arg.walkEnd <= s.arg.start {
			return pages, fmt.Errorf("scan a sandbox's pages: no progress at %d of %d", s.arg.walkEnd-base, m.high)
		}
		s.arg.start = s.arg.walkEnd
	}
}

// Bits of an entry of the pagemap.
const (
	entryPresent = 1 << 63
	entrySwapped = 1 << 62
	entryFile    = 1 << 61
)

// restoreByTable reads the page table for pages that are private, on kernels that cannot
// watch. The table does not tell the kernel's page of zeros from other private pages, so
// pages behind the image are checked for zeros: these are only counted.
func (s *scanner) restoreByTable(m *Memory, keep int) (pages int, err error) {
	if s.entries == nil {
		s.entries = make([]byte, 8*512)
	}
	first := addressOf(m.bytes) / Size
	for at := uint64(0); at < m.high; {
		want := min(uint64(len(s.entries)), (m.high-at)/Size*8)
		n, err := unix.Pread(s.table, s.entries[:want], int64((first+at/Size)*8))
		if err == unix.EINTR {
			continue
		}
		if err != nil || n < 8 {
			return pages, fmt.Errorf("read the page table (%d bytes): %w", n, err)
		}
		for i := 0; i+8 <= n; i, at = i+8, at+Size {
			entry := binary.LittleEndian.Uint64(s.entries[i:])
			if entry&(entryPresent|entrySwapped) == 0 || entry&entryFile != 0 {
				continue
			}
			if pages++; pages > keep {
				return pages, nil
			}
			if at >= m.image.Size() && isZero(m.bytes[at:at+Size]) {
				m.tail += int64(Size)
				continue
			}
			s.put(m, at, at+Size)
		}
	}
	return pages, nil
}

// put restores one range of pages.
func (m *Memory) put(from, to uint64) {
	if from < m.image.Size() {
		end := min(to, m.image.Size())
		copy(m.bytes[from:end], m.image.bytes[from:end])
		from = end
	}
	if from < to {
		clear(m.bytes[from:to])
		m.tail += int64(to - from)
	}
}
