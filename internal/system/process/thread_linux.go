package process

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// ThreadID returns a number that no other thread of the process has meanwhile.
func ThreadID() int { return unix.Gettid() }

// ThreadFaults counts the page faults of the thread; -1: the system cannot tell.
func ThreadFaults() int64 {
	var used unix.Rusage
	_, _, errno := unix.RawSyscall(unix.SYS_GETRUSAGE, unix.RUSAGE_THREAD, uintptr(unsafe.Pointer(&used)), 0)
	if errno != 0 {
		panic("BUG: count page faults: " + errno.Error())
	}
	return used.Minflt + used.Majflt
}
