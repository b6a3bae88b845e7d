//go:build unix

package fileinfo

import (
	"io/fs"
	"os"
	"syscall"
)

// ID returns a number that the file has as long as it exists, and that no other file of its file system has
// meanwhile; 0: unknown.
func ID(info fs.FileInfo) uint64 {
	if more, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(more.Ino)
	}
	return 0
}

// Private reports whether only the process's user and root can use the file or directory.
func Private(info fs.FileInfo) bool {
	owner, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(owner.Uid) == os.Getuid() && info.Mode().Perm()&0o077 == 0
}
