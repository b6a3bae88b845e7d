// Package datadir keeps the files of a data directory that are the store's own and not
// Badger's: the lock, the commit mark, the cluster mark and the blobs.
//
// Errors of the package say what is wrong and not what it means for the store: package
// store decides which of them are damage.
package datadir
