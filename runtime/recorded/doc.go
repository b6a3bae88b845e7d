// Package recorded keeps Recordings of runs as files of one node.
//
// A file is encrypted (AES-256-GCM) with a key that is derived from the pepper of the node. Its name is the id of the
// request, with the suffix ".f" for a failure or ".s" for a sample. Keep queues a Recording for one goroutine and returns at once: when the
// queue or the disk is full, Recordings are lost, and a log line says so. Nothing else depends on the files.
//
// The oldest files are deleted when there are too many or they take too much space. Expired files are deleted too.
package recorded
