//go:build unix

package disk

import (
	"io/fs"
	"syscall"
)

func id(info fs.FileInfo) uint64 {
	if more, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(more.Ino)
	}
	return 0
}
