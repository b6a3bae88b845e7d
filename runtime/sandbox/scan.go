package sandbox

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// method is a way to find the pages of a memory that are no longer the image's.
type method uint8

const (
	// byWatching asks the kernel for the pages that were written to since they
	// were marked (Linux 6.7).
	byWatching method = iota
	// byScan asks the kernel for the pages that are private (Linux 6.7). It looks
	// at each page that is there, which takes three times as long.
	byScan
	// byTable reads the same out of /proc/self/pagemap.
	byTable
	// byComparing looks at every byte, and needs nothing of the kernel.
	byComparing
)

func (m method) String() string {
	return [...]string{"watching", "PAGEMAP_SCAN", "pagemap", "comparing"}[m]
}

// scanner finds pages that have become private. It holds what the kernel writes
// to, so that a restore allocates nothing.
type scanner struct {
	table   int // file descriptor of /proc/self/pagemap
	arg     scanArg
	regions [32]pageRegion
	entries []byte // of the pagemap
}

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
	pageIsFile    = 1 << 2
	pageIsPresent = 1 << 3
	pageIsSwapped = 1 << 4
	pageIsPfnZero = 1 << 5
)

// openTable opens the page table of this process. It is no os.File, whose
// finalizer would close it.
func openTable() (int, error) {
	fd, err := unix.Open("/proc/self/pagemap", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("open the page table: %w", err)
	}
	return fd, nil
}

// restore puts the image back into every page of m that is not the image's, and
// returns how many those are; when more than keep it stops.
func (s *scanner) restore(m *memory, keep int) (pages int, err error) {
	switch m.find {
	case byWatching:
		return s.byKernel(m, keep, pageIsWritten, 0)
	case byScan:
		return s.byKernel(m, keep, 0, pageIsFile)
	case byTable:
		return s.byTable(m, keep)
	}
	return byBytes(m, keep), nil
}

// byKernel: a page is the sandbox's own when it is of the one category and not
// of the other, is not the kernel's page of zeros, and is in memory or swapped
// out. A scan may stop before the end; it goes on where it stopped.
func (s *scanner) byKernel(m *memory, keep int, with, without uint64) (pages int, err error) {
	if m.high == 0 {
		return 0, nil
	}
	base := addressOf(m.region)
	s.arg = scanArg{
		size: uint64(unsafe.Sizeof(s.arg)), start: base, end: base + m.high,
		vec: uint64(uintptr(unsafe.Pointer(&s.regions[0]))), vecLen: uint64(len(s.regions)),
		categoryMask: with | without | pageIsPfnZero, categoryInverted: without | pageIsPfnZero,
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
			if pages += int((r.end - r.start) / osPage); pages > keep {
				return pages, nil
			}
			m.put(r.start-base, r.end-base)
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

// byTable is byScan for kernels that cannot scan. It cannot tell the kernel's
// page of zeros from a page of the sandbox's own, so it looks before it clears.
func (s *scanner) byTable(m *memory, keep int) (pages int, err error) {
	if s.entries == nil {
		s.entries = make([]byte, 8*512)
	}
	first := addressOf(m.region) / osPage
	for at := uint64(0); at < m.high; {
		want := min(uint64(len(s.entries)), (m.high-at)/osPage*8)
		n, err := unix.Pread(s.table, s.entries[:want], int64((first+at/osPage)*8))
		if err == unix.EINTR {
			continue
		}
		if err != nil || n < 8 {
			return pages, fmt.Errorf("read the page table (%d bytes): %w", n, err)
		}
		for i := 0; i+8 <= n; i, at = i+8, at+osPage {
			entry := binary.LittleEndian.Uint64(s.entries[i:])
			if entry&(entryPresent|entrySwapped) == 0 || entry&entryFile != 0 {
				continue
			}
			if at >= m.image.size && isZero(m.region[at:at+osPage]) {
				continue
			}
			if pages++; pages > keep {
				return pages, nil
			}
			m.put(at, at+osPage)
		}
	}
	return pages, nil
}

// byBytes compares. Only pages that differ are written to, and counted.
func byBytes(m *memory, keep int) (pages int) {
	for at := uint64(0); at < m.high; at += osPage {
		if m.same(at) {
			continue
		}
		if pages++; pages > keep {
			return pages
		}
		m.put(at, at+osPage)
	}
	return pages
}

// same tells whether the page at an offset is as it was before the run.
func (m *memory) same(at uint64) bool {
	page := m.region[at : at+osPage]
	if at < m.image.size {
		return bytes.Equal(page, m.image.view[at:at+osPage])
	}
	return isZero(page)
}

func isZero(b []byte) bool {
	for ; len(b) >= 8; b = b[8:] {
		if binary.LittleEndian.Uint64(b) != 0 {
			return false
		}
	}
	return true
}
