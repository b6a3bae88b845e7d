// Package space reserves what Badger will write before Badger is given a commit, so that
// a full disk is an error of that commit. Without it, a write to a mapped file that does
// not fit would end the process.
//
// A Reserver stands beside one open database. It never writes content: it reserves parts
// of files, and makes the log that Badger goes on with.
package space
