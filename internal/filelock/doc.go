// Package filelock locks files and directories against other processes.
//
// A lock is exclusive, belongs to an open file (flock), and ends with the process however that ends.
// A second open file of the same process does not get it either.
package filelock
