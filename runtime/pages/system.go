package pages

import (
	"encoding/binary"
	"os"
)

// Size is the size of a page of the system, in bytes.
var Size = uint64(os.Getpagesize())

// The kinds of systems.
const (
	Native   = "native"
	Portable = "portable"
)

// Finder is a way to find the pages that were written since the last restore.
type Finder string

const (
	// ByMarks: the kernel marks pages, and clears the mark at the first write (Linux 6.7).
	ByMarks Finder = "marks"
	// ByTable: the page table of the process tells which pages are private.
	ByTable Finder = "table"
	// ByComparison: pages that differ from the image were written.
	ByComparison Finder = "comparison"
)

// System makes images and memories. Any goroutine may use it, but Use must not be called beside other methods.
type System interface {
	// Reserve reserves the addresses of a memory of up to so many bytes, a multiple of Size. Nothing is allocated
	// before it is written. An access beyond the size of a guarded memory faults (package guard): the error matches
	// guard.ErrNone if there are too many. Release the memory.
	Reserve(bytes uint64, guarded bool) (Memory, error)
	// NewImage copies a memory, whose length is a multiple of Size. Close the image.
	NewImage(memory []byte) (*Image, error)
	// Guards reports whether memories can be guarded, unless that fails at a try.
	Guards() bool
	// Finders are those that the system has, the best first. They may fail.
	Finders() []Finder
	// Use selects the finder of memories that get their image later.
	Use(Finder) error
	// Finder returns the one that is in use.
	Finder() Finder
	// Close releases the System. Its memories must be released before, its images may be closed later.
	Close() error
}

// Open returns a System of a kind. Where the operating system has no other, Native is Portable too.
func Open(kind string) System {
	if kind == Native {
		return openNative()
	}
	return portableSystem{}
}

// Image is what memories begin with. It never changes, and any goroutine may read it.
type Image struct {
	bytes   []byte
	file    int // descriptor of the memory file that it is kept in; -1: none
	release func(*Image) error
}

// Bytes returns the image's bytes, which cannot be written. They are valid until Close.
func (im *Image) Bytes() []byte { return im.bytes }

// Size is the number of bytes.
func (im *Image) Size() uint64 { return uint64(len(im.bytes)) }

// Close releases the image. Memories must not be used after that, except to be released.
func (im *Image) Close() {
	if err := im.release(im); err != nil {
		panic("BUG: close an image: " + err.Error())
	}
}

// Filled is how many bytes of a memory are in pages that have others than zeros.
func Filled(memory []byte) (bytes int64) {
	for at := uint64(0); at < uint64(len(memory)); at += Size {
		if !isZero(memory[at : at+Size]) {
			bytes += int64(Size)
		}
	}
	return bytes
}

// store is how a System keeps one memory. Its methods are called by the goroutine that has the memory.
type store interface {
	// open lets the first size bytes be accessed, of which have could. Others need not be refused.
	open(have, size uint64) error
	// attach puts the image over the beginning of the memory, which has only zeros, or the image's bytes.
	attach(m *Memory) error
	// restore is Memory.Restore, but for what is the same everywhere.
	restore(m *Memory, keep int, faulted bool) (pages int, err error)
	// review reports whether to trim the memory instead of restoring it.
	review(m *Memory) bool
	// trim makes all of the memory as it was before the first run, and releases pages.
	trim(m *Memory) error
	// written counts the pages that were written; -1: it cannot tell.
	written(m *Memory) int
	// known is Memory.Known.
	known() int
	release()
}

func isZero(b []byte) bool {
	for ; len(b) >= 8; b = b[8:] {
		if binary.LittleEndian.Uint64(b) != 0 {
			return false
		}
	}
	return true
}
