package clock

import "time"

// Uptime returns the time since the machine was booted, suspension included. It never goes back, and it
// cannot be set. ok is false if the system does not tell. On Windows it advances in steps of about 16 ms.
func Uptime() (d time.Duration, ok bool) { return uptime() }

// Boot identifies the boot that Uptime counts from; empty: unknown, as on Windows.
func Boot() string { return boot() }

// Synchronized reports whether the system says that its clock is synchronized with a time server. Only Linux
// says so; without the permission to ask it is false.
func Synchronized() bool { return synchronized() }
