// Package backup writes, checks and restores backups of a node: its rows, keys, sessions and
// audit, and the blobs. A backup does not contain the pepper, only a check value of it. So a
// thief of a backup cannot verify tokens. Nothing in a backup is encrypted.
//
// A backup begins with two lines of text: the format, and a Head as JSON. package state/store/frame
// describes the rest.
package backup
