package disk

import (
	"io/fs"
	"os"
)

// Flags for Open, os.OpenFile and os.Root.OpenFile.
const (
	// NoWait does not wait for the other end of a pipe or for a device, and does not make a terminal
	// that of the process. Windows, which has no such files among others, ignores it.
	NoWait = noWait
	// NoFollow, for Open only, refuses a symbolic link at the end of the path.
	NoFollow = noFollow
)

// Open is os.OpenFile. On Windows it also lets others remove or rename the open file, and flag may
// have O_APPEND and O_TRUNC on other systems only.
func Open(path string, flag int, perm fs.FileMode) (*os.File, error) { return open(path, flag, perm) }
