// Package gcpace chooses how much the heap grows between two runs of the garbage collector.
//
// By default the heap doubles. Most of a runner's heap are the store's memtables. They have no
// pointers, so the collector need not follow them, and their memory is used only as rows are
// written. But they count as heap: a server that uses 15 MB of memory would make 85 MB of garbage
// before the first collection.
package gcpace
