//go:build wasip1

package runner

import "syscall"

// The time zones of the machine are the only files of a handler. Package time looks for
// them where this variable says: it knows no directory for wasip1.
func init() {
	if _, set := syscall.Getenv("ZONEINFO"); !set {
		_ = syscall.Setenv("ZONEINFO", "/usr/share/zoneinfo")
	}
}
