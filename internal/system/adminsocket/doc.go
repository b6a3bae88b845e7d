// Package adminsocket connects processes of one user on one machine, through a name in a directory.
//
// On Linux and macOS the name is a Unix socket with the mode 0600, or a link to one. On Windows it is a file with the name
// of a named pipe that only the user of the listener may open; the pipe's name is random, so that no other user can
// create it first. A client checks which user answers: its own, or the owner of the directory. It refuses others.
//
// All functions may be called by all goroutines.
package adminsocket
