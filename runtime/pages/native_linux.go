package pages

import (
	"errors"
	"fmt"
	"math"
	"unsafe"

	"golang.org/x/sys/unix"

	"runner.example/runtime/guard"
)

// nativeSystem maps private copies of memory files, and asks the kernel for written pages.
type nativeSystem struct {
	table  int // descriptor of the page table, which both finders need; -1 if it cannot be read
	broken error
	watch  *watcher // nil: pages are found by the page table
}

func openNative() System {
	s := &nativeSystem{}
	s.table, s.broken = openTable()
	return s
}

func (s *nativeSystem) Guards() bool      { return true }
func (s *nativeSystem) Finders() []Finder { return []Finder{ByMarks, ByTable} }

func (s *nativeSystem) Finder() Finder {
	if s.watch != nil {
		return ByMarks
	}
	return ByTable
}

func (s *nativeSystem) Use(f Finder) (err error) {
	if s.watch != nil {
		s.watch.close()
		s.watch = nil
	}
	switch {
	case s.broken != nil:
		return s.broken
	case f == ByMarks:
		s.watch, err = openWatcher()
	case f != ByTable:
		err = fmt.Errorf("native memory is not found by %s", f)
	}
	return err
}

func (s *nativeSystem) Close() error {
	if s.watch != nil {
		s.watch.close()
	}
	if s.table < 0 {
		return nil
	}
	return unix.Close(s.table)
}

func (s *nativeSystem) Reserve(bytes uint64, guarded bool) (m Memory, err error) {
	n := &nativeStore{system: s, scan: scanner{table: s.table}}
	m.store = n
	if !guarded {
		m.bytes, err = reserve(bytes)
		n.all = m.bytes
	} else if n.region, err = guard.Take(bytes); err == nil {
		m.bytes, m.guard = n.region.Memory, n.region
	}
	if err != nil {
		return Memory{}, err
	}
	return m, nil
}

// NewImage makes a sealed memory file that no process can change. Pages of zeros need nothing.
func (s *nativeSystem) NewImage(memory []byte) (_ *Image, err error) {
	im := &Image{file: -1, release: releaseFile}
	defer func() {
		if err != nil {
			err = errors.Join(err, releaseFile(im))
		}
	}()
	fd, err := unix.MemfdCreate("sandbox", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, fmt.Errorf("make an image: %w", err)
	}
	im.file = fd
	if err := unix.Ftruncate(fd, int64(len(memory))); err != nil {
		return nil, fmt.Errorf("size an image: %w", err)
	}
	for at := uint64(0); at < uint64(len(memory)); at += Size {
		page := memory[at : at+Size]
		if isZero(page) {
			continue
		}
		if n, err := unix.Pwrite(fd, page, int64(at)); err != nil || n != len(page) {
			return nil, fmt.Errorf("write an image (%d of %d bytes): %w", n, len(page), err)
		}
	}
	const never = unix.F_SEAL_SEAL | unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_WRITE
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, never); err != nil {
		return nil, fmt.Errorf("seal an image: %w", err)
	}
	if len(memory) == 0 {
		return im, nil
	}
	if im.bytes, err = unix.Mmap(fd, 0, len(memory), unix.PROT_READ, unix.MAP_SHARED); err != nil {
		return nil, fmt.Errorf("map an image: %w", err)
	}
	return im, nil
}

func releaseFile(im *Image) (err error) {
	if im.bytes != nil {
		err = unix.Munmap(im.bytes)
	}
	if im.file >= 0 {
		err = errors.Join(err, unix.Close(im.file))
	}
	return err
}

// nativeStore keeps a memory whose beginning is a private mapping of the image's file. The kernel allocates pages when
// they are written, and a written page stays private. A restore copies the image's bytes to it, which costs far less
// than another page fault.
type nativeStore struct {
	system *nativeSystem
	all    []byte        // the addresses, unless the memory is guarded
	region *guard.Region // nil: the memory is not guarded
	watch  *watcher      // nil: the page table shows which pages were written
	scan   scanner
}

func (s *nativeStore) open(have, size uint64) error {
	if s.region == nil {
		return nil // accesses are compared with the size
	}
	return s.region.Open(have, size)
}

func (s *nativeStore) attach(m *Memory) error {
	size := m.image.Size()
	if size > 0 {
		_, err := unix.MmapPtr(m.image.file, 0, unsafe.Pointer(&m.bytes[0]), uintptr(size),
			unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_FIXED|unix.MAP_NORESERVE)
		if err != nil {
			return fmt.Errorf("attach an image: %w", err)
		}
	}
	s.watch = s.system.watch
	if s.watch == nil || size == 0 {
		return nil
	}
	return s.watch.add(m.bytes[:size])
}

func (s *nativeStore) restore(m *Memory, keep int, faulted bool) (pages int, err error) {
	pages, err = s.scan.restore(m, s.watch != nil, keep, faulted)
	if err == nil && pages > keep {
		err = m.Trim()
	}
	return pages, err
}

func (s *nativeStore) review(m *Memory) bool { return s.scan.review(m) }

func (s *nativeStore) trim(m *Memory) error {
	if err := decommit(m.bytes[:m.reached]); err != nil {
		return err
	}
	if s.watch != nil && m.image.Size() > 0 { // the pages lost their marks
		if err := s.watch.mark(m.bytes[:m.image.Size()]); err != nil {
			return err
		}
	}
	s.scan.found, s.scan.all = s.scan.found[:0], true
	return nil
}

func (s *nativeStore) written(m *Memory) int {
	if s.watch == nil {
		return -1
	}
	pages, err := s.scan.walkWatched(m, math.MaxInt, false)
	if err != nil {
		return -1
	}
	return pages
}

func (s *nativeStore) known() (pages int) {
	for _, r := range s.scan.found {
		pages += int((r.to - r.from) / Size)
	}
	return pages
}

func (s *nativeStore) release() {
	if s.region != nil {
		s.region.Release()
	} else if err := free(s.all); err != nil {
		panic("BUG: unmap a sandbox's memory: " + err.Error())
	}
}
