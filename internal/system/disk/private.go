package disk

import "os"

// CheckOwner returns an error if dir belongs to another user than that of this process. It ends with what to
// do. On Windows dir may also belong to the system or the administrators.
func CheckOwner(dir string) error { return checkOwner(dir) }

// CreatePrivate creates a private file for reading and writing. It never replaces one: then the error matches
// fs.ErrExist. No other user can open the file at any time.
func CreatePrivate(path string) (*os.File, error) { return createPrivate(path) }

// MakePrivate makes a file or directory private: mode 0600 or 0700. On Windows what is in the directory, and what
// will be made there, becomes private as well.
func MakePrivate(path string) error { return makePrivate(path) }

// MakeTreePrivate makes a directory and all that is in it private. It ignores files that are removed meanwhile.
func MakeTreePrivate(dir string) error { return makeTreePrivate(dir) }

// CheckPrivate returns an error if users other than the owner of the file may have access to it. It continues
// the file's name, and ends with what to do.
func CheckPrivate(path string) error { return checkPrivate(path) }
