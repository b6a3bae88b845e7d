package disk

import "io/fs"

// ID returns a number that the file of info has as long as it exists, and that no other file of its file system has
// meanwhile; 0: unknown, as on Windows, which tells it of open files only.
func ID(info fs.FileInfo) uint64 { return id(info) }
