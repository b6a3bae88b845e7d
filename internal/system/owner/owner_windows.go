package owner

import "io/fs"

// UID returns the number of the user that a file belongs to. known is false if the system has no such numbers.
func UID(fs.FileInfo) (uid int, known bool) { return 0, false }

// OpenToOthers reports whether the permissions of a file let other users read or write it. On Windows they do not say.
func OpenToOthers(fs.FileInfo) bool { return false }
