package disk

// Rename moves a file to another name in the same file system. A file of that name is replaced in one step:
// who opens it gets all of the old one or all of the new one. On Windows the old file may be open if all
// its handles are from Open; Rename waits up to a second for others, such as those of a virus scanner.
func Rename(from, to string) error { return rename(from, to) }

// RenameNew moves a file to a name that does not exist. If it exists the error matches fs.ErrExist.
func RenameNew(from, to string) error { return renameNew(from, to) }

// RenameDir moves a directory to another name in the same file system. It replaces an empty directory there,
// on Windows in two steps. If that has files the error matches fs.ErrExist.
func RenameDir(from, to string) error { return renameDir(from, to) }

// IsMountPoint reports whether the directory dir is the root of a mounted file system.
func IsMountPoint(dir string) (bool, error) { return isMountPoint(dir) }
