package process

import "os"

// ForServers reports whether the system is one that servers run on, and not only authors: Linux.
func ForServers() bool { return forServers }

// FileLimit returns how many files the process may have open. known is false if the system has no such limit.
func FileLimit() (files uint64, known bool, err error) { return fileLimit() }

// OpenFiles counts the open files of the process; 0: unknown.
func OpenFiles() int { return openFiles() }

// SetUmask sets the permissions that new files do not get, and returns the previous ones. On Windows it does nothing:
// new files get the access list of their directory.
func SetUmask(mask int) (previous int) { return setUmask(mask) }

// EndBy does what s does by default: it ends the process. No channel may be notified of s any more.
func EndBy(s os.Signal) { endBy(s) }

// KeepBrokenPipes makes a write to a pipe that nobody reads fail with an error, where it would end the process.
func KeepBrokenPipes() { keepBrokenPipes() }

// Terminal reports whether f, which is for output, is a terminal that understands escape sequences. On Windows it switches them on.
func Terminal(f *os.File) bool { return terminal(f) }

// User returns the user that the process runs as: "uid:1000", on Windows "sid:S-1-5-21-…".
func User() string { return user() }
