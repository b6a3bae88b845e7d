package memory

import (
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// CanMoveCode reports whether MoveCode works.
const CanMoveCode = true

// MoveCode replaces the memory of native code, which begins at a page, by an equal file. The system reads its pages
// when they are used, and may drop them when memory is scarce. Other threads may run the code meanwhile. After an error
// it is where it was.
func MoveCode(code []byte, f *os.File) error {
	length := uintptr(len(code))
	mapped, err := unix.MmapPtr(int(f.Fd()), 0, nil, length, unix.PROT_READ|unix.PROT_EXEC, unix.MAP_PRIVATE)
	if err != nil {
		return err // such as a file system whose files must not run
	}
	_, err = unix.MremapPtr(mapped, length, unsafe.Pointer(&code[0]), length, unix.MREMAP_MAYMOVE|unix.MREMAP_FIXED)
	if err != nil {
		panic("BUG: move native code to a file: " + err.Error()) // it may be unmapped
	}
	return nil
}
