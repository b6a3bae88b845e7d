// Package backup writes, checks and restores backups of a node: its rows, keys, sessions and
// audit, and the blobs. The pepper is not in a backup, only a check value of it, so a stolen
// backup verifies no token. Nothing in a backup is encrypted.
//
// A backup begins with two lines of text: the format, and a Head as JSON. package store/frame
// describes the rest.
package backup
