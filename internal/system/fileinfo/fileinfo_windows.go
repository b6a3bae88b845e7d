package fileinfo

import "io/fs"

// ID returns a number that the file has as long as it exists, and that no other file of its file system has
// meanwhile; 0: unknown. Windows tells it of open files only.
func ID(fs.FileInfo) uint64 { return 0 }

// Private reports whether only the process's user and administrators can use the file or directory. On Windows this is
// so below the user's profile, where nobody else may write, and not checked elsewhere.
func Private(fs.FileInfo) bool { return true }
