package clock

import (
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

func uptime() (time.Duration, bool) {
	var now unix.Timespec
	err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &now)
	return time.Duration(now.Nano()), err == nil
}

func boot() string {
	id, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(id))
}

func synchronized() bool {
	const timeError = 5 // TIME_ERROR of adjtimex(2)
	var buf unix.Timex
	state, err := unix.Adjtimex(&buf)
	return err == nil && state != timeError && buf.Status&unix.STA_UNSYNC == 0
}
