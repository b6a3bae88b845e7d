// Package fairqueue hands out a fixed number of slots to claims that compete for them.
//
// A claim belongs to a group, such as a handler or an origin. The groups share the slots:
// each group leaves some slots to the others (Share), so a group with many claims delays
// only itself. Within these limits waiters are served in the order in which they came.
// Holders that gave their slot back for a while are served before new waiters.
//
// Every wait ends: with a slot, with the caller's context, or after the caller's time
// limit.
//
// The package does not know what a slot stands for, and starts no goroutine.
package fairqueue
