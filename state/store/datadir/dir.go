package datadir

import (
	"os"

	"runner.example/internal/system/disk"
)

// Make makes the directory unless it exists, for its owner alone. It refuses the directory
// of another user: its owner could not read what this process would write there as root.
func Make(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if err := disk.CheckOwner(dir); err != nil {
		return err
	}
	return disk.MakePrivate(dir)
}

// Restrict makes all files below dir accessible to their owner alone. Badger creates files
// as the umask of the process leaves them, in directories that only the owner can enter.
func Restrict(dir string) error { return disk.MakeTreePrivate(dir) } // Badger deletes what it has recovered meanwhile
