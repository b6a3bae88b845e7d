//go:build patched

package guard

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"unsafe"

	"github.com/tetratelabs/wazero/experimental"
	"golang.org/x/sys/unix"
)

// regionBytes is the address space of a region, a power of two. The handler has its logarithm.
const regionBytes = 8 << 30

// Regions is the most that there are at a time: half of the address space of a process.
const Regions = 8192

// running has the execution contexts, by region. Each is alone in a cache line.
var running [Regions]struct {
	context uintptr
	_       [56]byte
}

// What the handler reads. They do not change after it was installed.
var (
	begin, length      uintptr // of all regions
	textBegin, textEnd uintptr // of this program
	next               uintptr // the handler that was installed before
)

// handlerAddress returns the address of the handler.
func handlerAddress() uintptr

var regions struct {
	sync.Mutex
	all  []byte // their address space; nil: not reserved yet
	free []int
	made int // those before were used already
}

// reserve reserves the address space and installs the handler, once for the process.
func reserve() error {
	if regions.all != nil {
		return nil
	}
	var all []byte
	for count := Regions; ; count /= 4 {
		// One more for the alignment. Reserved address space takes no memory, and is not counted
		// as committed.
		b, err := unix.Mmap(-1, 0, (count+1)*regionBytes, unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE)
		if err == nil {
			all = b
			break
		}
		if count < 256 {
			return fmt.Errorf("reserve address space for guarded memories: %w", err)
		}
	}
	skip := -uintptr(unsafe.Pointer(&all[0])) % regionBytes
	all = all[skip : uintptr(len(all))-regionBytes+skip]
	begin, length = uintptr(unsafe.Pointer(&all[0])), uintptr(len(all))
	if err := install(); err != nil {
		return errors.Join(err, unix.Munmap(all))
	}
	regions.all = all
	return nil
}

// action is the kernel's struct sigaction.
type action struct {
	handler, flags, restorer uintptr
	mask                     uint64
}

// install installs the handler before that of Go.
func install() (err error) {
	if textBegin, textEnd, err = textOf(handlerAddress()); err != nil {
		return err
	}
	var a action
	if err := sigaction(nil, &a); err != nil {
		return err
	}
	const onStack, info, restorer = 0x08000000, 4, 0x04000000
	if a.flags&(onStack|info|restorer) != onStack|info|restorer || a.handler < 2 {
		return errors.New("the handler of SIGSEGV is not Go's")
	}
	next, a.handler = a.handler, handlerAddress()
	return sigaction(&a, nil)
}

func sigaction(set, old *action) error {
	_, _, errno := syscall.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(unix.SIGSEGV),
		uintptr(unsafe.Pointer(set)), uintptr(unsafe.Pointer(old)), unsafe.Sizeof(old.mask), 0, 0)
	if errno != 0 {
		return fmt.Errorf("install a handler of SIGSEGV: %w", errno)
	}
	return nil
}

// textOf returns the mapping of executable pages that has an address.
func textOf(address uintptr) (from, to uintptr, err error) {
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return 0, 0, err
	}
	for line := range bytes.Lines(maps) {
		if _, err := fmt.Sscanf(string(line), "%x-%x", &from, &to); err == nil && from <= address && address < to {
			return from, to, nil
		}
	}
	return 0, 0, errors.New("the text of this program is not in /proc/self/maps")
}

// Take takes a region whose memory can have so many bytes, none of which can be accessed yet. The error
// matches ErrNone if all are taken. Release it.
func Take(bytes uint64) (*Region, error) {
	regions.Lock()
	defer regions.Unlock()
	if err := reserve(); err != nil {
		return nil, err
	}
	slot := regions.made
	if last := len(regions.free) - 1; last >= 0 {
		slot, regions.free = regions.free[last], regions.free[:last]
	} else if slot*regionBytes == len(regions.all) {
		return nil, ErrNone
	} else {
		regions.made++
	}
	memory := regions.all[slot*regionBytes:][:bytes:bytes]
	_ = unix.Madvise(memory, unix.MADV_NOHUGEPAGE) // fails if the kernel has no huge pages
	_ = unix.Madvise(memory, unix.MADV_DONTDUMP)
	return &Region{Memory: memory, slot: slot}, nil
}

// Available returns how many regions there are, once one was taken.
func Available() int {
	regions.Lock()
	defer regions.Unlock()
	return len(regions.all) / regionBytes
}

// Release ends the use of a region: what was mapped there is unmapped. Its code must not run any more.
func (r *Region) Release() {
	// Never a hole: another mapping could be placed there, in reach of a guest.
	_, err := unix.MmapPtr(-1, 0, unsafe.Pointer(unsafe.SliceData(r.Memory)), uintptr(len(r.Memory)), unix.PROT_NONE,
		unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE|unix.MAP_FIXED)
	if err != nil { // such as too many mappings: its addresses are not used again
		_ = unix.Madvise(r.Memory, unix.MADV_DONTNEED)
		_ = unix.Mprotect(r.Memory, unix.PROT_NONE)
		return
	}
	regions.Lock()
	defer regions.Unlock()
	regions.free = append(regions.free, r.slot)
	r.Memory = nil
}

// Open lets the first size bytes be accessed of which have could, or only them. The size is in pages
// of the kernel.
func (r *Region) Open(have, size uint64) error {
	part, access := r.Memory[min(have, size):max(have, size)], unix.PROT_READ|unix.PROT_WRITE
	if size < have {
		access = unix.PROT_NONE
	}
	if len(part) == 0 {
		return nil
	}
	if err := unix.Mprotect(part, access); err != nil {
		if size > have { // a part of it may be accessible
			_ = unix.Mprotect(part, unix.PROT_NONE)
		}
		return fmt.Errorf("change the size of a guarded memory: %w", err)
	}
	return nil
}

// Compile returns a context with which the compiler makes code for guarded memories.
func Compile(ctx context.Context) context.Context { return experimental.WithGuardedMemories(ctx) }
