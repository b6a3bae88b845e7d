//go:build wasip1

package runner

import "syscall"

// The time zones of the machine are the only files of a handler. For wasip1, package time
// has no default directory for them, so ZONEINFO names it.
func init() {
	if _, set := syscall.Getenv("ZONEINFO"); !set {
		_ = syscall.Setenv("ZONEINFO", "/usr/share/zoneinfo")
	}
}
