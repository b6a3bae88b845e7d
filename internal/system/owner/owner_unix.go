//go:build unix

package owner

import (
	"io/fs"
	"syscall"
)

// UID returns the number of the user that a file belongs to. known is false if the system has no such numbers.
func UID(info fs.FileInfo) (uid int, known bool) {
	if of, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(of.Uid), true
	}
	return 0, false
}

// OpenToOthers reports whether the permissions of a file let other users read or write it.
func OpenToOthers(info fs.FileInfo) bool { return info.Mode().Perm()&0o077 != 0 }
