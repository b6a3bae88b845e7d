//go:build unix

package disk

import (
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

const (
	noWait   = unix.O_NONBLOCK | unix.O_NOCTTY
	noFollow = unix.O_NOFOLLOW
)

func open(path string, flag int, perm fs.FileMode) (*os.File, error) {
	return os.OpenFile(path, flag, perm)
}
