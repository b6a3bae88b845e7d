package process

import (
	"time"

	"golang.org/x/sys/windows"
)

// CPUTime returns the CPU time of the process.
func CPUTime() time.Duration {
	var created, exited, kernel, user windows.Filetime
	_ = windows.GetProcessTimes(windows.CurrentProcess(), &created, &exited, &kernel, &user) // it cannot fail with these arguments
	return duration(kernel) + duration(user)
}

// duration is that of a Filetime that does not stand for a date, in units of 100 ns.
func duration(t windows.Filetime) time.Duration {
	return time.Duration(int64(t.HighDateTime)<<32|int64(t.LowDateTime)) * 100
}

// ThreadTime returns the CPU time of the thread, to a microsecond or less. known is false if the system cannot tell.
func ThreadTime() (used time.Duration, known bool) { return 0, false }

// ThreadID returns a number that no other thread of the process has meanwhile.
func ThreadID() int { return int(windows.GetCurrentThreadId()) }

// ThreadFaults counts the page faults of the thread; -1: the system cannot tell.
func ThreadFaults() int64 { return -1 }
