// Package gcpace chooses how much the heap grows between two runs of the garbage collector.
//
// By default the heap doubles. Most of a runner's heap are the store's memtables. They have no
// pointers, so the collector need not follow them, and their memory is used only as rows are
// written. A server with 15 MB in use would collect 85 MB of garbage before it collects it.
package gcpace
