package clock

import (
	"time"

	"golang.org/x/sys/unix"
)

// uptime reads the clock of mach_continuous_time.
func uptime() (time.Duration, bool) {
	var now unix.Timespec
	err := unix.ClockGettime(unix.CLOCK_MONOTONIC_RAW, &now)
	return time.Duration(now.Nano()), err == nil
}

func boot() string {
	id, _ := unix.Sysctl("kern.bootsessionuuid")
	return id
}

func synchronized() bool { return false }
