// Package space reserves disk space for a commit before Badger gets the commit, so that a
// full disk is an error of that commit. Otherwise a write to a mapped file that does not
// fit would end the process.
//
// A Reserver belongs to one open database. It never writes content: it reserves parts of
// files, and creates the log that Badger continues with.
package space
