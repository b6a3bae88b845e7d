//go:build unix

package process

import (
	"time"

	"golang.org/x/sys/unix"
)

// CPUTime returns the CPU time of the process.
func CPUTime() time.Duration {
	var used unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_SELF, &used) // it cannot fail with these arguments
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// ThreadTime returns the CPU time of the thread, to a microsecond or less. known is false if the system cannot tell.
func ThreadTime() (used time.Duration, known bool) {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		return 0, false
	}
	return time.Duration(t.Nano()), true
}
