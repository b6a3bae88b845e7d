//go:build unix

package rusage

import (
	"time"

	"golang.org/x/sys/unix"
)

// Process returns the CPU time of the process.
func Process() time.Duration {
	var used unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_SELF, &used) // it cannot fail with these arguments
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// Thread returns the CPU time of the thread, to a microsecond or less. known is false if the system cannot tell.
func Thread() (used time.Duration, known bool) {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		return 0, false
	}
	return time.Duration(t.Nano()), true
}
