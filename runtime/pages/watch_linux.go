package pages

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// watcher has the kernel mark the pages of a memory and clear the mark at the first write
// (Linux 6.7: userfaultfd with asynchronous write protection). So the kernel finds the
// written pages without looking at each page. The guest does not wait for a watcher.
type watcher struct{ fd int }

// The structures and numbers of userfaultfd(2), from linux/userfaultfd.h.
type (
	watchAPI     struct{ api, features, ioctls uint64 }
	watchRange   struct{ start, len, mode, ioctls uint64 }
	watchProtect struct{ start, len, mode uint64 }
)

const (
	watchUserMode = 1 // without faults of the kernel itself

	watchSetAPI    = 0xc018aa3f
	watchRegister  = 0xc020aa00
	watchMark      = 0xc018aa06
	watchVersion   = 0xaa
	watchForWrites = 1 << 1
	watchSet       = 1 << 0

	// Any memory, pages that are not allocated yet, and no events.
	watchFeatures = 1<<0 | 1<<12 | 1<<13 | 1<<15
)

// openWatcher asks the kernel for a watcher.
func openWatcher() (*watcher, error) {
	fd, _, errno := unix.Syscall(unix.SYS_USERFAULTFD, unix.O_CLOEXEC|unix.O_NONBLOCK|watchUserMode, 0, 0)
	if errno != 0 {
		return nil, fmt.Errorf("watch memory: %w", errno)
	}
	w := &watcher{int(fd)}
	api := watchAPI{api: watchVersion, features: watchFeatures}
	if err := w.control(watchSetAPI, unsafe.Pointer(&api)); err != nil {
		w.close()
		return nil, err
	}
	return w, nil
}

func (w *watcher) control(what uintptr, argument unsafe.Pointer) error {
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(w.fd), what, uintptr(argument)); errno != 0 {
		return fmt.Errorf("watch memory: %w", errno)
	}
	return nil
}

// add begins to watch a mapping, and marks all of it. It ends when the mapping is unmapped.
func (w *watcher) add(b []byte) error {
	r := watchRange{start: addressOf(b), len: uint64(len(b)), mode: watchForWrites}
	if err := w.control(watchRegister, unsafe.Pointer(&r)); err != nil {
		return err
	}
	return w.mark(b)
}

// mark marks all pages of a watched mapping again.
func (w *watcher) mark(b []byte) error {
	p := watchProtect{start: addressOf(b), len: uint64(len(b)), mode: watchSet}
	return w.control(watchMark, unsafe.Pointer(&p))
}

func (w *watcher) close() {
	if err := unix.Close(w.fd); err != nil {
		panic("BUG: close a watcher: " + err.Error())
	}
}

func addressOf(b []byte) uint64 { return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(b)))) }
