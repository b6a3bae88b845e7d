// Package layout stores rows and index entries as keys and values of the store.
//
// A Table is the layout of the rows of one entity: which field has which number, which slot
// of a row in memory it fills, and which indexes exist. codec.go draws the bytes of a row,
// keys.go those of keys. The order of an index's keys is the order of its values.
//
// The package does not depend on callers or policies, and does not write to the store.
//
// # Goroutines and bytes
//
// A Table is immutable except for indexes that become built, and safe for concurrent use.
// The values of a decoded row are parts of the stored bytes: a row that is read in a scan is
// valid until the next one, and CloneRow copies it.
package layout
