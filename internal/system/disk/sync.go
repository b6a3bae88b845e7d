package disk

import "os"

// SyncData writes the content of f to the disk, and its size if that has changed. It is cheaper than f.Sync on
// Linux, and the same elsewhere.
func SyncData(f *os.File) error { return syncData(f) }

// SyncDir makes the names in a directory durable: those of new, renamed and removed files. Windows may
// write them later on file systems that cannot sync a directory; the journal of NTFS keeps their order,
// so after a loss of power each name is the old or the new one.
func SyncDir(path string) error { return syncDir(path) }
