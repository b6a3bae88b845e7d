package credtime

import (
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"runner.example/internal/clock"
)

// Machine is where the time of a machine comes from. The zero value asks the kernel; a
// test sets Wall and Uptime together. Any goroutine may call the functions.
type Machine struct {
	// Wall returns the wall clock's time, which can be set to anything.
	Wall func() time.Time
	// Uptime returns the time since the machine was booted, suspension included. It
	// never goes back and cannot be set.
	Uptime func() time.Duration
	// Boot identifies the boot that Uptime counts from; empty: unknown.
	Boot string
	// Synchronized reports whether the wall clock is synchronized with a time server.
	Synchronized func() bool
}

func (m Machine) withDefaults() Machine {
	if m.Wall == nil {
		m.Wall = clock.System
	}
	if m.Uptime == nil {
		m.Uptime = uptime
		if id, err := os.ReadFile("/proc/sys/kernel/random/boot_id"); err == nil {
			m.Boot = strings.TrimSpace(string(id))
		}
	}
	if m.Synchronized == nil {
		m.Synchronized = synchronized
	}
	return m
}

var started = clock.Mark()

func uptime() time.Duration {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &now); err != nil {
		return time.Since(started) // a kernel without it: suspension is not counted
	}
	return time.Duration(now.Nano())
}

// synchronized asks the kernel whether its clock is synchronized. Without the permission
// to ask it returns false.
func synchronized() bool {
	const timeError = 5 // TIME_ERROR of adjtimex(2)
	var buf unix.Timex
	state, err := unix.Adjtimex(&buf)
	return err == nil && state != timeError && buf.Status&unix.STA_UNSYNC == 0
}
