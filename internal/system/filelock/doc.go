// Package filelock locks files and directories against other processes.
//
// A lock is exclusive, belongs to an open file (flock, on Windows LockFileEx), and ends with the process
// however that ends. A second open file of the same process does not get it either. It is advisory: it
// does not prevent that others read and write the file.
package filelock
