package credtime

import (
	"time"

	"runner.example/internal/clock"
	system "runner.example/internal/system/clock"
)

// Machine is where the time of a machine comes from. The zero value asks the system; a
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
		m.Boot = system.Boot()
	}
	if m.Synchronized == nil {
		m.Synchronized = system.Synchronized
	}
	return m
}

var started = clock.Mark()

func uptime() time.Duration {
	if up, ok := system.Uptime(); ok {
		return up
	}
	return time.Since(started) // suspension is not counted
}
